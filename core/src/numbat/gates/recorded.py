"""Streams, initial values, modules, optimisers and training runs against PyTorch's answers."""

from typing import Any

import numpy as np

import numbat as nb
from numbat.gates._known import known
from numbat.gates._recipes import RECIPES
from numbat_gates import Check, gate


@gate(
    "CORE-G10",
    phase=1,
    discharges=["CORE-R010"],
    title="One seed draws the numbers that PyTorch draws",
)
def streams(check: Check) -> None:
    # Box-Muller of many goes through another logarithm and cosine; everything else is exact.
    _judge(check, "streams", atol=0.0, wider={"normal of many": 1e-6})
    state = nb.get_rng_state()
    first = nb.rand(5).tolist()
    nb.set_rng_state(state)
    check.equal("a state that is set again", nb.rand(5).tolist(), first)


@gate(
    "CORE-G21",
    phase=2,
    discharges=["CORE-R021"],
    title="Parameters begin with PyTorch's very values",
)
def initial_values(check: Check) -> None:
    wider = dict.fromkeys(("normal_", "trunc_normal_", "xavier_normal_", "sparse_"), 4e-06)
    _judge(check, "initial", atol=1e-7, wider={**wider, "kaiming_normal_": 4e-6, "gains": 1e-12})


@gate(
    "CORE-G20",
    phase=2,
    discharges=["CORE-R020"],
    title="Modules have PyTorch's state, results and gradients",
)
def modules(check: Check) -> None:
    _judge(check, "modules", atol=3e-5, wider={"first values": 4e-6})


@gate(
    "CORE-G30",
    phase=3,
    discharges=["CORE-R030"],
    title="Optimisers and schedules follow PyTorch's, step by step",
)
def optimisers(check: Check) -> None:
    _judge(check, "optimisers", atol=1e-9)
    _judge(check, "schedules", atol=1e-15)


@gate(
    "CORE-G31",
    phase=3,
    discharges=["CORE-R031"],
    title="Gradients are clipped as PyTorch clips them",
)
def clipping(check: Check) -> None:
    _judge(check, "clipping", atol=1e-12)


@gate(
    "CORE-G34",
    phase=3,
    discharges=["CORE-R034"],
    title="Twenty steps of five models follow PyTorch's losses",
)
def training(check: Check) -> None:
    _judge(check, "training", atol=2e-3)
    losses = known(check, "training")["answers"]
    for name, series in losses.items():
        check.true(f"{name} learns", series[-1] < series[0])


def _judge(check: Check, name: str, *, atol: float, wider: dict[str, float] | None = None) -> None:
    """Runs a recipe and holds every named result of it to the recorded one."""
    recorded = known(check, name)
    measured = RECIPES[name](nb)
    check.equal(f"{name}: what is compared", sorted(measured), sorted(recorded["answers"]))
    for key, required in recorded["answers"].items():
        if key not in measured:
            continue
        room = max([atol, *(v for part, v in (wider or {}).items() if part in key)])
        mine, theirs = _numbers(measured[key]), _numbers(required)
        check.equal(f"{key}: its form", _form(measured[key]), _form(required))
        if theirs and len(mine) == len(theirs):
            check.close(key, measured=np.array(mine), required=np.array(theirs), atol=room)


def _numbers(value: Any) -> list[float]:
    if isinstance(value, dict):
        return [one for key in sorted(value) for one in _numbers(value[key])]
    if isinstance(value, list):
        return [found for one in value for found in _numbers(one)]
    return [] if isinstance(value, str) else [float(value)]


def _form(value: Any) -> Any:
    """The structure of a result: names, lengths and kinds, without its numbers."""
    if isinstance(value, dict):
        return {key: _form(one) for key, one in value.items()}
    if isinstance(value, list):
        forms = [_form(one) for one in value]
        same = bool(forms) and all(one == forms[0] for one in forms)
        return [len(forms), forms[0]] if same else forms
    return value if isinstance(value, str) else type(value).__name__
