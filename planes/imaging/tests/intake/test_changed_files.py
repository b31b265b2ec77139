"""A file that is written while it is read: its header and its voxels are never of two files."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from pydicom.data import get_testdata_file

from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_imaging.series.instance import described_slice, instances_from_header
from numbat_imaging.values.pixels import read_planes, stored_dtype
from numbat_registries import Refusal


def _content() -> bytes:
    return Path(get_testdata_file("CT_small.dcm")).read_bytes()


def _rewritten(path: Path, content: bytes) -> None:
    before = os.stat(path).st_mtime_ns
    path.write_bytes(content)
    os.utime(path, ns=(before + 1, before + 1))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("longer", [False, True])
def test_voxels_of_another_file_are_refused(tmp_path: Path, packed: bool, longer: bool) -> None:
    path = tmp_path / "a.dcm"
    content = _content()
    path.write_bytes(gzip.compress(content, mtime=0) if packed else content)
    header = read_header(FileRef(str(path)))
    assert header is not None
    (instance,) = instances_from_header(header)
    plane = np.empty((instance.rows, instance.columns), stored_dtype(instance.pixels))
    read_planes([instance], [plane])  # Unchanged, it is read as often as one likes.
    size = path.stat().st_size
    _rewritten(path, path.read_bytes() + bytes(8 if longer else 0))
    for again in (lambda: read_planes([instance], [plane]), lambda: described_slice(instance)):
        with pytest.raises(Refusal) as caught:
            again()
        assert caught.value.code == "IMG-1024"
        fields = caught.value.diagnostic.fields
        assert (fields["bytes_before"], fields["bytes_now"]) == (size, size + (8 if longer else 0))


def test_a_reference_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        FileRef(str(tmp_path / "none")).as_seen()
    assert caught.value.code == "IMG-1002"
