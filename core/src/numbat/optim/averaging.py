"""Steps that average or that look at signs alone: ASGD, Rprop and Lion.

Source: PyTorch 2.13, `torch/optim/{asgd,rprop}.py`; Polyak and Juditsky 1992; Riedmiller and Braun
1993; Chen et al. 2023, "Symbolic discovery of optimization algorithms" (Lion, algorithm 2).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from numbat.optim.optimizer import (
    Elementwise,
    Group,
    State,
    check,
    check_betas,
    check_options,
    check_settings,
    fresh_step,
    kept_number,
    scalar,
)
from numbat.tensors.tensor import Array, Tensor, wrap


class ASGD(Elementwise):
    """Gradient descent whose rate falls, with the average of the parameters in `ax`.

    Raises CORE-0701 for a negative setting.
    """

    arrays = ("ax",)

    def __init__(
        self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
        t0: float = 1e6, weight_decay: float = 0, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        check_settings("ASGD", lr=lr, weight_decay=weight_decay)
        check_options("ASGD", differentiable=differentiable, capturable=capturable)
        super().__init__(params, {
            "lr": lr, "lambd": lambd, "alpha": alpha, "t0": t0, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize, "differentiable": differentiable,
            "capturable": capturable,
        })  # fmt: skip

    def start(self, group: Group, param: Tensor) -> State:
        return {
            "step": fresh_step(), "eta": kept_number(scalar(group["lr"])),
            "mu": kept_number(1.0), "ax": wrap(np.zeros_like(param.array)),
        }  # fmt: skip

    def scalars(self, group: Group, state: State, step: float) -> dict[str, float]:
        eta, mu = state["eta"].array, state["mu"].array
        now = {
            "eta": float(eta), "mu": float(mu), "keep": 1 - group["lambd"] * float(eta),
        }  # fmt: skip
        lr = scalar(group["lr"])
        following = lr / ((1 + group["lambd"] * lr * step) ** group["alpha"])
        eta[...] = kept_number(following).array
        mu[...] = kept_number(1 / max(1, step - group["t0"])).array
        return now

    @staticmethod
    def advance(p: Array, g: Array, *arrays: Array, **scalars: float) -> None:
        (average,) = arrays
        p *= scalars["keep"]
        g *= scalars["eta"]
        p -= g
        if scalars["mu"] != 1:
            average += (p - average) * scalars["mu"]
        else:
            average[...] = p


class Rprop(Elementwise):
    """Steps of their own size for each element, longer while the gradient keeps its sign.

    Raises CORE-0701 for a negative rate or factors that do not enclose 1.
    """

    arrays = ("prev", "step_size")

    def __init__(
        self, params: Any, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False,
        foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_settings("Rprop", lr=lr)
        check("Rprop", "etas", etas, "0 < first < 1 < second", 0.0 < etas[0] < 1.0 < etas[1])
        check_options("Rprop", differentiable=differentiable, capturable=capturable)
        super().__init__(params, {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def start(self, group: Group, param: Tensor) -> State:
        return {
            "step": fresh_step(), "prev": wrap(np.zeros_like(param.array)),
            "step_size": wrap(np.full_like(param.array, scalar(group["lr"]))),
        }  # fmt: skip

    def scalars(self, group: Group, state: State, step: float) -> dict[str, float]:
        (shorter, longer), (least, most) = group["etas"], group["step_sizes"]
        return {"shorter": shorter, "longer": longer, "least": least, "most": most}

    @staticmethod
    def advance(p: Array, g: Array, *arrays: Array, **scalars: float) -> None:
        before, size = arrays
        kind = p.dtype.type
        agreement = g * before
        turned = agreement < 0
        factor = np.where(agreement > 0, kind(scalars["longer"]), kind(1))
        factor[turned] = kind(scalars["shorter"])
        size *= factor
        np.clip(size, kind(scalars["least"]), kind(scalars["most"]), out=size)
        g[turned] = 0
        p -= np.sign(g) * size
        before[...] = g


class Lion(Elementwise):
    """p ← p - lr sign(β₁ m + (1 - β₁) g), its decay taken from the parameter.

    Raises CORE-0701 for a setting outside its range.
    """

    arrays = ("exp_avg",)
    coupled_decay = False

    def __init__(
        self, params: Any, lr: Any = 1e-4, betas: tuple[Any, Any] = (0.9, 0.99),
        weight_decay: float = 0.0, *, maximize: bool = False, foreach: bool | None = None,
        fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_settings("Lion", lr=lr, weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": check_betas("Lion", betas), "weight_decay": weight_decay,
            "maximize": maximize, "foreach": foreach, "fused": fused,
        })  # fmt: skip

    def scalars(self, group: Group, state: State, step: float) -> dict[str, float]:
        lr = scalar(group["lr"])
        beta1, beta2 = group["betas"]
        keep = 1 - lr * scalar(group["weight_decay"])
        return {"lr": lr, "beta1": beta1, "beta2": beta2, "keep": keep}

    @staticmethod
    def advance(p: Array, g: Array, *arrays: Array, **scalars: float) -> None:
        (mean,) = arrays
        if scalars["keep"] != 1:
            p *= scalars["keep"]
        step = np.sign(mean * scalars["beta1"] + g * (1 - scalars["beta1"]))
        step *= scalars["lr"]
        p -= step
        mean *= scalars["beta2"]
        g *= 1 - scalars["beta2"]
        mean += g
