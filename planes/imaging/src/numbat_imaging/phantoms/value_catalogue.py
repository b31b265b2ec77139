"""More faults by name: value scales, pixel descriptions, vendors' forms, what tags announce."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pydicom import Dataset
from pydicom.uid import ExplicitVRBigEndian

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

#: Injective over the stored values 0 to 10239 of the clean phantom, and no straight line.
_TABLE = [(7 * code + 3) % 65521 for code in range(10240)]
_ADC = values.real_world_item("ADC", "um2/s", (0, 65535), line=(0.25, 10.0))
_T2 = values.real_world_item("T2", "ms", (0, 65535), line=(0.5, 0.0))

_TABLES = [
    _exact(
        "modality-lut",
        "a table instead of a slope",
        _build(CLEAN, values.with_modality_lut(0, _TABLE)),
    ),
    _refused(
        "modality-lut-short",
        "IMG-1508",
        "the table has fewer entries than its descriptor states",
        _build(CLEAN, values.with_modality_lut(0, _TABLE, count=10241)),
    ),
    _exact(
        "real-world-two-maps",
        "two maps to other quantities beside the stored values",
        _build(CLEAN, values.with_real_world(_ADC, _T2)),
    ),
    _exact(
        "real-world-map-short",
        "a map whose table is too short, beside the stored values",
        _build(
            CLEAN,
            values.with_real_world(
                values.real_world_item("ADC", "um2/s", (0, 65535), table=[1.0, 2.0])
            ),
        ),
    ),
    _exact(
        "real-world-range-exceeded",
        "stored values beyond the range of a map",
        _build(
            CLEAN,
            values.with_real_world(
                values.real_world_item("ADC", "um2/s", (0, 5000), line=(0.25, 10.0))
            ),
        ),
    ),
    _refused(
        "rescaled-colours",
        "IMG-1504",
        "a rescale of colours",
        _build(replace(CLEAN, shape=(8, 6, 3), dtype="uint8", samples=3, modality="SC", slope=2.0)),
    ),
    _exact("dose", "a dose grid, slice by slice", _build(CLEAN, values.as_dose("0.0025"))),
    _refused(
        "dose-without-scaling",
        "IMG-1511",
        "DoseGridScaling 0",
        _build(CLEAN, values.as_dose("0")),
    ),
    _exact(
        "full-32-bit-rescaled-per-slice",
        "an intercept for each slice, and values that single precision cannot tell apart",
        _build(
            replace(CLEAN, dtype="uint32"), values.raised(4_294_950_000, intercepts=(0, -1, -2))
        ),
    ),
]

_PHILIPS = [
    _exact(
        "philips-two-scales",
        "displayed and precise scales differ",
        _build(CLEAN, values.with_philips_scale()),
    ),
    _exact(
        "philips-with-real-world",
        "the same scan exported with a real-world map",
        _build(CLEAN, values.with_philips_scale(), values.with_real_world(_ADC)),
    ),
    _refused(
        "philips-scale-in-some-slices",
        "IMG-1507",
        "the private scale slope is in half of the slices",
        _build(CLEAN, values.with_philips_scale(first=5)),
    ),
    _refused(
        "philips-scale-damaged",
        "IMG-1504",
        "the private scale slope is 0",
        _build(CLEAN, values.with_philips_scale(0.0)),
    ),
    _exact(
        "philips-displayed-only",
        "an export without the private scale slope",
        _build(CLEAN, values.with_philips_scale(None)),
    ),
    _exact(
        "philips-creator-absent",
        "the private scale slope without the creator that says what it is",
        _build(CLEAN, values.with_philips_scale(creator=False)),
    ),
]

_PADDING = [
    _exact(
        "padding-below-values",
        "padding below all values",
        _build(
            replace(CLEAN, modality="CT", dtype="int16", slope=1.0, intercept=-1024.0),
            values.with_values(PixelPaddingValue=-32768, PixelPaddingRangeLimit=-32760),
        ),
    ),
    _exact(
        "padding-among-values",
        "padding that is a value as well",
        _build(CLEAN, values.with_values(PixelPaddingValue=100)),
    ),
    _exact(
        "padding-differs",
        "one slice names another padding",
        _build(
            CLEAN,
            values.with_values(PixelPaddingValue=0),
            values.with_values_in(4, PixelPaddingValue=4100),
        ),
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
        "IMG-1409",
        "no decoder anywhere",
        _build(CLEAN, values.in_video_syntax),
    ),
    _refused(
        "compressed-pixels-damaged",
        "IMG-1415",
        "a stream that is no JPEG 2000",
        _build(CLEAN, values.with_damaged_stream(4)),
    ),
]

_FORMS = [
    _refused("uih-grid", "IMG-1613", "a United Imaging grid", _build(CLEAN, values.with_uih_grid)),
    _refused(
        "no-series-uid",
        "IMG-1017",
        "no SeriesInstanceUID",
        _build(CLEAN, values.without_values("SeriesInstanceUID")),
    ),
]

#: What looks like one volume and is none, or would be read with other values than it has.
_DECEPTIONS = [
    _refused(
        "time-points-interleaved",
        "IMG-1307",
        "every second slice is of another time",
        _build(CLEAN, values.interleaved_times),
    ),
    _refused(
        "weightings-interleaved",
        "IMG-1307",
        "every second slice has another b-value",
        _build(CLEAN, values.interleaved_b_values),
    ),
    _refused(
        "times-restart",
        "IMG-1315",
        "temporal positions restart in the second acquisition",
        _build(replace(CLEAN, volumes=4), values.restarting_times),
    ),
    Fault(
        "float-pixels",
        _build(CLEAN, values.with_float_pixels),
        ("volume", EXACT_MM),
        "pixels are floats",
        CLEAN.slices,
    ),
    _refused(
        "sign-unstated",
        "IMG-1401",
        "no PixelRepresentation",
        _build(CLEAN, values.without_values("PixelRepresentation")),
    ),
    _refused(
        "one-bit",
        "IMG-1403",
        "one bit a pixel in the header, 16 in the data",
        _build(CLEAN, values.with_values(BitsAllocated=1, BitsStored=1, HighBit=0)),
    ),
    _exact(
        "intercept-differs",
        "one slice has another RescaleIntercept",
        _build(replace(CLEAN, slope=1.0), values.with_values_in(4, RescaleIntercept="-7")),
    ),
    _exact(
        "bytes-in-big-endian-words",
        "8-bit pixels in big endian OW words",
        _build(
            replace(CLEAN, dtype="uint8", transfer_syntax_uid=ExplicitVRBigEndian),
            values.in_words,
        ),
    ),
    _exact("unsigned-32-bit", "32 bits, unsigned", _build(replace(CLEAN, dtype="uint32"))),
    _exact(
        "odd-bytes",
        "an odd number of 8-bit pixels",
        _build(replace(CLEAN, shape=(7, 5, 3), dtype="uint8")),
    ),
    _refused(
        "one-pixel-spacing-swapped",
        "IMG-1204",
        "slice 4 has PixelSpacing in the other order",
        _build(
            replace(CLEAN, spacing_mm=(0.7, 1.3, 3.1)),
            values.with_values_in(4, PixelSpacing=["0.7", "1.3"]),
        ),
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
    fault.name: fault
    for family in (_SCALES, _TABLES, _PHILIPS, _PADDING, _PIXELS, _FORMS, _DECEPTIONS, _ANNOUNCED)
    for fault in family
}
