"""Answers that PyTorch gave, as they were recorded, and the form in which they are compared.

`hatch run parity:record` writes them; nothing here knows torch.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from numbat_gates import Check

_FOLDER = Path(__file__).with_name("known")


def known(check: Check, name: str) -> dict[str, Any]:
    """One file of recorded answers, with its producer and command; bound to the check's report."""
    return _read(Path(check.data(_FOLDER / f"{name}.json.gz")))


@cache
def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    return found


def digest_of(value: Any) -> str:
    """A digest of a call's arguments, so that an answer is compared with its own question alone."""
    return hashlib.sha256(_shown(value).encode()).hexdigest()[:16]


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic):
        array = np.ascontiguousarray(value)
        data = hashlib.sha256(array.tobytes()).hexdigest()
        return f"array({array.shape},{array.dtype},{data})"
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({','.join(_shown(one) for one in value)})"
    if isinstance(value, dict):
        return "{" + ",".join(f"{key}:{_shown(value[key])}" for key in sorted(value)) + "}"
    return repr(value)


def weights(shape: tuple[int, ...], salt: int = 0) -> np.ndarray[Any, Any]:
    """Uneven gradients for a result of this shape, between 0.5 and 1.5; the same everywhere."""
    count = int(np.prod(shape, dtype=np.int64))
    return (0.5 + np.modf(np.arange(1 + salt, count + 1 + salt) * 0.6180339887498949)[0]).reshape(
        shape
    )


def packed(array: Any) -> dict[str, Any]:
    """An array as JSON: its shape, its kind and its values; NaN and infinities as text."""
    array = np.asarray(array)
    flat = array.reshape(-1).tolist()
    if array.dtype.kind == "f":
        flat = [one if np.isfinite(one) else str(one) for one in flat]
    return {"shape": list(array.shape), "kind": array.dtype.kind, "values": flat}


def unpacked(one: dict[str, Any]) -> np.ndarray[Any, Any]:
    """The array of `packed`; floating ones in float64."""
    values = [float(value) if isinstance(value, str) else value for value in one["values"]]
    dtype = {"f": np.float64, "b": np.bool_}.get(one["kind"], np.int64)
    return np.array(values, dtype=dtype).reshape(one["shape"])
