"""One slice of a DICOM image file as the series code sees it: typed header values, no pixels."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any

from pydicom import Dataset

from numbat_imaging.intake import elements
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import Header, PixelLocation, read_header
from numbat_imaging.series.forms.dimensions import check_moments, dimension_names, dimension_values
from numbat_imaging.series.forms.frame_offsets import offset_datasets
from numbat_imaging.series.forms.functional_groups import (
    check_frames,
    frame_dataset,
    frame_datasets,
    has_functional_groups,
)
from numbat_imaging.series.forms.siemens_mosaic import Direction, mosaic_tiles
from numbat_imaging.series.forms.tiles import Tile, Window
from numbat_imaging.series.forms.uih_grid import uih_tiles
from numbat_imaging.series.gradient import Gradient, gradient_from_dataset
from numbat_imaging.series.slice_clock import slice_clock_ms
from numbat_imaging.series.vendor_forms import refuse_unread_forms, vendor_split_value
from numbat_imaging.values.padding import Range, padding_of
from numbat_imaging.values.scales import Scales
from numbat_imaging.values.stated import scales_of
from numbat_registries import refuse

_ENHANCED = "enhanced multi-frame"


@dataclass(frozen=True, slots=True)
class PixelFormat:
    """How the pixels of a file are stored (PS3.3 C.7.6.3); rows and columns of a stored frame."""

    rows: int
    columns: int
    samples: int
    photometric: str
    bits_allocated: int
    bits_stored: int
    high_bit: int
    signed: bool
    planar: int
    transfer_syntax_uid: str
    location: PixelLocation
    little_endian: bool
    lossy: bool
    frames: int = 1


@dataclass(frozen=True, slots=True)
class Concatenation:
    """Of one image that was cut into several files: which, part number, number of parts."""

    uid: str
    number: int | None
    total: int | None


@dataclass(frozen=True, slots=True)
class Instance:
    """One slice: a single-frame image, one frame of a multi-frame one, or one tile of a mosaic.

    `frame` counts the stored frames of the file from 0; `window` is the part of it that is this
    slice, None for the whole frame; `form` says which kind of object it came from. `dimensions`
    holds the indices of the dimensions that an enhanced object lists, places in space aside.

    Lengths in mm, angles in degrees, times in ms unless named; positions in patient LPS. A value
    that the file does not state is None. `patient` is for comparison only and never printed.
    """

    ref: FileRef
    sop_class_uid: str
    sop_instance_uid: str
    study_instance_uid: str
    series_instance_uid: str
    frame_of_reference_uid: str | None
    patient: tuple[str, str, str] = field(repr=False)
    modality: str
    manufacturer: str
    series_number: int | None
    series_description: str
    instance_number: int | None
    acquisition_number: int | None
    image_type: tuple[str, ...]
    pixels: PixelFormat
    position_lps_mm: tuple[float, ...] | None
    orientation: tuple[float, ...] | None
    pixel_spacing_mm: tuple[float, ...] | None
    slice_thickness_mm: float | None
    spacing_between_slices_mm: float | None
    gantry_tilt_deg: float | None
    scales: Scales
    padding: Range | None
    echo_number: int | None
    echo_time_ms: float | None
    temporal_position: int | None
    temporal_positions: int | None
    trigger_time_ms: float | None
    acquisition_time: str | None
    content_time: str | None
    convolution_kernel: str
    images_announced: int | None
    slices_declared: int | None
    gradient: Gradient | None
    vendor_split: str
    complex_component: str = ""
    stack_id: str = ""
    dimensions: tuple[tuple[str, int], ...] = ()
    concatenation: Concatenation | None = None
    form: str = "single-frame"
    frame: int = 0
    window: Window | None = None
    slice_time_ms: float | None = None

    @property
    def rows(self) -> int:
        """Rows of the slice."""
        return self.pixels.rows if self.window is None else self.window.rows

    @property
    def columns(self) -> int:
        """Columns of the slice."""
        return self.pixels.columns if self.window is None else self.window.columns

    @property
    def order(self) -> tuple[int, int] | None:
        """InstanceNumber, and the place of the frame in its file; None without a number."""
        return None if self.instance_number is None else (self.instance_number, self.frame)


def instances_from_header(
    header: Header,
    *,
    mosaic_slices: int | None = None,
    mosaic_direction: Direction | None = None,
) -> tuple[Instance, ...]:
    """The typed values of every slice that one image file holds.

    `mosaic_slices` and `mosaic_direction` say of a mosaic what its file does not.

    Raises IMG-1012 for an element that cannot be read as its meaning demands, IMG-1016 for an
    object that is no image, IMG-1017 for a missing identifier, IMG-131x for functional groups that
    do not fit the frames, IMG-1401 for a pixel description that lacks what its values hang on, and
    IMG-16xx for forms that cannot be decoded. A value scale is refused when it is chosen.
    """
    ds = header.dataset
    sop_class = elements.uid(ds, "SOPClassUID") or ""
    pixels = pixel_format(header, sop_class)
    refuse_unread_forms(ds, sop_class=sop_class)
    if has_functional_groups(ds):
        return _of_one_moment_each(header, tuple(_enhanced(header, pixels, sop_class)))
    if pixels.frames > 1:
        return tuple(_offset_frames(header, pixels, sop_class))
    mosaic = mosaic_tiles(
        ds,
        rows=pixels.rows,
        columns=pixels.columns,
        slices=mosaic_slices,
        direction=mosaic_direction,
    )
    tiles = mosaic or uih_tiles(ds, rows=pixels.rows, columns=pixels.columns)
    whole = _instance(header, ds, pixels, sop_class)
    if tiles is None:
        return (whole,)
    return _tiled(whole, tiles, form="Siemens mosaic" if mosaic else "UIH grid")


def slice_dataset(header: Header, instance: Instance) -> Dataset:
    """The data set that describes one slice alone: for an enhanced object, that of its frame."""
    ds = header.dataset
    if not has_functional_groups(ds):
        return ds
    return frame_dataset(ds, frame=instance.frame, file=header.ref.label)


def described_slice(instance: Instance) -> Dataset:
    """The data set that describes one slice alone, read from its file."""
    ref = instance.ref
    if instance.form != _ENHANCED:
        header = read_header(ref)
        assert header is not None
        return slice_dataset(header, instance)
    state = os.stat(ref.path)
    return slice_dataset(_header_of_frames(ref, state.st_mtime_ns, state.st_size), instance)


@lru_cache(maxsize=1)
def _header_of_frames(ref: FileRef, modified_ns: int, size_bytes: int) -> Header:
    # One file may hold a thousand stacks, and its header megabytes; what is given away of it is a
    # data set of each frame's own.
    header = read_header(ref)
    assert header is not None
    return header


def _enhanced(header: Header, pixels: PixelFormat, sop_class: str) -> Iterator[Instance]:
    file = header.ref.label
    names = dimension_names(header.dataset)
    flat = frame_datasets(header.dataset, frames=pixels.frames, file=file)
    alike: dict[Hashable, dict[str, Any]] = {}
    for frame, (ds, key) in enumerate(flat):
        known = alike.get(key) if key is not None else None
        if known is None:
            known = _parts(_instance(header, ds, pixels, sop_class))
            alike[key] = known
        own = {
            **_moment(ds),
            "position_lps_mm": elements.decimals(ds, "ImagePositionPatient", count=3),
            "stack_id": elements.text(ds, "StackID") or "",
            "form": _ENHANCED,
            "frame": frame,
            "dimensions": dimension_values(ds, names, frame=frame, file=file),
        }
        yield Instance(**{**known, **own})


def _parts(instance: Instance) -> dict[str, Any]:
    """What an instance is made of, to make thousands like it: `replace` takes twice the time."""
    return {part.name: getattr(instance, part.name) for part in fields(instance)}


def _of_one_moment_each(header: Header, slices: tuple[Instance, ...]) -> tuple[Instance, ...]:
    pairs = [(i.temporal_position, dict(i.dimensions).get("TemporalPositionIndex")) for i in slices]
    check_moments(pairs, file=header.ref.label)
    return slices


def _moment(ds: Dataset) -> dict[str, Any]:
    return {
        "acquisition_number": elements.integer(ds, "AcquisitionNumber"),
        "temporal_position": elements.integer(ds, "TemporalPositionIdentifier"),
        "acquisition_time": elements.text(ds, "AcquisitionDateTime") or _dated(ds, "Acquisition"),
    }


def _offset_frames(header: Header, pixels: PixelFormat, sop_class: str) -> Iterator[Instance]:
    flat = offset_datasets(header.dataset, frames=pixels.frames, sop_class=sop_class)
    check_frames(pixels.frames, elements_of_each=len(header.dataset), file=header.ref.label)
    for frame, ds in enumerate(flat):
        yield replace(
            _instance(header, ds, pixels, sop_class), form="multi-frame with offsets", frame=frame
        )


def _tiled(whole: Instance, tiles: Sequence[Tile], *, form: str) -> tuple[Instance, ...]:
    """Each tile of an image as a slice of its own."""
    shared = {**_parts(whole), "form": form}
    owns = (
        {
            "window": tile.window,
            "position_lps_mm": tile.position_lps_mm,
            "slice_time_ms": tile.time_ms,
            "acquisition_time": tile.volume_time or whole.acquisition_time,
        }
        for tile in tiles
    )
    return tuple(Instance(**{**shared, **own}) for own in owns)


def _instance(header: Header, ds: Dataset, pixels: PixelFormat, sop_class: str) -> Instance:
    """One slice from the flat data set `ds` of its frame."""
    return Instance(
        **_moment(ds),
        ref=header.ref,
        sop_class_uid=sop_class,
        sop_instance_uid=_required_uid(ds, "SOPInstanceUID"),
        study_instance_uid=_required_uid(ds, "StudyInstanceUID"),
        series_instance_uid=_required_uid(ds, "SeriesInstanceUID"),
        frame_of_reference_uid=elements.uid(ds, "FrameOfReferenceUID"),
        patient=_patient(ds),
        modality=elements.text(ds, "Modality") or "",
        manufacturer=elements.text(ds, "Manufacturer") or "",
        series_number=elements.integer(ds, "SeriesNumber"),
        series_description=elements.text(ds, "SeriesDescription") or "",
        instance_number=elements.integer(ds, "InstanceNumber"),
        image_type=elements.texts(ds, "ImageType"),
        pixels=pixels,
        position_lps_mm=elements.decimals(ds, "ImagePositionPatient", count=3),
        orientation=elements.decimals(ds, "ImageOrientationPatient", count=6),
        pixel_spacing_mm=elements.decimals(ds, "PixelSpacing", count=2),
        slice_thickness_mm=elements.decimal(ds, "SliceThickness"),
        spacing_between_slices_mm=elements.decimal(ds, "SpacingBetweenSlices"),
        gantry_tilt_deg=elements.decimal(ds, "GantryDetectorTilt"),
        scales=scales_of(ds, file=header.ref.label),
        padding=padding_of(ds),
        echo_number=_first_integer(ds, "EchoNumbers"),
        echo_time_ms=elements.decimal(ds, "EchoTime"),
        temporal_positions=elements.integer(ds, "NumberOfTemporalPositions"),
        trigger_time_ms=elements.decimal(ds, "TriggerTime"),
        content_time=_dated(ds, "Content"),
        convolution_kernel="\\".join(elements.texts(ds, "ConvolutionKernel")),
        images_announced=elements.integer(ds, "ImagesInAcquisition"),
        slices_declared=_slices_declared(ds),
        gradient=gradient_from_dataset(ds),
        vendor_split=vendor_split_value(ds),
        complex_component=elements.text(ds, "ComplexImageComponent") or "",
        stack_id=elements.text(ds, "StackID") or "",
        concatenation=_concatenation(ds),
        slice_time_ms=slice_clock_ms(ds),
    )


def _concatenation(ds: Dataset) -> Concatenation | None:
    uid = elements.uid(ds, "ConcatenationUID")
    if uid is None:
        return None
    return Concatenation(
        uid,
        elements.integer(ds, "InConcatenationNumber"),
        elements.integer(ds, "InConcatenationTotalNumber"),
    )


def _slices_declared(ds: Dataset) -> int | None:
    # Elsewhere than in PET the number of slices is another's: United Imaging counts volumes.
    is_pet = elements.text(ds, "Modality") == "PT"
    return elements.integer(ds, "NumberOfSlices") if is_pet else None


def _required_uid(ds: Dataset, keyword: str) -> str:
    value = elements.uid(ds, keyword)
    if value is None:
        raise refuse("IMG-1017", keyword=keyword)
    return value


def _dated(ds: Dataset, what: str) -> str | None:
    # With its date, so that a scan over midnight stays in order.
    time, date = elements.text(ds, f"{what}Time"), elements.text(ds, f"{what}Date") or ""
    return f"{date}{time}" if time and len(date) == 8 and date.isdigit() else time


def _first_integer(ds: Dataset, keyword: str) -> int | None:
    values = elements.decimals(ds, keyword)
    return int(values[0]) if values else None


def _patient(ds: Dataset) -> tuple[str, str, str]:
    name = elements.distinct(ds, "PatientName").casefold()
    parts = " ".join(name.replace("^", " ").replace("=", " ").split())
    return (
        elements.distinct(ds, "PatientID"),
        parts,
        elements.distinct(ds, "PatientBirthDate"),
    )


def pixel_format(header: Header, sop_class: str) -> PixelFormat:
    """How the pixels of a file are stored, whatever kind of object it is.

    Raises IMG-1016 for an object without pixels, IMG-1401 for a description that lacks what the
    values hang on.
    """
    ds = header.dataset
    rows, columns = elements.integer(ds, "Rows"), elements.integer(ds, "Columns")
    if header.pixel is None or rows is None or columns is None:
        raise refuse(
            "IMG-1016",
            sop_class=sop_class,
            modality=elements.text(ds, "Modality") or "",
        )
    allocated = elements.integer(ds, "BitsAllocated") or 0
    representation = elements.integer(ds, "PixelRepresentation")
    if header.pixel.keyword == "PixelData" and not (allocated and representation in (0, 1)):
        reasons = ["BitsAllocated is absent"] * (not allocated)
        reasons += ["PixelRepresentation is neither 0 nor 1"] * (representation not in (0, 1))
        raise refuse("IMG-1401", file=header.ref.label, reasons=reasons)
    stored = elements.integer(ds, "BitsStored") or allocated
    high = elements.integer(ds, "HighBit")
    return PixelFormat(
        rows=rows,
        columns=columns,
        samples=elements.integer(ds, "SamplesPerPixel") or 1,
        photometric=elements.text(ds, "PhotometricInterpretation") or "MONOCHROME2",
        bits_allocated=allocated,
        bits_stored=stored,
        high_bit=stored - 1 if high is None else high,
        signed=representation == 1,
        planar=elements.integer(ds, "PlanarConfiguration") or 0,
        transfer_syntax_uid=header.transfer_syntax_uid,
        location=header.pixel,
        little_endian=header.little_endian,
        lossy=elements.text(ds, "LossyImageCompression") == "01",
        frames=_frames(ds),
    )


def _frames(ds: Dataset) -> int:
    return elements.integer(ds, "NumberOfFrames") or 1
