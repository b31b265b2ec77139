"""How much of PyTorch's own databases the engine maps; README.md states the same figures."""

from __future__ import annotations

import re
from pathlib import Path

import opinfo
import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.testing._internal.common_optimizers import optim_db

import numbat as nb
from numbat.ops.registry import OPERATORS

README = Path(__file__).parents[2] / "README.md"


def mapped_operators() -> set[str]:
    """Names of torch's operators that our registry has, under torch's name or a variant of it."""
    ours = {entry.torch for entry in OPERATORS.values() if entry.torch}
    ours |= {name.split(".")[0] if name.startswith("div.") else name for name in ours}
    aliases = {alias.name for info in op_db if info.name in ours for alias in info.aliases}
    names = {info.name for info in op_db}
    own = {
        name
        for name in names
        if name in ours or name in aliases or has(name.removeprefix("nn.functional."), name)
    }
    return own & names


def has(short: str, name: str) -> bool:
    """Whether a public function or method of ours has the name."""
    if name.startswith("nn.functional."):
        return hasattr(nb.nn.functional, short)
    home: object = nb
    for part in name.split("."):
        home = getattr(home, part, None)
    return home is not None or hasattr(nb.Tensor, name)


def counts() -> dict[str, tuple[int, int]]:
    """Mapped and total of the three databases."""
    operators = {info.name for info in op_db}
    modules = [info.module_cls for info in module_db]
    optimisers = [info.optim_cls for info in optim_db]
    return {
        "operators": (len(mapped_operators()), len(operators)),
        "modules": (sum(hasattr(nb.nn, one.__name__) for one in modules), len(modules)),
        "optimisers": (sum(hasattr(nb.optim, one.__name__) for one in optimisers), len(optimisers)),
    }


def test_the_page_states_what_is_mapped() -> None:
    page = README.read_text(encoding="utf-8")
    stated = dict(re.findall(r"^\| (operators|modules|optimisers) \| (\d+ of \d+) \|", page, re.M))
    assert stated == {name: f"{mine} of {total}" for name, (mine, total) in counts().items()}


def test_every_name_of_the_registry_is_known_to_torch() -> None:
    unknown = sorted(
        entry.torch
        for entry in OPERATORS.values()
        if entry.torch and entry.torch not in opinfo.databases() and not torch_has(entry.torch)
    )
    assert unknown == []


def torch_has(name: str) -> bool:
    """Whether torch has a function or method of that name outside its database."""
    home: object = torch
    for part in name.split("."):
        home = getattr(home, part, None)
    return home is not None or hasattr(torch.Tensor, name)
