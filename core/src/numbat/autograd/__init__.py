"""Automatic differentiation: the tape, the backward pass, and the switches of both."""

from numbat.autograd import functional
from numbat.autograd.checkpoint import checkpoint, checkpoint_sequential
from numbat.autograd.engine import backward, grad
from numbat.autograd.function import Function, once_differentiable
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
    "Function", "backward", "checkpoint", "checkpoint_sequential", "detect_anomaly", "enable_grad",
    "functional", "grad", "gradcheck", "gradgradcheck", "inference_mode", "is_grad_enabled",
    "no_grad", "once_differentiable", "set_grad_enabled",
]  # fmt: skip
