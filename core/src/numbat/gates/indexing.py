"""Indices of every kind against numpy's, read and written; scattered gradients by hand."""

import itertools
from typing import Any

import numpy as np

import numbat as nb
from numbat_gates import Check, gate

FIRST: tuple[Any, ...] = (2, -1, slice(None), slice(1, 3), slice(None, None, 2), [0, 2, 0])
SECOND: tuple[Any, ...] = (0, slice(None), slice(2, 0), [1, 1, 3], None, Ellipsis)


@gate(
    "CORE-G03",
    phase=1,
    discharges=["CORE-R003"],
    title="Indices select and write what numpy's do",
)
def indexing(check: Check) -> None:
    values = np.arange(60.0).reshape(3, 4, 5)
    mask = values % 7 < 3
    cases: dict[str, Any] = {
        f"[{one}, {two}]": (one, two) for one, two in itertools.product(FIRST, SECOND)
    }
    cases |= {
        "[mask]": mask,
        "[mask of the first axis]": np.array([True, False, True]),
        "[rows, columns]": (np.array([[0], [2]]), np.array([1, 3])),
        "[..., -1]": (Ellipsis, -1),
        "[:, mask of two axes]": (slice(None), mask[0]),
        "[nothing]": np.zeros(0, np.int64),
    }
    for name, index in cases.items():
        mine = nb.tensor(values)[_given(index)]
        check.equal(f"x{name}", mine.array, values[_for_numpy(index)])
        written, expected = nb.tensor(values), values.copy()
        written[_given(index)] = -1.0
        expected[_for_numpy(index)] = -1.0
        check.equal(f"x{name} = -1", written.array, expected)
    _gradients(check)
    with check.refuses("CORE-0240", "an index outside"):
        nb.ones(3)[3]


def _for_numpy(index: Any) -> Any:
    """numpy takes a list as an array, within a tuple as well."""
    if isinstance(index, tuple):
        return tuple(np.array(one) if isinstance(one, list) else one for one in index)
    return index


def _given(index: Any) -> Any:
    """The same index with tensors for arrays."""
    if isinstance(index, np.ndarray):
        return nb.tensor(index)
    if isinstance(index, tuple):
        return tuple(_given(one) for one in index)
    return index


def _gradients(check: Check) -> None:
    x = nb.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (x[[0, 0, 2]] * nb.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad is not None
    check.equal("an element taken twice has both gradients", x.grad.tolist(), [11, 0, 100])
    y = nb.zeros(4)
    value = nb.tensor([5.0, 6.0], requires_grad=True)
    y[1::2] = value
    (y * y).sum().backward()
    assert value.grad is not None
    check.equal("what was written has its gradient", value.grad.tolist(), [10, 12])
    z = nb.tensor([1.0, 2.0, 3.0], requires_grad=True)
    gathered = z.gather(0, nb.tensor([2, 2, 1]))
    (gathered * nb.tensor([1.0, 2.0, 4.0])).sum().backward()
    assert z.grad is not None
    check.equal("gather gives back by place", z.grad.tolist(), [0, 4, 3])
    added = nb.zeros(3).scatter_add(0, nb.tensor([1, 1, 0]), nb.tensor([1.0, 2.0, 3.0]))
    check.equal("scatter_add adds at one place", added.tolist(), [3, 3, 0])
