"""Einstein's summation: sums of products over named axes, by matrix products."""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.ops.matrix import matmul
from numbat.ops.pointwise import mul
from numbat.ops.rearranging import diagonal
from numbat.ops.reductions import sum as total
from numbat.ops.registry import Sample, operator
from numbat.ops.viewing import permute, reshape
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = [
    "einsum",
]  # fmt: skip


def _sample_einsum(rng: np.random.Generator) -> Any:
    cases = [
        ("ij,jk->ik", (2, 3), (3, 2)),
        ("bij,bjk", (2, 2, 3), (2, 3, 2)),
        ("ii->i", (3, 3)),
        ("ii", (3, 3)),
        ("i,j", (2,), (3,)),
        ("...ij,...jk->...ik", (2, 2, 3), (3, 2)),
        ("ij,jk,kl->il", (2, 3), (3, 2), (2, 3)),
        ("ij->", (2, 3)),
        ("bn,anm,bm->ba", (2, 3), (2, 3, 2), (2, 2)),
    ]
    for equation, *shapes in cases:
        operands = (rng.normal(size=shape) for shape in shapes)  # type: ignore[arg-type]
        yield Sample((equation, *operands))


@operator(_sample_einsum, method=False)
def einsum(equation: Any, *operands: Any) -> Tensor:
    """The sums of products that the equation names, as `'ij,jk->ik'`; without `->` the letters
    that occur
    once, in alphabetic order, are the result's. Operands and lists of axes may be given in turn
    instead.

    Raises CORE-0249 for an equation that does not fit its operands, CORE-0111.
    """
    if isinstance(equation, Tensor):
        equation, operands = _from_lists((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    tensors = list(operands)
    inputs, output = _parsed(equation.replace(" ", ""), tensors)
    laid = [
        _single(tensor, labels, equation) for tensor, labels in zip(tensors, inputs, strict=True)
    ]
    return _contracted(laid, output)


def _from_lists(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """The equation of operands and lists of axes given in turn."""

    def letters(axes: Any) -> str:
        return "".join("..." if one is Ellipsis else _letter(int(one)) for one in axes)

    pairs = len(given) // 2
    equation = ",".join(letters(given[2 * at + 1]) for at in range(pairs))
    if len(given) % 2:
        equation += "->" + letters(given[-1])
    return equation, tuple(given[2 * at] for at in range(pairs))


def _letter(number: int) -> str:
    if not 0 <= number < 52:
        raise refuse("CORE-0249", equation=str(number), because="axes are numbered from 0 to 51")
    return chr(ord("A") + number) if number < 26 else chr(ord("a") + number - 26)


def _parsed(equation: str, tensors: list[Tensor]) -> tuple[list[str], str]:
    """The labels of each operand and of the result; an ellipsis becomes labels of its own (digits'
    code
    points and beyond, outermost first).

    Raises CORE-0249.
    """

    def faulty(because: str) -> Any:
        return refuse("CORE-0249", equation=equation, because=because)

    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(tensors):
        raise faulty(f"it names {len(terms)} operands, {len(tensors)} are given")
    deepest = 0
    for term, tensor in zip(terms, tensors, strict=True):
        named = term.replace("...", "", 1)
        if not all(one.isascii() and one.isalpha() for one in named):
            raise faulty(f"'{term}' is not of letters")
        if "..." in term:
            if len(named) > tensor.array.ndim:
                raise faulty(f"'{term}' names more axes than shape {list(tensor.shape)} has")
            deepest = max(deepest, tensor.array.ndim - len(named))
        elif len(named) != tensor.array.ndim:
            raise faulty(f"'{term}' does not name each axis of shape {list(tensor.shape)}")
    spare = "".join(chr(0x100 + at) for at in range(deepest))
    inputs = []
    for term, tensor in zip(terms, tensors, strict=True):
        depth = tensor.array.ndim - len(term.replace("...", "", 1))
        inputs.append(term.replace("...", spare[deepest - depth :] if depth else ""))
    if not arrow:
        once = [one for one in sorted(set(left)) if one.isalpha() and left.count(one) == 1]
        return inputs, spare + "".join(once)
    output = right.replace("...", spare, 1)
    if len(set(output)) != len(output):
        raise faulty("the result names an axis twice")
    for one in output:
        if not one.isalpha():
            raise faulty(f"'{right}' is not of letters")
        if not any(one in labels for labels in inputs):
            raise faulty(f"no operand has the result's axis '{one}'")
    return inputs, output


class _Laid:
    """An operand whose axes have distinct labels."""

    __slots__ = ("labels", "tensor")

    def __init__(self, tensor: Tensor, labels: str) -> None:
        self.tensor = tensor
        self.labels = labels

    def extent(self, label: str) -> int:
        return self.tensor.array.shape[self.labels.index(label)] if label in self.labels else 1


def _single(tensor: Tensor, labels: str, equation: str) -> _Laid:
    """An operand with a label that occurs twice replaced by its diagonal."""
    at = 0
    while at < len(labels):
        other = labels.find(labels[at], at + 1)
        if other < 0:
            at += 1
            continue
        if tensor.array.shape[at] != tensor.array.shape[other]:
            raise refuse(
                "CORE-0249", equation=equation,
                because=f"axis '{labels[at]}' has two extents in one operand",
            )  # fmt: skip
        tensor = diagonal(tensor, 0, at, other)
        labels = labels[:at] + labels[at + 1 : other] + labels[other + 1 :] + labels[at]
        at = 0
    return _Laid(tensor, labels)


def _contracted(operands: list[_Laid], output: str) -> Tensor:
    extents: dict[str, int] = {}
    for one in operands:
        for label, extent in zip(one.labels, one.tensor.array.shape, strict=True):
            before = extents.setdefault(label, extent)
            if 1 in (before, extent):
                extents[label] = max(before, extent) if before and extent else 0
            elif before != extent:
                raise refuse(
                    "CORE-0249",
                    equation="",
                    because=f"an axis has extents {before} and {extent}",
                )
    for first, second in _order(operands, output, extents):
        right, left = operands.pop(second), operands.pop(first)
        kept = set(output).union(*(one.labels for one in operands))
        operands.append(_pair(left, right, kept))
    sole = _reduced(operands[0], set(output))
    return permute(sole.tensor, [sole.labels.index(label) for label in output])


def _order(operands: list[_Laid], output: str, extents: dict[str, int]) -> list[tuple[int, int]]:
    """Pairs to multiply, by greedy cost where there are more than two operands."""
    if len(operands) < 2:
        return []
    if len(operands) == 2:
        return [(0, 1)]
    whole = [
        np.broadcast_to(np.int8(0), [extents[label] for label in one.labels]) for one in operands
    ]
    letters = {label: _letter(at) for at, label in enumerate(extents)}
    terms = ",".join("".join(letters[label] for label in one.labels) for one in operands)
    equation = terms + "->" + "".join(letters[label] for label in output)
    path = np.einsum_path(equation, *whole, optimize=("greedy", 2**62))[0][1:]
    pairs: list[tuple[int, int]] = []
    for step in path:
        places = sorted(step)
        if len(places) == 1:
            continue
        # More than two at once: one after another, the result being the last of the list.
        pairs.append((places[0], places[1]))
        count = len(operands) - len(pairs)
        for place in places[2:]:
            pairs.append((place - 2, count - 1) if place >= 2 else (0, count - 1))
            count -= 1
    return pairs


def _reduced(one: _Laid, kept: set[str]) -> _Laid:
    """The operand summed over the axes that nobody else has."""
    axes = [at for at, label in enumerate(one.labels) if label not in kept]
    if not axes:
        return one
    labels = "".join(label for label in one.labels if label in kept)
    return _Laid(total(one.tensor, axes, dtype=one.tensor.dtype), labels)


def _pair(left: _Laid, right: _Laid, kept: set[str]) -> _Laid:
    """The sum of products of two operands over the axes that are not kept."""
    left = _reduced(left, kept | set(right.labels))
    right = _reduced(right, kept | set(left.labels))
    both = [label for label in left.labels if label in right.labels]
    # An extent of one broadcasts: it is summed away with the other's axis, or plays no part.
    for label in both:
        mine, theirs = left.extent(label), right.extent(label)
        if mine != theirs:
            left = _squeezed(left, label) if mine == 1 else left
            right = _squeezed(right, label) if theirs == 1 else right
    left = _reduced(left, kept | set(right.labels))
    right = _reduced(right, kept | set(left.labels))
    both = [label for label in left.labels if label in right.labels]
    batch = [label for label in both if label in kept]
    summed = [label for label in both if label not in kept]
    rows = [label for label in left.labels if label not in right.labels]
    columns = [label for label in right.labels if label not in left.labels]
    if not summed:
        labels = [*batch, *rows, *columns]
        return _Laid(mul(_spread(left, labels), _spread(right, labels)), "".join(labels))
    groups = ((left, batch), (left, rows), (left, summed), (right, columns))
    sizes = [[one.extent(label) for label in labels] for one, labels in groups]
    counts = [int(np.prod(size, dtype=np.int64)) for size in sizes]
    wide = reshape(_moved(left, [*batch, *rows, *summed]), (counts[0], counts[1], counts[2]))
    tall = reshape(_moved(right, [*batch, *summed, *columns]), (counts[0], counts[2], counts[3]))
    if not batch:
        wide, tall = reshape(wide, counts[1:3]), reshape(tall, counts[2:])
    product = reshape(matmul(wide, tall), [*sizes[0], *sizes[1], *sizes[3]])
    return _Laid(product, "".join([*batch, *rows, *columns]))


def _squeezed(one: _Laid, label: str) -> _Laid:
    at = one.labels.index(label)
    shape = one.tensor.array.shape
    return _Laid(
        reshape(one.tensor, (*shape[:at], *shape[at + 1 :])), one.labels.replace(label, "")
    )


def _moved(one: _Laid, labels: list[str]) -> Tensor:
    return permute(one.tensor, [one.labels.index(label) for label in labels])


def _spread(one: _Laid, labels: list[str]) -> Tensor:
    """The operand with an axis of extent one for each label that it lacks."""
    mine = [label for label in labels if label in one.labels]
    return reshape(_moved(one, mine), [one.extent(label) for label in labels])
