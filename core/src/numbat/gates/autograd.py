"""The tape as PyTorch's users know it; every expected gradient here is worked out by hand."""

import numpy as np

import numbat as nb
from numbat_gates import Check, gate


@gate(
    "CORE-G06",
    phase=1,
    discharges=["CORE-R006"],
    title="Gradients follow PyTorch's semantics, and a wrong one is refused",
)
def semantics(check: Check) -> None:
    _accumulation(check)
    _hooks(check)
    _in_place(check)
    _views(check)
    _higher_orders(check)
    _refusals(check)


def _leaf(*values: float) -> nb.Tensor:
    return nb.tensor(values, dtype=nb.float64, requires_grad=True)


def _grad(tensor: nb.Tensor) -> list[float]:
    assert tensor.grad is not None
    found: list[float] = tensor.grad.tolist()
    return found


def _accumulation(check: Check) -> None:
    x = _leaf(1, 2)
    (x * x).sum().backward()
    check.equal("a gradient", _grad(x), [2, 4])
    (x * 3).sum().backward()
    check.equal("is added to the one before", _grad(x), [5, 7])
    y = _leaf(2, 3)
    shared = y * y
    (shared * shared + shared).sum().backward()
    check.equal("paths that join are added", _grad(y), [4 * 8 + 4, 4 * 27 + 6])
    with nb.no_grad():
        held = y * y
    check.true("nothing is recorded within no_grad", not held.requires_grad)
    with nb.no_grad(), nb.enable_grad():
        check.true("and again within enable_grad", (y * y).requires_grad)
    z = _leaf(2.0, 5.0)
    ((z * z).detach() * z).sum().backward()
    check.equal("detach cuts the path", _grad(z), [4, 25])
    first, second = nb.autograd.grad((y * z).sum(), (y, z))
    assert first is not None
    assert second is not None
    check.equal("grad gives, and adds nothing", [first.tolist(), second.tolist()], [[2, 5], [2, 3]])
    check.equal("grad left .grad alone", _grad(z), [4, 25])
    wide = _leaf(1, 2)
    (wide * nb.ones(3, 2, dtype=nb.float64)).sum().backward()
    check.equal("what was broadcast is summed", _grad(wide), [3, 3])


def _hooks(check: Check) -> None:
    x = _leaf(1, 2)
    seen: list[list[float]] = []

    def double(given: nb.Tensor) -> nb.Tensor:
        seen.append(given.tolist())
        return given * 2

    handle = x.register_hook(double)
    (x * 3).sum().backward()
    check.equal(
        "a leaf's hook sees and replaces its gradient", [seen, _grad(x)], [[[3, 3]], [6, 6]]
    )
    handle.remove()
    x.grad = None
    middle = x * 3
    middle.retain_grad()
    middle.register_hook(lambda given: given * 10)
    middle.sum().backward()
    check.equal("a result's hook replaces what flows on", _grad(x), [30, 30])
    check.true("a result keeps its gradient when asked", middle.grad is not None)
    calls: list[int] = []
    x.register_post_accumulate_grad_hook(lambda leaf: calls.append(leaf.numel()))
    (x * 1).sum().backward()
    check.equal("a hook after accumulation", calls, [2])


def _in_place(check: Check) -> None:
    x = _leaf(1, 2)
    y = x * 2
    y.mul_(x)
    y.sum().backward()
    check.equal("the gradient of a value written over twice", _grad(x), [4, 8])
    x = _leaf(1, 2)
    with nb.no_grad():
        x.add_(1)
    check.equal("a leaf is written over within no_grad", x.tolist(), [2, 3])
    check.true("and stays a leaf", x.is_leaf)


def _views(check: Check) -> None:
    x = _leaf(1, 2, 3, 4)
    base = x * 1
    part = base.as_strided((2,), (2,), 1)
    part.mul_(10)
    base.sum().backward()
    check.equal("a write through a view reaches the base", _grad(x), [1, 10, 1, 10])
    x = _leaf(1, 2, 3, 4)
    base = x * 1
    first, second = base.view(2, 2), base.view(4)
    first.mul_(2)
    (second * second).sum().backward()
    check.equal("and every other view of it", _grad(x), [8, 16, 24, 32])
    x = _leaf(5, 6)
    base = nb.zeros(4, dtype=nb.float64)
    base.as_strided((2,), (1,), 2).add_(x)
    check.true("a base takes part through what is written to it", base.requires_grad)
    (base * base).sum().backward()
    check.equal("with its gradient", _grad(x), [10, 12])
    check.equal("and its values", base.tolist(), [0, 0, 5, 6])


def _higher_orders(check: Check) -> None:
    x = _leaf(2, 3)
    cube = (x * x * x).sum()
    (once,) = nb.autograd.grad(cube, x, create_graph=True)
    assert once is not None
    (twice,) = nb.autograd.grad(once.sum(), x, create_graph=True)
    assert twice is not None
    (thrice,) = nb.autograd.grad(twice.sum(), x)
    assert thrice is not None
    found = [once.tolist(), twice.tolist(), thrice.tolist()]
    check.equal("three derivatives of a cube", found, [[12, 27], [12, 18], [6, 6]])


def _refusals(check: Check) -> None:
    x = _leaf(1, 2)
    y = x * x
    z = y * y
    y.mul_(2)
    with check.refuses("CORE-0304", "a saved value that was written over"):
        z.sum().backward()
    view = (base := x * 1).view(2, 1)
    product = base * base
    view.add_(1)
    with check.refuses("CORE-0304", "a saved value written over through a view"):
        product.sum().backward()
    loss = (x * x).sum()
    loss.backward()
    with check.refuses("CORE-0305", "a second pass through a freed graph"):
        loss.backward()
    with check.refuses("CORE-0306", "a leaf written over"):
        x.mul_(2)
    with check.refuses("CORE-0306", "a leaf written over through a view"):
        x.view(2, 1).mul_(2)
    with check.refuses("CORE-0307", "memory that several elements share"):
        nb.ones(1).expand(4).mul_(2)
    with check.refuses("CORE-0310", "an input off the path"):
        nb.autograd.grad((x * x).sum(), _leaf(1))
    with check.refuses("CORE-0301", "whole numbers"):
        nb.tensor([1]).requires_grad_()
    zero = nb.tensor(np.zeros(2), requires_grad=True)
    with nb.autograd.detect_anomaly(), check.refuses("CORE-0311", "a NaN is named") as caught:
        (zero / zero).sum().backward()
    fields = {} if caught.diagnostic is None else caught.diagnostic.fields
    check.equal("by its operator", fields.get("operator"), "div")
    check.true("and its line", "autograd.py" in str(fields.get("site")))
