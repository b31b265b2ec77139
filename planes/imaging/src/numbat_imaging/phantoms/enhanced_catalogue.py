"""Faults of enhanced multi-frame objects by name, and the sound layouts that readers fail on."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from pydicom import Dataset
from pydicom.uid import ImplicitVRLittleEndian, RLELossless

from numbat_imaging.phantoms import enhanced_faults as frames
from numbat_imaging.phantoms import geometry_faults as geometry
from numbat_imaging.phantoms import value_faults as values
from numbat_imaging.phantoms.catalogue import EXACT_MM, Expected, Fault, refused
from numbat_imaging.phantoms.enhanced import Layout, enhanced_object
from numbat_imaging.phantoms.enhanced_faults import Change
from numbat_imaging.phantoms.geometry_faults import Slices, Transform
from numbat_imaging.phantoms.phantom import Phantom
from numbat_imaging.phantoms.pixel_faults import slope_per_slice

MR = Phantom(shape=(16, 12, 8))
DESCENDING = replace(MR, step_lps_mm=(0.0, 0.0, -2.0))
ONE_FRAME = replace(MR, shape=(16, 12, 1))
CT = replace(MR, modality="CT", dtype="int16", slope=1.0, intercept=-1024.0)
PET = replace(MR, modality="PT", unit="BQML", slope=2.5)
TIMES = replace(MR, volumes=3)
DIFFUSION = replace(MR, volumes=4, fourth_axis="DiffusionBValue")
CARDIAC = replace(MR, volumes=3, fourth_axis="TriggerTime")
OBLIQUE = replace(MR, orientation=(0.6, 0.8, 0.0, -0.48, 0.36, 0.8), spacing_mm=(0.7, 1.3, 3.1))
#: Volumes that nothing but their order in the file tells apart.
UNNAMED = replace(MR, volumes=4, fourth_axis="InstanceNumber")

PLAIN = Layout()
IN_STACK = ("StackID", "InStackPositionNumber")
TIME_FIRST = ("TemporalPositionIndex", *IN_STACK)
TIME_BETWEEN = ("StackID", "TemporalPositionIndex", "InStackPositionNumber")
TIME_LAST = (*IN_STACK, "TemporalPositionIndex")
BY_GRADIENT = ("StackID", "DiffusionBValue", "DiffusionGradientOrientation", IN_STACK[1])
BY_TRIGGER = (*IN_STACK, "NominalCardiacTriggerDelayTime")

EXACT: Expected = ("volume", EXACT_MM)


def shuffle(count: int) -> tuple[int, ...]:
    """An order of frames that is that of no dimension."""
    order = list(range(count))
    random.Random(3).shuffle(order)
    return tuple(order)


def made(
    name: str,
    says: str,
    expected: Expected,
    phantom: Phantom,
    *transforms: Transform,
    layout: Layout = PLAIN,
    after: Change | None = None,
) -> Fault:
    """A fault of one enhanced object: of the slices that become its frames, or of the object."""

    def holds() -> Slices:
        slices = phantom.slices()
        for transform in transforms:
            slices = transform(slices)
        return slices

    def build() -> list[Dataset]:
        ds = enhanced_object(holds(), layout)
        if after is not None:
            after(ds)
        return [ds]

    return Fault(f"enhanced-{name}", build, expected, says, holds)


def _in_files(
    name: str,
    says: str,
    expected: Expected,
    phantom: Phantom,
    files: Callable[[Slices], list[Dataset]],
) -> Fault:
    return Fault(
        f"enhanced-{name}", lambda: files(phantom.slices()), expected, says, phantom.slices
    )


def _layouts() -> list[Fault]:
    rle = Layout(transfer_syntax_uid=RLELossless)
    undefined = frames.undefined_lengths
    by_place = Layout(dimensions=("ImagePositionPatient",))
    mapped = frames.for_each(frames.with_world_values)
    shuffled = Layout(frame_order=shuffle(8), counts_down=True)
    implicit = Layout(transfer_syntax_uid=ImplicitVRLittleEndian)
    return [
        made("clean", "MR, geometry in functional groups only", EXACT, MR),
        made("ct", "CT", EXACT, CT),
        made("pet", "PET with a real-world value map", EXACT, PET, mapped),
        made("rle", "RLE, one fragment a frame", EXACT, MR, layout=rle),
        made("oblique", "turned about two axes", EXACT, OBLIQUE),
        made("descending", "stored from the top", EXACT, DESCENDING),
        made(
            "shuffled", "frames in no order, in-stack numbers reversed", EXACT, MR, layout=shuffled
        ),
        made("all-per-frame", "all groups per frame", EXACT, MR, layout=Layout(per_frame="all")),
        made("single-frame", "one frame", EXACT, ONE_FRAME),
        made("without-dimensions", "no dimensions", EXACT, MR, layout=Layout(dimensions=())),
        made("by-position", "ImagePositionPatient is the dimension", EXACT, MR, layout=by_place),
        made("timed-frames", "a time for each frame", EXACT, MR, frames.for_each(frames.timed)),
        made("empty-groups", "groups without items", EXACT, MR, after=frames.empty_groups),
        made("implicit", "no VR in the file", EXACT, CT, layout=implicit),
        made("undefined-lengths", "sequences end by delimiter", EXACT, MR, after=undefined),
        made("pet-shuffled", "PET frames in no order", EXACT, PET, mapped, layout=shuffled),
        made("decoys-at-top", "other geometry at the top", EXACT, MR, after=frames.decoys_at_top),
        made("says-mosaic", "calls itself a mosaic", EXACT, MR, frames.for_each(frames.mosaic)),
        made("spacing-tag", "says 3 mm", EXACT, MR, after=frames.wrong_spacing_tag),
        made("philips-frames", "private frame groups", EXACT, MR, after=frames.philips_frames),
        made(
            "in-stack-contradicts",
            "InStackPositionNumber in another order than the positions",
            EXACT,
            MR,
            after=frames.shuffled_in_stack,
        ),
        made("slope-per-frame", "RescaleSlope differs by frame", EXACT, MR, slope_per_slice),
        made("legacy-ct", "legacy converted CT", EXACT, CT, layout=Layout(legacy=True)),
        made("legacy-mr", "legacy converted MR", EXACT, MR, layout=Layout(legacy=True)),
        made("legacy-pet", "legacy converted PET", EXACT, PET, layout=Layout(legacy=True)),
    ]


def _volumes() -> list[Fault]:
    first, last = Layout(dimensions=TIME_FIRST), Layout(dimensions=TIME_LAST)
    mixed = Layout(dimensions=TIME_FIRST, frame_order=shuffle(24), counts_down=True)
    encoded = replace(mixed, transfer_syntax_uid=RLELossless)
    gradient = Layout(dimensions=BY_GRADIENT)
    trigger = Layout(dimensions=BY_TRIGGER)
    legacy = Layout(dimensions=(), legacy=True)
    repeats = {
        told: frames.repeated_b0((0, 2), 8, told_by=told)
        for told in ("TemporalPositionIdentifier", "AcquisitionNumber", None)
    }
    return [
        made("time-first", "TemporalPositionIndex before the stack", EXACT, TIMES, layout=first),
        made(
            "time-between",
            "TemporalPositionIndex inside the stack's dimensions",
            EXACT,
            TIMES,
            layout=Layout(dimensions=TIME_BETWEEN),
        ),
        made("time-rle", "three volumes in RLE, in no order", EXACT, TIMES, layout=encoded),
        made("time-last", "TemporalPositionIndex last", EXACT, TIMES, layout=last),
        made("time-shuffled", "three volumes, frames in no order", EXACT, TIMES, layout=mixed),
        made(
            "time-timed",
            "three volumes, and each frame has a time",
            EXACT,
            TIMES,
            frames.for_each(frames.timed),
            layout=last,
        ),
        made(
            "time-by-index",
            "no TemporalPositionIndex, only its place in DimensionIndexValues",
            EXACT,
            TIMES,
            layout=last,
            after=frames.without_content("TemporalPositionIndex", "FrameAcquisitionDateTime"),
        ),
        made("diffusion", "b-value and direction as dimensions", EXACT, DIFFUSION, layout=gradient),
        made(
            "diffusion-undimensioned",
            "b-value and direction in no dimension",
            EXACT,
            DIFFUSION,
        ),
        made("cardiac", "trigger delay as a dimension", EXACT, CARDIAC, layout=trigger),
        made(
            "b0-repeated-by-time",
            "b = 0 twice, told apart by TemporalPositionIndex",
            EXACT,
            DIFFUSION,
            repeats["TemporalPositionIdentifier"],
            layout=Layout(dimensions=(*BY_GRADIENT, "TemporalPositionIndex")),
        ),
        made(
            "b0-repeated-by-acquisition",
            "b = 0 twice, told apart by FrameAcquisitionNumber",
            EXACT,
            DIFFUSION,
            repeats["AcquisitionNumber"],
            layout=gradient,
        ),
        made(
            "b0-repeated",
            "b = 0 twice, and nothing tells the two apart",
            refused("IMG-1302"),
            DIFFUSION,
            repeats[None],
            layout=gradient,
        ),
        made("legacy-time", "legacy converted, three times", EXACT, TIMES, layout=legacy),
        made("legacy-diffusion", "legacy converted diffusion", EXACT, DIFFUSION, layout=legacy),
        made("legacy-cardiac", "legacy converted cine", EXACT, CARDIAC, layout=legacy),
    ]


def _splits() -> list[Fault]:
    two: Expected = ("split", 2)
    echoes = frames.two_axes(8, EchoTime=("5", "10"), TemporalPositionIdentifier=(1, 2))
    components = frames.two_axes(8, ComplexImageComponent=("MAGNITUDE", "PHASE"))
    unnamed_two = replace(UNNAMED, volumes=2)
    return [
        made("two-stacks", "two stacks 50 mm apart", two, MR, frames.second_stack(4, 50.0)),
        made("two-orientations", "axial and sagittal frames", two, MR, frames.turned_from(4)),
        made("magnitude-phase", "magnitude and phase", two, unnamed_two, components),
        made(
            "two-echoes",
            "two echoes of two times",
            two,
            UNNAMED,
            echoes,
            layout=Layout(dimensions=("EffectiveEchoTime", *TIME_LAST)),
        ),
        made(
            "with-diffusion-map",
            "a map of diffusion coefficients behind the images that it came from",
            two,
            DIFFUSION,
            frames.with_derived_map(8),
        ),
    ]


def _positions() -> list[Fault]:
    wide = geometry.spread_along_normal(lambda k: 0.3 * (k > 3))
    spacing, oblique = geometry.other_spacing(4), geometry.other_orientation(4)
    at_top = frames.geometry_at_top
    no_place = frames.without_groups("PlanePositionSequence")
    no_place_in_one = frames.without_groups("PlanePositionSequence", frame=4)
    no_turn = frames.without_groups("PlaneOrientationSequence")
    no_measures = frames.without_groups("PixelMeasuresSequence")
    return [
        made("frame-missing", "a gap", refused("IMG-1206"), MR, geometry.without(4)),
        made("uneven", "one gap of 2.3 mm", refused("IMG-1207"), MR, wide),
        made("doubled", "two positions twice", refused("IMG-1301"), MR, frames.doubled(0, 1)),
        made("one-other-spacing", "one frame's pixels", refused("IMG-1204"), MR, spacing),
        made("one-other-orientation", "one frame turned", refused("IMG-1206"), MR, oblique),
        made("without-position", "no frame's place", refused("IMG-1201"), MR, after=no_place),
        made("one-without-position", "one place", refused("IMG-1201"), MR, after=no_place_in_one),
        made("without-orientation", "no orientation", refused("IMG-1201"), MR, after=no_turn),
        made("without-measures", "no pixel spacing", refused("IMG-1201"), MR, after=no_measures),
        made("position-at-top", "one for all frames", refused("IMG-1201"), MR, after=at_top),
    ]


def _groups() -> list[Fault]:
    of_one = values.with_values_in(4, RescaleType="OTHER")
    one_group = Layout(per_frame="all")
    return [
        made("fewer-groups", "7 for 8", refused("IMG-1310"), MR, after=frames.fewer_groups(7)),
        made("no-groups", "0 for 8", refused("IMG-1310"), MR, after=frames.fewer_groups(0)),
        made("fewer-frames", "8 for 7", refused("IMG-1310"), MR, after=frames.frame_count(7)),
        made(
            "frames-untold", "8 for none", refused("IMG-1310"), MR, after=frames.frame_count(None)
        ),
        made("two-shared-groups", "two items", refused("IMG-1311"), MR, after=frames.two_shared),
        made("short-index", "1 of 2", refused("IMG-1312"), MR, after=frames.indices_in(3, [1])),
        made(
            "long-index", "3 of 2", refused("IMG-1312"), MR, after=frames.indices_in(3, [1, 4, 1])
        ),
        made("mixed-units", "one frame's unit", refused("IMG-1501"), MR, of_one, layout=one_group),
    ]


def _dimensions() -> list[Fault]:
    last = Layout(dimensions=TIME_LAST)
    cine = frames.two_axes(8, TemporalPositionIdentifier=(1, 2), TriggerTime=("0", "40"))
    constant = frames.two_axes(8, TemporalPositionIdentifier=(1, 1, 1, 1))
    return [
        made(
            "ragged",
            "one frame of 24 missing",
            refused("IMG-1303"),
            TIMES,
            geometry.without(12),
            layout=last,
        ),
        made(
            "ragged-twice",
            "two volumes lack a frame each",
            refused("IMG-1303"),
            TIMES,
            geometry.without(2, 12),
            layout=last,
        ),
        made(
            "ragged-at-the-end",
            "the last frame of the last volume missing",
            refused("IMG-1303"),
            TIMES,
            geometry.without(-1),
            layout=last,
        ),
        made(
            "time-misplaced",
            "a frame of the second volume says that it is of the first",
            refused("IMG-1317"),
            TIMES,
            layout=last,
            after=frames.content_in(12, TemporalPositionIndex=1, DimensionIndexValues=[1, 5, 1]),
        ),
        made(
            "time-contradicts",
            "TemporalPositionIndex says one volume, DimensionIndexValues another",
            refused("IMG-1318"),
            TIMES,
            layout=last,
            after=frames.swapped_indices(4, 12),
        ),
        made("time-constant", "one moment", refused("IMG-1302"), UNNAMED, constant, layout=last),
        made(
            "time-and-phase",
            "two moments of two phases",
            refused("IMG-1315"),
            UNNAMED,
            cine,
            layout=Layout(dimensions=(*TIME_LAST, "NominalCardiacTriggerDelayTime")),
        ),
    ]


def _files() -> list[Fault]:
    def parts(slices: Slices) -> list[Dataset]:
        return frames.cut(enhanced_object(slices), 3, 3, 2)

    def by_volume(slices: Slices) -> list[Dataset]:
        return frames.one_object_each(slices, 8, Layout(dimensions=TIME_LAST))

    clocked = replace(TIMES, fourth_axis="AcquisitionTime")
    return [
        _in_files("concatenation", "one image in three files", EXACT, MR, parts),
        _in_files(
            "concatenation-short",
            "the last of three files is missing",
            refused("IMG-1316"),
            MR,
            lambda slices: parts(slices)[:2],
        ),
        _in_files("volume-a-file", "three files, a volume each", EXACT, TIMES, by_volume),
        _in_files(
            "volume-a-file-clocked",
            "three files, told apart by their time alone",
            EXACT,
            clocked,
            by_volume,
        ),
        _in_files(
            "volume-a-file-ragged",
            "three files, of which one lacks a slice",
            refused("IMG-1303"),
            TIMES,
            lambda slices: frames.one_object_each(
                slices[:12] + slices[13:], 8, Layout(dimensions=TIME_LAST)
            ),
        ),
    ]


#: Everything that an enhanced object is known to do.
FAULTS: dict[str, Fault] = {
    fault.name: fault
    for family in (_layouts, _volumes, _splits, _positions, _groups, _dimensions, _files)
    for fault in family()
}
