"""Schedules of the learning rate, each series as PyTorch's to the last bit.

A schedule writes `lr` into the groups of its optimiser, first when it is made and then at each
`step`. Most of them change the rate that stands there, so that several can work on one optimiser.
Source: PyTorch 2.13, `torch/optim/lr_scheduler.py`; Loshchilov and Hutter 2016 (cosine, restarts);
Smith 2015 (cycles); Smith and Topin 2017 (one cycle).
"""

from __future__ import annotations

import math
import types
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from numbat.optim.optimizer import Group, Optimizer
from numbat.tensors.tensor import Tensor
from numbat_registries import refuse

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR",
    "StepLR",
]  # fmt: skip

_EPOCH = "a schedule is stepped without an epoch; the argument stays for old programs"


def _refuse_setting(schedule: Any, setting: str, because: str) -> Exception:
    return refuse("CORE-0707", schedule=type(schedule).__name__, setting=setting, because=because)


def per_group(schedule: Any, optimizer: Optimizer, name: str, value: Any) -> list[Any]:
    """One value for each group.

    Raises CORE-0707 where a list has another length.
    """
    count = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != count:
            raise _refuse_setting(schedule, name, f"{len(value)} values for {count} groups")
        return list(value)
    return [value] * count


def write(group: Group, name: str, value: Any) -> None:
    """Writes a setting of a group; into its tensor, where it is one."""
    held = group[name]
    if isinstance(held, Tensor):
        held.array[...] = float(value)
    else:
        group[name] = value


def read(optimizer: Optimizer, name: str) -> list[Any]:
    """A setting of every group; copies of those that are tensors."""
    return [
        one[name].clone() if isinstance(one[name], Tensor) else one[name]
        for one in optimizer.param_groups
    ]


class LRScheduler:
    """The base of schedules; a subclass writes `get_lr`, the rates of epoch `last_epoch`.

    Raises CORE-0707 where a schedule is to go on and the optimiser knows no `initial_lr`.
    """

    _initial = False
    _skipped: tuple[str, ...] = ("optimizer",)
    _step_count: int
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self._attach(optimizer)
        for group in optimizer.param_groups:
            if last_epoch == -1:
                lr = group["lr"]
                group.setdefault("initial_lr", lr.clone() if isinstance(lr, Tensor) else lr)
            elif "initial_lr" not in group:
                raise _refuse_setting(self, "last_epoch", "a group has no initial_lr to go on from")
        self.base_lrs = read(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def _attach(self, optimizer: Any) -> None:
        if not isinstance(optimizer, Optimizer):
            raise _refuse_setting(self, "optimizer", f"a {type(optimizer).__name__} was given")
        self.optimizer = optimizer

    def _initial_step(self) -> None:
        self._step_count = 0
        self._initial = True
        try:
            self.step()
        finally:
            self._initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimiser (and functions)."""
        return {key: one for key, one in self.__dict__.items() if key not in self._skipped}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict` gave."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates that were written last."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates of epoch `last_epoch`."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Writes the rates of the next epoch."""
        self._step_count += 1
        if epoch is not None:
            warnings.warn(_EPOCH, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        if epoch is None:
            self.last_epoch += 1
            values = self.get_lr()
        else:
            self.last_epoch = epoch
            closed = getattr(self, "_get_closed_form_lr", self.get_lr)
            values = closed()
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            write(group, "lr", lr)
        self._last_lr = read(self.optimizer, "lr")

    def _scaled(self, factor: float) -> list[Any]:
        return [group["lr"] * factor for group in self.optimizer.param_groups]


class _ByFunction(LRScheduler):
    """A schedule of one function an epoch for each group; functions that are objects keep their
    state."""

    _skipped = ("optimizer", "lr_lambdas")

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas = per_group(self, optimizer, "lr_lambda", lr_lambda)
        if not all(callable(one) for one in self.lr_lambdas):
            raise _refuse_setting(self, "lr_lambda", "it is no function")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        state["lr_lambdas"] = [
            None if isinstance(one, types.FunctionType) else one.__dict__.copy()
            for one in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        rest = {key: one for key, one in state_dict.items() if key != "lr_lambdas"}
        super().load_state_dict(rest)
        for function, state in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if state is not None:
                function.__dict__.update(state)


class LambdaLR(_ByFunction):
    """The initial rate times a function of the epoch."""

    def get_lr(self) -> list[Any]:
        return [
            base * function(self.last_epoch)
            for function, base in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]


class MultiplicativeLR(_ByFunction):
    """The last rate times a function of the epoch."""

    def get_lr(self) -> list[Any]:
        if self._initial:
            return read(self.optimizer, "lr")
        return [
            group["lr"] * function(self.last_epoch)
            for function, group in zip(self.lr_lambdas, self.optimizer.param_groups, strict=True)
        ]


class StepLR(LRScheduler):
    """The rate times `gamma` every `step_size` epochs."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return read(self.optimizer, "lr")
        return self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [base * factor for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """The rate times `gamma` at each milestone, an epoch."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch not in self.milestones:
            return read(self.optimizer, "lr")
        return self._scaled(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """The rate times `factor` until epoch `total_iters`.

    Raises CORE-0707 for a factor outside [0, 1].
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not 0 <= factor <= 1:
            raise _refuse_setting(self, "factor", "it lies outside [0, 1]")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._scaled(self.factor)
        if self.last_epoch != self.total_iters:
            return read(self.optimizer, "lr")
        return self._scaled(1.0 / self.factor)

    def _get_closed_form_lr(self) -> list[Any]:
        ended = self.last_epoch >= self.total_iters
        return [base * (self.factor + ended * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """The rate times a factor that goes from `start_factor` to `end_factor` in `total_iters`
    epochs.

    Raises CORE-0707 for a factor outside (0, 1], [0, 1].
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
        total_iters: int = 5, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not 0 < start_factor <= 1:
            raise _refuse_setting(self, "start_factor", "it lies outside (0, 1]")
        if not 0 <= end_factor <= 1:
            raise _refuse_setting(self, "end_factor", "it lies outside [0, 1]")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self.last_epoch == 0:
            return self._scaled(self.start_factor)
        if self._initial or self.last_epoch > self.total_iters:
            return read(self.optimizer, "lr")
        climb = self.end_factor - self.start_factor
        return self._scaled(
            1.0 + climb / (self.total_iters * self.start_factor + (self.last_epoch - 1) * climb)
        )

    def _get_closed_form_lr(self) -> list[Any]:
        climb = self.end_factor - self.start_factor
        reached = min(self.total_iters, self.last_epoch)
        return [
            base * (self.start_factor + climb * reached / self.total_iters)
            for base in self.base_lrs
        ]


class ExponentialLR(LRScheduler):
    """The rate times `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        return read(self.optimizer, "lr") if self._initial else self._scaled(self.gamma)

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """The rate times (1 - epoch / total_iters) ** power, down to zero."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        if self._initial or self.last_epoch > self.total_iters:
            return read(self.optimizer, "lr")
        left = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._scaled((left / before) ** self.power)

    def _get_closed_form_lr(self) -> list[Any]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the initial rate to `eta_min` in `T_max` epochs, and back again."""

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        epoch, half, least = self.last_epoch, self.T_max, self.eta_min
        groups = self.optimizer.param_groups
        if self._initial:
            return read(self.optimizer, "lr")
        if self._step_count == 1 and epoch > 0:
            return [
                least + (base - least) * (1 + math.cos(epoch * math.pi / half)) / 2
                for base in self.base_lrs
            ]
        if (epoch - 1 - half) % (2 * half) == 0:
            return [
                group["lr"] + (base - least) * (1 - math.cos(math.pi / half)) / 2
                for base, group in zip(self.base_lrs, groups, strict=True)
            ]
        now = 1 + math.cos(math.pi * epoch / half)
        before = 1 + math.cos(math.pi * (epoch - 1) / half)
        return [now / before * (group["lr"] - least) + least for group in groups]

    def _get_closed_form_lr(self) -> list[Any]:
        least = self.eta_min
        return [
            least + (base - least) * (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
            for base in self.base_lrs
        ]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half cosines to `eta_min`, the first in `T_0` epochs, each `T_mult` times as long as the
    last.

    Raises CORE-0707 for lengths that are no positive whole numbers, or a negative epoch.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: Any, T_mult: Any = 1, eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not isinstance(T_0, int) or T_0 <= 0:
            raise _refuse_setting(self, "T_0", "it is no positive whole number")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise _refuse_setting(self, "T_mult", "it is no positive whole number")
        self.T_0 = T_0
        self.T_i: float = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        least = self.eta_min
        return [
            least + (base - least) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
            for base in self.base_lrs
        ]

    def step(self, epoch: float | None = None) -> None:
        """Writes the rates of the next epoch, or of any; parts of an epoch are allowed."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        elif epoch < 0:
            raise _refuse_setting(self, "epoch", "it is negative")
        elif epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
        self.last_epoch = math.floor(epoch)
        for group, lr in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            write(group, "lr", lr)
        self._last_lr = read(self.optimizer, "lr")


class _OfSeveral(LRScheduler):
    """A schedule of schedules, whose states it holds."""

    _skipped = ("optimizer", "_schedulers")
    _schedulers: Sequence[LRScheduler]

    def _check(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler]) -> None:
        for one in schedulers:
            if isinstance(one, ReduceLROnPlateau):
                raise _refuse_setting(self, "schedulers", "ReduceLROnPlateau needs a metric a step")
            if one.optimizer is not optimizer:
                raise _refuse_setting(self, "schedulers", "one belongs to another optimiser")

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {
            "_schedulers": [one.state_dict() for one in self._schedulers]
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        rest = {key: one for key, one in state_dict.items() if key != "_schedulers"}
        super().load_state_dict(rest)
        for one, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            one.load_state_dict(state)


class SequentialLR(_OfSeveral):
    """One schedule after another, each from its milestone on.

    Raises CORE-0707 where the milestones are not one fewer, or the schedules do not fit together.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int],
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not schedulers or len(milestones) != len(schedulers) - 1:
            raise _refuse_setting(
                self, "milestones", f"{len(milestones)} for {len(schedulers)} schedules"
            )
        self._check(optimizer, schedulers)
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            write(group, "lr", group["initial_lr"])
        _undo(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self, epoch: int | None = None) -> None:
        """Steps the schedule whose turn it is; one whose turn begins starts at its epoch 0."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        schedule = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            schedule._update_lr(0)
        else:
            schedule.step()
        self._last_lr = schedule.get_last_lr()


def _undo(schedule: Any) -> None:
    """Takes back the step that schedules made when they were made."""
    if hasattr(schedule, "_schedulers"):
        for one in schedule._schedulers:
            _undo(one)
    elif hasattr(schedule, "last_epoch"):
        schedule.last_epoch -= 1


class ChainedScheduler(_OfSeveral):
    """Several schedules that work on the same rates, in each step all of them.

    Raises CORE-0707 for none, or for schedules of different optimisers.
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        if not schedulers:
            raise _refuse_setting(self, "schedulers", "there is none")
        optimizer = optimizer or schedulers[0].optimizer
        self._check(optimizer, schedulers)
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._last_lr = read(optimizer, "lr")

    def step(self, epoch: int | None = None) -> None:
        """Steps all of them, in their order."""
        for one in self._schedulers:
            one.step()
        self._last_lr = read(self.optimizer, "lr")


class ReduceLROnPlateau(LRScheduler):
    """The rate times `factor` where a metric has not improved for more than `patience` epochs.

    Raises CORE-0707 for a factor of 1 or more, or an unknown mode.
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise _refuse_setting(self, "factor", "it is 1 or more")
        if mode not in ("min", "max"):
            raise _refuse_setting(self, "mode", "it is neither min nor max")
        if threshold_mode not in ("rel", "abs"):
            raise _refuse_setting(self, "threshold_mode", "it is neither rel nor abs")
        self._attach(optimizer)
        self.factor = factor
        self.min_lrs = per_group(self, optimizer, "min_lr", min_lr)
        self.default_min_lr = None if isinstance(min_lr, (list, tuple)) else min_lr
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.last_epoch = 0
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self._last_lr = read(optimizer, "lr")
        self._reset()

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether the epochs after a reduction are not counted yet."""
        return self.cooldown_counter > 0

    def _is_better(self, value: float, best: float) -> bool:
        sign = 1.0 if self.mode == "max" else -1.0
        bound = best + sign * self.threshold
        if self.threshold_mode == "rel":
            bound = best * (1.0 + sign * self.threshold)
        return value > bound if self.mode == "max" else value < bound

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Looks at the epoch's metric."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(_EPOCH, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = read(self.optimizer, "lr")

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise _refuse_setting(
                    self, "min_lr", f"{len(self.min_lrs)} values for {len(groups)} groups"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                write(group, "lr", new)


def _cycle_momentum(
    schedule: Any, optimizer: Optimizer, base: Any, largest: Any, last_epoch: int
) -> tuple[list[Any], list[Any]]:
    """Prepares groups whose momentum, or first beta, runs against the rate.

    Raises CORE-0707 where the optimiser has neither.
    """
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise _refuse_setting(
            schedule, "cycle_momentum", "the optimiser has neither momentum nor betas"
        )
    schedule.use_beta1 = "betas" in optimizer.defaults
    bases = per_group(schedule, optimizer, "base_momentum", base)
    tops = per_group(schedule, optimizer, "max_momentum", largest)
    if last_epoch == -1:
        for top, low, group in zip(tops, bases, optimizer.param_groups, strict=True):
            write_momentum(schedule, group, top)
            group["max_momentum"] = top
            group["base_momentum"] = low
    return bases, tops


def write_momentum(schedule: Any, group: Group, value: float) -> None:
    """Writes a momentum into a group, as its first beta where it has betas."""
    if schedule.use_beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class CyclicLR(LRScheduler):
    """The rate goes between two bounds, up in `step_size_up` steps and down in `step_size_down`.

    Raises CORE-0707 for an unknown mode, or momentum that the optimiser has not.
    """

    _skipped = ("optimizer", "_scale_fn_custom")

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
        cycle_momentum: bool = True, base_momentum: Any = 0.8, max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self._attach(optimizer)
        base_lrs = per_group(self, optimizer, "base_lr", base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                write(group, "lr", lr)
        self.max_lrs = per_group(self, optimizer, "max_lr", max_lr)
        up = float(step_size_up)
        down = up if step_size_down is None else float(step_size_down)
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise _refuse_setting(self, "mode", "it is unknown, and no scale_fn is given")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = _cycle_momentum(
                self, optimizer, base_momentum, max_momentum, last_epoch
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The height of a cycle's, or a step's, peak."""
        if self._scale_fn_custom is not None:
            return float(self._scale_fn_custom(x))
        if self.mode == "triangular":
            return 1.0
        if self.mode == "triangular2":
            peak: float = 1 / (2.0 ** (x - 1))
            return peak
        return float(self.gamma**x)

    def get_lr(self) -> list[Any]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        if x <= self.step_ratio:
            height = x / self.step_ratio
        else:
            height = (x - 1) / (self.step_ratio - 1)
        peak = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            for low, top, group in zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True
            ):
                write_momentum(self, group, top - ((top - low) * height) * peak)
        return [
            low + ((top - low) * height) * peak
            for low, top in zip(self.base_lrs, self.max_lrs, strict=True)
        ]

    def state_dict(self) -> dict[str, Any]:
        custom = self._scale_fn_custom
        kept = None
        if custom is not None and not isinstance(custom, types.FunctionType):
            kept = custom.__dict__.copy()
        return super().state_dict() | {"_scale_fn_custom": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        rest = {key: one for key, one in state_dict.items() if key != "_scale_fn_custom"}
        super().load_state_dict(rest)
        kept = state_dict.get("_scale_fn_custom")
        if kept is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(kept)


def _cosine(start: float, end: float, part: float) -> float:
    return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)


def _line(start: float, end: float, part: float) -> float:
    return (end - start) * part + start


class OneCycleLR(LRScheduler):
    """One rise to `max_lr` and one fall far below the start, momentum the other way round.

    Raises CORE-0707 for settings that make no cycle, and for a step after the last.
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: Any = 0.3,
        anneal_strategy: str = "cos", cycle_momentum: bool = True, base_momentum: Any = 0.85,
        max_momentum: Any = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        self._attach(optimizer)
        self.total_steps = self._count(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise _refuse_setting(self, "pct_start", "it is no float in [0, 1]")
        if anneal_strategy not in ("cos", "linear"):
            raise _refuse_setting(self, "anneal_strategy", "it is neither cos nor linear")
        self._anneal_func_type = anneal_strategy
        self._schedule_phases = self._phases(pct_start, three_phase)
        if last_epoch == -1:
            for top, group in zip(
                per_group(self, optimizer, "max_lr", max_lr), optimizer.param_groups, strict=True
            ):
                group["initial_lr"] = top / div_factor
                group["max_lr"] = top
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            _cycle_momentum(self, optimizer, base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _count(self, total: Any, epochs: Any, steps: Any) -> int:
        if total is None and epochs is not None and steps is not None:
            good = isinstance(epochs, int) and isinstance(steps, int) and epochs > 0 and steps > 0
            total = epochs * steps if good else 0
        if not isinstance(total, int) or total <= 0:
            raise _refuse_setting(
                self, "total_steps", "neither it nor epochs and steps_per_epoch are positive"
            )
        return total

    def _phases(self, rise: float, three: bool) -> list[tuple[float, str, str, str, str]]:
        """Each phase's last step, and the names of the settings at its ends."""
        total = self.total_steps
        up = (float(rise * total) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if not three:
            return [up, (total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        return [
            up,
            (float(2 * rise * total) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
            (total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
        ]

    def get_lr(self) -> list[Any]:
        step = self.last_epoch
        if step > self.total_steps:
            raise _refuse_setting(self, "total_steps", f"step {step} comes after the last")
        anneal = _cosine if self._anneal_func_type == "cos" else _line
        rates = []
        for group in self.optimizer.param_groups:
            start = 0.0
            for index, phase in enumerate(self._schedule_phases):
                end, from_lr, to_lr, from_momentum, to_momentum = phase
                if step <= end or index == len(self._schedule_phases) - 1:
                    part = (step - start) / (end - start)
                    rates.append(anneal(group[from_lr], group[to_lr], part))
                    if self.cycle_momentum:
                        momentum = anneal(group[from_momentum], group[to_momentum], part)
                        write_momentum(self, group, momentum)
                    break
                start = end
        return rates
