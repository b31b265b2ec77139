"""Mixed precision: where operators are placed, what stays in float32, and the loss scale."""

from collections.abc import Callable

import numbat as nb
from numbat import amp, optim
from numbat_gates import Check, gate

F = nb.nn.functional


@gate(
    "CORE-G33",
    phase=3,
    discharges=["CORE-R033"],
    title="Mixed precision is placed and scaled as PyTorch's",
)
def precision(check: Check) -> None:
    for fast in (nb.bfloat16, nb.float16):
        _placement(check, fast)
    _weights(check)
    _scale(check)


def _placement(check: Check, fast: nb.dtype) -> None:
    x, w = nb.ones(4, 4), nb.ones(4, 4)
    image, kernel = nb.ones(1, 2, 5, 5), nb.ones(3, 2, 3, 3)
    logits, labels = nb.ones(4, 3), nb.tensor([0, 1, 2, 0])
    placed: dict[str, tuple[Callable[[], nb.Tensor], nb.dtype]] = {
        "matmul": (lambda: x @ w, fast),
        "linear": (lambda: F.linear(x, w), fast),
        "conv2d": (lambda: F.conv2d(image, kernel), fast),
        "mse_loss": (lambda: F.mse_loss(x.to(fast), w.to(fast)), nb.float32),
        "cross_entropy": (lambda: F.cross_entropy(logits.to(fast), labels), nb.float32),
        "add": (lambda: x + w, nb.float32),
        "layer_norm": (lambda: F.layer_norm(x, (4,)), nb.float32),
    }
    for name, (run, required) in placed.items():
        with amp.autocast("cpu", dtype=fast):
            measured = run().dtype.name
        check.equal(f"{name} under {fast.name}", measured, required.name)
        with amp.autocast("cpu", dtype=fast, enabled=False):
            outside = (x @ w).dtype.name
        check.equal(f"nothing is lowered where it is not enabled ({name})", outside, "float32")


def _weights(check: Check) -> None:
    nb.manual_seed(0)
    model = nb.nn.Linear(4, 2)
    with amp.autocast("cpu", dtype=nb.bfloat16):
        loss = model(nb.ones(3, 4)).float().square().mean()
    loss.backward()
    check.equal("weights stay in float32", model.weight.dtype.name, "float32")
    grad = model.weight.grad
    assert grad is not None
    check.equal("and so do their gradients", grad.dtype.name, "float32")


def _scale(check: Check) -> None:
    weight = nb.nn.Parameter(nb.ones(2))
    optimiser = optim.SGD([weight], lr=1.0)
    scaler = amp.GradScaler("cpu", growth_interval=3)
    check.equal("the first scale", scaler.get_scale(), 65536.0)
    series, values = [], []
    for broken in (False, False, True, False, False, False, False):
        optimiser.zero_grad()
        scaler.scale((weight * 1.0).sum()).backward()
        if broken:
            assert weight.grad is not None
            weight.grad.mul_(float("inf"))
        scaler.step(optimiser)
        scaler.update()
        series.append(scaler.get_scale())
        values.append(weight.array[0].item())
    # Halved at the infinity, and doubled after three steps without one.
    check.equal("the scale", series, [65536, 65536, 32768, 32768, 32768, 65536, 65536])
    check.equal("a step with an infinity is skipped", values, [0, -1, -1, -2, -3, -4, -5])
    state = scaler.state_dict()
    constants = [state["growth_factor"], state["backoff_factor"], state["growth_interval"]]
    check.equal("the constants", constants, [2.0, 0.5, 3])
    check.equal("the interval by default", amp.GradScaler("cpu").get_growth_interval(), 2000)
