"""Writes PyTorch's answers for the gates: `hatch run parity:record`.

The gates hold the engine to these on machines without PyTorch. Each answer carries a digest of the
call it belongs to; a sample that changes makes its answer stale, and the gate says so.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import numbat as nb
from numbat.gates import _known
from numbat.gates._recipes import RECIPES
from numbat.gates.gradients import samples_of
from numbat.ops.registry import OPERATORS, Operator, Sample

FOLDER = Path(_known.__file__).parent / "known"
COMMAND = "hatch run parity:record"

QUIRKS = {
    "ldexp": "PyTorch's gradient is zero for negative whole exponents, against differences",
    "ctc_loss": "PyTorch's gradient is right after log_softmax alone, as parity compares it",
    "cholesky_solve": "of a triangular factor PyTorch's gradient fills what is never read",
    "cholesky_inverse": "of a triangular factor PyTorch's gradient fills what is never read",
    "linalg.svd": "vectors are given up to their sign: linalg.svd.of_one_sign is checked",
    "linalg.eigh": "vectors are given up to their sign: linalg.eigh.of_symmetric is checked",
}
"""Operators where PyTorch is not followed, and why."""


def write(name: str, document: dict[str, Any]) -> None:
    """One file of answers, the same bytes for the same answers."""
    whole = {"producer": f"PyTorch {torch.__version__}", "command": COMMAND, **document}
    text = json.dumps(whole, separators=(",", ":"), sort_keys=True)
    (FOLDER / f"{name}.json.gz").write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def torch_function(operator: Operator) -> Callable[..., Any] | None:
    """torch's function of the same name, wherever torch keeps it."""
    name = operator.name
    homes: list[Any] = [torch, torch.Tensor, torch.special, torch.nn.functional]
    if (operator.torch or "").startswith("nn.functional."):
        homes = [torch.nn.functional, *homes]
    if "." in name:
        space, _, name = name.partition(".")
        homes = [getattr(torch, space, None)]
    for home in homes:
        found = getattr(home, name, None)
        if callable(found):
            return found  # type: ignore[no-any-return]
    return None


def as_torch(value: Any) -> Any:
    """Arrays as torch's tensors, element types as torch's, everything else as it is."""
    if isinstance(value, np.ndarray | np.generic):
        return torch.from_numpy(np.array(value, order="C", ndmin=0)).reshape(np.shape(value))
    if isinstance(value, nb.dtype):
        return getattr(torch, value.name)
    if isinstance(value, tuple | list):
        return type(value)(as_torch(one) for one in value)
    return value


def tensors_in(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, tuple | list):
        return [found for one in value for found in tensors_in(one)]
    return []


def answer(operator: Operator, function: Callable[..., Any], sample: Sample) -> dict[str, Any]:
    """What torch gives for one call, and its gradients for the inputs."""
    args = as_torch(list(sample.args))
    keywords = {name: as_torch(value) for name, value in sample.keywords.items()}
    inputs = [one for one in tensors_in([args, list(keywords.values())]) if one.is_floating_point()]
    if operator.differentiable:
        for one in inputs:
            one.requires_grad_(True)
    given = function(*args, **keywords)
    results = tensors_in(given if isinstance(given, tuple | list) else [given])
    found: dict[str, Any] = {
        "call": _known.digest_of([list(sample.args), sample.keywords]),
        "results": [_known.packed(one.detach().numpy(force=True)) for one in results],
    }
    roots = [one for one in results if one.requires_grad]
    if operator.differentiable and roots and inputs:
        weights = [
            torch.from_numpy(_known.weights(tuple(one.shape), index)).to(one.dtype)
            for index, one in enumerate(roots)
        ]
        gradients = torch.autograd.grad(roots, inputs, weights, allow_unused=True)
        found["gradients"] = [
            None if one is None else _known.packed(one.numpy(force=True)) for one in gradients
        ]
    return found


def attempt(operator: Operator, function: Callable[..., Any], sample: Sample) -> dict[str, Any]:
    """The answer for one call, or the reason why torch takes no such call."""
    try:
        found = answer(operator, function, sample)
        # What JSON cannot hold (complex numbers) is no answer.
        json.dumps(found)
        return found
    except Exception as error:
        line = str(error).split("\n")[0]
        return {
            "call": _known.digest_of([list(sample.args), sample.keywords]),
            "without": f"PyTorch takes other arguments: {line}"[:160],
        }


def operators() -> dict[str, Any]:
    """Answers for every operator of the registry, and why one has none."""
    answers: dict[str, Any] = {}
    without: dict[str, str] = {}
    for operator in OPERATORS.values():
        function = torch_function(operator)
        if operator.random:
            without[operator.name] = "it draws numbers: CORE-G10 compares the streams"
        elif operator.family == "fourier":
            without[operator.name] = "PyTorch gives complex numbers, as parity compares them"
        elif operator.name in QUIRKS:
            without[operator.name] = QUIRKS[operator.name]
        elif function is None:
            without[operator.name] = "PyTorch has no function of this name"
        else:
            found = [attempt(operator, function, sample) for sample in samples_of(operator)]
            if any("results" in one for one in found):
                answers[operator.name] = found
            else:
                without[operator.name] = found[0]["without"]
    return {"answers": answers, "without": without}


def main() -> None:
    """Writes every file of answers."""
    FOLDER.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    found = operators()
    write("operators", found)
    print(f"operators: {len(found['answers'])} with answers, {len(found['without'])} without")
    for name, reason in found["without"].items():
        print(f"  {name}: {reason}")
    for name, recipe in RECIPES.items():
        answers = recipe(torch)
        write(name, {"answers": answers})
        print(f"{name}: {len(answers)} answers")


if __name__ == "__main__":
    main()
