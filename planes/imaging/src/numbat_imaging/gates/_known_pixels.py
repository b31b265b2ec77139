"""Decoded arrays whose digests an independent decoding of the corpus gave."""

import csv
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numbat_gates import Check
from numbat_imaging.values.pixels import read_pixels
from numbat_registries import Refusal

#: Files that pydicom 3.0 cannot decode, and the uncompressed ones that they must equal.
TWINS = {
    "liver_deflate.dcm": "liver.dcm",
    "liver_rle.dcm": "liver.dcm",
    "liver_nonbyte_aligned_deflate.dcm": "liver_nonbyte_aligned.dcm",
    "liver_nonbyte_aligned_rle.dcm": "liver_nonbyte_aligned.dcm",
    "emri_small_jpeg_2k_lossless_too_short.dcm": "emri_small.dcm",
}


def known_digests(check: Check, folder: Path) -> None:
    """Every row of the folder's table: the same array, or no image by the other decoder as well."""
    with (folder / "PIXELS.tsv").open() as stream:
        rows = list(csv.DictReader((r for r in stream if not r.startswith("#")), delimiter="\t"))
    for row in rows:
        path = folder / row["file"]
        if not path.is_file():
            continue
        name = f"{folder.name}/{row['file']}"
        if path.name in TWINS:
            twin = read_pixels(path.with_name(TWINS[path.name]))
            check.equal(f"{name} equals {TWINS[path.name]}", read_pixels(path), twin)
        elif row["shape"]:
            check.equal(name, _described(path), _required(row))
        else:
            with check.refuses("IMG-1016", f"{name} has no pixels"):
                read_pixels(path)


def _required(row: dict[str, str]) -> list[str]:
    return [row["shape"], row["dtype"], row["sha256"]]


def _described(path: Path) -> list[str]:
    # The table was made with YCbCr of 8 bits turned into RGB.
    array = read_pixels(path)
    if path.name.startswith("SC_ybr"):
        array = read_pixels(path, rgb=True)
    shape = "x".join(str(size) for size in array.shape)
    return [shape, str(array.dtype), hashlib.sha256(array.tobytes()).hexdigest()]


def evidence(caught: Any) -> dict[str, Any]:
    """The fields of a refusal that a check caught; empty when it caught none."""
    return {} if caught.diagnostic is None else dict(caught.diagnostic.fields)


def outcome(path: Path) -> NDArray[np.generic] | str:
    """The pixels of a file, or the code of its refusal."""
    try:
        return read_pixels(path)
    except Refusal as refusal:
        return refusal.code
