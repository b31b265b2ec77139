"""Synthetic scans whose every voxel says where it lies, and the faults that scans have."""

from numbat_imaging.phantoms import (
    catalogue,
    content_catalogue,
    enhanced_catalogue,
    pixel_catalogue,
    value_catalogue,
    vendor_forms,
)
from numbat_imaging.phantoms.catalogue import Expected, Fault
from numbat_imaging.phantoms.oracle import Agreement, agreement, slice_affine_lps_mm
from numbat_imaging.phantoms.phantom import Phantom, derived_uid, write_datasets

#: The single-frame fault matrix, and everything else that scans are known to do.
FAULTS: dict[str, Fault] = {
    **catalogue.FAULTS,
    **content_catalogue.FAULTS,
    **value_catalogue.FAULTS,
    **enhanced_catalogue.FAULTS,
    **pixel_catalogue.FAULTS,
    **vendor_forms.FAULTS,
}

__all__ = [
    "FAULTS",
    "Agreement",
    "Expected",
    "Fault",
    "Phantom",
    "agreement",
    "derived_uid",
    "slice_affine_lps_mm",
    "write_datasets",
]
