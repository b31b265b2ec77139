"""Hostile inputs: mutants are made again by number, trials survive what they try."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pydicom
import pytest

from numbat_imaging.phantoms.bombs import BOMBS, image
from numbat_imaging.phantoms.element_map import Splice, map_elements, spliced
from numbat_imaging.phantoms.mutants import bundled_seeds, mutant, sibling
from numbat_imaging.phantoms.trials import Outcome, read_whole_way, trials
from numbat_imaging.volume import read_volumes
from numbat_registries import Refusal

forks = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork and setrlimit")

#: Files whose last element is not all there.
CUT_OFF = ("MR_truncated.dcm",)

#: Bombs that are cheap to write and were costly to read.
CHEAP = (
    "gzip: an element of 1 GiB in the header",
    "deflate: 512 MiB of pixels",
    "10,000 sequences of undefined length inside one another",
    "2^31 - 1 frames in enhanced",
    "30,000 rows and columns in RLE",
    "30,000 rows and columns in JPEG 2000",
    "a patient name of escapes",
    "CSA: 2^31 items in a tag",
)


def test_a_mutant_is_its_file_and_its_number() -> None:
    once = [mutant("CT_small.dcm", number) for number in range(40)]
    assert once == [mutant("CT_small.dcm", number) for number in range(40)]
    assert len(set(once)) > 36
    others = [mutant("MR_small.dcm", number) for number in range(40)]
    assert not set(once) & set(others)


@pytest.mark.filterwarnings("ignore")
def test_most_damage_leaves_the_rest_readable() -> None:
    """A mutant that no reader gets into tests nothing behind the door."""
    readable = 0
    for number in range(60):
        try:
            ds = pydicom.dcmread(BytesIO(mutant("MR_small.dcm", number)))
            readable += "Rows" in ds and "PixelData" in ds
        except Exception:
            # Damaged files fail in pydicom in a dozen ways.
            continue
    assert readable > 20


def test_the_map_of_a_file_has_every_element_of_it() -> None:
    for seed in bundled_seeds():
        if not seed.elements.places or seed.packing == "gzip":
            continue
        ds = pydicom.dcmread(BytesIO(seed.packed(seed.content)), force=True)
        stated = [int(element.tag) for element in ds]
        if seed.name in CUT_OFF:
            stated = stated[: len(seed.top)]
        assert [place.tag for place in seed.top] == stated, seed.name


def test_lengths_around_a_splice_follow() -> None:
    seed = next(seed for seed in bundled_seeds() if seed.name == "reportsi.dcm")
    elements = seed.elements
    deep = max(elements.places, key=lambda place: len(place.around))
    assert len(deep.around) >= 4
    added = elements.encoded(0x00091001, "LO", b"ADDED")
    splice = Splice(deep.stop, deep.stop, added, deep.around)
    content = spliced(seed.content, elements, [splice])
    assert len(map_elements(content).places) == len(elements.places) + 1
    ds = pydicom.dcmread(BytesIO(content))
    assert any(e.value == b"ADDED" or e.value == "ADDED" for e in ds.iterall())


def test_a_neighbour_makes_a_stack_of_two(tmp_path: Path) -> None:
    seed = next(seed for seed in bundled_seeds() if seed.name == "MR_small.dcm")
    (tmp_path / "a").write_bytes(seed.content)
    (tmp_path / "b").write_bytes(sibling(seed))
    volumes = read_volumes(tmp_path)
    assert [volume.grid.slices for volume in volumes] == [2]


def misbehaves(number: int) -> str:
    if number == 1:
        raise KeyError("no such thing")
    if number == 2:
        while True:
            number += 2
    if number == 3:
        return str(len(bytearray(8 << 30)))
    if number == 4:
        os.kill(os.getpid(), signal.SIGKILL)
    if number == 5:
        return "IMG-1010"
    return "value"


@forks
def test_a_trial_tells_what_came_of_each_case_and_goes_on() -> None:
    found: dict[int, Outcome] = {o.number: o for o in trials(9, misbehaves, workers=2, seconds=1)}
    kinds = [found[number].kind for number in range(9)]
    assert kinds == [
        *("value", "untyped", "hang", "memory", "crash"),
        *("refusal", "value", "value", "value"),
    ]
    assert "KeyError" in found[1].detail
    assert "misbehaves" in found[1].detail
    assert found[4].detail == "SIGKILL"
    assert [found[number].is_fault for number in (0, 2, 5)] == [False, True, False]


#: In a process of its own: what a large test runner has freed hides what is taken anew.
GROWTH = """
from numbat_imaging.phantoms.trials import trials

def grows(number):
    return "value" if number == 0 or len(b"x" * (48 << 20)) else ""

found = {outcome.number: outcome.grown_bytes for outcome in trials(2, grows, workers=1)}
print(found[0], found[1])
"""


@forks
def test_what_a_trial_takes_is_measured() -> None:
    said = subprocess.run(
        [sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True
    )
    small, large = map(int, said.stdout.split())
    assert large > 40 << 20 > small


@forks
def test_mutants_end_in_values_or_refusals(tmp_path: Path) -> None:
    seeds = bundled_seeds()

    def read(number: int) -> str:
        path = tmp_path / f"{os.getpid()}"
        path.write_bytes(mutant(seeds[number % len(seeds)], 90_000 + number // len(seeds)))
        return read_whole_way(path)

    found = list(trials(330, read, workers=2))
    assert [outcome for outcome in found if outcome.is_fault] == []
    assert sum(outcome.kind == "value" for outcome in found) > 30


@forks
@pytest.mark.parametrize("name", CHEAP)
def test_bombs_are_refused_for_what_they_are(name: str, tmp_path: Path) -> None:
    BOMBS[name].write(tmp_path)
    (found,) = trials(1, lambda _: read_whole_way(tmp_path))
    assert found.detail == BOMBS[name].outcome
    assert found.grown_bytes < 64 << 20


def test_a_sound_file_of_the_same_kind_is_read(tmp_path: Path) -> None:
    """What the bombs are built on is an image like others."""
    (tmp_path / "plain").write_bytes(image())
    assert read_whole_way(tmp_path / "plain") == "value"
    (tmp_path / "packed").write_bytes(gzip.compress(image(), mtime=0))
    assert read_whole_way(tmp_path / "packed") == "value"


def test_a_blank_image_is_believed_however_well_it_packs(tmp_path: Path) -> None:
    """2,048 rows and columns of nothing pack a thousandfold, and are no bomb."""
    (tmp_path / "blank").write_bytes(gzip.compress(image(rows=2048, columns=2048), mtime=0))
    assert read_volumes(tmp_path)[0].voxels.shape == (2048, 2048, 1)


def test_a_refusal_of_another_plane_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    from numbat_imaging import inspection
    from numbat_registries import refuse

    def misreports(paths: object) -> None:
        raise refuse("IMG-1203", nonsense=1)

    monkeypatch.setattr(inspection, "inspect", misreports)
    with pytest.raises(TypeError, match="GATE-0106"):
        read_whole_way(Path("anything"))
    with pytest.raises(Refusal):
        misreports(None)
