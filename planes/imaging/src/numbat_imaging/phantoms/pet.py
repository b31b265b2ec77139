"""Uniform PET phantoms whose uptake follows from what their headers state."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from pydicom import Dataset

from numbat_imaging.phantoms.enhanced import enhanced_object
from numbat_imaging.phantoms.phantom import (
    Phantom,
    decimal_text,
    derived_uid,
    set_pixels,
    write_datasets,
)

if TYPE_CHECKING:
    from numbat_imaging.conversion import Conversion
    from numbat_imaging.volume import Volume


_DATE_TIME = "%Y%m%d%H%M%S"


@dataclass(frozen=True)
class PetScan:
    """A uniform activity, three slices in two bed positions, and the radiopharmaceutical module.

    `stored`: of every pixel; `slopes`: rescale of each slice, repeated as needed. `series_at`,
    `acquired_at` (of each slice, repeated) and `injected_at` are local times as DICOM writes date
    and time in one; the last becomes RadiopharmaceuticalStartDateTime, and `injected_clock`
    RadiopharmaceuticalStartTime. `zone`: TimezoneOffsetFromUTC. `frame_reference_s`: of each slice,
    with `frame_s` as its duration. `volumes`: a dynamic scan, `frame_s` from frame to frame. What
    is None is absent. `private`: (group, creator, element, VR, value), in the second
    block of their group unless `first_block`.
    """

    stored: int = 5000
    slopes: tuple[float, ...] = (1.0,)
    units: str | None = "BQML"
    suv_type: str | None = None
    corrections: tuple[str, ...] = ("DECY", "ATTN", "SCAT")
    decay_correction: str | None = "START"
    manufacturer: str = "NUMBAT"
    modality: str = "PT"
    weight_kg: float | None = 70.0
    size_m: float | None = 1.75
    sex: str | None = "M"
    dose_bq: float | None = 350e6
    half_life_s: float | None = 6586.2
    nuclide: str | None = "77004003"
    items: int = 1
    injected_at: str | None = "20200102091000"
    injected_clock: str | None = None
    series_at: str | None = "20200102101000"
    acquired_at: tuple[str, ...] = ("20200102101000", "20200102101000", "20200102101300")
    frame_s: float | None = None
    frame_reference_s: tuple[float, ...] = ()
    volumes: int = 1
    zone: str | None = None
    private: tuple[tuple[int, str, int, str, Any], ...] = ()
    first_block: bool = False

    def slices(self) -> list[Dataset]:
        """One dataset for each slice, volume after volume."""
        phantom = Phantom(
            shape=(4, 3, 3), modality="PT", volumes=self.volumes, manufacturer=self.manufacturer
        )
        made = phantom.slices()
        for index, ds in enumerate(made):
            k, t = index % 3, index // 3
            plane = np.full((ds.Rows, ds.Columns), self.stored, "u2")
            set_pixels(ds, plane)
            ds.RescaleSlope = decimal_text(self.slopes[k % len(self.slopes)])
            ds.RescaleIntercept = "0"
            self._describe(ds)
            self._time(ds, k, t)
        return made

    def enhanced(self, **top_level: Any) -> Dataset:
        """The same as the frames of one enhanced object, with a real-world map to Bq/ml."""
        slices = self.slices()
        injection = deepcopy(slices[0].RadiopharmaceuticalInformationSequence)
        for ds in slices:
            ds.RealWorldValueMappingSequence = [_map_to_activity(float(ds.RescaleSlope))]
            for item in ds.RadiopharmaceuticalInformationSequence:
                item.RadiopharmaceuticalStartTime = "091000"
        made = enhanced_object(slices)
        made.RadiopharmaceuticalInformationSequence = injection
        for keyword in ("PatientWeight", "PatientSize", "PatientSex", "TimezoneOffsetFromUTC"):
            if keyword in slices[0]:
                setattr(made, keyword, slices[0][keyword].value)
        _set(made, **top_level)
        return made

    def _describe(self, ds: Dataset) -> None:
        item = Dataset()
        _set(
            item,
            RadiopharmaceuticalStartDateTime=self.injected_at,
            RadiopharmaceuticalStartTime=self.injected_clock,
            RadionuclideTotalDose=_number(self.dose_bq),
            RadionuclideHalfLife=_number(self.half_life_s),
        )
        if self.nuclide is not None:
            code = Dataset()
            _set(code, CodeValue=self.nuclide, CodingSchemeDesignator="SCT", CodeMeaning="nuclide")
            item.RadionuclideCodeSequence = [code]
        _set(
            ds,
            Modality=self.modality,
            Units=self.units,
            SUVType=self.suv_type,
            CorrectedImage=list(self.corrections),
            DecayCorrection=self.decay_correction,
            PatientWeight=_number(self.weight_kg),
            PatientSize=_number(self.size_m),
            PatientSex=self.sex,
            TimezoneOffsetFromUTC=self.zone,
            RadiopharmaceuticalInformationSequence=[item] * self.items,
        )
        for group, creator, element, vr, value in self.private:
            # A reader who takes the first block for granted is found out.
            if not self.first_block:
                block = ds.private_block(group, f"{creator} OTHER", create=True)
                block.add_new(element, "LO", "another maker's")
            ds.private_block(group, creator, create=True).add_new(element, vr, value)

    def _time(self, ds: Dataset, k: int, t: int) -> None:
        acquired = None
        if self.acquired_at:
            start = datetime.strptime(self.acquired_at[k % len(self.acquired_at)], _DATE_TIME)
            acquired = f"{start + timedelta(seconds=t * (self.frame_s or 0.0)):{_DATE_TIME}}"
        for event, at in (("Series", self.series_at), ("Acquisition", acquired)):
            _set(
                ds,
                **{
                    f"{event}Date": None if at is None else at[:8],
                    f"{event}Time": None if at is None else at[8:],
                },
            )
        reference = self.frame_reference_s
        _set(
            ds,
            ActualFrameDuration=None if self.frame_s is None else str(round(1000 * self.frame_s)),
            FrameReferenceTime=_number(1000 * reference[k % len(reference)]) if reference else None,
        )


def _map_to_activity(slope: float) -> Dataset:
    unit = Dataset()
    _set(
        unit, CodeValue="Bq/ml", CodingSchemeDesignator="UCUM", CodeMeaning="Becquerels/milliliter"
    )
    item = Dataset()
    _set(
        item,
        RealWorldValueFirstValueMapped=0,
        RealWorldValueLastValueMapped=65535,
        RealWorldValueSlope=slope,
        RealWorldValueIntercept=0.0,
        LUTExplanation="activity",
        LUTLabel="ACTIVITY",
        MeasurementUnitsCodeSequence=[unit],
    )
    for end in ("First", "Last"):
        item[f"RealWorldValue{end}ValueMapped"].VR = "US"
    return item


def _number(value: float | None) -> str | None:
    return None if value is None else decimal_text(value)


def _set(ds: Dataset, **values: Any) -> None:
    """Set elements; one that is None is removed."""
    for keyword, value in values.items():
        if value is not None:
            setattr(ds, keyword, value)
        elif keyword in ds:
            delattr(ds, keyword)


def suv_of(scan: PetScan | Sequence[Dataset], kind: str = "bw", **given: Any) -> Volume:
    """The volume of a scan as SUV; `given` as for `suv`, `value_scale` as for `read_series`."""
    from numbat_imaging.values.suv import suv
    from numbat_imaging.volume import read_series

    datasets = scan.slices() if isinstance(scan, PetScan) else scan
    options = {name: given.pop(name) for name in ("value_scale",) if name in given}
    with TemporaryDirectory() as folder:
        write_datasets(datasets, folder)
        return suv(read_series(folder, **options), kind, **given)


def convert_pet(scans: Sequence[PetScan], out: Path | None = None, **options: Any) -> Conversion:
    """`convert` on scans of one study each, as SUV; `options` as `Options` has them."""
    from numbat_imaging.conversion import Options, convert

    datasets = [ds for index, scan in enumerate(scans) for ds in _of_study(scan, index)]
    with TemporaryDirectory() as folder:
        write_datasets(datasets, Path(folder) / "scans")
        chosen = Options(**{"suv": "bw", **options})
        return convert(Path(folder) / "scans", out or Path(folder) / "out", options=chosen)


def _of_study(scan: PetScan, index: int) -> list[Dataset]:
    slices = scan.slices()
    for ds in slices:
        for keyword in ("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID"):
            uid = derived_uid(ds[keyword].value, index)
            setattr(ds, keyword, uid)
        ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
    return slices


#: START with a series time that was written when the images were processed, half an hour late.
PROCESSED = PetScan(series_at="20200102104000")
