"""Averages of models as PyTorch has them, the rate that goes with them, and their batch statistics.

Source: PyTorch 2.13, `torch/optim/swa_utils.py`; Izmailov et al. 2018.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from numbat.autograd.in_place import bump
from numbat.autograd.mode import no_grad
from numbat.kernels import updates
from numbat.nn.module import Module
from numbat.optim.lr_scheduler import LRScheduler, per_group
from numbat.optim.optimizer import Optimizer
from numbat.tensors.tensor import Tensor, wrap
from numbat_registries import refuse

__all__ = [
    "SWALR", "AveragedModel", "get_ema_avg_fn", "get_ema_multi_avg_fn", "get_swa_avg_fn",
    "get_swa_multi_avg_fn", "update_bn",
]  # fmt: skip

Average = Callable[[Tensor, Tensor, Any], Tensor]
Averages = Callable[[list[Tensor], list[Tensor], Any], None]


def _checked(decay: float) -> float:
    if not 0.0 <= decay <= 1.0:
        raise refuse(
            "CORE-0701", optimizer="AveragedModel", setting="decay", value=str(decay),
            wanted="a number in [0, 1]",
        )  # fmt: skip
    return decay


def _lerp(averaged: list[Tensor], current: list[Tensor], weight: float) -> None:
    floating = [one.dtype.is_floating_point for one in averaged]
    updates.lerp(
        [one.array for one, yes in zip(averaged, floating, strict=True) if yes],
        [one.array for one, yes in zip(current, floating, strict=True) if yes],
        weight,
    )
    for mine, its, yes in zip(averaged, current, floating, strict=True):
        if not yes:
            mean = mine.array + (its.array.astype(np.float64) - mine.array) * weight
            mine.array[...] = mean.astype(mine.array.dtype)


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """An average that keeps the part `decay` of itself, over all tensors at once.

    Raises CORE-0701 for a decay outside [0, 1].
    """
    weight = 1 - _checked(decay)

    def ema_update(averaged: list[Tensor], current: list[Tensor], _: Any) -> None:
        _lerp(averaged, current, weight)

    return ema_update


def get_swa_multi_avg_fn() -> Averages:
    """The average of all models so far, over all tensors at once."""

    def swa_update(averaged: list[Tensor], current: list[Tensor], count: Any) -> None:
        _lerp(averaged, current, 1 / (float(count) + 1))

    return swa_update


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """An average that keeps the part `decay` of itself, tensor by tensor.

    Raises CORE-0701 for a decay outside [0, 1].
    """
    _checked(decay)

    def ema_update(averaged: Tensor, current: Tensor, _: Any) -> Tensor:
        return averaged * decay + current * (1 - decay)

    return ema_update


def get_swa_avg_fn() -> Average:
    """The average of all models so far, tensor by tensor."""

    def swa_update(averaged: Tensor, current: Tensor, count: Any) -> Tensor:
        return averaged + (current - averaged) / (float(count) + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model that averages its parameters (and buffers, where `use_buffers`).

    Without `avg_fn` and `multi_avg_fn` it is the mean of all models it was updated with.
    """

    n_averaged: Tensor

    def __init__(
        self, model: Module, device: Any = None, avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None, use_buffers: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise refuse("CORE-0709", because="avg_fn and multi_avg_fn are both given")
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", wrap(np.zeros((), np.int64)))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """What the averaged model gives."""
        return self.module(*args, **keywords)

    @no_grad()
    def update_parameters(self, model: Module) -> None:
        """Takes the model into the average; the first one is copied.

        Raises CORE-0709 where a shape differs.
        """
        mine, its = list(self._averaged(self.module)), list(self._averaged(model))
        for one, other in zip(mine, its, strict=False):
            if one.shape != other.shape:
                raise refuse("CORE-0709", because=f"{list(one.shape)} and {list(other.shape)}")
        count = int(self.n_averaged.array)
        if count == 0:
            for one, other in zip(mine, its, strict=True):
                one.array[...] = other.array
        elif self.avg_fn is not None:
            for one, other in zip(mine, its, strict=True):
                one.array[...] = self.avg_fn(one.detach(), other.detach(), self.n_averaged).array
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(mine, its, self.n_averaged)
        for one in mine:
            bump(one)
        if not self.use_buffers:
            for one, other in zip(self.module.buffers(), model.buffers(), strict=True):
                one.array[...] = other.array
        self.n_averaged.array[...] += 1

    def _averaged(self, model: Module) -> Iterable[Tensor]:
        if self.use_buffers:
            return itertools.chain(model.parameters(), model.buffers())
        return model.parameters()


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Computes the running statistics of batch normalisation anew, as plain means over a loader."""
    from numbat.nn import normalisation

    kind = getattr(normalisation, "_BatchNorm", None) or normalisation.BatchNorm1d
    layers = [one for one in model.modules() if isinstance(one, kind)]
    if not layers:
        return
    momenta = []
    for one in layers:
        one.reset_running_stats()
        momenta.append(one.momentum)
        one.momentum = None
    training = model.training
    model.train()
    for batch in loader:
        model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    for one, momentum in zip(layers, momenta, strict=True):
        one.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """A rate that goes to `swa_lr` in `anneal_epochs`, and stays there.

    Raises CORE-0707 for an unknown strategy or a negative number of epochs.
    """

    def __init__(
        self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: Any = 10,
        anneal_strategy: str = "cos", last_epoch: int = -1,
    ) -> None:  # fmt: skip
        for lr, group in zip(
            per_group(self, optimizer, "swa_lr", swa_lr), optimizer.param_groups, strict=True
        ):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise refuse(
                "CORE-0707", schedule="SWALR", setting="anneal_strategy",
                because="it is neither cos nor linear",
            )  # fmt: skip
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise refuse(
                "CORE-0707", schedule="SWALR", setting="anneal_epochs", because="it is negative"
            )
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _part(self, step: int) -> float:
        t = max(0, min(1, step / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * t)) / 2 if self._anneal_strategy == "cos" else t

    def get_lr(self) -> list[Any]:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        rates = []
        for group in self.optimizer.param_groups:
            end = group["swa_lr"]
            start = end if before == 1 else (group["lr"] - before * end) / (1 - before)
            rates.append(end * now + start * (1 - now))
        return rates
