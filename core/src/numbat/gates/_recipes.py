"""Runs that either engine can make from one source: `T` is `numbat`, or PyTorch where answers are
recorded. Each gives named arrays; the gates compare them with what PyTorch gave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

Recipe = Callable[[Any], dict[str, Any]]


def plain(value: Any) -> Any:
    """A tensor's values as nested lists of Python numbers."""
    return value.detach().tolist()


# -- the random stream ----------------------------------------------------------------------------


def streams(T: Any) -> dict[str, Any]:
    """Numbers drawn one call after another from one seed."""
    found: dict[str, Any] = {}
    for seed in (0, 137, 2**31 + 5, 2**40 + 3):
        T.manual_seed(seed)
        found[f"rand, seed {seed}"] = plain(T.rand(9))
        found[f"rand float64, seed {seed}"] = plain(T.rand(5, dtype=T.float64))
        found[f"randint, seed {seed}"] = plain(T.randint(-3, 1000, (7,)))
        found[f"randperm, seed {seed}"] = plain(T.randperm(13))
        found[f"bernoulli, seed {seed}"] = plain(T.bernoulli(T.full((11,), 0.3)))
        found[f"uniform, seed {seed}"] = plain(T.empty(6).uniform_(-2.5, 7.25))
        dropped = T.nn.functional.dropout(T.ones(16), 0.4, True)
        found[f"dropout, seed {seed}"] = plain(dropped)
        found[f"randn of few, seed {seed}"] = plain(T.randn(7))
        found[f"normal of many, seed {seed}"] = plain(T.randn(53))
        found[f"rand after all, seed {seed}"] = plain(T.rand(3))
    return found


# -- initial values -------------------------------------------------------------------------------


def initial(T: Any) -> dict[str, Any]:
    """What each function of `nn.init` fills a weight with, from one seed."""
    init = T.nn.init
    fills: dict[str, Callable[[Any], Any]] = {
        "uniform_": lambda w: init.uniform_(w, -1, 2),
        "normal_": lambda w: init.normal_(w, 1, 2),
        "trunc_normal_": lambda w: init.trunc_normal_(w, 0, 1, -1.5, 1.5),
        "constant_": lambda w: init.constant_(w, 3),
        "xavier_uniform_": lambda w: init.xavier_uniform_(w, 1.5),
        "xavier_normal_": lambda w: init.xavier_normal_(w),
        "kaiming_uniform_": lambda w: init.kaiming_uniform_(w, 0.2, "fan_out", "leaky_relu"),
        "kaiming_normal_": lambda w: init.kaiming_normal_(w),
        "eye_": lambda w: init.eye_(w),
        "sparse_": lambda w: init.sparse_(w, 0.4),
    }
    found: dict[str, Any] = {}
    for name, fill in fills.items():
        T.manual_seed(11)
        weight = T.empty(6, 5)
        fill(weight)
        found[name] = plain(weight)
    T.manual_seed(11)
    found["orthogonal_, its Gram matrix"] = plain(_gram(T, init.orthogonal_(T.empty(4, 6))))
    found["dirac_"] = plain(init.dirac_(T.empty(4, 3, 3)))
    found["gains"] = [
        float(init.calculate_gain(name))
        for name in ("linear", "conv2d", "sigmoid", "tanh", "relu", "leaky_relu", "selu")
    ]
    return found


def _gram(T: Any, weight: Any) -> Any:
    return T.round(weight @ weight.transpose(0, 1) * 1e4)


# -- modules --------------------------------------------------------------------------------------


def module_cases(T: Any) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Modules and inputs, each made from one seed."""
    nn = T.nn

    def case(name: str, make: Callable[[], Any], *shapes: Any) -> tuple[str, Any, Any]:
        T.manual_seed(23)
        module = make()
        inputs = tuple(
            T.randint(0, 7, shape[1]) if shape[0] == "tokens" else T.rand(*shape)
            for shape in shapes
        )
        return name, module, inputs

    yield case("Linear", lambda: nn.Linear(5, 3), (4, 5))
    yield case("Bilinear", lambda: nn.Bilinear(3, 4, 2), (5, 3), (5, 4))
    yield case("Conv1d", lambda: nn.Conv1d(4, 6, 3, 2, 1, groups=2), (2, 4, 9))
    yield case("Conv2d", lambda: nn.Conv2d(3, 4, 3, padding="same"), (2, 3, 6, 5))
    yield case("Conv3d", lambda: nn.Conv3d(2, 3, 2, dilation=2), (1, 2, 5, 4, 5))
    yield case("ConvTranspose2d", lambda: nn.ConvTranspose2d(3, 2, 3, 2, 1, 1), (1, 3, 4, 4))
    yield case("BatchNorm2d", lambda: nn.BatchNorm2d(3), (4, 3, 2, 2))
    yield case("LayerNorm", lambda: nn.LayerNorm((3, 4)), (2, 3, 4))
    yield case("GroupNorm", lambda: nn.GroupNorm(2, 4), (2, 4, 3))
    yield case("InstanceNorm1d", lambda: nn.InstanceNorm1d(3, affine=True), (2, 3, 5))
    yield case("RMSNorm", lambda: nn.RMSNorm(6), (3, 6))
    yield case("Embedding", lambda: nn.Embedding(7, 3, padding_idx=2), ("tokens", (2, 4)))
    yield case("EmbeddingBag", lambda: nn.EmbeddingBag(7, 3), ("tokens", (2, 4)))
    yield case("RNN", lambda: nn.RNN(3, 4, 2, bidirectional=True), (5, 2, 3))
    yield case("LSTM", lambda: nn.LSTM(3, 4, 2, batch_first=True), (2, 5, 3))
    yield case("GRU", lambda: nn.GRU(3, 4, 1), (5, 2, 3))
    yield case("PReLU", lambda: nn.PReLU(3), (2, 3))
    yield case(
        "MultiheadAttention", lambda: nn.MultiheadAttention(6, 2), (4, 2, 6), (3, 2, 6), (3, 2, 6)
    )
    yield case(
        "TransformerEncoderLayer",
        lambda: nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0),
        (4, 2, 6),
    )
    yield case(
        "TransformerDecoderLayer",
        lambda: nn.TransformerDecoderLayer(6, 2, 8, dropout=0.0),
        (4, 2, 6),
        (3, 2, 6),
    )
    yield case(
        "Sequential",
        lambda: nn.Sequential(nn.Linear(4, 5), nn.Dropout(0.3), nn.Linear(5, 2)),
        (3, 4),
    )


def modules(T: Any) -> dict[str, Any]:
    """State, results in both modes, and gradients of every module case."""
    found: dict[str, Any] = {}
    for name, module, inputs in module_cases(T):
        state = module.state_dict()
        found[f"{name}: state"] = [[key, list(value.shape)] for key, value in state.items()]
        found[f"{name}: first values"] = {key: plain(value) for key, value in state.items()}
        T.manual_seed(29)
        result = _first(module(*inputs))
        found[f"{name}: in training"] = plain(result)
        (result * result).sum().backward()
        found[f"{name}: gradients"] = {
            key: plain(value.grad) for key, value in module.named_parameters()
        }
        found[f"{name}: state afterwards"] = {
            key: plain(value) for key, value in module.named_buffers()
        }
        module.eval()
        found[f"{name}: in evaluation"] = plain(_first(module(*inputs)))
    return found


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


# -- optimisers and schedules ---------------------------------------------------------------------

OPTIMISERS: dict[str, list[dict[str, Any]]] = {
    "SGD": [{"lr": 0.1}, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
            {"lr": 0.1, "momentum": 0.8, "dampening": 0.2, "maximize": True}],
    "Adam": [{}, {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}],
    "AdamW": [{}, {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.3, "amsgrad": True}],
    "RMSprop": [{}, {"lr": 0.01, "momentum": 0.5, "centered": True, "weight_decay": 0.1}],
    "Adagrad": [{}, {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.5}],
    "Adadelta": [{}, {"rho": 0.8, "weight_decay": 0.1}],
    "Adamax": [{}, {"lr": 0.02, "weight_decay": 0.1}],
    "NAdam": [{}, {"lr": 0.02, "weight_decay": 0.1, "decoupled_weight_decay": True}],
    "RAdam": [{}, {"lr": 0.02, "weight_decay": 0.1}],
    "ASGD": [{}, {"lr": 0.1, "t0": 3, "weight_decay": 0.1}],
    "Rprop": [{}, {"lr": 0.05}],
    "Adafactor": [{}, {"lr": 0.05, "weight_decay": 0.1}],
}  # fmt: skip


def _problem(T: Any) -> tuple[list[Any], Callable[[], Any]]:
    """Two parameters in float64, and a loss whose gradient changes at every step."""
    T.manual_seed(3)
    first = T.nn.Parameter(T.rand(3, 4, dtype=T.float64))
    second = T.nn.Parameter(T.rand(4, dtype=T.float64))
    x = T.rand(6, 3, dtype=T.float64)
    y = T.rand(6, 4, dtype=T.float64)

    def loss() -> Any:
        return ((T.tanh(x @ first) * second - y) ** 2).sum()

    return [first, second], loss


def optimisers(T: Any) -> dict[str, Any]:
    """Twelve steps of every optimiser, with two groups of parameters."""
    found: dict[str, Any] = {}
    for name, settings in OPTIMISERS.items():
        for options in settings:
            parameters, loss = _problem(T)
            groups = [{"params": [parameters[0]]}, {"params": [parameters[1]], "lr": 0.03}]
            optimiser = getattr(T.optim, name)(groups, **options)
            losses = []
            for _ in range(12):
                optimiser.zero_grad()
                value = loss()
                value.backward()
                optimiser.step()
                losses.append(float(value.detach()))
            found[f"{name} {options}"] = [losses, [plain(one) for one in parameters]]
    parameters, loss = _problem(T)
    optimiser = T.optim.LBFGS(parameters, lr=0.5, max_iter=4, line_search_fn="strong_wolfe")

    def closure() -> Any:
        optimiser.zero_grad()
        value = loss()
        value.backward()
        return value

    found["LBFGS"] = [float(optimiser.step(closure).detach()) for _ in range(4)]
    return found


def schedules(T: Any) -> dict[str, Any]:
    """The learning rates of every schedule over thirty steps."""
    kinds = T.optim.lr_scheduler

    def chained(optimiser: Any) -> Any:
        first = kinds.LinearLR(optimiser, 0.25, total_iters=5)
        second = kinds.CosineAnnealingLR(optimiser, 20)
        return kinds.SequentialLR(optimiser, [first, second], milestones=[6])

    makers: dict[str, Callable[[Any], Any]] = {
        "StepLR": lambda o: kinds.StepLR(o, 7, 0.3),
        "MultiStepLR": lambda o: kinds.MultiStepLR(o, [4, 9, 20], 0.5),
        "ExponentialLR": lambda o: kinds.ExponentialLR(o, 0.9),
        "CosineAnnealingLR": lambda o: kinds.CosineAnnealingLR(o, 12, 0.01),
        "CosineAnnealingWarmRestarts": lambda o: kinds.CosineAnnealingWarmRestarts(o, 5, 2),
        "OneCycleLR": lambda o: kinds.OneCycleLR(o, 0.7, total_steps=31),
        "LinearLR": lambda o: kinds.LinearLR(o, 0.1, 0.8, 12),
        "PolynomialLR": lambda o: kinds.PolynomialLR(o, 15, 2.0),
        "LambdaLR": lambda o: kinds.LambdaLR(o, lambda step: 1 / (1 + step)),
        "SequentialLR": chained,
    }
    found: dict[str, Any] = {}
    for name, make in makers.items():
        weight = T.nn.Parameter(T.zeros(1))
        optimiser = T.optim.SGD([weight], lr=0.5, momentum=0.9)
        schedule = make(optimiser)
        rates = []
        for _ in range(30):
            rates.append(optimiser.param_groups[0]["lr"])
            optimiser.step()
            schedule.step()
        found[name] = rates
    weight = T.nn.Parameter(T.zeros(1))
    optimiser = T.optim.SGD([weight], lr=0.5)
    plateau = kinds.ReduceLROnPlateau(optimiser, factor=0.5, patience=2, cooldown=1)
    rates = []
    for value in (5, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 3, 2.9, 2.9, 2.9, 2.9, 2.9):
        plateau.step(value)
        rates.append(optimiser.param_groups[0]["lr"])
    found["ReduceLROnPlateau"] = rates
    return found


def clipping(T: Any) -> dict[str, Any]:
    """Gradients before and after a clip, and the norms that were found."""
    found: dict[str, Any] = {}
    for limit in (0.1, 1.0, 100.0):
        for kind in (2.0, 1.0, float("inf")):
            parameters, loss = _problem(T)
            loss().backward()
            norm = T.nn.utils.clip_grad_norm_(parameters, limit, kind)
            clipped = [plain(one.grad) for one in parameters]
            found[f"norm {kind} to {limit}"] = [float(norm), clipped]
    parameters, loss = _problem(T)
    loss().backward()
    T.nn.utils.clip_grad_value_(parameters, 0.05)
    found["values to 0.05"] = [plain(one.grad) for one in parameters]
    return found


# -- training runs --------------------------------------------------------------------------------


def _run(T: Any, model: Any, loss: Callable[[], Any], steps: int = 20) -> list[float]:
    optimiser = T.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        value = loss()
        value.backward()
        T.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        losses.append(float(value.detach()))
    return losses


def _mlp(T: Any) -> list[float]:
    nn, F = T.nn, T.nn.functional
    model = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Dropout(0.1), nn.Linear(16, 3))
    x, y = T.randn(32, 8), T.randint(0, 3, (32,))
    return _run(T, model, lambda: F.cross_entropy(model(x), y, label_smoothing=0.1))


def _residual(T: Any) -> list[float]:
    nn, F = T.nn, T.nn.functional
    stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
    body = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.SiLU())
    head = nn.Linear(8, 4)
    model = nn.ModuleList([stem, body, head])
    x, y = T.randn(8, 1, 10, 10), T.randint(0, 4, (8,))

    def loss() -> Any:
        state = stem(x)
        state = state + body(state)
        return F.cross_entropy(head(F.adaptive_avg_pool2d(state, 1).flatten(1)), y)

    return _run(T, model, loss)


def _volume(T: Any) -> list[float]:
    nn, F = T.nn, T.nn.functional
    down = nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.InstanceNorm3d(4), nn.LeakyReLU(0.01))
    deep = nn.Sequential(nn.Conv3d(4, 8, 3, 2, 1), nn.GroupNorm(2, 8), nn.LeakyReLU(0.01))
    lift, head = nn.ConvTranspose3d(8, 4, 2, 2), nn.Conv3d(8, 2, 1)
    model = nn.ModuleList([down, deep, lift, head])
    x, y = T.randn(1, 1, 8, 8, 8), T.randint(0, 2, (1, 8, 8, 8))

    def loss() -> Any:
        one = down(x)
        return F.cross_entropy(head(T.cat([lift(deep(one)), one], 1)), y)

    return _run(T, model, loss)


def _language(T: Any) -> list[float]:
    nn, F = T.nn, T.nn.functional
    width, heads, length = 16, 2, 12
    tokens, places = nn.Embedding(40, width), nn.Embedding(length, width)
    first, second, last = nn.LayerNorm(width), nn.LayerNorm(width), nn.LayerNorm(width)
    qkv, out = nn.Linear(width, 3 * width), nn.Linear(width, width)
    up, down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    model = nn.ModuleList([tokens, places, first, second, last, qkv, out, up, down])
    x, y = T.randint(0, 40, (3, length)), T.randint(0, 40, (3, length))

    def loss() -> Any:
        state = tokens(x) + places(T.arange(length))
        mixed = qkv(first(state)).view(3, length, 3, heads, width // heads)
        q, k, v = (mixed[:, :, index].transpose(1, 2) for index in range(3))
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        state = state + out(seen.transpose(1, 2).reshape(3, length, width))
        state = state + down(F.gelu(up(second(state)), approximate="tanh"))
        logits = last(state).reshape(-1, width) @ tokens.weight.transpose(0, 1)
        return F.cross_entropy(logits, y.reshape(-1))

    return _run(T, model, loss)


def _detector(T: Any) -> list[float]:
    nn, F = T.nn, T.nn.functional
    stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.SiLU())
    boxes, classes = nn.Conv2d(8, 4, 1), nn.Conv2d(8, 3, 1)
    model = nn.ModuleList([stem, boxes, classes])
    x = T.randn(2, 3, 16, 16)
    box, label = T.rand(2, 4, 8, 8), (T.rand(2, 3, 8, 8) > 0.8).float()

    def loss() -> Any:
        state = F.max_pool2d(stem(x), 3, 1, 1)
        found = F.smooth_l1_loss(boxes(state).sigmoid(), box)
        return found + F.binary_cross_entropy_with_logits(classes(state), label)

    return _run(T, model, loss)


def training(T: Any) -> dict[str, Any]:
    """The losses of twenty steps of five kinds of model, each from one seed."""
    found: dict[str, Any] = {}
    for name, run in (
        ("perceptron", _mlp), ("residual net", _residual), ("UNet 3D", _volume),
        ("transformer", _language), ("detector head", _detector),
    ):  # fmt: skip
        T.manual_seed(41)
        found[name] = run(T)
    return found


RECIPES: dict[str, Recipe] = {
    "streams": streams,
    "initial": initial,
    "modules": modules,
    "optimisers": optimisers,
    "schedules": schedules,
    "clipping": clipping,
    "training": training,
}
