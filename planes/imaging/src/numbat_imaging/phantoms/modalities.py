"""What the images of a modality carry beside geometry, and what names a fourth axis."""

from __future__ import annotations

import math
from collections.abc import Callable

from pydicom import Dataset

SOP_CLASSES = {
    "CT": "1.2.840.10008.5.1.4.1.1.2",
    "MR": "1.2.840.10008.5.1.4.1.1.4",
    "PT": "1.2.840.10008.5.1.4.1.1.128",
    "SC": "1.2.840.10008.5.1.4.1.1.7",
}


def describe_modality(ds: Dataset, modality: str) -> None:
    """Add the acquisition values that a scanner of this modality writes (PS3.3 C.8)."""
    if modality == "MR":
        ds.ScanningSequence, ds.SequenceVariant, ds.ScanOptions = "GR", "SP", ""
        ds.MRAcquisitionType = "2D"
        ds.RepetitionTime, ds.EchoTime, ds.FlipAngle = "2000", "30", "77"
        ds.EchoTrainLength, ds.EchoNumbers = 1, 1
        ds.MagneticFieldStrength = "3"
        ds.ProtocolName = "phantom protocol"
    elif modality == "CT":
        ds.KVP, ds.ExposureTime, ds.XRayTubeCurrent = "120", 500, 200
        ds.ConvolutionKernel = "H30s"
        ds.RescaleType = "HU"
    elif modality == "PT":
        ds.Units, ds.DecayCorrection, ds.CorrectedImage = "BQML", "START", ["DECY", "ATTN"]
        ds.CountsSource, ds.SeriesType = "EMISSION", ["WHOLE BODY", "IMAGE"]
        ds.ActualFrameDuration = 120000
        item = Dataset()
        item.Radiopharmaceutical = "Fluorodeoxyglucose"
        item.RadiopharmaceuticalStartTime = "091500"
        item.RadionuclideTotalDose = "370000000"
        item.RadionuclideHalfLife = "6586.2"
        ds.RadiopharmaceuticalInformationSequence = [item]
        ds.PatientWeight = "70"


def gradient_direction(t: int) -> tuple[float, float, float]:
    """A unit vector of a golden-angle spiral: every t gives another direction, LPS."""
    height = 1.0 - ((0.37 * t + 0.2) % 1.0)
    angle, radius = 2.399963229728653 * t, math.sqrt(1.0 - height * height)
    return (radius * math.cos(angle), radius * math.sin(angle), height)


def _temporal(ds: Dataset, t: int, volumes: int) -> None:
    ds.TemporalPositionIdentifier = t + 1
    ds.NumberOfTemporalPositions = volumes


def _b_value(ds: Dataset, t: int, volumes: int) -> None:
    ds.DiffusionBValue = 0.0 if t == 0 else 1000.0
    ds.DiffusionDirectionality = "NONE" if t == 0 else "DIRECTIONAL"
    if t > 0:
        ds.DiffusionGradientOrientation = list(gradient_direction(t))


def _acquisition(ds: Dataset, t: int, volumes: int) -> None:
    ds.AcquisitionNumber = t + 1


def _trigger(ds: Dataset, t: int, volumes: int) -> None:
    ds.TriggerTime = str(40 * t)
    ds.CardiacNumberOfImages = volumes


def _clock(ds: Dataset, t: int, volumes: int) -> None:
    ds.AcquisitionTime = f"1012{2 * t:02d}.500000"


def _echo(ds: Dataset, t: int, volumes: int) -> None:
    ds.EchoNumbers = t + 1
    ds.EchoTime = str(5 * (t + 1))


def _magnitude_phase(ds: Dataset, t: int, volumes: int) -> None:
    ds.ImageType = ["ORIGINAL", "PRIMARY", "MP"[t % 2]]


def _number_only(ds: Dataset, t: int, volumes: int) -> None:
    """InstanceNumber already runs on from volume to volume."""


#: What tells the volumes of a scan apart, by the element that does.
FOURTH_AXES: dict[str, Callable[[Dataset, int, int], None]] = {
    "TemporalPositionIdentifier": _temporal,
    "DiffusionBValue": _b_value,
    "AcquisitionNumber": _acquisition,
    "TriggerTime": _trigger,
    "AcquisitionTime": _clock,
    "EchoTime": _echo,
    "ImageType": _magnitude_phase,
    "InstanceNumber": _number_only,
}


def describe_volume(ds: Dataset, axis: str, *, t: int, k: int, volumes: int) -> None:
    """Mark one slice as belonging to volume `t`, by the element that `axis` names."""
    FOURTH_AXES[axis](ds, t, volumes)
