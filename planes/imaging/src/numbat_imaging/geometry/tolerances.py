"""The one table of geometric tolerances, in millimetres, printed in every report."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tolerances:
    """How far geometry may depart from a perfect grid before it is refused.

    Every limit is a displacement of image content in mm, so that a limit on an angle or on a
    cosine means the same for a small and for a large image.

    `position_mm`: largest distance of a slice's ImagePositionPatient from the fitted grid.
    `position_fraction`: the same as a fraction of the slice distance, for thin slices; the smaller
    of the two limits holds.
    `orientation_mm`: largest displacement of an image corner between a slice's own
    ImageOrientationPatient and the grid's axes, and between the given cosines and orthonormal ones.
    `duplicate_mm`: slices closer together than this along the normal lie at one position.
    `tag_mm`: largest disagreement between a derived length and the tag that repeats it
    (SpacingBetweenSlices) before a warning; over the whole stack for GantryDetectorTilt.
    """

    position_mm: float = 0.05
    position_fraction: float = 0.1
    orientation_mm: float = 0.05
    duplicate_mm: float = 0.01
    tag_mm: float = 0.05

    def position_limit_mm(self, distance_mm: float) -> float:
        """The limit on residuals for slices `distance_mm` apart."""
        return min(self.position_mm, self.position_fraction * distance_mm)

    def duplicate_limit_mm(self, extent_mm: float, count: int) -> float:
        """How close two of `count` slices over `extent_mm` may lie and be one position."""
        mean_mm = extent_mm / max(count - 1, 1)
        return (
            min(self.duplicate_mm, self.position_fraction * mean_mm)
            if mean_mm > 0
            else self.duplicate_mm
        )

    def to_dict(self) -> dict[str, float]:
        """The table for a report."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


DEFAULT_TOLERANCES = Tolerances()
