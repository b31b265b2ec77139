"""The public issues of other readers, one case each, with the right answer by the coordinates."""

from pathlib import Path
from tempfile import TemporaryDirectory

from numbat_gates import Check, gate
from numbat_imaging.phantoms import FAULTS, Phantom, agreement
from numbat_imaging.phantoms.reading import read_fault
from numbat_imaging.volume import Volume, read_series


@gate(
    "IMG-G15",
    phase=1,
    discharges=["IMG-R017"],
    title="Other readers' public issues are answered by the coordinates",
)
def public_issues(check: Check) -> None:
    _gap(check)
    _float_steps(check)
    _restarting_numbers(check)
    _extra_slice(check)
    _tilt(check)
    _banding(check)
    _one_scan_two_exports(check)
    _unread(check)
    _missing_number_of_frames(check)


def _read(phantom: Phantom) -> Volume:
    with TemporaryDirectory() as folder:
        phantom.write(folder)
        return read_series(folder)


def _gap(check: Check) -> None:
    with check.refuses("IMG-1206", "dcm2niix 248: a jump in the stack") as caught:
        read_fault("middle-slice-missing")
    if caught.diagnostic is not None:
        check.close(
            "dcm2niix 248: the gap",
            measured=caught.diagnostic.fields["gap_mm"],
            required=4.0,
            atol=1e-6,
            unit="mm",
        )
    thin = Phantom(shape=(8, 8, 100), spacing_mm=(1.0, 1.0, 0.4))
    with (
        check.refuses("IMG-1206", "dcm2niix 248: one of 100 at 0.4 mm"),
        TemporaryDirectory() as folder,
    ):
        for index, path in enumerate(thin.write(folder)):
            if index == 42:
                Path(path).unlink()
        read_series(folder)


def _float_steps(check: Check) -> None:
    volume = _read(Phantom(shape=(8, 8, 30), spacing_mm=(0.5, 0.5, 0.3)))
    check.at_most(
        "ITK 1607: rounded steps of 0.3 mm are a grid", volume.grid.max_residual_mm, 1e-5, "mm"
    )
    check.close(
        "ITK 1607: the spacing",
        measured=volume.grid.spacing_mm[2],
        required=0.3,
        atol=1e-6,
        unit="mm",
    )


def _restarting_numbers(check: Check) -> None:
    """12 volumes of 45 slices whose InstanceNumber restarts: none may be dropped as a duplicate."""
    phantom = Phantom(shape=(8, 8, 45), volumes=12, fourth_axis="DiffusionBValue")
    slices = phantom.slices()
    for index, ds in enumerate(slices):
        ds.InstanceNumber = 1 + index % 45
    with TemporaryDirectory() as folder:
        _write(slices, folder)
        volume = read_series(folder)
    check.equal("dcm2niix 221: all 540 images are used", len(volume.sources), 540)
    check.equal("dcm2niix 221: shape", volume.voxels.shape, (8, 8, 45, 12))
    for ds in slices:
        for keyword in (
            "DiffusionBValue",
            "DiffusionGradientOrientation",
            "DiffusionDirectionality",
        ):
            if keyword in ds:
                delattr(ds, keyword)
    with (
        check.refuses("IMG-1302", "dcm2niix 221: without b-values"),
        TemporaryDirectory() as folder,
    ):
        _write(slices, folder)
        read_series(folder)


def _write(slices: list, folder: str) -> None:  # type: ignore[type-arg]
    from numbat_imaging.phantoms import write_datasets

    write_datasets(slices, folder)


def _extra_slice(check: Check) -> None:
    with check.notices("IMG-1105", "dicom2nifti 21: an extra slice with the same pixels"):
        volume = read_fault("duplicate-same-pixels")
    check.equal("dicom2nifti 21: slices", volume.voxels.shape[2], 10)
    with check.refuses("IMG-1301", "dicom2nifti 21: an extra slice with other pixels"):
        read_fault("duplicate-other-pixels")
    with check.refuses("IMG-1103", "dicom2nifti 21: the same UID with other pixels"):
        read_fault("same-uid-other-pixels")
    check.equal(
        "dicom2nifti: shuffled numbers are no missing files",
        read_fault("instance-numbers-shuffled").voxels.shape[2],
        10,
    )


def _tilt(check: Check) -> None:
    """dcm2niix is up to 11.9 mm off at 20 degrees; the coordinates say where each slice lies."""
    for angle in ("1", "2", "5", "20"):
        for tag in ("right", "absent", "opposite"):
            name = f"tilt-{angle}-tag-{tag}"
            volume = read_fault(name)
            found = agreement(FAULTS[name].build(), volume.values(), volume.affine_lps_mm)
            check.at_most(f"dcm2niix 697, 253: {name}", found.max_displacement_mm, 0.05, "mm")


def _banding(check: Check) -> None:
    volume = read_fault("pet-slope-per-slice")
    stored = {ds.SOPInstanceUID: ds for ds in FAULTS["pet-slope-per-slice"].build()}
    slopes = [float(stored[s.sop_instance_uid].RescaleSlope) for s in volume.sources]
    ratio = [
        float(volume.voxels[5, 7, k]) / max(int(stored[s.sop_instance_uid].pixel_array[7, 5]), 1)
        for k, s in enumerate(volume.sources)
    ]
    check.close(
        "dcm2niix 978: each slice has its own slope", measured=ratio, required=slopes, atol=1e-5
    )
    check.equal("dcm2niix 978: values are float32", str(volume.voxels.dtype), "float32")


def _one_scan_two_exports(check: Check) -> None:
    plain, mapped = (read_fault(name) for name in ("philips-two-scales", "philips-with-real-world"))
    check.equal(
        "dcm2niix 493, 575: a scan exported with a real-world map and without",
        mapped.values(),
        plain.values(),
    )


def _unread(check: Check) -> None:
    for code, name, issue in (
        ("IMG-1607", "mosaic-without-csa", "dcm2niix 364, 550, 348: a mosaic without its header"),
        ("IMG-1201", "none-with-position", "MONAI 8468: no geometry is no identity affine"),
    ):
        with check.refuses(code, issue):
            read_fault(name)


def _missing_number_of_frames(check: Check) -> None:
    with check.refuses(
        "IMG-1403", "pydicom 2035: pages beyond the header are not dropped"
    ) as caught:
        read_fault("pixels-too-long")
    if caught.diagnostic is not None:
        fields = caught.diagnostic.fields
        check.equal(
            "pydicom 2035: two pages' bytes", fields["found_bytes"], 2 * fields["expected_bytes"]
        )
