"""Everything that belongs to one volume, from real files, together or not at all."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import nibabel
import numpy as np
import pytest

from numbat_imaging import Options, read_series
from numbat_imaging.output import writing
from numbat_imaging.output.writing import write_volume
from numbat_imaging.phantoms import FAULTS, Phantom, agreement
from numbat_imaging.volume import Volume
from numbat_registries import Refusal

DWI = Phantom(shape=(6, 5, 4), volumes=3, fourth_axis="DiffusionBValue")


def _read(phantom: Phantom, folder: Path) -> Volume:
    phantom.write(folder)
    return read_series(folder)


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_files_of_a_volume_and_their_digests(tmp_path: Path) -> None:
    volume = _read(DWI, tmp_path / "in")
    written = write_volume(volume, tmp_path / "out", "5", options=Options(contact_sheet=True))
    assert list(written) == ["5.bval", "5.bvec", "5.png", "5.json", "5.nii.gz"]
    assert _names(tmp_path / "out") == sorted(written)
    for path in written.paths:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert written.digests[path.name] == f"sha256:{digest}"


def test_each_source_is_named_with_its_digest(tmp_path: Path) -> None:
    paths = DWI.write(tmp_path / "in")
    write_volume(read_series(tmp_path / "in"), tmp_path / "out", "5")
    sources = json.loads((tmp_path / "out" / "5.json").read_text())["numbat"]["sources"]
    assert sources["count"] == 12
    found = {entry["sha256"] for entry in sources["slices"]}
    assert found == {hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    assert {(entry["k"], entry["t"]) for entry in sources["slices"]} == set(np.ndindex(4, 3))


@pytest.mark.parametrize(
    "name", ["oblique", "descending", "tilt-20-tag-absent", "two-time-points", "sagittal"]
)
def test_a_written_phantom_agrees_with_its_files(tmp_path: Path, name: str) -> None:
    fault = FAULTS[name]
    fault.write(tmp_path / "in")
    write_volume(read_series(tmp_path / "in"), tmp_path / "out", "v")
    image = nibabel.load(tmp_path / "out" / "v.nii.gz")
    affine_lps = np.diag([-1.0, -1.0, 1.0, 1.0]) @ image.affine
    # The file holds the rows upside down; the oracle reads planes as the slices have them.
    flip = np.eye(4)
    flip[1, 1], flip[1, 3] = -1.0, image.shape[1] - 1.0
    found = agreement(fault.build(), image.get_fdata()[:, ::-1], affine_lps @ flip)
    assert (found.strangers, found.lost) == (0, 0)
    assert found.max_displacement_mm < 1e-3


def test_nothing_is_replaced_unless_told_and_then_nothing_old_is_left(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_volume(_read(DWI, tmp_path / "dwi"), out, "5", options=Options(contact_sheet=True))
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    plain = _read(Phantom(shape=(6, 5, 4)), tmp_path / "plain")
    with pytest.raises(Refusal) as caught:
        write_volume(plain, out, "5", options=Options(compress=False))
    assert caught.value.code == "IMG-1701"
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    again = replace(Options(compress=False), **caught.value.diagnostic.plans[0].keywords())
    write_volume(plain, out, "5", options=again)
    assert _names(out) == ["5.json", "5.nii"]


@pytest.mark.parametrize("step", ["sidecar", "write_file", "file_digest", "contact_sheet"])
def test_a_failure_at_any_step_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    volume = _read(DWI, tmp_path / "in")

    def fail(*arguments: object, **options: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(writing, step, fail)
    with pytest.raises(Refusal) as caught:
        write_volume(volume, tmp_path / "out", "5", options=Options(contact_sheet=True))
    assert caught.value.code == "IMG-1702"
    assert _names(tmp_path / "out") == []


def test_a_source_that_is_gone_by_now_is_a_refusal(tmp_path: Path) -> None:
    volume = _read(DWI, tmp_path / "in")
    (tmp_path / "in" / "IM0003").unlink()
    with pytest.raises(Refusal) as caught:
        write_volume(volume, tmp_path / "out", "5")
    assert caught.value.code.startswith("IMG-10")
    assert _names(tmp_path / "out") == []
