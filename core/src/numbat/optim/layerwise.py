"""Steps that look at a whole tensor: Adafactor, LAMB and Muon.

Source: PyTorch 2.13, `torch/optim/{_adafactor,_muon}.py`; Shazeer and Stern 2018; You et al. 2019,
"Large batch optimization for deep learning" (LAMB, algorithm 2); Jordan et al. 2024 (Muon).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from numbat.optim.adaptive import lerp, mean_of_squares
from numbat.optim.optimizer import (
    Group,
    Optimizer,
    State,
    check,
    check_betas,
    check_settings,
    counted,
    fresh_step,
    scalar,
)
from numbat.tensors import dtypes
from numbat.tensors.tensor import Array, Tensor, wrap
from numbat_registries import refuse


class _Layerwise(Optimizer):
    """An optimiser that steps a whole tensor at a time, float16 and bfloat16 in float32."""

    counts = True

    def start(self, group: Group, param: Tensor) -> State:
        """The state before the first step."""
        raise NotImplementedError

    def advance(self, group: Group, p: Array, g: Array, state: dict[str, Any], step: float) -> None:
        """Steps a tensor and the arrays of its state, in place."""
        raise NotImplementedError

    def update(self, group: Group, params: list[Tensor]) -> None:
        for param in params:
            state = self.state[param]
            if not state:
                state.update(self.start(group, param))
            step = counted(state) if self.counts else 0.0
            assert param.grad is not None
            g = -param.grad.array if group.get("maximize") else param.grad.array
            arrays = {name: one.array for name, one in state.items() if name != "step"}
            if param.array.dtype.itemsize > 2:
                self.advance(group, param.array, g, arrays, step)
                continue
            p = param.array.astype(np.float32)
            wide = {name: one.astype(np.float32) for name, one in arrays.items()}
            self.advance(group, p, g.astype(np.float32), wide, step)
            param.array[...] = p
            for name, one in wide.items():
                arrays[name][...] = one


def _norm(array: Array) -> float:
    return float(np.sqrt(np.square(array, dtype=np.float64).sum()))


class Adafactor(_Layerwise):
    """Adam's running square kept as the product of a row and a column, without momentum.

    Raises CORE-0701 for a setting outside its range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0,
        *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        check_settings("Adafactor", lr=lr, weight_decay=weight_decay, eps=eps[1])
        check_settings("Adafactor", eps=0 if eps[0] is None else eps[0])
        check("Adafactor", "beta2_decay", beta2_decay, "0 or less", beta2_decay <= 0)
        check("Adafactor", "d", d, "1 or more", d >= 1)
        super().__init__(params, {
            "lr": lr, "beta2_decay": beta2_decay, "eps": eps, "d": d, "weight_decay": weight_decay,
            "foreach": foreach, "maximize": maximize,
        })  # fmt: skip

    def start(self, group: Group, param: Tensor) -> State:
        shape, kind = param.shape, param.array.dtype
        if len(shape) < 2:
            return {"step": fresh_step(), "variance": wrap(np.zeros(shape, kind))}
        return {
            "step": fresh_step(),
            "row_var": wrap(np.zeros((*shape[:-1], 1), kind)),
            "col_var": wrap(np.zeros((*shape[:-2], 1, shape[-1]), kind)),
        }

    def advance(self, group: Group, p: Array, g: Array, state: dict[str, Any], step: float) -> None:
        lr, (least, smallest) = scalar(group["lr"]), group["eps"]
        if least is None:
            least = dtypes.finfo(dtypes.from_numpy_dtype(p.dtype)).eps
        fresh = step ** group["beta2_decay"]
        rate = max(smallest, _norm(p) / math.sqrt(p.size)) * min(lr, 1 / math.sqrt(step))
        if group["weight_decay"] != 0:
            p *= 1 - lr * group["weight_decay"]
        if g.ndim > 1:
            squares = g * g
            row, column = state["row_var"], state["col_var"]
            lerp(row, squares.mean(-1, keepdims=True), fresh)
            lerp(column, squares.mean(-2, keepdims=True), fresh)
            estimate = row * column
            estimate /= np.maximum(row.mean(-2, keepdims=True), p.dtype.type(least))
        else:
            lerp(state["variance"], g * g, fresh)
            estimate = state["variance"].copy()
        update = g / np.sqrt(np.maximum(estimate, p.dtype.type(least * least)))
        clipped = max(1.0, _norm(update) / (math.sqrt(update.size) * group["d"]))
        update *= rate / clipped
        p -= update


class LAMB(_Layerwise):
    """Adam whose step of each tensor is as long as the tensor itself, times the rate.

    Raises CORE-0701 for a setting outside its range.
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-6,
        weight_decay: float = 0.01, *, bias_correction: bool = True, maximize: bool = False,
        foreach: bool | None = None, fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_settings("LAMB", lr=lr, eps=eps, weight_decay=weight_decay)
        super().__init__(params, {
            "lr": lr, "betas": check_betas("LAMB", betas), "eps": eps, "weight_decay": weight_decay,
            "bias_correction": bias_correction, "maximize": maximize, "foreach": foreach,
            "fused": fused,
        })  # fmt: skip

    def start(self, group: Group, param: Tensor) -> State:
        return {
            "step": fresh_step(), "exp_avg": wrap(np.zeros_like(param.array)),
            "exp_avg_sq": wrap(np.zeros_like(param.array)),
        }  # fmt: skip

    def advance(self, group: Group, p: Array, g: Array, state: dict[str, Any], step: float) -> None:
        beta1, beta2 = group["betas"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        lerp(mean, g, 1 - beta1)
        mean_of_squares(square, g, beta2)
        first, second = (
            (1 - beta1**step, 1 - beta2**step) if group["bias_correction"] else (1.0, 1.0)
        )
        update = mean / first
        root = np.sqrt(square / second)
        root += group["eps"]
        update /= root
        if group["weight_decay"]:
            update += p * scalar(group["weight_decay"])
        own, step_norm = _norm(p), _norm(update)
        trust = own / step_norm if own > 0 and step_norm > 0 else 1.0
        update *= scalar(group["lr"]) * trust
        p -= update


class Muon(_Layerwise):
    """Momentum whose step of a matrix is made nearly orthogonal, by Newton and Schulz in bfloat16.

    Raises CORE-0701 for a setting outside its range, CORE-0708 for a parameter that is no matrix.
    """

    counts = False

    def __init__(
        self, params: Any, lr: Any = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315), eps: float = 1e-7,
        ns_steps: int = 5, adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        check_settings("Muon", lr=lr, weight_decay=weight_decay, momentum=momentum)
        check("Muon", "ns_steps", ns_steps, "below 100", ns_steps < 100)
        known = (None, "original", "match_rms_adamw")
        check("Muon", "adjust_lr_fn", adjust_lr_fn, "original or match_rms_adamw",
              adjust_lr_fn in known)  # fmt: skip
        super().__init__(params, {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        })  # fmt: skip
        for group in self.param_groups:
            for one in group["params"]:
                if one.ndim != 2:
                    raise refuse("CORE-0708", shape=list(one.shape))

    def start(self, group: Group, param: Tensor) -> State:
        return {"momentum_buffer": wrap(np.zeros_like(param.array))}

    def advance(self, group: Group, p: Array, g: Array, state: dict[str, Any], step: float) -> None:
        buffer, momentum, lr = state["momentum_buffer"], group["momentum"], scalar(group["lr"])
        lerp(buffer, g, 1 - momentum)
        update = buffer
        if group["nesterov"]:
            update = g.copy()
            lerp(update, buffer, momentum)
        update = orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            rate = lr * 0.2 * math.sqrt(max(rows, columns))
        else:
            rate = lr * math.sqrt(max(1, rows / columns))
        p *= 1 - lr * group["weight_decay"]
        p -= update * p.dtype.type(rate)


def orthogonal(
    matrix: Array, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Array:
    """A matrix with about the same singular vectors and singular values near one, float32.

    Each product is rounded to bfloat16, as PyTorch does.
    """
    a, b, c = coefficients

    def narrow(values: Array) -> Array:
        return values.astype(dtypes.bfloat16.numpy).astype(np.float32)

    x = narrow(matrix)
    tall = x.shape[0] > x.shape[1]
    if tall:
        x = x.T
    x = narrow(x / max(narrow(np.asarray(_norm(x))), np.float32(eps)))
    for _ in range(steps):
        gram = narrow(x @ x.T)
        x = narrow(a * x + narrow(b * gram + c * (gram @ gram)) @ x)
    return x.T if tall else x
