"""Random numbers: PyTorch's CPU stream, Philox, and the generators over them."""

from numbat.random.generator import (
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from numbat.random.philox import philox4x32

__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed",
    "philox4x32", "seed", "set_rng_state",
]  # fmt: skip
