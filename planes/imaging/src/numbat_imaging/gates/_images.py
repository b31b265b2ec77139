"""Images for gates on header values: a real header, with what a case is about in its place."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from numbat_imaging.phantoms.reading import instance_of_fault
from numbat_imaging.series.instance import Instance


@cache
def _first() -> Instance:
    return replace(
        instance_of_fault("clean"),
        position_lps_mm=(0.0, 0.0, 0.0),
        orientation=(1.0, 0.0, 0.0, 0.0, 1.0, 0.0),
        pixel_spacing_mm=(1.0, 1.0),
        instance_number=None,
        acquisition_number=None,
        acquisition_time=None,
        content_time=None,
        spacing_between_slices_mm=None,
        slice_thickness_mm=None,
    )


def image(name: str, height_mm: float = 0.0, **values: Any) -> Instance:
    """One image `height_mm` up, told from others by `name`; axial, with pixels of 1 mm."""
    placed = {"position_lps_mm": (0.0, 0.0, height_mm)}
    return replace(_first(), sop_instance_uid=name, **(placed | values))


def names(volumes: Iterable[Sequence[Instance]]) -> list[str]:
    """The names of images, volume by volume: "ab cd"."""
    return ["".join(i.sop_instance_uid for i in volume) for volume in volumes]
