"""A sample of an operator as tensors, and as a function of its floating tensors alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from numbat.ops.registry import Operator, Sample
from numbat.tensors.dtypes import DType
from numbat.tensors.tensor import Tensor, wrap


def as_tensors(value: Any, dtype: DType | None = None) -> Any:
    """The value with a fresh tensor for each array in it; floating ones are cast to `dtype`."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.array(value)
        if dtype is not None and array.dtype.kind == "f":
            array = array.astype(dtype.numpy)
        return wrap(_strided_like(array, value))
    if isinstance(value, tuple | list):
        return type(value)(as_tensors(one, dtype) for one in value)
    return value


def _strided_like(array: Any, value: Any) -> Any:
    """The array with its axes in memory in the order of the sample's, so that views stay views."""
    if isinstance(value, np.ndarray) and value.ndim > 1 and not value.flags.c_contiguous:
        return np.asarray(array, order="F")
    return array


def call(operator: Operator, sample: Sample, dtype: DType | None = None) -> Any:
    """The operator's result on a sample, without a gradient."""
    keywords = {name: as_tensors(value, dtype) for name, value in sample.keywords.items()}
    return operator.function(*as_tensors(sample.args, dtype), **keywords)


def floating_tensors(value: Any) -> list[Tensor]:
    """The floating tensors within a value, in order."""
    if isinstance(value, Tensor):
        return [value] if value.is_floating_point() else []
    if isinstance(value, tuple | list):
        return [found for one in value for found in floating_tensors(one)]
    return []


def as_function(
    operator: Operator, sample: Sample, dtype: DType | None = None
) -> tuple[Callable[..., list[Tensor]], list[Tensor]]:
    """The operator as a function of the sample's floating tensors, and those tensors, which require
    gradients. The function gives its floating results."""
    args = as_tensors(sample.args, dtype)
    keywords = {name: as_tensors(value, dtype) for name, value in sample.keywords.items()}
    inputs = floating_tensors([args, list(keywords.values())])
    for one in inputs:
        one.requires_grad = True

    def function(*given: Tensor) -> list[Tensor]:
        replacement = {id(old): new for old, new in zip(inputs, given, strict=True)}

        def replaced(value: Any) -> Any:
            if isinstance(value, Tensor):
                return replacement.get(id(value), value)
            if isinstance(value, tuple | list):
                return type(value)(replaced(one) for one in value)
            return value

        result = operator.function(
            *replaced(args), **{name: replaced(value) for name, value in keywords.items()}
        )
        return floating_tensors(list(result) if isinstance(result, tuple | list) else [result])

    return function, inputs
