"""Generators: a seed, a stream, and its state to save and to restore.

The state of a generator of the Mersenne Twister has PyTorch's own layout of 5056 bytes, so that a
state which `torch.get_rng_state` gave continues here, and the other way round.
"""

from __future__ import annotations

import secrets
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from numbat.random.mersenne import WORDS, Mersenne
from numbat.random.philox import Philox
from numbat.tensors.device import CPU, Device, check_device
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

DEFAULT_SEED = 67280421310721
"""PyTorch's seed where none was given."""

STATE_BYTES = 5056
"""Of a Mersenne Twister's state; that of Philox has 16."""

# CPUGeneratorImplState: seed, words left, seeded, index, 624 words of 64 bits, x, y, rho, valid,
# float cache.
_HEAD = struct.Struct("<Qiiq")
_TAIL = struct.Struct("<dddi4xf?3x")


class Generator:
    """A source of random numbers.

    Args:
        device: the CPU.
        engine: `mersenne`, PyTorch's CPU stream, or `philox`, a stream of counters.

    Raises CORE-0104 for another device, CORE-0505 for another engine.
    """

    def __init__(self, device: Any = None, *, engine: str = "mersenne") -> None:
        check_device(device)
        if engine not in ("mersenne", "philox"):
            raise refuse("CORE-0505", engine=str(engine), known=["mersenne", "philox"])
        self.engine = engine
        self.stream: Mersenne | Philox = (Mersenne if engine == "mersenne" else Philox)(
            DEFAULT_SEED
        )
        self._seed = DEFAULT_SEED

    @property
    def device(self) -> Device:
        """Where it draws: the CPU."""
        return CPU

    def manual_seed(self, seed: int) -> Generator:
        """Begins the stream of a seed anew; a negative one stands for itself plus 2**64.

        Raises CORE-0504 for a seed outside [-2**63, 2**64).
        """
        seed = int(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise refuse("CORE-0504", seed=str(seed))
        self._seed = seed & 0xFFFFFFFFFFFFFFFF
        self.stream.seed(self._seed)
        return self

    def seed(self) -> int:
        """Begins the stream of a seed that the system's entropy gives; answers the seed."""
        seed = secrets.randbits(53)
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed with which the stream began."""
        return self._seed

    def get_state(self) -> Tensor:
        """The state, uint8 of shape (5056,) in PyTorch's layout; of shape (16,) for Philox."""
        stream = self.stream
        if isinstance(stream, Philox):
            raw = struct.pack("<QQ", stream.key, stream.next)
            return wrap(np.frombuffer(raw, np.uint8).copy())
        fresh = stream.next == WORDS and not stream.begun
        left, index = (1, 0) if fresh else (WORDS + 1 - stream.next, stream.next)
        cached = stream.normal
        raw = b"".join([
            _HEAD.pack(self._seed, left, 1, index),
            stream.state.astype("<u8").tobytes(),
            _TAIL.pack(0.0, cached or 0.0, 0.0, cached is not None, 0.0, False),
        ])  # fmt: skip
        return wrap(np.frombuffer(raw, np.uint8).copy())

    def set_state(self, state: Any) -> Generator:
        """Continues from a state that `get_state`, or PyTorch's, gave.

        Raises CORE-0503 where it is none.
        """
        raw = np.ascontiguousarray(state.array if isinstance(state, Tensor) else state).tobytes()
        stream = self.stream
        if isinstance(stream, Philox):
            if len(raw) != 16:
                raise refuse("CORE-0503", bytes=len(raw), expected=16, because="its length")
            self._seed, stream.next = struct.unpack("<QQ", raw)
            stream.key, stream.normal = self._seed, None
            return self
        if len(raw) != STATE_BYTES:
            raise refuse("CORE-0503", bytes=len(raw), expected=STATE_BYTES, because="its length")
        seed, left, seeded, index = _HEAD.unpack_from(raw)
        _, cached, _, valid, _, _ = _TAIL.unpack_from(raw, _HEAD.size + 8 * WORDS)
        if not seeded or not 1 <= left <= WORDS or not 0 <= index <= WORDS:
            raise refuse(
                "CORE-0503", bytes=len(raw), expected=STATE_BYTES, because="its place in the stream"
            )
        words = np.frombuffer(raw, "<u8", WORDS, _HEAD.size).astype(np.uint32)
        stream.restore(words, WORDS if left == 1 else index, begun=index > 0)
        stream.normal = cached if valid else None
        self._seed = seed
        return self

    def clone_state(self) -> Generator:
        """Another generator that stands where this one does."""
        return Generator(engine=self.engine).set_state(self.get_state())

    def fold(self, rank: int) -> Generator:
        """A generator for one rank of several, or one worker: its seed is a function of this one's
        and `rank`.

        Ranks have streams that do not depend on how many there are. Rank r takes the first two
        words of Philox at counter (r, 0, 0, 1) under this generator's seed.
        """
        from numbat.random.philox import philox4x32

        low, high = rank & 0xFFFFFFFF, (rank >> 32) & 0xFFFFFFFF
        key = (self._seed & 0xFFFFFFFF, self._seed >> 32)
        words = philox4x32((low, high, 0, 1), key).tolist()
        return Generator(engine=self.engine).manual_seed(words[0] | words[1] << 32)

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self.engine, self.get_state().array))

    def __repr__(self) -> str:
        return f"<numbat.Generator engine={self.engine} seed={self._seed}>"


def _rebuild(engine: str, state: Any) -> Generator:
    return Generator(engine=engine).set_state(wrap(state))


default_generator = Generator()
"""The generator of every sampling operator to which none is given."""


def manual_seed(seed: int) -> Generator:
    """Seeds the default generator.

    Raises CORE-0504 for a seed outside [-2**63, 2**64).
    """
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Seeds the default generator from the system's entropy; answers the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, uint8 of shape (5056,)."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Continues the default generator from a state.

    Raises CORE-0503 where it is none.
    """
    default_generator.set_state(state)


@contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """Within it the default generator is drawn from freely; after it, it stands where it stood."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
