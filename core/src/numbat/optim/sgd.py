"""Stochastic gradient descent, with momentum and Nesterov's.

Source: PyTorch 2.13, `torch/optim/sgd.py`; Sutskever et al. 2013.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.kernels import updates
from numbat.optim.optimizer import (
    Group,
    Optimizer,
    check,
    check_options,
    check_roads,
    check_settings,
    scalar,
)
from numbat.tensors.tensor import Tensor, wrap


class SGD(Optimizer):
    """p ← p - lr v, where v is the gradient, or its running sum with `momentum`.

    Raises CORE-0701 for a negative setting, or Nesterov's step without momentum or with dampening.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0,
        weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_settings("SGD", lr=lr, momentum=momentum, weight_decay=weight_decay)
        check(
            "SGD", "nesterov", nesterov, "with momentum and without dampening",
            not nesterov or (momentum > 0 and dampening == 0),
        )  # fmt: skip
        check_options("SGD", differentiable=differentiable)
        check_roads("SGD", foreach, fused)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused,
        })  # fmt: skip

    def update(self, group: Group, params: list[Tensor]) -> None:
        if group["momentum"] == 0:
            self._run(group, params, None, first=False)
            return
        new = [one for one in params if self.state[one].get("momentum_buffer") is None]
        old = [one for one in params if self.state[one].get("momentum_buffer") is not None]
        for one in new:
            self.state[one]["momentum_buffer"] = wrap(np.empty_like(one.array))
        for several, first in ((new, True), (old, False)):
            if several:
                buffers = [self.state[one]["momentum_buffer"].array for one in several]
                self._run(group, several, buffers, first=first)

    @staticmethod
    def _run(group: Group, params: list[Tensor], buffers: Any, *, first: bool) -> None:
        for part in batches(group, len(params)):
            updates.sgd(
                [params[i].array for i in part],
                [params[i].grad.array for i in part],  # type: ignore[union-attr]
                None if buffers is None else [buffers[i] for i in part],
                lr=scalar(group["lr"]),
                momentum=group["momentum"],
                dampening=group["dampening"],
                weight_decay=scalar(group["weight_decay"]),
                nesterov=group["nesterov"],
                first=first,
                grad_scale=-1.0 if group["maximize"] else 1.0,
            )


def batches(group: Group, count: int) -> list[list[int]]:
    """All parameters at once, or one by one where `foreach=False` asks for the loop."""
    if group.get("foreach") is False and not group.get("fused"):
        return [[index] for index in range(count)]
    return [list(range(count))]
