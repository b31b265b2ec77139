"""Steps scaled by running squares: Adagrad, Adadelta, RMSprop, Adamax, NAdam and RAdam.

Source: PyTorch 2.13, `torch/optim/{adagrad,adadelta,rmsprop,adamax,nadam,radam}.py`; Duchi, Hazan
and Singer 2011; Zeiler 2012; Tieleman and Hinton 2012, Graves 2013 (centred); Kingma and Ba 2014;
Dozat 2016; Liu et al. 2019.
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
    check_roads,
    check_settings,
    fresh_step,
    kept_number,
    scalar,
)
from numbat.tensors.tensor import Array, Tensor, wrap


def lerp(mean: Array, value: Array, weight: float) -> None:
    """Moves a running mean by `weight` of the way to `value`, in place; from the nearer end."""
    if weight < 0.5:
        mean += (value - mean) * weight
    else:
        mean[...] = value - (value - mean) * (1 - weight)


def mean_of_squares(square: Array, g: Array, beta: float) -> None:
    """Keeps the part `beta` of a running square, and adds the rest of this gradient's."""
    square *= beta
    square += g * g * (1 - beta)


class Adagrad(Elementwise):
    """p ← p - lr g / (√Σg² + eps).

    Raises CORE-0701 for a negative setting.
    """

    arrays = ("sum",)

    def __init__(
        self, params: Any, lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_settings(
            "Adagrad", lr=lr, lr_decay=lr_decay, weight_decay=weight_decay, eps=eps,
            initial_accumulator_value=initial_accumulator_value,
        )  # fmt: skip
        check_options("Adagrad", differentiable=differentiable)
        check_roads("Adagrad", foreach, fused)
        super().__init__(params, {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "fused": fused,
        })  # fmt: skip
        for group in self.param_groups:
            for param in group["params"]:
                self.state[param].update(self.start(group, param))

    def start(self, group: Group, param: Tensor) -> State:
        first = group["initial_accumulator_value"]
        return {"step": fresh_step(), "sum": wrap(np.full_like(param.array, first))}

    def scalars(self, group: Group, state: State, step: float) -> dict[str, float]:
        lr = scalar(group["lr"]) / (1 + (step - 1) * group["lr_decay"])
        return {"lr": lr, "eps": group["eps"]}

    @staticmethod
    def advance(p: Array, g: Array, *arrays: Array, **scalars: float) -> None:
        (total,) = arrays
        total += g * g
        g *= -scalars["lr"]
        g /= np.sqrt(total) + scalars["eps"]
        p += g


class Adadelta(Elementwise):
    """p ← p - lr g √(Δ² + eps) / √(g² + eps), with running squares of gradients and of steps.

    Raises CORE-0701 for a setting outside its range.
    """

    arrays = ("square_avg", "acc_delta")

    def __init__(
        self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6,
        weight_decay: float = 0, foreach: bool | None = None, *, capturable: bool = False,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_settings("Adadelta", lr=lr, rho=rho, eps=eps, weight_decay=weight_decay)
        check("Adadelta", "rho", rho, "in [0, 1]", rho <= 1)
        check_options("Adadelta", differentiable=differentiable, capturable=capturable)
        super().__init__(params, {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        })  # fmt: skip

    def scalars(self, group: Group, state: State, step: float) -> dict[str, float]:
        return {"lr": scalar(group["lr"]), "rho": group["rho"], "eps": group["eps"]}

    @staticmethod
    def advance(p: Array, g: Array, *arrays: Array, **scalars: float) -> None:
        square, moved = arrays
        rho, eps = scalars["rho"], scalars["eps"]
        mean_of_squares(square, g, rho)
        delta = np.sqrt(moved + eps)
        delta /= np.sqrt(square + eps)
        delta *= g
        mean_of_squares(moved, delta, rho)
        delta *= scalars["lr"]
        p -= delta


class RMSprop(Elementwise):
    """p ← p - lr g / (√v + eps), with a running square v, less the mean's square where `centered`.

    Raises CORE-0701 for a negative setting.
    """

    arrays = ("square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0, momentum: float = 0, centered: bool = False,
        capturable: bool = False, foreach: bool | None = None, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_settings(
            "RMSprop", lr=lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        check_options("RMSprop", differentiable=differentiable, capturable=capturable)
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable,
        })  # fmt: skip

    def start(self, group: Group, param: Tensor) -> State:
        names = ["square_avg"]
        names += ["momentum_buffer"] if group["momentum"] > 0 else []
        names += ["grad_avg"] if group["centered"] else []
        return {"step": fresh_step()} | {name: wrap(np.zeros_like(param.array)) for name in names}

    def scalars(self, group: Group, state: State, step: float) -> dict[str, float]:
        return {
            "lr": scalar(group["lr"]), "alpha": group["alpha"], "eps": group["eps"],
            "momentum": group["momentum"], "centered": group["centered"],
        }  # fmt: skip

    @staticmethod
    def advance(p: Array, g: Array, *arrays: Array, **scalars: float) -> None:
        square, *others = arrays
        alpha, momentum = scalars["alpha"], scalars["momentum"]
        mean_of_squares(square, g, alpha)
        if scalars["centered"]:
            mean = others[-1]
            lerp(mean, g, 1 - alpha)
            root = np.sqrt(square - mean * mean)
        else:
            root = np.sqrt(square)
        root += scalars["eps"]
        if momentum > 0:
            buffer = others[0]
            buffer *= momentum
            g /= root
            buffer += g
            p -= buffer * scalars["lr"]
        else:
            g *= scalars["lr"]
            g /= root
            p -= g


class Adamax(Elementwise):
    """p ← p - lr m̂ / u, with the running maximum u of the gradient's size.

    Raises CORE-0701 for a setting outside its range.
    """

    arrays = ("exp_avg", "exp_inf")

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False,
        differentiable: bool = False, capturable: bool = False,
    ) -> None:  # fmt: skip
        check_settings("Adamax", lr=lr, eps=eps, weight_decay=weight_decay)
        check_options("Adamax", differentiable=differentiable, capturable=capturable)
        super().__init__(params, {
            "lr": lr, "betas": check_betas("Adamax", betas), "eps": eps,
            "weight_decay": weight_decay, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        })  # fmt: skip

    def scalars(self, group: Group, state: State, step: float) -> dict[str, float]:
        beta1, beta2 = group["betas"]
        return {
            "lr": scalar(group["lr"]) / (1 - beta1**step), "beta1": beta1, "beta2": beta2,
            "eps": group["eps"],
        }  # fmt: skip

    @staticmethod
    def advance(p: Array, g: Array, *arrays: Array, **scalars: float) -> None:
        mean, largest = arrays
        lerp(mean, g, 1 - scalars["beta1"])
        largest *= scalars["beta2"]
        np.abs(g, out=g)
        g += scalars["eps"]
        np.maximum(largest, g, out=largest)
        p -= mean * scalars["lr"] / largest


class NAdam(Elementwise):
    """Adam with Nesterov's momentum, whose rate warms up.

    Raises CORE-0701 for a setting outside its range.
    """

    arrays = ("exp_avg", "exp_avg_sq")

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False,
        *, foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_settings(
            "NAdam", lr=lr, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay
        )
        check_options("NAdam", differentiable=differentiable, capturable=capturable)
        super().__init__(params, {
            "lr": lr, "betas": check_betas("NAdam", betas), "eps": eps,
            "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
        })  # fmt: skip

    def start(self, group: Group, param: Tensor) -> State:
        step = {"step": fresh_step(), "mu_product": kept_number(1.0)}
        return step | {name: wrap(np.zeros_like(param.array)) for name in self.arrays}

    def coupled(self, group: Group) -> bool:
        return not group["decoupled_weight_decay"]

    def scalars(self, group: Group, state: State, step: float) -> dict[str, float]:
        beta1, beta2 = group["betas"]
        lr, decay = scalar(group["lr"]), group["momentum_decay"]
        mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * decay)))
        following = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * decay)))
        product = state["mu_product"].array
        product *= product.dtype.type(mu)
        reached = float(product)
        return {
            "beta1": beta1, "beta2": beta2, "eps": group["eps"],
            "correction": 1 - beta2**step,
            "of_gradient": -lr * (1.0 - mu) / (1.0 - reached),
            "of_mean": -lr * following / (1.0 - reached * following),
            "keep": 1 - lr * scalar(group["weight_decay"]) if not self.coupled(group) else 1.0,
        }  # fmt: skip

    @staticmethod
    def advance(p: Array, g: Array, *arrays: Array, **scalars: float) -> None:
        mean, square = arrays
        if scalars["keep"] != 1:
            p *= scalars["keep"]
        lerp(mean, g, 1 - scalars["beta1"])
        mean_of_squares(square, g, scalars["beta2"])
        root = np.sqrt(square / scalars["correction"])
        root += scalars["eps"]
        g *= scalars["of_gradient"]
        g /= root
        p += g
        p += mean * scalars["of_mean"] / root


class RAdam(Elementwise):
    """Adam whose adaptive rate is rectified, and not used while its variance is not known.

    Raises CORE-0701 for a setting outside its range.
    """

    arrays = ("exp_avg", "exp_avg_sq")

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_settings("RAdam", lr=lr, eps=eps, weight_decay=weight_decay)
        check_options("RAdam", differentiable=differentiable, capturable=capturable)
        super().__init__(params, {
            "lr": lr, "betas": check_betas("RAdam", betas), "eps": eps,
            "weight_decay": weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        })  # fmt: skip

    def coupled(self, group: Group) -> bool:
        return not group["decoupled_weight_decay"]

    def scalars(self, group: Group, state: State, step: float) -> dict[str, float]:
        beta1, beta2 = group["betas"]
        lr = scalar(group["lr"])
        correction = 1 - beta2**step
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * (beta2**step) / correction
        rectified = 0.0
        if length > 5.0:
            rectified = (
                (length - 4) * (length - 2) * longest
                / ((longest - 4) * (longest - 2) * length)
            ) ** 0.5  # fmt: skip
        return {
            "lr": lr, "beta1": beta1, "beta2": beta2, "eps": group["eps"],
            "correction1": 1 - beta1**step, "root": correction**0.5, "rectified": rectified,
            "keep": 1 - lr * scalar(group["weight_decay"]) if not self.coupled(group) else 1.0,
        }  # fmt: skip

    @staticmethod
    def advance(p: Array, g: Array, *arrays: Array, **scalars: float) -> None:
        mean, square = arrays
        if scalars["keep"] != 1:
            p *= scalars["keep"]
        lerp(mean, g, 1 - scalars["beta1"])
        mean_of_squares(square, g, scalars["beta2"])
        step = mean / scalars["correction1"]
        step *= scalars["lr"]
        if scalars["rectified"]:
            root = np.sqrt(square)
            root += scalars["eps"]
            step *= scalars["root"] / root
            step *= scalars["rectified"]
        p -= step
