"""The grid of a NIfTI file, as a target for resampling."""

from __future__ import annotations

from os import PathLike
from typing import Any

import nibabel
import numpy as np
from nibabel.filebasedimages import ImageFileError
from nibabel.spatialimages import HeaderDataError

from numbat_imaging.geometry.orientation import LPS_TO_RAS
from numbat_imaging.geometry.placement import TargetGrid
from numbat_registries import refuse

_LOAD: Any = nibabel.load
_NIFTI_1: Any = nibabel.Nifti1Pair
_FAULTS = (OSError, EOFError, ValueError, ImageFileError, HeaderDataError)


def grid_of_nifti(
    path: str | PathLike[str], *, frame_of_reference_uid: str | None = None
) -> TargetGrid:
    """Where a NIfTI file has its voxels, in DICOM patient LPS mm, without reading them.

    The affine is the sform, or the qform without one. NIfTI names no frame of reference; the caller
    may.

    Raises IMG-1224 when the file is no NIfTI file, names no place in the scanner, or has sizes or
    axes that are none.
    """
    try:
        image = _LOAD(path)
    except _FAULTS as error:
        raise refuse(
            "IMG-1224", what=f"the file cannot be read as NIfTI ({type(error).__name__})"
        ) from error
    if not isinstance(image, _NIFTI_1):
        raise refuse("IMG-1224", what="the file is no NIfTI file")
    header: Any = image.header
    if int(header["sform_code"]) == 0 and int(header["qform_code"]) == 0:
        raise refuse("IMG-1224", what="the NIfTI file has neither sform nor qform")
    unit = header.get_xyzt_units()[0]
    if unit not in ("mm", "unknown"):
        raise refuse("IMG-1224", what=f"the NIfTI file counts in {unit}")
    sizes = (*(int(size) for size in header.get_data_shape()[:3]), 1, 1)
    affine = LPS_TO_RAS @ np.asarray(image.affine, float)
    target = TargetGrid(affine, (sizes[0], sizes[1], sizes[2]), frame_of_reference_uid)
    target.check()
    return target
