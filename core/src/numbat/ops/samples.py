"""Makers of sample inputs that several families of operators share."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from numbat.ops.registry import Sample, Samples


def unary(low: float = -2.0, high: float = 2.0, away_from: float | None = None) -> Samples:
    """One tensor of 2x3, one of no axes and one that is transposed, with values between the bounds.

    `away_from` keeps values 0.1 or more from a kink.
    """

    def draw(rng: np.random.Generator, *shape: int) -> np.ndarray:
        values = rng.uniform(low, high, shape)
        if away_from is not None:
            gap = values - away_from
            values = np.where(
                abs(gap) < 0.1, away_from + np.where(gap < 0, -0.1, 0.1) * 1.5, values
            )
        return np.asarray(values)

    def make(rng: np.random.Generator) -> Iterator[Sample]:
        yield Sample((draw(rng, 2, 3),))
        yield Sample((draw(rng),))
        yield Sample((draw(rng, 3, 2).T,))

    return make


def binary(
    low: float = -2.0, high: float = 2.0, low2: float | None = None, high2: float | None = None
) -> Samples:
    """Two tensors: of one shape, broadcast both ways, and one of no axes; the second one's bounds
    may differ."""

    def make(rng: np.random.Generator) -> Iterator[Sample]:
        second = (low if low2 is None else low2, high if high2 is None else high2)
        for one, other in (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((2, 2), ())):
            yield Sample((rng.uniform(low, high, one), rng.uniform(*second, other)))

    return make
