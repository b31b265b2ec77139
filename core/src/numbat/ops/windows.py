"""Settings that windows share, those of convolutions and of pools alike: numbers per axis, and
extents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numbat_registries import refuse


def numbers(operator: str, setting: str, given: Any, axes: int, least: int) -> tuple[int, ...]:
    """One whole number per axis of space, from one for all or one for each.

    Raises CORE-0405 where they are of another count or below `least`.
    """
    if isinstance(given, int):
        found: tuple[int, ...] = (given,) * axes
    else:
        found = tuple([int(one) for one in given])
        if len(found) == 1:
            found *= axes
    if len(found) != axes or min(found) < least:
        raise refuse(
            "CORE-0405", operator=operator, setting=setting, given=str(given),
            wanted=f"one number of at least {least}, or {axes} of them",
        )  # fmt: skip
    return found


def output_extents(
    operator: str, space: Sequence[int], kernel: Sequence[int], stride: Sequence[int],
    padding: Sequence[int], dilation: Sequence[int], ceil_mode: bool = False,
    begin: Sequence[int] | None = None,
) -> tuple[int, ...]:  # fmt: skip
    """How many windows fit along each axis; `padding` counts both ends together.

    With `ceil_mode` a last window may reach beyond the end, as long as it begins inside the input
    or the padding before it (`begin`).

    Raises CORE-0404 where not one fits.
    """
    found = []
    for axis, (extent, cells, step, pad, gap) in enumerate(
        zip(space, kernel, stride, padding, dilation, strict=True)
    ):
        free = extent + pad - gap * (cells - 1) - 1
        if ceil_mode:
            assert begin is not None
            count = -(-free // step) + 1
            if (count - 1) * step >= extent + begin[axis]:
                count -= 1
        else:
            count = free // step + 1
        found.append(count)
    if min(found, default=1) < 1:
        raise refuse(
            "CORE-0404", operator=operator, space=list(space), kernel=list(kernel), result=found
        )
    return tuple(found)
