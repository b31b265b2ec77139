"""Distributions over a stream of 32-bit words, as PyTorch's CPU generator makes them of its own.

`Stream` states each in numpy; `mersenne.py` overrides them by C kernels that give the same numbers.
Source: PyTorch, `ATen/core/TransformationHelper.h`, `ATen/core/DistributionsHelper.h`,
`ATen/native/cpu/DistributionTemplates.h`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numbat.kernels.calling import address, kernel

Array = np.ndarray[Any, np.dtype[Any]]

WIDE_RANGE = 1 << 28
"""From this range on, whole numbers are taken of 64 bits: the remainder's skew stays small."""

_affine = kernel("nb_affine_f64", "Plldd")


def affine(values: Array, scale: float, shift: float) -> Array:
    """`values * scale + shift` with one rounding, in place; float64 without gaps."""
    if scale != 1 or shift != 0:
        _affine(address(values), 0, values.size, scale, shift)
    return values


class Stream:
    """A source of 32-bit words, and what is drawn from it.

    Attributes:
        normal: the second number of a Box-Muller pair whose first was asked for, if there is one.
    """

    normal: float | None = None

    def words(self, count: int) -> Array:
        """The next `count` words, uint32."""
        raise NotImplementedError

    def long_words(self, count: int) -> Array:
        """The next `count` pairs of words, the first of each pair the higher one, uint64."""
        pairs = self.words(2 * count).astype(np.uint64)
        return (pairs[0::2] << np.uint64(32)) | pairs[1::2]

    def reals(self, count: int) -> Array:
        """Uniform float64 in [0, 1), of 53 bits each."""
        return (self.long_words(count) & np.uint64((1 << 53) - 1)).astype(np.float64) * 2.0**-53

    def uniform_f32(self, count: int, low: float = 0.0, high: float = 1.0) -> Array:
        """Uniform float32 from `low` to `high`, of 24 bits each; what rounds up to `high` becomes
        `low`.
        """
        first, bound = np.float32(low), np.float32(high)
        unit = (self.words(count) & np.uint32(0xFFFFFF)).astype(np.float64) * 2.0**-24
        drawn = (unit * float(bound - first) + float(first)).astype(np.float32)
        return np.where(drawn == bound, first, drawn)

    def uniform_f64(self, count: int, low: float = 0.0, high: float = 1.0) -> Array:
        """Uniform float64 from `low` to `high`."""
        drawn = affine(self.reals(count), high - low, low)
        return np.where(drawn == high, low, drawn)

    def bernoulli(self, count: int, p: float) -> Array:
        """Bools that are true with probability `p`."""
        drawn: Array = self.reals(count) < p
        return drawn

    def factors_f32(self, count: int, p: float, value: float) -> Array:
        """Float32: `value` with probability `p`, else 0."""
        return np.where(self.reals(count) < p, np.float32(value), np.float32(0))

    def integers(self, count: int, low: int, span: int) -> Array:
        """Whole numbers in [low, low + span), int64."""
        if span < WIDE_RANGE:
            return self.small_integers(count, low, span)
        drawn = self.long_words(count)
        if span < 1 << 64:
            drawn = drawn % np.uint64(span)
        found: Array = drawn.view(np.int64) + np.int64(low)
        return found

    def small_integers(self, count: int, low: int, span: int) -> Array:
        """Whole numbers in [low, low + span) of one word each, int64; `span` is below 2**32."""
        found: Array = (self.words(count) % np.uint32(span)).astype(np.int64) + low
        return found

    def normal_f32(self, count: int, mean: float, std: float) -> Array:
        """Normal float32 for sixteen or more; a rest of the last block is drawn anew, as in
        PyTorch.
        """
        return self._blocks(self.uniform_f32, count, mean, std)

    def normal_f64(self, count: int, mean: float, std: float) -> Array:
        """Normal float64 for sixteen or more."""
        return self._blocks(self.uniform_f64, count, mean, std)

    def _blocks(self, draw: Any, count: int, mean: float, std: float) -> Array:
        values = draw(count)
        whole = count - count % 16
        out: Array = np.empty_like(values)
        out[:whole] = _box_muller(values[:whole], mean, std)
        if count % 16:
            out[whole:] = values[whole:]
            out[-16:] = _box_muller(draw(16), mean, std)
        return out

    def normals(self, count: int, mean: float = 0.0, std: float = 1.0) -> Array:
        """Normal float64 one after another, in pairs; an unused half of a pair is kept for the next
        call.
        """
        out = np.empty(count)
        begin = 0
        if self.normal is not None and count:
            out[0], self.normal, begin = self.normal, None, 1
        pairs = (count - begin + 1) // 2
        if pairs:
            drawn = self.reals(2 * pairs)
            radius = np.sqrt(-2.0 * np.log1p(-drawn[1::2]))
            angle = 2.0 * math.pi * drawn[0::2]
            both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1).reshape(-1)
            out[begin:] = both[: count - begin]
            if both.size > count - begin:
                self.normal = float(both[-1])
        return affine(out, std, mean)

    def exponential(self, count: int, rate: float) -> Array:
        """Exponential float64."""
        return -1.0 / rate * np.log1p(-self.reals(count))

    def geometric(self, count: int, p: float) -> Array:
        """Trials up to the first success, float64 from 1."""
        return np.ceil(np.log(self.reals(count)) / math.log1p(-p))

    def cauchy(self, count: int, median: float, sigma: float) -> Array:
        """Cauchy float64."""
        return affine(np.tan(math.pi * (self.reals(count) - 0.5)), sigma, median)

    def permutation(self, count: int) -> Array:
        """The numbers 0 to `count - 1` in a random order, int64 (Fisher and Yates)."""
        out = np.arange(count, dtype=np.int64)
        if count < 2:
            return out
        wide = count >= 0xFFFFFFFF // 20
        drawn = self.long_words(count - 1) if wide else self.words(count - 1)
        for here, word in enumerate(drawn.tolist()):
            there = here + word % (count - here)
            out[here], out[there] = out[there], out[here]
        return out

    def poisson(self, rates: Array) -> Array:
        """A Poisson number for each rate, float64 (products below 10, else Hörmann 1993)."""
        return np.array([self._poisson(rate) for rate in rates.tolist()])

    def _poisson(self, rate: float) -> float:
        def real() -> float:
            return float(self.reals(1)[0])

        if rate >= 10:
            b = 0.931 + 2.53 * math.sqrt(rate)
            a = -0.059 + 0.02483 * b
            inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
            limit = 0.9277 - 3.6224 / (b - 2)
            while True:
                u = real() - 0.5
                v = real()
                us = 0.5 - abs(u)
                found = math.floor((2 * a / us + b) * u + rate + 0.43)
                if us >= 0.07 and v <= limit:
                    return found
                if found < 0 or (us < 0.013 and v > us):
                    continue
                accepted = math.log(v) + math.log(inverse_alpha) - math.log(a / (us * us) + b)
                if accepted <= -rate + found * math.log(rate) - math.lgamma(found + 1):
                    return found
        count = 0
        if rate > 0:
            least, product = math.exp(-rate), real()
            while product > least:
                count += 1
                product *= real()
        return count


def _box_muller(values: Array, mean: float, std: float) -> Array:
    """Normal numbers of uniform ones in [0, 1), block by block of sixteen."""
    blocks = values.reshape(-1, 2, 8).astype(np.float64)
    radius = np.sqrt(-2.0 * np.log(1.0 - blocks[:, 0]))
    angle = 2.0 * math.pi * blocks[:, 1]
    both = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
    return affine(both.reshape(-1), std, mean).astype(values.dtype)
