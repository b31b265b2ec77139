"""Scaling of the loss, so that gradients of float16 do not vanish.

    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)      # where gradients are to be clipped
    scaler.step(optimizer)          # skipped where a gradient is infinite or not a number
    scaler.update()                 # halves the scale then, and doubles it after 2000 good steps

Source: PyTorch 2.13, `torch/amp/grad_scaler.py`; Micikevicius et al. 2017.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from numbat.kernels import updates
from numbat.optim.optimizer import Optimizer
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse

READY, UNSCALED, STEPPED = "ready", "unscaled", "stepped"


class GradScaler:
    """The scale of a loss, and its dynamics.

    Args:
        device: the CPU; taken for torch's programs.
        init_scale, growth_factor, backoff_factor, growth_interval: torch's constants.
        enabled: False makes every method pass through.
        floor: the scale does not fall below it; 0 for torch's behaviour.

    Raises CORE-0721 for factors that do not grow or back off.
    """

    def __init__(
        self,
        device: Any = "cpu",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
        *,
        floor: float = 0.0,
    ) -> None:
        self._enabled = enabled
        for name, value, good in (
            ("init_scale", init_scale, init_scale > 0),
            ("growth_factor", growth_factor, growth_factor > 1.0),
            ("backoff_factor", backoff_factor, 0 < backoff_factor < 1.0),
            ("growth_interval", growth_interval, growth_interval > 0),
            ("floor", floor, floor >= 0),
        ):
            if enabled and not good:
                raise refuse("CORE-0721", setting=name, value=float(value))
        self._init_scale = init_scale
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._floor = floor
        # A scale is float32, as torch's: its products are rounded so.
        self._scale: np.float32 | None = None
        self._growth_tracker = 0
        self._stages: dict[int, tuple[str, list[bool]]] = {}

    # -- a step -------------------------------------------------------------------------------

    def scale(self, outputs: Any) -> Any:
        """The loss, or losses, times the scale."""
        if not self._enabled:
            return outputs
        if self._scale is None:
            self._scale = np.float32(self._init_scale)
        if isinstance(outputs, Tensor):
            return outputs * wrap(np.array(self._scale))
        if isinstance(outputs, Iterable):
            scaled = [self.scale(one) for one in outputs]
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else iter(scaled)
        raise refuse("CORE-0107", given=type(outputs).__name__)

    def _begun(self, method: str) -> np.float32:
        if self._scale is None:
            raise refuse("CORE-0720", method=method, because="no loss was scaled before")
        return self._scale

    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the optimiser's gradients by the scale, and notes whether one is not finite.

        Raises CORE-0720 for a second time before `update`, CORE-0723 for gradients of float16.
        """
        if not self._enabled:
            return
        scale = self._begun("unscale_")
        stage = self._stage(optimizer)
        if stage != READY:
            raise refuse("CORE-0720", method="unscale_", because=f"the gradients are {stage}")
        inverse = float(np.float32(1.0 / float(scale)))
        grads = []
        for group in optimizer.param_groups:
            for param in group["params"]:
                if param.grad is None:
                    continue
                if param.grad.array.dtype == np.float16:
                    raise refuse("CORE-0723", dtype="float16")
                grads.append(param.grad.array)
        found = [not finite(grads)] if grads else []
        updates.scale(grads, inverse)
        self._stages[id(optimizer)] = (UNSCALED, found)

    def step(self, optimizer: Optimizer, *args: Any, **keywords: Any) -> Any:
        """Steps the optimiser unless a gradient is not finite; unscales first where needed.

        Raises CORE-0720 for a second time before `update` or with a closure, CORE-0722 without
        gradients.
        """
        if not self._enabled:
            return optimizer.step(*args, **keywords)
        if "closure" in keywords:
            raise refuse("CORE-0720", method="step", because="a closure would be scaled anew")
        self._begun("step")
        if self._stage(optimizer) == STEPPED:
            raise refuse("CORE-0720", method="step", because="the optimiser is stepped")
        if self._stage(optimizer) == READY:
            self.unscale_(optimizer)
        found = self._stages[id(optimizer)][1]
        if not found:
            raise refuse("CORE-0722")
        given = None if any(found) else optimizer.step(*args, **keywords)
        self._stages[id(optimizer)] = (STEPPED, found)
        return given

    def update(self, new_scale: Any = None) -> None:
        """Lowers the scale where a gradient was not finite, raises it after enough good steps.

        Raises CORE-0720 where nothing was unscaled since the last one.
        """
        if not self._enabled:
            return
        scale = self._begun("update")
        if new_scale is not None:
            self._scale = np.float32(float(new_scale))
        else:
            found = [one for _, several in self._stages.values() for one in several]
            if not found:
                raise refuse("CORE-0720", method="update", because="no gradient was checked")
            self._scale = self._following(scale, any(found))
        self._stages.clear()

    def _following(self, scale: np.float32, overflowed: bool) -> np.float32:
        if overflowed:
            self._growth_tracker = 0
            return np.float32(max(float(scale) * self._backoff_factor, self._floor))
        self._growth_tracker += 1
        if self._growth_tracker < self._growth_interval:
            return scale
        self._growth_tracker = 0
        with np.errstate(over="ignore"):
            grown = np.float32(float(scale) * self._growth_factor)
        return grown if math.isfinite(grown) else scale

    def _stage(self, optimizer: Optimizer) -> str:
        return self._stages.get(id(optimizer), (READY, []))[0]

    # -- its numbers --------------------------------------------------------------------------

    def is_enabled(self) -> bool:
        """Whether it scales."""
        return self._enabled

    def get_scale(self) -> float:
        """The scale; 1 where it does not scale."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale)

    def get_growth_factor(self) -> float:
        """What the scale is multiplied by after enough good steps."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets the growth factor."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """What the scale is multiplied by after an overflow."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets the backoff factor."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """How many good steps it takes to grow."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets how many good steps it takes to grow."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """The scale and its dynamics, under torch's names; empty where it does not scale."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(), "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor, "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from what `state_dict`, or torch's, gave.

        Raises CORE-0720 for an empty one, which a scaler that does not scale gives.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise refuse("CORE-0720", method="load_state_dict", because="the state is empty")
        self._init_scale = state_dict["scale"]
        self._scale = np.float32(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]


def finite(arrays: list[Array]) -> bool:
    """Whether every element is: the sum of their squares in float64 tells it of narrower types."""
    if math.isfinite(updates.square_sum(arrays)):
        return True
    # The square of a large float64 overflows where the number itself does not.
    return all(bool(np.isfinite(one).all()) for one in arrays)
