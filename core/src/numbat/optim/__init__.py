"""Optimisers, schedules of their rates, clipping, and averages of models."""

from numbat.optim import lr_scheduler
from numbat.optim.adam import Adam, AdamW
from numbat.optim.adaptive import Adadelta, Adagrad, Adamax, NAdam, RAdam, RMSprop
from numbat.optim.averaging import ASGD, Lion, Rprop
from numbat.optim.clipping import clip_grad_norm_, clip_grad_value_
from numbat.optim.layerwise import LAMB, Adafactor, Muon
from numbat.optim.lbfgs import LBFGS
from numbat.optim.optimizer import Optimizer
from numbat.optim.sgd import SGD

__all__ = [
    "ASGD", "LAMB", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax",
    "Lion", "Muon", "NAdam", "Optimizer", "RAdam", "RMSprop", "Rprop", "clip_grad_norm_",
    "clip_grad_value_", "lr_scheduler",
]  # fmt: skip
