"""PyTorch's CPU stream: the Mersenne Twister MT19937 and, word for word, what is drawn from it.

`Mersenne` draws by the kernels of `kernels/mersenne.c`; the numpy reference of each is the method
of the same name in `streams.py`. Float32 normals equal those of PyTorch's AVX2 build bit for bit;
its other builds differ from it in the last bits. PyTorch built with MKL on an Intel processor draws
`bernoulli` and `exponential_` from another stream; that one is not reproduced.
Source: Matsumoto and Nishimura 1998; PyTorch, `ATen/core/MT19937RNGEngine.h`.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

import numpy as np

from numbat.kernels.calling import address, kernel
from numbat.random.streams import Array, Stream

WORDS = 624
"""Words in the state."""


def _drawing(name: str, kinds: str) -> Callable[..., int]:
    function = kernel("nb_mersenne_" + name, kinds)
    function.restype = ctypes.c_int64  # type: ignore[attr-defined]
    return function  # type: ignore[return-value]


_words = _drawing("words", "PlPl")
_uniform_f32 = _drawing("uniform_f32", "PlPldd")
_uniform_f64 = _drawing("uniform_f64", "PlPldd")
_bernoulli = _drawing("bernoulli", "PlPld")
_factors_f32 = _drawing("factors_f32", "PlPldd")
_normal_f32 = _drawing("normal_f32", "PlPldd")
_integers = _drawing("integers", "PlPlll")
_permutation = _drawing("permutation", "PlPl")
_poisson = _drawing("poisson", "PlPPl")


def _first_words(seed: int) -> list[int]:
    """The state of a seed: `init_genrand` of Matsumoto and Nishimura, 2002."""
    words = [seed]
    for index in range(1, WORDS):
        before = words[-1]
        words.append((1812433253 * (before ^ (before >> 30)) + index) & 0xFFFFFFFF)
    return words


class Mersenne(Stream):
    """The stream of MT19937.

    Attributes:
        state: 624 words, uint32.
        next: the index of the next word; 624 when they are used up.
        begun: whether a word was drawn since it was seeded.
    """

    def __init__(self, seed: int) -> None:
        self.lock = threading.Lock()
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Begins the stream of a seed; PyTorch uses its low 32 bits."""
        self.restore(np.array(_first_words(seed & 0xFFFFFFFF), np.uint32), WORDS, begun=False)
        self.normal = None

    def restore(self, words: Array, next: int, *, begun: bool) -> None:
        """Continues at a place of a stream; `begun` tells whether a word was ever drawn of it."""
        self.state: Array = np.array(words, dtype=np.uint32)
        self.next = next
        self.begun = begun

    def _draw(
        self, function: Callable[..., int], out: Array, *args: float, before: tuple[int, ...] = ()
    ) -> Array:
        # Kernels run without Python's lock; two threads that draw at once must not share a word.
        with self.lock:
            self.begun = self.begun or out.size > 0
            self.next = function(
                address(self.state), self.next, *before, address(out), out.size, *args
            )
        return out

    def words(self, count: int) -> Array:
        return self._draw(_words, np.empty(count, np.uint32))

    def reals(self, count: int) -> Array:
        return self._draw(_uniform_f64, np.empty(count), 0.0, 1.0)

    def uniform_f32(self, count: int, low: float = 0.0, high: float = 1.0) -> Array:
        return self._draw(_uniform_f32, np.empty(count, np.float32), low, high)

    def uniform_f64(self, count: int, low: float = 0.0, high: float = 1.0) -> Array:
        return self._draw(_uniform_f64, np.empty(count), low, high)

    def bernoulli(self, count: int, p: float) -> Array:
        return self._draw(_bernoulli, np.empty(count, np.bool_), p)

    def factors_f32(self, count: int, p: float, value: float) -> Array:
        return self._draw(_factors_f32, np.empty(count, np.float32), p, value)

    def normal_f32(self, count: int, mean: float, std: float) -> Array:
        return self._draw(_normal_f32, np.empty(count, np.float32), mean, std)

    def small_integers(self, count: int, low: int, span: int) -> Array:
        return self._draw(_integers, np.empty(count, np.int64), low, span)

    def permutation(self, count: int) -> Array:
        return self._draw(_permutation, np.empty(count, np.int64))

    def poisson(self, rates: Array) -> Array:
        rates = np.ascontiguousarray(rates, np.float64)
        return self._draw(_poisson, np.empty(rates.size), before=(address(rates),))
