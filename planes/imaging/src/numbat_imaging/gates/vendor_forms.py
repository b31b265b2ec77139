"""Other vendors' forms: grids, private diffusion elements, private blocks that were moved."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydicom import Dataset
from pydicom.dataset import FileMetaDataset
from pydicom.tag import BaseTag

from numbat_gates import Check, gate
from numbat_imaging.gates._united_grids import united_grids
from numbat_imaging.gates.mosaic import by_coordinates, refused
from numbat_imaging.gates.real_scans import compare_with_dcm2niix
from numbat_imaging.intake import elements
from numbat_imaging.intake.files import FileRef
from numbat_imaging.intake.headers import read_header
from numbat_imaging.phantoms import vendor_forms
from numbat_imaging.phantoms.reading import folder_of_fault, read_fault
from numbat_imaging.series.forms.functional_groups import frame_dataset
from numbat_imaging.series.gradient import gradient_from_dataset
from numbat_imaging.series.instance import instances_from_header

_GRIDS = [name for name in vendor_forms.FAULTS if name.startswith("uih-")]

_SUITES = (
    "agfa_plain_twin",
    "agfa_private_tag_renaming",
    "canon_enhanced_dwi",
    "ge_b0map_direct_hz",
    "ge_dwi_oblique_bvecs",
    "ge_epi_protocolblock_s4",
    "ge_rtia_timer",
    "ge_table_position_FFS",
)

#: What the vendors' private diffusion elements say of one weighting: group, creator, values.
_PRIVATE: dict[str, tuple[tuple[int, str, dict[int, tuple[str, Any]]], ...]] = {
    "SIEMENS": (
        (0x0019, "SIEMENS MR HEADER", {0x0C: ("IS", 1000), 0x0E: ("FD", [0.6, 0.0, 0.8])}),
    ),
    "Philips": (
        (0x2001, "Philips Imaging DD 001", {0x03: ("FL", 1000.0)}),
        (
            0x2005,
            "Philips MR Imaging DD 001",
            {0xB0: ("FL", 0.6), 0xB1: ("FL", 0.0), 0xB2: ("FL", 0.8)},
        ),
    ),
    "GE MEDICAL SYSTEMS": (
        (0x0043, "GEMS_PARM_01", {0x39: ("IS", [1000, 8, 0, 0])}),
        # Frequency, phase and slice point against rows and columns, and along their normal.
        (0x0019, "GEMS_ACQU_01", {0xBB: ("DS", "-0.6"), 0xBC: ("DS", "0"), 0xBD: ("DS", "0.8")}),
    ),
    "UIH": (
        (0x0065, "Image Private Header", {0x09: ("FD", 1000.0), 0x37: ("FD", [0.6, 0.0, 0.8])}),
    ),
}


@gate(
    "IMG-G25",
    phase=2,
    discharges=["IMG-R024", "IMG-R025"],
    title="Other vendors' forms are read by their own elements, wherever these were moved",
)
def vendor_forms_read(check: Check) -> None:
    by_coordinates(check, _GRIDS)
    refused(check, _GRIDS)
    united_grids(check)
    _grid_times(check)
    _grid_gradients(check)
    _csa_gradient(check)
    for maker in _PRIVATE:
        _moved_blocks(check, maker)
    _blocks_of_groups(check)
    scans = check.corpus("imaging/dcm2niix_qa", clauses=["IMG-R024.scans"])
    if scans is not None:
        for name in _SUITES:
            compare_with_dcm2niix(check, scans / name)
        _archive_twins(check, scans)


def _grid_times(check: Check) -> None:
    header = read_header(FileRef(str(next(folder_of_fault("uih-clean").iterdir()))))
    assert header is not None
    slices = instances_from_header(header)
    check.equal("form of a grid", {i.form for i in slices}, {"UIH grid"})
    check.close(
        "times of the slices of a grid",
        measured=[i.slice_time_ms for i in slices],
        required=vendor_forms.acquisition_times_ms(len(slices)),
        atol=1e-3,
        unit="ms",
    )
    check.equal(
        "a grid's own moment", {i.acquisition_time for i in slices}, {"20200102101112.000000"}
    )


def _grid_gradients(check: Check) -> None:
    phantom = vendor_forms.TURNED
    volume = read_fault("uih-diffusion")
    found = volume.diffusion or ()
    row, column = np.array(phantom.orientation[:3]), np.array(phantom.orientation[3:])
    axes = np.column_stack([row, column, np.cross(row, column)])
    wanted = vendor_forms.united_gradients(phantom)
    check.equal("b-values of a grid", [g.b_value_s_mm2 for g in found], [b for b, _ in wanted])
    check.equal("an unweighted grid has no direction", found[0].direction_lps, None)
    check.close(
        "directions of a grid turn with the image",
        measured=[g.direction_lps for g in found[1:]],
        required=np.array([axes @ vector for _, vector in wanted[1:]]),
        atol=1e-6,
    )


def _csa_gradient(check: Check) -> None:
    """Early releases tell the weighting in the CSA header alone."""
    ds = vendor_forms.mosaics(
        vendor_forms.AXIAL,
        entries=lambda image, _: image.update(
            B_value=["800"], DiffusionGradientDirection=["0.0", "0.6", "-0.8"]
        ),
    )[0]
    gradient = gradient_from_dataset(ds)
    check.equal("b-value of the CSA header", gradient and gradient.b_value_s_mm2, 800.0)
    check.close(
        "direction of the CSA header",
        measured=gradient and gradient.direction_lps,
        required=(0.0, 0.6, -0.8),
        atol=1e-9,
    )


def _moved_blocks(check: Check, maker: str) -> None:
    """An archive gave the first numbers to blocks of its own, with other values in them."""
    for blocks, decoy in (((0x10, 0x11), False), ((0x2A, 0x5B), True)):
        gradient = gradient_from_dataset(_weighted(maker, blocks, decoy=decoy))
        where = f"{maker}: blocks {blocks[0]:02X} and {blocks[1]:02X}"
        check.equal(f"{where}: b-value", gradient and gradient.b_value_s_mm2, 1000.0)
        check.close(
            f"{where}: direction",
            measured=gradient and gradient.direction_lps,
            required=(0.6, 0.0, 0.8),
            atol=1e-6,
        )


def _weighted(maker: str, blocks: Sequence[int], *, decoy: bool) -> Dataset:
    ds = Dataset()
    ds.Modality, ds.Manufacturer = "MR", maker
    ds.ImageOrientationPatient = [1, 0, 0, 0, 1, 0]
    ds.InPlanePhaseEncodingDirection = "COL"
    for block, (group, creator, values) in zip(blocks, _PRIVATE[maker], strict=False):
        for number, owner in ((block, creator), *(((0x10, "AN ARCHIVE"),) if decoy else ())):
            ds.add_new(BaseTag(group << 16 | number), "LO", owner)
            for offset, (vr, value) in values.items():
                stored = value if owner == creator else 7
                ds.add_new(BaseTag(group << 16 | number << 8 | offset), vr, stored)
    return ds


def _blocks_of_groups(check: Check) -> None:
    """The blocks of two functional groups have one number, and each creator keeps its elements."""
    for numbers in ((0x10, 0x11), (0x10, 0x10)):
        ds = _grouped(*numbers)
        flat = frame_dataset(ds, frame=0, file="two groups")
        found = [
            elements.private(flat, 0x0021, creator, 0x05, vr="LO")
            for creator in ("SHARED OWNER", "FRAME OWNER", "TYPE OWNER")
        ]
        check.equal(
            f"blocks {numbers[0]:02X} and {numbers[1]:02X}", found, ["shared", "frame", "type"]
        )


def _grouped(shared: int, frame: int) -> Dataset:
    """Private elements in a shared group, in a frame's, and in a standard group of the frame."""

    def owned(number: int, creator: str, value: str) -> Dataset:
        item = Dataset()
        item.add_new(BaseTag(0x0021 << 16 | number), "LO", creator)
        item.add_new(BaseTag(0x0021 << 16 | number << 8 | 0x05), "LO", value)
        return item

    def private_group(number: int, creator: str, value: str) -> Dataset:
        group = Dataset()
        group.add_new(BaseTag(0x0021 << 16 | number), "LO", creator)
        group.add_new(
            BaseTag(0x0021 << 16 | number << 8 | 0xFE), "SQ", [owned(number, creator, value)]
        )
        return group

    ds = Dataset()
    ds.file_meta = FileMetaDataset()
    ds.set_original_encoding(False, True, "iso8859")
    of_frame = private_group(frame, "FRAME OWNER", "frame")
    of_frame.MRImageFrameTypeSequence = [owned(frame, "TYPE OWNER", "type")]
    ds.SharedFunctionalGroupsSequence = [private_group(shared, "SHARED OWNER", "shared")]
    ds.PerFrameFunctionalGroupsSequence = [of_frame]
    return ds


def _archive_twins(check: Check, scans: Path) -> None:
    """Every private element of every frame is the same, before an archive moved it and after."""
    plain, moved = (
        _private_elements(scans / name / "dicom" / "011-0001.img")
        for name in ("agfa_plain_twin", "agfa_private_tag_renaming")
    )
    check.at_least("private elements of the twins", min(map(len, plain), default=0), 80)
    check.equal("frames of the twins", len(moved), len(plain))
    for frame in range(0, len(plain), 6):
        check.equal(f"private elements of frame {frame + 1}", moved[frame], plain[frame])


def _private_elements(path: Path) -> list[dict[tuple[str, int], Any]]:
    header = read_header(FileRef(str(path)))
    assert header is not None
    frames = elements.integer(header.dataset, "NumberOfFrames") or 0
    return [_by_creator(frame_dataset(header.dataset, frame=k, file="")) for k in range(frames)]


def _by_creator(ds: Dataset) -> dict[tuple[str, int], Any]:
    tags = list(ds.keys())
    owners = {tag: elements.text(ds, tag, vr="LO") or "" for tag in tags if tag.is_private_creator}
    found: dict[tuple[str, int], Any] = {}
    for tag in tags:
        owner = owners.get(BaseTag(tag.group << 16 | tag.element >> 8))
        if tag.is_private and owner is not None:
            found[owner, tag.group << 8 | tag.element & 0xFF] = getattr(
                ds.get_item(tag, keep_deferred=True), "value", None
            )
    return found
