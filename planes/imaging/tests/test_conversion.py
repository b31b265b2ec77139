"""Conversion: names, accounts, processes, and folders that cannot be written to."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import nibabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbat_imaging import Options, convert
from numbat_imaging.naming import safe, unique_names
from numbat_imaging.phantoms import Phantom, write_datasets
from numbat_imaging.phantoms.reading import convert_fault, folder_of_fault
from numbat_registries import Refusal

SMALL = Phantom(shape=(8, 6, 4))


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """Two good series, one with a gap, a text file."""
    root = tmp_path / "study"
    SMALL.write(root / "a")
    replace(SMALL, series="b", series_number=6).write(root / "b")
    gap = replace(SMALL, shape=(8, 6, 6), series="c", series_number=7).slices()
    write_datasets([*gap[:2], *gap[3:]], root / "c")
    (root / "notes.txt").write_text("no image")
    return root


def test_a_refused_series_leaves_no_file_and_stops_no_other(study: Path, tmp_path: Path) -> None:
    done = convert(study, tmp_path / "out")
    assert not done.complete
    assert [o.refusal.code for o in done.refused if o.refusal] == ["IMG-1206"]
    names = sorted(contents(tmp_path / "out"))
    assert names == [f"{n}_phantom{s}" for n in (5, 6) for s in (".json", ".nii.gz")]
    counts = done.account.counts
    assert sum(counts.values()) == 14
    assert (counts["used"], counts["refused"]) == (8, 5)
    told = {r.diagnostic.code for r in done.account.having("refused") if r.diagnostic}
    assert told == {"IMG-1206"}


def test_processes_change_no_byte(study: Path, tmp_path: Path) -> None:
    one = convert(study, tmp_path / "one")
    two = convert(study, tmp_path / "two", workers=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert one.to_dict() == two.to_dict()


def test_a_zip_is_read_as_its_folder(study: Path, tmp_path: Path) -> None:
    archive = tmp_path / "study.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(study.rglob("*")):
            packed.write(path, path.relative_to(study))
    convert(study, tmp_path / "a")
    convert(archive, tmp_path / "b")
    for name in ("5_phantom.nii.gz", "6_phantom.nii.gz"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    SMALL.write(tmp_path / "in")
    convert(tmp_path / "in", tmp_path / "out")
    before = contents(tmp_path / "out")
    again = convert(tmp_path / "in", tmp_path / "out")
    assert [o.refusal.code for o in again.refused if o.refusal] == ["IMG-1701"]
    assert contents(tmp_path / "out") == before
    plain = Options(overwrite=True, compress=False)
    assert convert(tmp_path / "in", tmp_path / "out", options=plain).complete
    assert sorted(contents(tmp_path / "out")) == ["5_phantom.json", "5_phantom.nii"]


def test_the_result_may_lie_inside_the_source(tmp_path: Path) -> None:
    SMALL.write(tmp_path)
    assert convert(tmp_path, tmp_path / "nifti").complete
    again = convert(tmp_path, tmp_path / "nifti", options=Options(overwrite=True))
    assert again.complete
    assert again.account.counts["used"] == 4
    assert sorted(contents(tmp_path / "nifti")) == ["5_phantom.json", "5_phantom.nii.gz"]


def under_a_file(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file" / "out"


def a_file(folder: Path) -> Path:
    (folder / "file").write_text("")
    return folder / "file"


def a_device(folder: Path) -> Path:
    return Path("/proc/numbat")


@pytest.mark.parametrize("place", [under_a_file, a_file, a_device])
def test_a_folder_that_cannot_be_made_is_refused(
    place: Callable[[Path], Path], tmp_path: Path
) -> None:
    with pytest.raises(Refusal) as caught:
        convert_fault("two-slices", place(tmp_path))
    assert caught.value.code == "IMG-1702"


@pytest.mark.parametrize(
    "description",
    [
        "../../x",
        "/etc/passwd",
        "..",
        "a\tb",
        "C:\\x",
        "Schädel ä",
        "x" * 64,
        "x y" * 300,
        ".hidden",
    ],
)
def test_no_description_leaves_the_folder(description: str, tmp_path: Path) -> None:
    slices = SMALL.slices()
    for ds in slices:
        ds.add_new("SeriesDescription", "LO", description.replace("\\", "/"))
    write_datasets(slices, tmp_path / "in")
    done = convert(tmp_path / "in", tmp_path / "deep" / "out")
    assert done.complete
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "in"]
    for name in contents(tmp_path / "deep" / "out"):
        assert len(name) < 200
        assert not set(name) & set("/\\:\t ")
        assert name.startswith("5_")


def test_equal_names_are_numbered_and_every_volume_written(tmp_path: Path) -> None:
    for index, description in enumerate(("T1", "t1", "T1", "T1_1", "T1 2")):
        replace(SMALL, series=str(index), series_description=description).write(
            tmp_path / "in" / str(index)
        )
    done = convert(tmp_path / "in", tmp_path / "out")
    assert done.complete
    files = [name for name in contents(tmp_path / "out") if name.endswith(".nii.gz")]
    assert len({name.casefold() for name in files}) == 5


@given(st.lists(st.sampled_from(("a", "A", "a_1", "a_2", "A_1", "b", "a_1_1")), max_size=9))
def test_names_are_unique_whatever_their_case(names: list[str]) -> None:
    unique = unique_names(names)
    assert len({name.casefold() for name in unique}) == len(names)
    for name, chosen in zip(names, unique, strict=True):
        assert chosen.startswith(name)
        if [n.casefold() for n in names].count(name.casefold()) == 1:
            assert chosen == name


@given(st.text())
def test_a_safe_text_is_safe(text: str) -> None:
    assert not set(safe(text)) - set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+=-"
    )


def test_tilt_square_writes_a_square_affine(tmp_path: Path) -> None:
    shutil.copytree(folder_of_fault("tilt-20-tag-zero"), tmp_path / "in")
    for tilt in ("keep", "square"):
        options = Options(tilt=tilt, compress=False)  # type: ignore[arg-type]
        assert convert(tmp_path / "in", tmp_path / tilt, options=options).complete
        image = nibabel.load(next((tmp_path / tilt).glob("*.nii")))
        step, normal = image.affine[:3, 2], np.cross(image.affine[:3, 0], image.affine[:3, 1])
        cosine = abs(step @ normal) / np.linalg.norm(step) / np.linalg.norm(normal)
        assert (cosine > 1 - 1e-9) == (tilt == "square")
        assert (int(image.header["qform_code"]) > 0) == (tilt == "square")


def test_progress_is_told_to_the_end(study: Path, tmp_path: Path) -> None:
    scanned: list[tuple[int, int]] = []
    written: list[tuple[int, int]] = []
    convert(
        study,
        tmp_path / "out",
        on_scan=lambda done, total: scanned.append((done, total)),
        on_volume=lambda done, total: written.append((done, total)),
    )
    assert scanned[-1] == (14, 14)
    assert written == [(1, 3), (2, 3), (3, 3)]
