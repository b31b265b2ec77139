"""Damaged files: nothing but a header, None or a typed refusal comes out, within bounds."""

from __future__ import annotations

import os
import random
import struct
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pydicom
from pydicom.dataelem import RawDataElement

from numbat_imaging.intake import elements
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import Header, read_header
from numbat_registries import Refusal

#: How many mutants a run tries; thousands are for runs by hand.
MUTANTS = int(os.environ.get("NUMBAT_MUTANTS", "300"))

SEEDS = (
    "CT_small.dcm",
    "ExplVR_BigEndNoMeta.dcm",
    "ExplVR_LitEndNoMeta.dcm",
    "MR_small_bigendian.dcm",
    "MR_small_implicit.dcm",
    "UN_sequence.dcm",
    "image_dfl.dcm",
    "nested_priv_SQ.dcm",
    "no_meta.dcm",
    "reportsi.dcm",
    "rtplan.dcm",
    "SC_rgb_rle_2frame.dcm",
    "waveform_ecg.dcm",
    "zipMR.gz",
    "dicomdirtests/DICOMDIR",
)
EXTREMES = (0, 1, 7, 0x7FFF, 0xFFFE, 0xFFFF)
WIDE_EXTREMES = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF)
DELIMITERS = (b"\xfe\xff\x00\xe0", b"\xfe\xff\x0d\xe0", b"\xfe\xff\xdd\xe0")


def seed_files() -> list[Path]:
    folder = Path(pydicom.__file__).parent / "data" / "test_files"
    return [folder / name for name in SEEDS]


def mutate(data: bytes, rng: random.Random) -> bytes:
    """One to four random faults in the first 4 KiB."""
    body = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        reach = max(1, min(len(body), 4096))
        place = rng.randrange(reach)
        kind = rng.randrange(8)
        if kind == 0:
            body[place : place + 1] = bytes([rng.randrange(256)])
        elif kind == 1:
            body[place:place] = rng.randbytes(rng.randint(1, 9))
        elif kind == 2:
            del body[place : place + rng.randint(1, 9)]
        elif kind == 3:
            del body[place:]
        elif kind == 4:
            body[place : place + 2] = struct.pack("<H", rng.choice(EXTREMES))
        elif kind == 5:
            body[place : place + 4] = struct.pack("<I", rng.choice(WIDE_EXTREMES))
        elif kind == 6:
            body[place : place + 4] = rng.choice(DELIMITERS)
        else:
            start = rng.randrange(reach)
            body[place:place] = body[start : start + rng.randint(1, 64)]
    return bytes(body)


def outcome(ref: FileRef) -> str:
    """What came of one file, after every getter was tried on every element."""
    try:
        header = read_header(ref)
    except Refusal as refusal:
        return refusal.code
    if header is None:
        return "not-dicom"
    exercise(header)
    return "header"


def exercise(header: Header) -> None:
    """Ask for every element in every form; only refusals may be raised."""
    assert header.dataset.file_meta is not None
    for ds in (header.dataset.file_meta, *datasets(header.dataset)):
        for tag in list(ds.keys()):
            for getter in (
                elements.text,
                elements.texts,
                elements.uid,
                elements.uids,
                elements.integers,
                elements.integer,
                elements.decimal,
                elements.decimals,
                elements.binary,
                elements.has,
            ):
                tried(getter, ds, int(tag))
            if tag.is_private and not tag.is_private_creator:
                tried(elements.private, ds, tag.group, "SIEMENS CSA HEADER", tag.element & 0xFF)
    if header.pixel is not None:
        assert header.pixel.offset >= 0
        with header.ref.open() as stream:
            stream.seek(header.pixel.offset)


def datasets(ds: pydicom.Dataset, depth: int = 0) -> Iterator[pydicom.Dataset]:
    yield ds
    for tag in list(ds.keys()):
        raw = ds.get_item(tag, keep_deferred=True)
        assert isinstance(raw, RawDataElement)
        if raw.VR in ("SQ", "UN") and depth < 8:
            for item in tried(elements.sequence, ds, int(tag)) or []:
                yield from datasets(item, depth + 1)


def tried(getter: object, *args: object) -> list[pydicom.Dataset] | None:
    try:
        return getter(*args)  # type: ignore[operator]
    except Refusal as refusal:
        if refusal.code != "IMG-1012":
            raise AssertionError(f"{getter} raised {refusal.code}") from refusal
        return None


def test_mutants(tmp_path: Path) -> None:
    rng = random.Random(20260724)
    seeds = [path.read_bytes() for path in seed_files()]
    path = tmp_path / "mutant"
    counts: Counter[str] = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for number in range(MUTANTS):
            path.write_bytes(mutate(rng.choice(seeds), rng))
            try:
                counts[outcome(FileRef(str(path)))] += 1
            except Exception as fault:
                raise AssertionError(f"mutant {number} kept as {path}") from fault
    assert counts["header"] > MUTANTS // 10
    assert sum(counts.values()) == MUTANTS
    assert len(counts) > 4, counts
