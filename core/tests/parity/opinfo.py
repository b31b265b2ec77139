"""torch's own sample inputs as the driver: operators, types, shapes and edge cases not ours.

`torch.testing._internal` is private to torch and pinned with it (2.13.0).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import numbat as nb
from numbat.ops.registry import OPERATORS
from numbat_registries import Refusal

DTYPES = {
    getattr(torch, one.name): one
    for one in (
        nb.bool, nb.uint8, nb.int8, nb.int16, nb.int32, nb.int64, nb.float16, nb.bfloat16,
        nb.float32, nb.float64,
    )
}  # fmt: skip
"""torch's element types, and ours."""

TOLERANCE = {
    torch.float64: (1e-10, 1e-10),
    torch.float32: (2e-5, 2e-5),
    torch.float16: (2e-3, 2e-3),
    torch.bfloat16: (1.6e-2, 1.6e-2),
}
"""Relative and absolute tolerance by the type of the result."""


@cache
def databases() -> dict[str, list[Any]]:
    """torch's operators by the name in our registry (`name` or `name.variant`)."""
    found: dict[str, list[Any]] = {}
    for info in op_db:
        name = f"{info.name}.{info.variant_test_name}" if info.variant_test_name else info.name
        found.setdefault(name, []).append(info)
        if info.variant_test_name:
            found.setdefault(info.name, []).append(info)
    return found


def to_numbat(value: Any, grads: bool = False) -> Any:
    """The same value with our tensors for torch's: own memory, the same strides."""
    if isinstance(value, torch.Tensor):
        out = tensor_of(value)
        if grads and value.requires_grad:
            out.requires_grad = True
        return out
    if isinstance(value, torch.dtype):
        return DTYPES[value]
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, list | tuple):
        several = [to_numbat(one, grads) for one in value]
        return type(value)(several) if type(value) in (list, tuple) else tuple(several)
    if isinstance(value, dict):
        return {key: to_numbat(one, grads) for key, one in value.items()}
    if isinstance(value, torch.device):
        return str(value)
    return value


def tensor_of(value: torch.Tensor) -> nb.Tensor:
    """Our tensor with torch's values in memory of its own, laid out as torch's."""
    value = value.detach()
    if value.dtype == torch.bfloat16:
        array = value.float().numpy().astype(nb.bfloat16.numpy)
    else:
        array = value.numpy()
    memory = np.array(array, copy=True, order="K")
    if any(
        stride == 0 for stride, size in zip(value.stride(), value.shape, strict=True) if size > 1
    ):
        memory = np.array(array, copy=True, order="C")
    return nb.from_numpy(memory)


def to_torch(value: nb.Tensor) -> torch.Tensor:
    """torch's tensor with our values."""
    array = value.array
    if value.dtype is nb.bfloat16:
        return torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    return torch.from_numpy(np.ascontiguousarray(array).reshape(array.shape).copy())


@dataclass
class Fault:
    """One sample on which the two disagree."""

    operator: str
    dtype: str
    sample: str
    what: str


@dataclass
class Tally:
    """How many samples of an operator were compared, and what disagreed."""

    operator: str
    compared: int = 0
    gradients: int = 0
    refused: int = 0
    faults: list[Fault] = field(default_factory=list)


def apart(mine: Any, theirs: Any, scale: float = 1.0) -> str:
    """How two results disagree; empty when they do not."""
    if isinstance(theirs, torch.Tensor):
        if not isinstance(mine, nb.Tensor):
            return f"gives {type(mine).__name__}, torch a tensor"
        if tuple(mine.shape) != tuple(theirs.shape):
            return f"shape {tuple(mine.shape)}, torch's {tuple(theirs.shape)}"
        if mine.dtype is not DTYPES.get(theirs.dtype):
            return f"type {mine.dtype}, torch's {theirs.dtype}"
        other = to_torch(mine)
        if theirs.dtype.is_floating_point:
            rtol, atol = TOLERANCE[theirs.dtype]
            try:
                torch.testing.assert_close(
                    other, theirs.detach(), rtol=rtol * scale, atol=atol * scale, equal_nan=True
                )
            except AssertionError as error:
                return str(error).replace("\n", " ")[:300]
            return ""
        if not torch.equal(other, theirs):
            return f"{int((other != theirs).sum())} of {theirs.numel()} elements differ"
        return ""
    if isinstance(theirs, list | tuple):
        if not isinstance(mine, list | tuple) or len(mine) != len(theirs):
            return f"gives {type(mine).__name__}, torch {len(theirs)} results"
        for one, other in zip(mine, theirs, strict=True):
            found = apart(one, other, scale)
            if found:
                return found
        return ""
    if isinstance(theirs, float):
        return (
            ""
            if math.isclose(mine, theirs, rel_tol=1e-6) or mine == theirs
            else f"{mine}, torch's {theirs}"
        )
    return "" if mine == theirs else f"{mine!r}, torch's {theirs!r}"


def compare(
    name: str,
    *,
    dtypes: tuple[torch.dtype, ...] = (torch.float32, torch.float64),
    limit: int = 60,
    gradients: bool = True,
    variants: bool = True,
    scale: float = 1.0,
    skip: Any = None,
) -> Tally:
    """Runs one operator of our registry on torch's samples: results, types, and gradients.

    Args:
        name: our operator.
        dtypes: torch's element types to draw samples in, where torch's operator supports them.
        limit: the most samples a type.
        gradients: whether gradients are compared, where torch's operator has them.
        scale: by how much the tolerances are widened.
        skip: a function of (sample, dtype) that tells which to leave out, and why (or None).
    """
    entry = OPERATORS[name]
    tally = Tally(name)
    for info in databases().get(entry.torch or "", []):
        for dtype in dtypes:
            if dtype not in info.supported_dtypes("cpu"):
                continue
            with_grad = (
                gradients
                and entry.differentiable
                and info.supports_autograd
                and dtype in info.supported_backward_dtypes("cpu")
            )
            torch.manual_seed(0)
            samples = info.sample_inputs("cpu", dtype, requires_grad=with_grad)
            for number, sample in enumerate(_limited(samples, limit)):
                if skip is not None and skip(sample, dtype):
                    continue
                _compare_one(tally, entry, info, sample, number, dtype, with_grad, scale)
    return tally


def _limited(samples: Any, limit: int) -> Iterator[Any]:
    for number, sample in enumerate(samples):
        if number >= limit:
            return
        yield sample


def _compare_one(
    tally: Tally, entry: Any, info: Any, sample: Any, number: int, dtype: torch.dtype,
    with_grad: bool, scale: float,
) -> None:  # fmt: skip
    shown = f"{number}: {sample!r}"[:300]

    def fault(what: str) -> None:
        tally.faults.append(Fault(entry.name, str(dtype), shown, what))

    # torch's samples are of the method, where it takes its arguments in another order (`where`).
    called = entry.method if callable(entry.method) else entry.function
    first = to_numbat(sample.input, with_grad)
    rest = to_numbat(list(sample.args), with_grad)
    keywords = to_numbat(dict(sample.kwargs), with_grad)
    try:
        theirs = info(sample.input, *sample.args, **sample.kwargs)
    except (RuntimeError, ValueError, IndexError, TypeError):
        return
    try:
        mine = called(first, *rest, **keywords)
    except Refusal as refusal:
        tally.refused += 1
        fault(f"refused: {refusal}")
        return
    except Exception as error:
        fault(f"{type(error).__name__}: {error}")
        return
    tally.compared += 1
    found = apart(mine, theirs, scale)
    if found:
        fault(found)
        return
    if with_grad:
        found = _gradients_apart((first, rest, keywords), mine, sample, theirs, scale)
        if found is not None:
            tally.gradients += 1
            if found:
                fault(found)


def _leaves(value: Any, kind: type) -> list[Any]:
    if isinstance(value, kind):
        return [value] if value.requires_grad else []
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in _leaves(one, kind)]
    if isinstance(value, list | tuple):
        return [leaf for one in value for leaf in _leaves(one, kind)]
    return []


def _results(value: Any, kind: type) -> list[Any]:
    if isinstance(value, kind):
        return [value] if value.requires_grad else []
    if isinstance(value, list | tuple):
        return [found for one in value for found in _results(one, kind)]
    return []


def _gradients_apart(given: Any, mine: Any, sample: Any, theirs: Any, scale: float) -> str | None:
    my_leaves = _leaves(list(given), nb.Tensor)
    their_leaves = _leaves([sample.input, sample.args, sample.kwargs], torch.Tensor)
    my_results, their_results = _results(mine, nb.Tensor), _results(theirs, torch.Tensor)
    if not their_results or not their_leaves:
        return None
    if len(my_results) != len(their_results):
        return f"{len(my_results)} results require gradients, torch's {len(their_results)}"
    weights = [torch.rand_like(one) for one in their_results]
    wanted = torch.autograd.grad(their_results, their_leaves, weights, allow_unused=True)
    try:
        found = nb.autograd.grad(
            my_results, my_leaves, [tensor_of(one) for one in weights], allow_unused=True
        )
    except Exception as error:
        return f"backward: {type(error).__name__}: {error}"
    for index, (one, other) in enumerate(zip(found, wanted, strict=True)):
        if one is None or other is None:
            zero = other if one is None else to_torch(one)
            if zero is not None and bool((zero != 0).any()):
                return f"gradient {index}: one is missing"
            continue
        apart_by = apart(one, other, scale * 4)
        if apart_by:
            return f"gradient {index}: {apart_by}"
    return ""
