"""Kernels against the plain path in float64, over odd sizes, special values, threads and
variants."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import numbat as nb
from numbat.kernels.loading import variants
from numbat_gates import Check, gate

F = nb.nn.functional
SIZES = (1, 7, 31, 33, 130)

Run = Callable[..., Any]


@gate(
    "CORE-G13",
    phase=1,
    discharges=["CORE-R013"],
    title="Kernels equal their plain references, over threads and variants",
)
def kernels(check: Check) -> None:
    for name, run, inputs, room in cases():
        plain = outcomes(run, [one.astype(np.float64) for one in inputs])
        fast = outcomes(run, [one.astype(np.float32) for one in inputs])
        for part, (mine, theirs) in enumerate(zip(fast, plain, strict=True)):
            _judge(check, f"{name}, part {part}", mine, theirs, room)
    _threads(check)
    _variants(check)


def cases() -> Iterator[tuple[str, Run, list[Any], float]]:
    """Calls of every kernel: its name, the operators that take it, inputs, and its tolerance."""
    rng = np.random.default_rng(13)
    smooth: dict[str, Run] = {
        "gelu": F.gelu,
        "gelu, tanh": lambda x: F.gelu(x, approximate="tanh"),
        "silu": F.silu,
        "mish": F.mish,
        "softplus": F.softplus,
        "sigmoid": nb.sigmoid,
    }
    for size in SIZES:
        x = rng.normal(size=(3, size)) * 3
        for name, run in smooth.items():
            yield f"{name} of 3x{size}", run, [x], 2e-6
            yield f"{name} of {size}x3 turned", run, [np.asfortranarray(x.T)], 2e-6
        yield f"softmax of 3x{size}", lambda x: F.softmax(x, -1), [x], 2e-6
        yield f"log_softmax of {size} down", lambda x: F.log_softmax(x, 0), [x], 4e-6
        rows = np.arange(3) % size
        yield (
            f"cross_entropy of 3x{size}",
            lambda x, rows=rows: F.cross_entropy(x, nb.tensor(rows)),
            [x],
            4e-6,
        )
        w, b = rng.normal(size=size), rng.normal(size=size)
        yield (
            f"layer_norm of {size}",
            lambda x, w, b: F.layer_norm(x, (x.shape[-1],), w, b),
            [x, w, b],
            2e-4,
        )
        yield f"rms_norm of {size}", lambda x, w: F.rms_norm(x, (x.shape[-1],), w), [x, w], 2e-5
        image = rng.normal(size=(2, size, 5, 3))
        yield (
            f"batch_norm and silu of {size} channels",
            lambda x, w, b: F.silu(F.batch_norm(x, None, None, w, b, True)),
            [image, w, b],
            1e-4,
        )
    for channels, outs in ((1, 3), (5, 17), (16, 33)):
        for stride, dilation in ((1, 1), (2, 1), (1, 2)):
            x = rng.normal(size=(2, channels, 9, 11))
            w = rng.normal(size=(outs, channels, 3, 3)) / 3
            yield (
                f"conv2d {channels} to {outs}, stride {stride}, dilation {dilation}",
                lambda x, w, s=stride, d=dilation: F.conv2d(x, w, None, s, 1, d),
                [x, w],
                3e-4,
            )
        x = rng.normal(size=(1, channels, 5, 6, 7))
        w = rng.normal(size=(outs, channels, 3, 3, 3)) / 5
        yield f"conv3d {channels} to {outs}", lambda x, w: F.conv3d(x, w, None, 1, 1), [x, w], 5e-4
        y = rng.normal(size=(1, channels, 4, 5))
        v = rng.normal(size=(channels, outs, 2, 2))
        yield (
            f"conv_transpose2d {channels} to {outs}",
            lambda x, w: F.conv_transpose2d(x, w, None, 2),
            [y, v],
            2e-4,
        )
    x = rng.normal(size=(2, 5, 9, 7))
    yield "max_pool2d", lambda x: F.max_pool2d(x, 3, 2, 1), [x], 0.0
    yield "avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1), [x], 2e-6
    yield (
        "interpolate",
        lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear"),
        [x],
        1e-5,
    )
    for length in (5, 129, 150):
        q, k, v = (rng.normal(size=(1, 2, length, 16)) for _ in range(3))
        yield (
            f"causal attention of {length}",
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            [q, k, v],
            5e-5,
        )


def outcomes(run: Run, inputs: list[Any]) -> list[Any]:
    """A call's result and its gradients for every input, as float64 arrays."""
    tensors = [nb.from_numpy(np.array(one, order="K")) for one in inputs]
    for one in tensors:
        one.requires_grad = True
    result = run(*tensors)
    weights = np.random.default_rng(3).uniform(0.5, 1.5, result.shape)
    result.backward(nb.tensor(weights, dtype=result.dtype))
    found = [result.detach(), *(one.grad for one in tensors)]
    return [np.asarray(one.array, dtype=np.float64) for one in found]


def _judge(check: Check, name: str, mine: Any, theirs: Any, room: float) -> None:
    scale = max(1.0, float(np.abs(theirs).max(initial=0.0)))
    # max_pool picks the same elements, up to their rounding to float32.
    allowed = max(room, 1e-7) * scale
    check.close(name, measured=mine, required=theirs, atol=allowed)


def _threads(check: Check) -> None:
    """Results must not depend on how many threads share the work."""
    rng = np.random.default_rng(7)
    large: dict[str, tuple[Run, list[Any]]] = {
        "gelu": (F.gelu, [rng.normal(size=(257, 1023))]),
        "layer_norm": (lambda x: F.layer_norm(x, (1023,)), [rng.normal(size=(257, 1023))]),
        "softmax": (lambda x: F.softmax(x, -1), [rng.normal(size=(257, 1023))]),
        "conv2d": (
            lambda x, w: F.conv2d(x, w, None, 1, 1),
            [rng.normal(size=(2, 17, 40, 41)), rng.normal(size=(19, 17, 3, 3))],
        ),
        "attention": (
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
            [rng.normal(size=(2, 3, 260, 32)) for _ in range(3)],
        ),
    }
    before = nb.get_num_threads()
    for name, (run, inputs) in large.items():
        fast = [one.astype(np.float32) for one in inputs]
        found = []
        for threads in (1, 2, 3):
            nb.set_num_threads(threads)
            found.append([one.tobytes() for one in outcomes(run, fast)])
        nb.set_num_threads(before)
        same = [one == found[0] for one in found]
        check.equal(f"{name} by one, two and three threads, bit for bit", same, [True] * 3)


def _variants(check: Check) -> None:
    """Every variant that this processor runs gives the same numbers, up to rounding."""
    found: dict[str, Any] = {}
    for name in variants():
        done = subprocess.run(
            [sys.executable, "-c", "from numbat.gates.kernels import _sums; _sums()"],
            env={**os.environ, "NUMBAT_KERNELS": name},
            capture_output=True,
            text=True,
            check=False,
        )
        check.equal(f"variant {name} runs", done.returncode, 0)
        if done.returncode == 0:
            found[name] = json.loads(done.stdout)
    first = next(iter(found.values()))
    for name, sums in found.items():
        check.close(
            f"variant {name} agrees",
            measured=np.array(list(sums.values())),
            required=np.array(list(first.values())),
            atol=2e-3,
        )


def _sums() -> None:
    """Prints an uneven sum of every case's results, for another process to compare."""
    sums = {}
    for name, run, inputs, _ in cases():
        found = outcomes(run, [one.astype(np.float32) for one in inputs])
        sums[name] = sum(float((one * np.cos(np.arange(one.size)).reshape(one.shape)).sum())
                         for one in found)  # fmt: skip
    print(json.dumps(sums))
