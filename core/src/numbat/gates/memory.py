"""Memory: alignment, sharing, versions, and the peak of a backward pass."""

from collections.abc import Callable
from functools import partial

import numpy as np

import numbat as nb
from numbat.tensors.dtypes import DTYPES
from numbat.tensors.storage import ALIGNMENT_BYTES
from numbat_gates import Check, gate

SHAPES = ((), (1,), (3,), (7, 5), (1, 1, 129), (0, 4), (33, 65))


@gate(
    "CORE-G02",
    phase=1,
    discharges=["CORE-R002"],
    title="Fresh memory is aligned, and views share it",
)
def storage(check: Check) -> None:
    for dtype in DTYPES:
        makers: dict[str, Callable[[tuple[int, ...]], nb.Tensor]] = {
            "empty": partial(nb.empty, dtype=dtype),
            "zeros": partial(nb.zeros, dtype=dtype),
            "a cast": lambda shape: nb.ones(shape, dtype=nb.float32).to(dtype),  # noqa: B023
            "a clone": lambda shape: nb.ones(shape, dtype=dtype).clone(),  # noqa: B023
        }
        for name, make in makers.items():
            for shape in SHAPES:
                off = make(shape).data_ptr() % ALIGNMENT_BYTES
                check.equal(f"{name} of {list(shape)} {dtype.name}", off, 0, unit="byte")
    results = [nb.ones(5, 3) + 1, nb.ones(5, 3) @ nb.ones(3, 2), nb.ones(9).sum()]
    check.equal("results", [one.data_ptr() % ALIGNMENT_BYTES for one in results], [0, 0, 0])
    _views(check)


def _views(check: Check) -> None:
    base = nb.arange(24, dtype=nb.float32)
    views = {
        "view": base.view(4, 6),
        "reshape": base.reshape(2, 12),
        "transpose": base.view(4, 6).transpose(0, 1),
        "permute": base.view(2, 3, 4).permute(2, 0, 1),
        "expand": base.view(24, 1).expand(24, 3),
        "as_strided": base.as_strided((3, 3), (2, 1), 4),
        "detach": base.detach(),
    }
    for name, view in views.items():
        shares = np.shares_memory(base.array, view.array)
        check.true(f"{name} shares memory", shares)
    before = [view._version for view in views.values()]
    views["view"].mul_(2)
    seen = [view._version - old for view, old in zip(views.values(), before, strict=True)]
    check.equal("one write is counted by every view", seen, [1] * len(views))
    check.equal("and seen by its base", base.tolist(), (np.arange(24) * 2.0).tolist())
    with check.refuses("CORE-0209", "a view beyond the memory"):
        base.as_strided((5,), (6,), 0)
    with check.refuses("CORE-0209", "a view before the memory"):
        base.as_strided((2,), (1,), -1)


@gate(
    "CORE-G08",
    phase=1,
    discharges=["CORE-R008"],
    title="Activations are freed as gradients are made",
)
def freeing(check: Check) -> None:
    freed, kept = _peak(retain_graph=False), _peak(retain_graph=True)
    for name in freed[1]:
        check.true(f"gradient of {name} is the same, bit for bit", freed[1][name] == kept[1][name])
    check.at_most("peak of memory, freed against kept", freed[0] / kept[0], 0.7)


def _peak(retain_graph: bool) -> tuple[int, dict[str, bytes]]:
    """Peak bytes of one backward pass through twelve layers, and the gradients."""
    rng = np.random.default_rng(8)
    weights = {
        f"layer {index}": nb.tensor(
            rng.normal(size=(512, 512)) / 32, dtype=nb.float32, requires_grad=True
        )
        for index in range(12)
    }
    state = nb.tensor(rng.normal(size=(128, 512)), dtype=nb.float32)
    nb.reset_peak_memory()
    before = nb.memory_stats()["used_bytes"]
    held = []
    for weight in weights.values():
        state = (state @ weight) * 0.9
        state = state * state + state
        held.append(state.numel())
    loss = state.mean()
    del state
    nb.reset_peak_memory()
    loss.backward(retain_graph=retain_graph)
    peak = nb.memory_stats()["peak_bytes"] - before
    gradients = {
        name: one.grad.array.tobytes() for name, one in weights.items() if one.grad is not None
    }
    return peak, gradients
