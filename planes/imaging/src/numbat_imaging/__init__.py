"""Clinical imaging: DICOM files to a volume one can trust."""

from __future__ import annotations

from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numbat_imaging.conversion import Options, convert
    from numbat_imaging.geometry.grid import Grid
    from numbat_imaging.geometry.placement import TargetGrid
    from numbat_imaging.geometry.reorientation import reorient
    from numbat_imaging.geometry.resampling import resample, resample_to
    from numbat_imaging.geometry.tolerances import Tolerances
    from numbat_imaging.inspection import inspect
    from numbat_imaging.output.nifti import write_nifti
    from numbat_imaging.series.fourth_axis import FourthAxis
    from numbat_imaging.values.rescale import ValueScale
    from numbat_imaging.values.suv import suv
    from numbat_imaging.volume import Volume, read_series, read_volumes, square

__version__ = _version("numbat-imaging")

__all__ = [
    "FourthAxis",
    "Grid",
    "Options",
    "TargetGrid",
    "Tolerances",
    "ValueScale",
    "Volume",
    "convert",
    "inspect",
    "read_series",
    "read_volumes",
    "reorient",
    "resample",
    "resample_to",
    "square",
    "suv",
    "write_nifti",
]

# Loaded when first asked for: a gate list or a help text needs neither numpy nor pydicom.
_LAZY = {
    "FourthAxis": "numbat_imaging.series.fourth_axis",
    "Grid": "numbat_imaging.geometry.grid",
    "Options": "numbat_imaging.conversion",
    "TargetGrid": "numbat_imaging.geometry.placement",
    "Tolerances": "numbat_imaging.geometry.tolerances",
    "ValueScale": "numbat_imaging.values.rescale",
    "Volume": "numbat_imaging.volume",
    "convert": "numbat_imaging.conversion",
    "inspect": "numbat_imaging.inspection",
    "read_series": "numbat_imaging.volume",
    "read_volumes": "numbat_imaging.volume",
    "reorient": "numbat_imaging.geometry.reorientation",
    "resample": "numbat_imaging.geometry.resampling",
    "resample_to": "numbat_imaging.geometry.resampling",
    "square": "numbat_imaging.volume",
    "suv": "numbat_imaging.values.suv",
    "write_nifti": "numbat_imaging.output.nifti",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)
