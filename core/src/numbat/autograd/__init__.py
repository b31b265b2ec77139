"""Automatic differentiation: the tape, the backward pass, and the switches of both."""

from numbat.autograd.engine import backward, grad
from numbat.autograd.gradcheck import gradcheck, gradgradcheck
from numbat.autograd.mode import (
    detect_anomaly,
    enable_grad,
    inference_mode,
    is_grad_enabled,
    no_grad,
    set_grad_enabled,
)

__all__ = [
    "backward", "detect_anomaly", "enable_grad", "grad", "gradcheck", "gradgradcheck",
    "inference_mode", "is_grad_enabled", "no_grad", "set_grad_enabled",
]  # fmt: skip
