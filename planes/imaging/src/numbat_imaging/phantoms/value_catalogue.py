"""More faults by name: value scales, pixel descriptions, vendors' forms, what tags announce."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pydicom import Dataset

from numbat_imaging.phantoms import geometry_faults as geometry
from numbat_imaging.phantoms import value_faults as values
from numbat_imaging.phantoms.catalogue import CLEAN, EXACT_MM, PET, TILTED, TWO_TIMES, Fault
from numbat_imaging.phantoms.geometry_faults import Transform
from numbat_imaging.phantoms.phantom import Phantom

_Made = Callable[[], list[Dataset]]


def _build(phantom: Phantom, *transforms: Transform) -> _Made:
    def build() -> list[Dataset]:
        slices = phantom.slices()
        for transform in transforms:
            slices = transform(slices)
        return slices

    return build


def _exact(name: str, says: str, build: _Made) -> Fault:
    return Fault(name, build, ("volume", EXACT_MM), says)


def _refused(name: str, code: str, says: str, build: _Made) -> Fault:
    return Fault(name, build, ("refused", code), says)


_SCALES = [
    _refused(
        "rescale-slope-zero",
        "IMG-1502",
        "RescaleSlope 0",
        _build(CLEAN, values.with_values(RescaleSlope="0", RescaleIntercept="0")),
    ),
    _refused(
        "rescale-slope-absent",
        "IMG-1502",
        "RescaleIntercept without a slope",
        _build(CLEAN, values.with_values(RescaleIntercept="-1024")),
    ),
    _refused(
        "mixed-units",
        "IMG-1501",
        "one PET slice in another unit",
        _build(replace(PET, slope=2.0), values.with_values_in(4, Units="CNTS")),
    ),
    _exact(
        "lossy",
        "pixels that were compressed with loss",
        _build(CLEAN, values.with_values(LossyImageCompression="01")),
    ),
    _exact(
        "monochrome1",
        "small values are bright",
        _build(CLEAN, values.with_values(PhotometricInterpretation="MONOCHROME1")),
    ),
]

_PIXELS = [
    _refused(
        "bits-stored-over-allocated",
        "IMG-1401",
        "17 of 16 bits",
        _build(CLEAN, values.with_values(BitsStored=17, HighBit=16)),
    ),
    _refused(
        "high-bit-too-low",
        "IMG-1401",
        "HighBit below BitsStored - 1",
        _build(CLEAN, values.with_values(BitsStored=12, HighBit=7)),
    ),
    _refused(
        "pixels-too-long",
        "IMG-1403",
        "two images' pixels, one image's header",
        _build(CLEAN, values.with_values(Rows=16)),
    ),
    _refused(
        "unknown-transfer-syntax",
        "IMG-1404",
        "no decoder anywhere",
        _build(CLEAN, values.in_video_syntax),
    ),
    _refused(
        "compressed-pixels-damaged",
        "IMG-1405",
        "a stream that is no JPEG 2000",
        _build(CLEAN, values.with_damaged_stream(4)),
    ),
]

_FORMS = [
    _refused("uih-grid", "IMG-1603", "a United Imaging grid", _build(CLEAN, values.with_uih_grid)),
    _refused(
        "philips-two-scales",
        "IMG-1604",
        "displayed and floating point scales differ",
        _build(CLEAN, values.with_philips_scale),
    ),
    _refused(
        "no-series-uid",
        "IMG-1017",
        "no SeriesInstanceUID",
        _build(CLEAN, values.without_values("SeriesInstanceUID")),
    ),
]

_ANNOUNCED = [
    _exact(
        "fewer-than-announced",
        "ImagesInAcquisition says 12 of 10",
        _build(CLEAN, values.with_values(ImagesInAcquisition=12)),
    ),
    _exact(
        "every-second-slice-tagged",
        "SpacingBetweenSlices says 2 mm, the positions 4 mm",
        _build(CLEAN, geometry.every_second, values.with_values(SpacingBetweenSlices="2")),
    ),
    _refused(
        "single-slice-without-thickness",
        "IMG-1210",
        "one slice, no thickness",
        _build(
            replace(CLEAN, shape=(32, 32, 1)),
            values.without_values("SliceThickness", "SpacingBetweenSlices"),
        ),
    ),
    _exact(
        "square-with-tilt-tag",
        "a square stack whose tag says 20°",
        _build(CLEAN, values.with_values(GantryDetectorTilt="20")),
    ),
    Fault(
        "tilt-20-tag-zero",
        _build(
            TILTED, geometry.tilted(20.0, tag="absent"), values.with_values(GantryDetectorTilt="0")
        ),
        ("volume", 0.05),
        "tilted by 20°, the tag says 0",
    ),
    Fault(
        "tilted-colour",
        _build(
            replace(TILTED, samples=3, dtype="uint8", modality="SC", slope=None, intercept=None),
            geometry.tilted(10.0, tag="absent"),
        ),
        ("volume", 0.05),
        "a tilted colour stack",
    ),
    _refused(
        "second-volume-moved",
        "IMG-1208",
        "the second volume 3 mm to the left",
        _build(TWO_TIMES, values.moved_volume(10, (3.0, 0.0, 0.0))),
    ),
]

FAULTS: dict[str, Fault] = {
    fault.name: fault for family in (_SCALES, _PIXELS, _FORMS, _ANNOUNCED) for fault in family
}
