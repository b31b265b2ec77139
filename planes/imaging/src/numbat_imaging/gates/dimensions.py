"""Dimensions of enhanced objects: whatever their order, the values and the places decide."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pydicom import Dataset

from numbat_gates import Check, gate
from numbat_imaging.gates._images import image, names
from numbat_imaging.geometry.tolerances import DEFAULT_TOLERANCES
from numbat_imaging.phantoms import Phantom, write_datasets
from numbat_imaging.phantoms import enhanced_catalogue as catalogue
from numbat_imaging.phantoms.enhanced import Layout, enhanced_object
from numbat_imaging.phantoms.enhanced_faults import Change, without_content
from numbat_imaging.phantoms.reading import read_fault
from numbat_imaging.series.forms.dimensions import (
    check_moments,
    dimension_names,
    dimension_values,
)
from numbat_imaging.series.fourth_axis import arrange
from numbat_imaging.series.instance import Instance
from numbat_imaging.volume import Volume, read_series

_SMALL = Phantom(shape=(8, 6, 4), volumes=3)
_Pairs = Sequence[tuple[int | None, int | None]]
_UP = np.array([0.0, 0.0, 1.0])


@gate(
    "IMG-G23",
    phase=2,
    discharges=["IMG-R022"],
    title="No order of dimensions or frames changes a volume, and ragged dimensions are refused",
)
def dimensions(check: Check) -> None:
    _any_order(check)
    _axes(check)
    _repeats(check)
    _lists(check)
    _moments(check)
    _by_indices(check)
    _refused_with_counts(check)
    _plans(check)


def _read(phantom: Phantom, layout: Layout, change: Change | None = None) -> Volume:
    ds = enhanced_object(phantom.slices(), layout)
    if change is not None:
        change(ds)
    with TemporaryDirectory() as folder:
        write_datasets([ds], folder)
        return read_series(folder)


def _orders(count: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield "as acquired", tuple(range(count))
    yield "reversed", tuple(reversed(range(count)))
    yield "in no order", catalogue.shuffle(count)


def _any_order(check: Check) -> None:
    """Every order of the dimensions, with frames in three orders, stacks counted up and down."""
    voxels, affine = _SMALL.ascending()
    by_value, by_index = [], []
    for listed in permutations(catalogue.TIME_FIRST):
        for number, (order_name, order) in enumerate(_orders(12)):
            down = (number + listed.index("StackID")) % 2 == 0
            layout = Layout(dimensions=listed, frame_order=order, counts_down=down)
            if not _is(_read(_SMALL, layout), voxels, affine):
                by_value.append(f"{', '.join(listed)}; {order_name}; {'down' if down else 'up'}")
        indices_only = without_content("TemporalPositionIndex")
        layout = Layout(dimensions=listed, frame_order=catalogue.shuffle(12))
        if not _is(_read(_SMALL, layout, indices_only), voxels, affine):
            by_index.append(", ".join(listed))
    check.equal("18 layouts of three moments that read wrongly", by_value, [])
    check.equal("orders without TemporalPositionIndex that read wrongly", by_index, [])
    diffusion = replace(_SMALL, fourth_axis="DiffusionBValue")
    wrong = [
        ", ".join(listed)
        for listed in permutations(catalogue.BY_GRADIENT)
        if not _is(_read(diffusion, Layout(dimensions=listed)), voxels, affine)
    ]
    check.equal("24 orders of four diffusion dimensions that read wrongly", wrong, [])


def _is(volume: Volume, voxels: np.ndarray[Any, Any], affine: np.ndarray[Any, Any]) -> bool:
    return np.array_equal(volume.voxels, voxels) and np.allclose(
        volume.affine_lps_mm, affine, rtol=0, atol=1e-6
    )


def _axes(check: Check) -> None:
    for name, required in (
        ("time-first", ("time", (1.0, 2.0, 3.0), "", "TemporalPositionIdentifier")),
        ("time-between", ("time", (1.0, 2.0, 3.0), "", "TemporalPositionIdentifier")),
        ("time-last", ("time", (1.0, 2.0, 3.0), "", "TemporalPositionIdentifier")),
        ("time-timed", ("time", (1.0, 2.0, 3.0), "", "TemporalPositionIdentifier")),
        ("time-by-index", ("time", (1.0, 2.0, 3.0), "", "dimension TemporalPositionIndex")),
        ("volume-a-file", ("time", (1.0, 2.0, 3.0), "", "TemporalPositionIdentifier")),
        ("volume-a-file-clocked", ("time", (0.0, 2.0, 4.0), "s", "AcquisitionTime")),
        ("cardiac", ("cardiac-phase", (0.0, 40.0, 80.0), "ms", "TriggerTime")),
        ("legacy-cardiac", ("cardiac-phase", (0.0, 40.0, 80.0), "ms", "TriggerTime")),
        (
            "diffusion",
            ("diffusion", (0.0, 1000.0, 1000.0, 1000.0), "s/mm2", "b-value and gradient direction"),
        ),
    ):
        axis = read_fault(f"enhanced-{name}").fourth_axis
        found = None if axis is None else (axis.name, axis.values, axis.unit, axis.key)
        check.equal(f"axis of {name}", found, required)
    by_place = read_fault("enhanced-in-stack-contradicts")
    check.equal(
        "positions win over InStackPositionNumber",
        bool(np.array_equal(by_place.voxels, catalogue.MR.ascending()[0])),
        True,
    )


def _repeats(check: Check) -> None:
    """Two unweighted volumes among four: both stay, in the order of acquisition."""
    for name in ("b0-repeated-by-time", "b0-repeated-by-acquisition"):
        volume = read_fault(f"enhanced-{name}")
        check.equal(
            f"b-values, {name}",
            [g.b_value_s_mm2 for g in volume.diffusion or ()],
            [0.0, 1000.0, 0.0, 1000.0],
        )
        check.equal(
            f"voxels, {name}",
            bool(np.array_equal(volume.voxels, catalogue.DIFFUSION.ascending()[0])),
            True,
        )


def _list(*pointers: tuple[int | None, str | None]) -> Dataset:
    ds = Dataset()
    ds.DimensionIndexSequence = []
    for pointer, creator in pointers:
        item = Dataset()
        if pointer is not None:
            item.DimensionIndexPointer = pointer
        if creator is not None:
            item.DimensionIndexPrivateCreator = creator
        ds.DimensionIndexSequence.append(item)
    return ds


def _lists(check: Check) -> None:
    ds = _list((0x00209128, None), (0x20051413, "Philips"), (None, None), (0x20051413, None))
    found = dimension_names(ds)
    required = ("TemporalPositionIndex", "(2005,1413) Philips", "unnamed", "(2005,1413)")
    check.equal("names of dimensions", found, required)
    check.equal("no list of dimensions", dimension_names(Dataset()), ())
    frame = Dataset()
    check.equal("no indices", dimension_values(frame, found, frame=0, file="a"), ())
    frame.DimensionIndexValues = [4, 3, 2, 1]
    measured = dimension_values(frame, found, frame=0, file="a")
    check.equal("indices by name", measured, tuple(zip(found, (4, 3, 2, 1), strict=True)))
    listed = ("StackID", "DiffusionBValue", "InStackPositionNumber", "ImagePositionPatient")
    measured = dimension_values(frame, listed, frame=0, file="a")
    check.equal("places in space are left to the positions", measured, (("DiffusionBValue", 3),))
    check.equal("indices of no list", dimension_values(frame, (), frame=0, file="a"), ())
    for given in ([1], [1, 1, 1, 1, 1]):
        frame.DimensionIndexValues = given
        with check.refuses("IMG-1312", f"{len(given)} indices for 4 dimensions") as caught:
            dimension_values(frame, found, frame=6, file="a")
        if caught.diagnostic is not None:
            required_fields = {"file": "a", "frame": 7, "dimensions": 4, "indices": len(given)}
            check.equal(f"counts of {len(given)}", dict(caught.diagnostic.fields), required_fields)


def _moments(check: Check) -> None:
    accepted: tuple[tuple[str, _Pairs], ...] = (
        ("nothing stated", [(None, None)] * 3),
        ("no indices", [(1, None), (2, None)]),
        ("indices alone", [(None, 1), (None, 2)]),
        ("the same", [(1, 1), (2, 2), (1, 1), (2, 2)]),
        ("counted from elsewhere", [(5, 1), (6, 2), (5, 1)]),
        ("against each other", [(2, 1), (1, 2), (2, 1)]),
        ("one moment", [(1, 1), (1, 2), (1, 3)]),
        ("one index", [(1, 1), (2, 1), (3, 1)]),
    )
    for name, pairs in accepted:
        check_moments(pairs, file="a")
        check.true(f"moments and indices: {name}", True, measured=pairs)
    contradictory: tuple[tuple[str, _Pairs, tuple[int, ...]], ...] = (
        ("two exchanged", [(1, 1)] * 3 + [(2, 2)] * 3 + [(1, 2), (2, 1)], (2, 2, 4, 2)),
        ("more indices", [(1, 1), (1, 1), (2, 2), (2, 2), (2, 3)], (2, 3, 3, 1)),
        ("fewer indices", [(1, 1), (1, 1), (2, 2), (2, 2), (3, 2)], (3, 2, 3, 1)),
    )
    for name, pairs, counts in contradictory:
        with check.refuses("IMG-1318", f"moments and indices: {name}") as caught:
            check_moments(pairs, file="a")
        if caught.diagnostic is not None:
            fields = caught.diagnostic.fields
            keys = ("moments", "indices", "combinations", "frames_astray")
            check.equal(f"counts: {name}", tuple(fields[key] for key in keys), counts)


def _grid_of_two(first: str, second: str, sizes: tuple[int, int]) -> list[Instance]:
    """Two positions of volumes that run along two dimensions."""
    return [
        image(f"{a}{b}{z}", float(z), dimensions=((first, a), (second, b)))
        for a in range(1, sizes[0] + 1)
        for b in range(1, sizes[1] + 1)
        for z in (0, 2)
    ]


def _by_indices(check: Check) -> None:
    def one(name: str, height: float, index: int) -> Instance:
        return image(name, height, dimensions=(("EffectiveEchoTime", index),))

    images = [one("d", 2, 7), one("a", 0, 3), one("c", 0, 7), one("b", 2, 3)]
    found = arrange(images, _UP, tolerances=DEFAULT_TOLERANCES)
    check.equal("volumes by a dimension of no other name", names(found.volumes), ["ab", "cd"])
    axis = found.axis
    check.equal(
        "its axis",
        None if axis is None else (axis.name, axis.values, axis.unit, axis.key),
        ("dimension", (3.0, 7.0), "", "dimension EffectiveEchoTime"),
    )
    for listed in (("A", "B"), ("B", "A")):
        with check.refuses("IMG-1315", f"volumes along {' and '.join(listed)}") as caught:
            arrange(_grid_of_two(*listed, sizes=(2, 3)), _UP, tolerances=DEFAULT_TOLERANCES)
        _fields(
            check,
            f"sizes along {' and '.join(listed)}",
            caught,
            axes=[f"dimension {name}" for name in listed],
            sizes=[2, 3],
            positions=2,
            volumes=6,
        )
    alone = arrange(_grid_of_two("A", "B", (1, 3)), _UP, tolerances=DEFAULT_TOLERANCES)
    check.equal("one of two dimensions is constant", len(alone.volumes), 3)


def _fields(check: Check, name: str, caught: Any, **required: Any) -> None:
    if caught.diagnostic is not None:
        measured = {key: caught.diagnostic.fields[key] for key in required}
        check.equal(name, measured, required)


def _refused_with_counts(check: Check) -> None:
    ragged: Sequence[tuple[str, dict[str, int]]] = (
        ("ragged", {"short_positions": 1, "missing_images": 1}),
        ("ragged-twice", {"short_positions": 2, "missing_images": 2}),
        ("ragged-at-the-end", {"short_positions": 1, "missing_images": 1}),
        ("volume-a-file-ragged", {"short_positions": 1, "missing_images": 1}),
    )
    for name, counts in ragged:
        with check.refuses("IMG-1303", name) as caught:
            read_fault(f"enhanced-{name}")
        _fields(check, f"counts, {name}", caught, positions=8, volumes=3, **counts)
    with check.refuses("IMG-1317", "a frame that states the wrong volume") as caught:
        read_fault("enhanced-time-misplaced")
    _fields(
        check,
        "counts, time-misplaced",
        caught,
        axis="TemporalPositionIdentifier",
        volumes=3,
        positions=8,
        images_of_each=[9, 8, 7],
        images_astray=1,
    )
    with check.refuses("IMG-1318", "two frames that state two moments each") as caught:
        read_fault("enhanced-time-contradicts")
    _fields(
        check,
        "counts, time-contradicts",
        caught,
        moments=3,
        indices=3,
        combinations=5,
        frames_astray=2,
    )
    with check.refuses("IMG-1315", "moments and phases") as caught:
        read_fault("enhanced-time-and-phase")
    _fields(check, "sizes of both axes", caught, sizes=[2, 2], positions=8, volumes=4)
    for name in ("short-index", "long-index"):
        with check.refuses("IMG-1312", name):
            read_fault(f"enhanced-{name}")
    for name in ("time-constant", "b0-repeated"):
        with check.refuses("IMG-1302", name) as caught:
            read_fault(f"enhanced-{name}")
        _fields(check, f"counts, {name}", caught, positions=8, volumes=4)


def _plans(check: Check) -> None:
    with check.refuses("IMG-1315", "two axes, and the plan against it") as caught:
        read_fault("enhanced-time-and-phase")
    if caught.diagnostic is not None:
        with check.notices("IMG-1305", "the repair plan, carried out"):
            volume = read_fault("enhanced-time-and-phase", **caught.diagnostic.plans[0].keywords())
        check.equal("all volumes behind each other", volume.voxels.shape, (16, 12, 8, 4))
