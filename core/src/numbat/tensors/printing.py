"""How a tensor is shown: PyTorch's layout, number formats and summaries.

Source: PyTorch 2.13, `torch.set_printoptions` and the layout that its documentation's examples
show.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from numbat.tensors import dtypes
from numbat.tensors.tensor import Array, Tensor
from numbat_registries import refuse


@dataclass(frozen=True)
class PrintOptions:
    """How numbers are laid out.

    Attributes:
        precision: digits after the point.
        threshold: more elements than this are summarised.
        edgeitems: elements shown at both ends of each axis of a summary.
        linewidth: characters of a line.
        sci_mode: whether exponents are written; None to decide by the values.
    """

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


_PROFILES = {
    "default": PrintOptions(),
    "short": PrintOptions(precision=2, edgeitems=2),
    "full": PrintOptions(threshold=math.inf),
}


class _State:
    options = PrintOptions()


def get_printoptions() -> PrintOptions:
    """The options in force."""
    return _State.options


def set_printoptions(
    precision: int | None = None, threshold: float | None = None, edgeitems: int | None = None,
    linewidth: int | None = None, profile: str | None = None, sci_mode: bool | None = None,
) -> None:  # fmt: skip
    """Sets options of printing; what is left out stays, but for `sci_mode`, which then is decided
    anew.

    Raises CORE-0247 for a profile other than default, short and full.
    """
    if profile is not None and profile not in _PROFILES:
        raise refuse(
            "CORE-0247", operator="set_printoptions", argument="profile", value=str(profile),
            known=sorted(_PROFILES),
        )  # fmt: skip
    given: dict[str, Any] = {
        "precision": precision, "threshold": threshold, "edgeitems": edgeitems,
        "linewidth": linewidth,
    }  # fmt: skip
    changes = {name: value for name, value in given.items() if value is not None}
    base = _State.options if profile is None else _PROFILES[profile]
    _State.options = replace(base, sci_mode=sci_mode, **changes)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """Within it other options are in force; see `set_printoptions`."""
    before = _State.options
    try:
        set_printoptions(**options)
        yield
    finally:
        _State.options = before


class _Format:
    """One format for all numbers of a tensor: width, and whole, fixed or with exponents."""

    def __init__(self, array: Array, options: PrintOptions) -> None:
        self.precision = options.precision
        self.floating = dtypes.from_numpy_dtype(array.dtype).is_floating_point
        self.whole, self.exponents = True, False
        if not self.floating:
            self.width = max((len(str(one)) for one in array.reshape(-1).tolist()), default=1)
            return
        values = array.reshape(-1).astype(np.float64)
        values = values[np.isfinite(values) & (values != 0)]
        self.width = 1
        if not values.size:
            return
        sizes = np.abs(values)
        self.whole = bool((values == np.ceil(values)).all())
        if options.sci_mode is None:
            low, high = float(sizes.min()), float(sizes.max())
            self.exponents = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
        else:
            self.exponents = options.sci_mode
        self.width = max(len(self._plain(one)) for one in values.tolist())

    def _plain(self, value: float) -> str:
        if self.exponents:
            return f"{value:.{self.precision}e}"
        if self.whole:
            return f"{value:.0f}" + ("." if math.isfinite(value) else "")
        return f"{value:.{self.precision}f}"

    def show(self, value: Any) -> str:
        return (self._plain(value) if self.floating else str(value)).rjust(self.width)


def _ends(array: Array, edge: int) -> Array:
    """The elements that a summary shows."""
    for axis, extent in enumerate(array.shape):
        if extent > 2 * edge:
            places = [*range(edge), *range(extent - edge, extent)]
            array = array.take(places, axis)
    return array


def _vector(array: Array, indent: int, summed: bool, form: _Format, options: PrintOptions) -> str:
    a_line = max(1, (options.linewidth - indent) // (form.width + 2))
    edge = options.edgeitems
    if summed and not edge:
        shown = ["..."]
    elif summed and array.shape[0] > 2 * edge:
        shown = [form.show(one) for one in array[:edge].tolist()]
        shown += [" ...", *(form.show(one) for one in array[-edge:].tolist())]
    else:
        shown = [form.show(one) for one in array.tolist()]
    lines = [", ".join(shown[at : at + a_line]) for at in range(0, len(shown), a_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _laid_out(array: Array, indent: int, summed: bool, form: _Format, options: PrintOptions) -> str:
    if not array.ndim:
        return form.show(array.item())
    if array.ndim == 1:
        return _vector(array, indent, summed, form, options)
    edge, count = options.edgeitems, array.shape[0]
    if summed and count > 2 * edge:
        rows = [*range(edge), None, *range(count - edge, count)]
    else:
        rows = [*range(count)]
    parts = [
        "..." if row is None else _laid_out(array[row], indent + 1, summed, form, options)
        for row in rows
    ]
    return "[" + (",\n" + "\n" * (array.ndim - 2) + " " * (indent + 1)).join(parts) + "]"


def _contents(array: Array, indent: int, options: PrintOptions) -> str:
    if not array.size:
        return "[]"
    summed = array.size > options.threshold
    form = _Format(_ends(array, options.edgeitems) if summed else array, options)
    return _laid_out(array, indent, summed, form, options)


def _suffixes(tensor: Tensor) -> list[str]:
    found = []
    dtype = tensor.dtype
    default = dtypes.get_default_dtype()
    if not tensor.array.size:
        if tensor.array.ndim != 1:
            found.append(f"size={tuple(tensor.shape)}")
        # Nothing shows that the numbers would be whole.
        if dtype is not default:
            found.append(f"dtype={dtype!r}")
    elif dtype not in (default, dtypes.int64, dtypes.bool_):
        found.append(f"dtype={dtype!r}")
    node = tensor.grad_fn
    if node is not None:
        found.append(f"grad_fn={node!r}")
    elif tensor.requires_grad:
        found.append("requires_grad=True")
    return found


def shown(tensor: Tensor) -> str:
    """The tensor as text: its elements, and what of its type and history is not plain from them."""
    options = _State.options
    name = type(tensor).__name__
    prefix = "tensor(" if name in ("Tensor", "Parameter") else f"{name}("
    indent = len(prefix)
    text = prefix + _contents(tensor.array, indent, options)
    width = len(text) - text.rfind("\n") + 1
    for suffix in _suffixes(tensor):
        if width + len(suffix) + 2 > options.linewidth:
            text += ",\n" + " " * indent + suffix
            width = indent + len(suffix)
        else:
            text += ", " + suffix
            width += len(suffix) + 2
    return text + ")"
