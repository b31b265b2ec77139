"""Patients, copies, twins and parts by their header values and bytes; part of IMG-G02."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from numbat_gates import Check
from numbat_imaging.gates._images import image, names
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import PixelLocation
from numbat_imaging.phantoms import Phantom, write_datasets
from numbat_imaging.series.forms.tiles import Window
from numbat_imaging.series.identity import (
    check_concatenations,
    check_identity,
    pixel_digest,
    without_copies,
    without_twins,
)
from numbat_imaging.series.instance import Concatenation, Instance
from numbat_imaging.values.scales import Scale, Scales


def identity_keys(check: Check) -> None:
    """What makes two images those of one person, one object, one moment."""
    _persons(check)
    _parts(check)
    with TemporaryDirectory() as folder:
        _copies(check, Path(folder))
        _twins(check, Path(folder))
        _digests(check, Path(folder))


def _of(patients: Sequence[tuple[str, str, str]], **values: Any) -> list[Instance]:
    return [image("abcdef"[k], patient=person, **values) for k, person in enumerate(patients)]


def _told(check: Check, name: str, caught: Any, **required: Any) -> None:
    if caught.diagnostic is not None:
        measured = {key: caught.diagnostic.fields[key] for key in required}
        check.equal(f"{name}: told", measured, required)


def _persons(check: Check) -> None:
    one = ("1", "DOE JANE", "19700101")
    check_identity(_of([one, one]))
    check.true("one person, one study", True)
    for says, people, of_each, differing in (
        ("another number", [one, ("2", *one[1:])], [1, 1], ["PatientID"]),
        ("another name", [one, one, ("1", "ROE", one[2])], [2, 1], ["PatientName"]),
        ("no date of birth", [one, (*one[:2], ""), one], [2, 1], ["PatientBirthDate"]),
        (
            "another of everything",
            [("2", "ROE", ""), one, one, one],
            [3, 1],
            ["PatientID", "PatientName", "PatientBirthDate"],
        ),
        (
            "three persons",
            [("3", "DOE JANE", "19700101"), ("2", "DOE JANE", "19700101"), one],
            [1, 1, 1],
            ["PatientID"],
        ),
    ):
        with check.refuses("IMG-1101", f"a series of {says}") as caught:
            check_identity(_of(people))
        _told(
            check,
            f"a series of {says}",
            caught,
            patients=len(of_each),
            instances_of_each=of_each,
            differing=differing,
        )
    studies = [image(name, study_instance_uid=name) for name in "abbcbc"]
    with check.refuses("IMG-1102", "three studies") as caught:
        check_identity(studies)
    _told(check, "three studies", caught, studies=3, instances_of_each=[3, 2, 1])


def _parts(check: Check) -> None:
    def parts(*numbers: tuple[int | None, int | None], uid: str = "1.2") -> list[Instance]:
        return [
            image(f"{n}", concatenation=Concatenation(uid, number, total))
            for n, (number, total) in enumerate(numbers)
        ]

    whole: tuple[tuple[str, list[Instance]], ...] = (
        ("no parts", [image("a")]),
        ("all parts", parts((1, 3), (2, 3), (3, 3))),
        ("in no order", parts((3, 3), (1, 3), (2, 3))),
        ("without a total", parts((1, None), (2, None))),
        ("without numbers", parts((None, 3))),
        ("the same part twice", parts((1, 2), (2, 2), (2, 2))),
        ("of two objects", [*parts((1, 1)), *parts((1, 2), (2, 2), uid="1.3")]),
    )
    for says, images in whole:
        check_concatenations(images)
        check.true(f"an image of {says}", True)
    for says, images, told in (
        ("the second missing", parts((1, 3), (3, 3)), (3, 2, [2])),
        ("a missing one by number alone", parts((1, None), (3, None)), (3, 2, [2])),
        ("only the first", parts((1, 30)), (30, 1, list(range(2, 22)))),
        ("the last missing", parts((1, 3), (2, 3)), (3, 2, [3])),
        ("the first missing", parts((2, 2)), (2, 1, [1])),
        ("two totals", parts((1, 2), (2, 4)), (4, 2, [3, 4])),
        ("two totals, the larger first", parts((1, 4), (2, 2)), (4, 2, [3, 4])),
        (
            "a second object that is cut",
            [*parts((1, 1)), *parts((1, 2), uid="1.3")],
            (2, 1, [2]),
        ),
    ):
        with check.refuses("IMG-1316", f"parts: {says}") as caught:
            check_concatenations(images)
        _told(
            check,
            f"parts: {says}",
            caught,
            parts=told[0],
            found=told[1],
            missing=told[2],
        )


def _file(folder: Path, name: str, pixels: bytes, *, head: bytes = b"head") -> dict[str, Any]:
    """A file of four bytes and the pixels, and where these lie."""
    path = folder / name
    path.write_bytes(head + pixels)
    format_ = image("a").pixels
    location = PixelLocation(offset=4, length=len(pixels), vr="OW", keyword="PixelData")
    return {"ref": FileRef(str(path)), "pixels": replace(format_, location=location)}


def _copies(check: Check, folder: Path) -> None:
    one, other = _file(folder, "one", b"pixels"), _file(folder, "two", b"pixelS")
    copyfile(folder / "one", folder / "copy")
    copyfile(folder / "one", folder / "third")
    copy = one | {"ref": FileRef(str(folder / "copy"))}
    third = one | {"ref": FileRef(str(folder / "third"))}
    alone = [image("a", **one), image("b", **other)]
    kept, aside = without_copies(alone)
    check.equal("two objects stay", (names([kept]), len(aside)), (["ab"], 0))
    frames = [image("a", frame=k, **one) for k in range(3)]
    kept, aside = without_copies(frames)
    check.equal("the frames of one object stay", ([i.frame for i in kept], aside), ([0, 1, 2], []))
    with check.notices("IMG-1104", "a copy is set aside"):
        copied = [image("a", frame=k, **copy) for k in range(3)]
        last = [image("b", **other), image("a", **third)]
        kept, aside = without_copies([*frames, *copied, *last])
    files = [(i.sop_instance_uid, i.ref.label, i.frame) for i in kept]
    required = [("a", one["ref"].label, k) for k in range(3)] + [("b", other["ref"].label, 0)]
    check.equal("the first of the copies stays, and what comes after", files, required)
    told = [(i.ref.label, d.code, d.fields["file"], d.fields["copy_of"]) for i, d in aside]
    due = [
        (ref.label, "IMG-1104", ref.label, one["ref"].label) for ref in (copy["ref"], third["ref"])
    ]
    check.equal("each copy is told once", told, due)
    with check.refuses("IMG-1103", "one identifier on two objects") as caught:
        without_copies([image("a", **one), image("a", **other)])
    files_told = [one["ref"].label, other["ref"].label]
    _told(check, "one identifier", caught, sop_instance_uid="a", files=files_told)


def _twins(check: Check, folder: Path) -> None:
    one = _file(folder, "one", b"pixels")
    same = _file(folder, "same", b"pixels", head=b"tail")
    other = _file(folder, "other", b"pixelS")

    def judged(first: Instance, second: Instance, labels: Sequence[int]) -> tuple[str, int]:
        kept, aside = without_twins([first, second], labels)
        return names([kept])[0], len(aside)

    with check.notices("IMG-1105", "a twin is set aside"):
        pair = [image("a", **one), image("b", **same), image("c", 2.0, **same)]
        kept, aside = without_twins(pair, [0, 0, 1])
    check.equal("the first of the twins stays", names([kept]), ["ac"])
    told = [(i.sop_instance_uid, d.fields["file"], d.fields["twin_of"]) for i, d in aside]
    check.equal("the twin is told", told, [("b", same["ref"].label, one["ref"].label)])
    check.equal(
        "other pixels are no twin",
        judged(image("a", **one), image("b", **other), [0, 0]),
        ("ab", 0),
    )
    check.equal(
        "another place is no twin", judged(image("a", **one), image("b", **same), [0, 1]), ("ab", 0)
    )
    differing: tuple[tuple[str, Any], ...] = (
        ("position_lps_mm", (0.0, 1.0, 0.0)),
        ("scales", Scales((Scale("displayed", 2.0), Scale("stored")))),
        ("temporal_position", 2),
        ("trigger_time_ms", 40.0),
        ("acquisition_number", 2),
        ("acquisition_time", "20200102101112"),
    )
    for keyword, value in differing:
        found = judged(image("a", **one), image("b", **same, **{keyword: value}), [0, 0])
        check.equal(f"another {keyword} is no twin", found, ("ab", 0))
    several = [
        image(name, **file) for name, file in zip("abcd", (one, other, same, same), strict=True)
    ]
    kept, aside = without_twins(several, [0] * 4)
    check.equal("twins among others", (names([kept]), len(aside)), (["ab"], 2))


def _digests(check: Check, folder: Path) -> None:
    """What of a file counts as its pixels."""
    one = image("a", **_file(folder, "one", b"pixels"))
    for says, file, same in (
        ("another head", _file(folder, "b", b"pixels", head=b"tail"), True),
        ("another last byte", _file(folder, "c", b"pixelS"), False),
        ("another first byte", _file(folder, "d", b"Pixels"), False),
    ):
        found = pixel_digest(image("b", **file)) == pixel_digest(one)
        check.equal(f"pixels of a file with {says} are the same", found, same)
    behind = _file(folder, "e", b"pixels")
    Path(behind["ref"].path).write_bytes(b"headpixels and more")
    check.equal("bytes behind the pixels", pixel_digest(image("b", **behind)), pixel_digest(one))
    open_end = replace(one.pixels, location=replace(one.pixels.location, length=None))
    unbounded = image("b", **(behind | {"pixels": open_end}))
    check.true(
        "an element without length counts to the end", pixel_digest(unbounded) != pixel_digest(one)
    )
    _planes_of_one_file(check, folder)


def _planes_of_one_file(check: Check, folder: Path) -> None:
    from numbat_imaging.intake.headers import read_header
    from numbat_imaging.series.instance import pixel_format

    ds = Phantom(shape=(4, 2, 1)).slices()[0]
    first = np.arange(8, dtype="<u2")
    ds.NumberOfFrames, ds.PixelData = 3, np.stack([first, first[::-1], first]).tobytes()
    (path,) = write_datasets([ds], folder / "frames")
    ref = FileRef(str(path))
    header = read_header(ref)
    assert header is not None
    pixels = pixel_format(header, "")
    digests = [pixel_digest(image("a", ref=ref, pixels=pixels, frame=k)) for k in range(3)]
    alike = (digests[0] == digests[2], digests[0] == digests[1])
    check.equal("frames with the same pixels, and with others", alike, (True, False))
    ds.NumberOfFrames, ds.PixelData = 1, np.array([1, 2, 1, 2, 3, 4, 3, 5], "<u2").tobytes()
    (path,) = write_datasets([ds], folder / "tiles")
    ref = FileRef(str(path))
    header = read_header(ref)
    assert header is not None
    pixels = pixel_format(header, "")
    tiles = [
        pixel_digest(image("a", ref=ref, pixels=pixels, window=Window(row, column, 1, 2)))
        for row in (0, 1)
        for column in (0, 2)
    ]
    alike = (tiles[0] == tiles[1], tiles[2] == tiles[3])
    check.equal("tiles with the same pixels, and with others", alike, (True, False))
