"""Adam and AdamW.

Source: PyTorch 2.13, `torch/optim/adam.py`; Kingma and Ba 2014; Loshchilov and Hutter 2017;
Reddi, Kale and Kumar 2018 (AMSGrad).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.kernels import updates
from numbat.optim.optimizer import (
    Group,
    Optimizer,
    State,
    by_step,
    check_betas,
    check_options,
    check_roads,
    check_settings,
    fresh_step,
    scalar,
)
from numbat.optim.sgd import batches
from numbat.tensors.tensor import Tensor, wrap


class Adam(Optimizer):
    """p ← p - lr m̂ / (√v̂ + eps), with running means m of the gradient and v of its square.

    Raises CORE-0701 for a setting outside its range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
        fused: bool | None = None, decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        name = type(self).__name__
        check_settings(name, lr=lr, eps=eps, weight_decay=weight_decay)
        check_options(name, differentiable=differentiable, capturable=capturable)
        check_roads(name, foreach, fused)
        super().__init__(params, {
            "lr": lr, "betas": check_betas(name, betas), "eps": eps, "weight_decay": weight_decay,
            "amsgrad": amsgrad, "maximize": maximize, "foreach": foreach, "capturable": capturable,
            "differentiable": differentiable, "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        })  # fmt: skip

    def _state(self, group: Group, param: Tensor) -> State:
        state: State = self.state[param]
        if not state:
            state["step"] = fresh_step()
            state["exp_avg"] = wrap(np.zeros_like(param.array))
            state["exp_avg_sq"] = wrap(np.zeros_like(param.array))
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = wrap(np.zeros_like(param.array))
        return state

    def update(self, group: Group, params: list[Tensor]) -> None:
        states = [self._state(group, one) for one in params]
        beta1, beta2 = group["betas"]
        for step, indices in by_step(params, states):
            for part in batches(group, len(indices)):
                several = [indices[i] for i in part]
                updates.adam(
                    [params[i].array for i in several],
                    [params[i].grad.array for i in several],  # type: ignore[union-attr]
                    [states[i]["exp_avg"].array for i in several],
                    [states[i]["exp_avg_sq"].array for i in several],
                    [states[i]["max_exp_avg_sq"].array for i in several]
                    if group["amsgrad"]
                    else None,
                    step=step,
                    lr=scalar(group["lr"]),
                    beta1=scalar(beta1),
                    beta2=scalar(beta2),
                    eps=group["eps"],
                    weight_decay=scalar(group["weight_decay"]),
                    decoupled=group["decoupled_weight_decay"],
                    grad_scale=-1.0 if group["maximize"] else 1.0,
                )


class AdamW(Adam):
    """Adam whose decay is taken from the parameter, and does not pass through the running means.

    Raises CORE-0701 for a setting outside its range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
        foreach: bool | None = None, capturable: bool = False, differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize,
            capturable=capturable, differentiable=differentiable, fused=fused,
            decoupled_weight_decay=True,
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
