"""The running average of a model, with a decay that ramps up.

Source: Tan and Le 2019, and the YOLO family for the decay d(u) = 0.9999 (1 - exp(-u / 2000)), where
u counts updates from 1. Every floating value of the state is averaged, running statistics of batch
normalisation among them, at every step, also one that a loss scaler skipped.
"""

from __future__ import annotations

import copy
import math
from typing import Any

from numbat.kernels import updates
from numbat.tensors.tensor import Array
from numbat_registries import refuse


class EMA:
    """A copy of a model that follows it.

    Args:
        model: the model, a module.
        decay: what the decay approaches.
        tau: updates after which the decay has come up to 63 % of it; 0 for a decay without ramp.
        count: updates made before, for a run that goes on.

    Attributes:
        module: the average, in evaluation mode, without gradients.
        updates: updates made.
    """

    def __init__(
        self, model: Any, decay: float = 0.9999, tau: float = 2000.0, count: int = 0
    ) -> None:
        self.module = copy.deepcopy(model).eval()
        for one in self.module.parameters():
            one.requires_grad_(False)
            one.grad = None
        self.decay = decay
        self.tau = tau
        self.updates = count

    def decay_at(self, count: int) -> float:
        """The decay of an update, counted from 1."""
        if not self.tau:
            return self.decay
        return self.decay * (1 - math.exp(-count / self.tau))

    def update(self, model: Any) -> None:
        """Moves the average towards the model; other than floating values are copied.

        Raises CORE-0709 where the model's state has other names or shapes.
        """
        mine, its = _state(self.module), _state(model)
        if mine.keys() != its.keys():
            differing = sorted(mine.keys() ^ its.keys())
            raise refuse("CORE-0709", because=f"{differing[0]} is on one side only")
        targets, sources = [], []
        for name, held in mine.items():
            given = its[name]
            if held.shape != given.shape:
                because = f"{name} is {list(held.shape)} and {list(given.shape)}"
                raise refuse("CORE-0709", because=because)
            if held.dtype.kind in "iub":
                held[...] = given
            else:
                targets.append(held)
                sources.append(given if given.dtype == held.dtype else given.astype(held.dtype))
        self.updates += 1
        updates.lerp(targets, sources, 1 - self.decay_at(self.updates))

    def state_dict(self) -> dict[str, Any]:
        """The average and the count, to be saved with a run."""
        return {
            "module": self.module.state_dict(), "updates": self.updates, "decay": self.decay,
            "tau": self.tau,
        }  # fmt: skip

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave."""
        self.module.load_state_dict(state["module"])
        self.updates = state["updates"]
        self.decay = state["decay"]
        self.tau = state["tau"]


def _state(model: Any) -> dict[str, Array]:
    return {name: one.array for name, one in model.state_dict().items() if hasattr(one, "array")}
