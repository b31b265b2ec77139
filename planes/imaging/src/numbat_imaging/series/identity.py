"""Whose images these are: one patient and one study for each SeriesInstanceUID."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

import numpy as np

from numbat_imaging.intake.files import FileRef
from numbat_imaging.series.instance import Instance
from numbat_imaging.values.pixels import check_format, read_planes, stored_dtype
from numbat_registries import Diagnostic, notice, refuse


def check_identity(instances: Sequence[Instance]) -> None:
    """Refuse a series that mixes patients or studies.

    PatientID, PatientName (case, separators and blanks aside) and PatientBirthDate all count; an
    absent value differs from a present one, since it cannot be shown to be the same person.

    Raises IMG-1101 for several patients, IMG-1102 for several studies.
    """
    patients = Counter(instance.patient for instance in instances)
    series_uid = instances[0].series_instance_uid
    if len(patients) > 1:
        differing = [
            name
            for position, name in enumerate(("PatientID", "PatientName", "PatientBirthDate"))
            if len({patient[position] for patient in patients}) > 1
        ]
        raise refuse(
            "IMG-1101",
            series_uid=series_uid,
            patients=len(patients),
            instances_of_each=sorted(patients.values(), reverse=True),
            differing=differing,
        )
    studies = Counter(instance.study_instance_uid for instance in instances)
    if len(studies) > 1:
        raise refuse(
            "IMG-1102",
            series_uid=series_uid,
            studies=len(studies),
            instances_of_each=sorted(studies.values(), reverse=True),
        )


def without_copies(
    instances: Sequence[Instance],
) -> tuple[list[Instance], list[tuple[Instance, Diagnostic]]]:
    """The slices of each SOPInstanceUID from one file, and one of every file that is a copy.

    Raises IMG-1103 when one SOPInstanceUID comes with different bytes: no reader can know which
    object is the right one.
    """
    first_of: dict[str, Instance] = {}
    kept: list[Instance] = []
    aside: list[tuple[Instance, Diagnostic]] = []
    copies: set[FileRef] = set()
    for instance in instances:
        first = first_of.setdefault(instance.sop_instance_uid, instance)
        if first.ref == instance.ref:
            kept.append(instance)
            continue
        if instance.ref in copies:
            continue
        copies.add(instance.ref)
        if content_digest(first.ref) != content_digest(instance.ref):
            raise refuse(
                "IMG-1103",
                sop_instance_uid=instance.sop_instance_uid,
                files=[first.ref.label, instance.ref.label],
            )
        aside.append(
            (instance, notice("IMG-1104", file=instance.ref.label, copy_of=first.ref.label))
        )
    return kept, aside


def check_concatenations(instances: Sequence[Instance]) -> None:
    """Refuse an image that was cut into several files of which some are missing.

    Raises IMG-1316. Source: PS3.3 C.7.6.16.2.2.4.
    """
    parts: dict[str, set[int]] = {}
    totals: dict[str, int] = {}
    for instance in instances:
        whole = instance.concatenation
        if whole is None or whole.number is None:
            continue
        parts.setdefault(whole.uid, set()).add(whole.number)
        totals[whole.uid] = max(totals.get(whole.uid, 0), whole.total or 0, whole.number)
    for uid, numbers in parts.items():
        if len(numbers) < totals[uid]:
            missing = sorted(set(range(1, totals[uid] + 1)) - numbers)
            raise refuse(
                "IMG-1316",
                concatenation_uid=uid,
                parts=totals[uid],
                found=len(numbers),
                missing=missing[:20],
            )


def content_digest(ref: FileRef) -> str:
    """SHA-256 of a file's bytes."""
    with ref.open() as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type]


def without_twins(
    instances: Sequence[Instance], labels: Sequence[int]
) -> tuple[list[Instance], list[tuple[Instance, Diagnostic]]]:
    """The instances with one of each pair that lies at one position with the same stored pixels.

    `labels` gives the slice position of each instance. A twin also has the same place in the plane,
    value scale, time, trigger, acquisition and gradient. Images at one position that are no twins
    both stay: what they are is for the fourth axis to say, or for a refusal.
    """
    kept: list[Instance] = []
    aside: list[tuple[Instance, Diagnostic]] = []
    seen: dict[tuple[object, ...], Instance] = {}
    meanings = [
        (label, *_meaning(instance)) for instance, label in zip(instances, labels, strict=True)
    ]
    crowded = {meaning for meaning, count in Counter(meanings).items() if count > 1}
    for instance, meaning in zip(instances, meanings, strict=True):
        if meaning not in crowded:
            kept.append(instance)
            continue
        first = seen.setdefault((pixel_digest(instance), *meaning), instance)
        if first is instance:
            kept.append(instance)
        else:
            aside.append(
                (instance, notice("IMG-1105", file=instance.ref.label, twin_of=first.ref.label))
            )
    return kept, aside


def _meaning(instance: Instance) -> tuple[object, ...]:
    # Two blank images of two time points have the same pixels and are no twins.
    return (
        instance.position_lps_mm,
        instance.scales,
        instance.gradient,
        instance.temporal_position,
        instance.trigger_time_ms,
        instance.acquisition_number,
        instance.acquisition_time,
    )


def pixel_digest(instance: Instance) -> str:
    """SHA-256 of the pixels: as they are stored, or of the plane where a file holds several.

    Raises IMG-14xx for a frame that cannot be decoded.
    """
    if instance.pixels.frames > 1 or instance.window is not None:
        check_format(instance.pixels, file=instance.ref.label)
        plane = np.empty((instance.rows, instance.columns), stored_dtype(instance.pixels))
        read_planes([instance], [plane])
        return hashlib.sha256(plane.tobytes()).hexdigest()
    location = instance.pixels.location
    with instance.ref.open() as stream:
        stream.seek(location.offset)
        data = stream.read() if location.length is None else stream.read(location.length)
    return hashlib.sha256(data).hexdigest()
