"""Files to NIfTI: every stack written whole or refused, and an account of every file."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from numbat_imaging.geometry.regridding import UNCHANGED, Regridding
from numbat_imaging.geometry.tolerances import DEFAULT_TOLERANCES, Tolerances
from numbat_imaging.intake.account import Disposition, FileAccount, scan
from numbat_imaging.intake.files import FileRef
from numbat_imaging.naming import stems
from numbat_imaging.output.publishing import make_folder
from numbat_imaging.series.forms.siemens_mosaic import Direction
from numbat_imaging.series.grouping import Series, group_series, split_notice, stacks_of
from numbat_imaging.series.instance import instances_from_header
from numbat_imaging.series.splitting import Stack
from numbat_imaging.values.scales import DEFAULT
from numbat_imaging.values.suv_inputs import SuvGiven
from numbat_imaging.volume import SET_ASIDE, Volume, square, volume_from_stack
from numbat_registries import Diagnostic, Refusal, refuse
from numbat_registries.rendering import to_problem

#: Why files that hold images are in no volume.
Reasons = Mapping[FileRef, Diagnostic | Refusal]

Paths = str | PathLike[str] | Sequence[str | PathLike[str]]


@dataclass(frozen=True, slots=True)
class Options:
    """How stacks become files; the defaults lose nothing.

    `suv`: the kind of SUV that PET volumes are written as; `suv_given`: what the caller states for
    it in place of the files, which then have to be those of one study.
    """

    overwrite: bool = False
    compress: bool = True
    tilt: Literal["keep", "square"] = "keep"
    regridding: Regridding = UNCHANGED
    fourth_axis: str | None = None
    slice_thickness_mm: float | None = None
    value_scale: str = DEFAULT
    suv: str | None = None
    suv_given: SuvGiven = field(default_factory=SuvGiven)
    mosaic_slices: int | None = None
    mosaic_direction: Direction | None = None
    contact_sheet: bool = False
    nifti_version: int | None = None
    identifying: bool = False
    tolerances: Tolerances = DEFAULT_TOLERANCES


@dataclass(frozen=True, slots=True)
class Job:
    """One stack to be converted, in this process or in another."""

    stack: Stack
    directory: str
    stem: str
    options: Options
    notices: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one stack: the files written, or the refusal; JSON-safe in `summary`."""

    stem: str
    summary: dict[str, Any]
    written: tuple[str, ...] = ()
    refusal: Diagnostic | None = None
    reasons: Reasons = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Conversion:
    """The whole account of one conversion."""

    outcomes: tuple[Outcome, ...]
    account: FileAccount
    notices: tuple[Diagnostic, ...] = field(default=())

    @property
    def complete(self) -> bool:
        """Whether nothing was refused, neither a stack nor a file."""
        return not self.refused and not self.account.having(Disposition.REFUSED)

    @property
    def refused(self) -> tuple[Outcome, ...]:
        """The stacks that were not written."""
        return tuple(outcome for outcome in self.outcomes if outcome.refusal is not None)

    def to_dict(self) -> dict[str, Any]:
        """The account as JSON-safe data, without patient data."""
        return {
            "volumes": [outcome.summary for outcome in self.outcomes],
            "notices": [to_problem(diagnostic) for diagnostic in self.notices],
            "files": self.account.to_dict(),
        }


@dataclass(frozen=True, slots=True)
class Plan:
    """What a scan found: stacks by series, refusals of whole series, and every file's account."""

    series: tuple[tuple[Series, tuple[Stack, ...], tuple[Diagnostic, ...]], ...]
    refused: tuple[tuple[Series, Refusal], ...]
    account: FileAccount

    def account_with(self, reasons: Reasons) -> FileAccount:
        """The account of files once it is known which instances no volume took."""
        whole = {i.ref: why for series, why in self.refused for i in series.instances}
        return self.account.revised({**whole, **reasons})


def plan_paths(
    paths: Paths,
    *,
    tolerances: Tolerances = DEFAULT_TOLERANCES,
    mosaic_slices: int | None = None,
    mosaic_direction: Direction | None = None,
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> Plan:
    """Read all headers and sort them into stacks, without touching pixels.

    Raises IMG-1801 when no file is an image that can be read.
    """
    scanned, account = scan(
        paths,
        convert=partial(
            instances_from_header, mosaic_slices=mosaic_slices, mosaic_direction=mosaic_direction
        ),
        workers=workers,
        progress=progress,
        aside=SET_ASIDE,
    )
    instances = [instance for slices in scanned for instance in slices]
    if not instances and account.first_refusal() is None:
        raise refuse("IMG-1801", files=len(account.records))
    found: list[tuple[Series, tuple[Stack, ...], tuple[Diagnostic, ...]]] = []
    refused: list[tuple[Series, Refusal]] = []
    copies: dict[FileRef, Diagnostic | Refusal] = {}
    for series in group_series(instances):
        try:
            stacks, aside = stacks_of(series, tolerances)
        except Refusal as refusal:
            refused.append((series, refusal))
            continue
        copies |= {copy.instance.ref: copy.why for copy in aside}
        found.append((series, tuple(stacks), tuple(split_notice(series, stacks))))
    return Plan(tuple(found), tuple(refused), account.revised(copies))


def convert(
    paths: Paths,
    out: str | PathLike[str],
    *,
    options: Options | None = None,
    workers: int = 1,
    dask: str | None = None,
    on_scan: Callable[[int, int], None] | None = None,
    on_volume: Callable[[int, int], None] | None = None,
) -> Conversion:
    """Convert everything in `paths` to NIfTI files in `out`.

    Each stack is read, checked and only then published under its final names; a stack that is
    refused leaves no file. `on_scan` and `on_volume` are told (done, total).

    Raises IMG-1702 when `out` cannot be made, IMG-1801 when there is no image at all; the refusals
    of single stacks are in the result. Raises IMG-1815 when inputs of SUV are given for several PET
    studies.
    """
    chosen = options or Options()
    directory = Path(out)
    make_folder(directory)
    plan = plan_paths(
        paths,
        tolerances=chosen.tolerances,
        mosaic_slices=chosen.mosaic_slices,
        mosaic_direction=chosen.mosaic_direction,
        workers=workers,
        progress=on_scan,
    )
    if chosen.suv is not None and chosen.suv_given:
        _refuse_several_studies(plan)
    jobs = list(_jobs(plan, directory, chosen))
    outcomes = []
    for done, outcome in enumerate(_run(jobs, workers=workers, dask=dask), start=1):
        outcomes.append(outcome)
        if on_volume is not None:
            on_volume(done, len(jobs))
    order = {job.stem: index for index, job in enumerate(jobs)}
    outcomes.sort(key=lambda outcome: order[outcome.stem])
    reasons = {ref: why for outcome in outcomes for ref, why in outcome.reasons.items()}
    outcomes += [_refused_series(series, why.diagnostic) for series, why in plan.refused]
    notices = tuple(diagnostic for _, _, found in plan.series for diagnostic in found)
    return Conversion(tuple(outcomes), plan.account_with(reasons), notices)


def _refuse_several_studies(plan: Plan) -> None:
    """A weight or a dose is that of one injection."""
    studies = {
        instance.study_instance_uid
        for series, _, _ in plan.series
        for instance in series.instances
        if instance.modality == "PT"
    }
    if len(studies) > 1:
        raise refuse("IMG-1815", studies=len(studies))


def _jobs(plan: Plan, directory: Path, options: Options) -> Iterator[Job]:
    stacks = [(stack, found) for _, stacks, found in plan.series for stack in stacks]
    for name, (stack, found) in zip(stems([s for s, _ in stacks]), stacks, strict=True):
        yield Job(stack, str(directory), name, options, found)


def _run(jobs: Sequence[Job], *, workers: int, dask: str | None) -> Iterable[Outcome]:
    if dask is not None:
        return _run_on_dask(jobs, dask)
    if workers > 1 and len(jobs) > 1:
        return _run_on_processes(jobs, workers)
    return map(convert_stack, jobs)


def _run_on_processes(jobs: Sequence[Job], workers: int) -> Iterator[Outcome]:
    from multiprocessing import get_context

    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        try:
            for future in as_completed([pool.submit(convert_stack, job) for job in jobs]):
                yield future.result()
        finally:
            # Who interrupts the first stack does not wait for the hundredth.
            pool.shutdown(wait=False, cancel_futures=True)


def _run_on_dask(jobs: Sequence[Job], address: str) -> Iterator[Outcome]:
    _check_scheduler(address)
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise refuse("IMG-1804", package="numbat-imaging[dask]") from None
    with distributed.Client(address, timeout="10s") as client:
        for future in distributed.as_completed(client.map(convert_stack, jobs, pure=False)):
            yield future.result()


def _check_scheduler(address: str) -> None:
    parts = urlsplit(address)
    try:
        with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=5):
            return
    except (OSError, ValueError) as error:
        raise refuse("IMG-1805", address=address, reason=type(error).__name__) from error


def convert_stack(job: Job) -> Outcome:
    """Convert one stack; a refusal is part of the outcome, not an exception."""
    from numbat_imaging.output.writing import write_volume

    try:
        volume = volume_from_stack(
            job.stack,
            tolerances=job.options.tolerances,
            fourth_axis=job.options.fourth_axis,
            slice_thickness_mm=job.options.slice_thickness_mm,
            value_scale=job.options.value_scale,
        )
        if job.options.tilt == "square":
            volume = square(volume)
        if job.options.suv is not None and volume.key.modality == "PT":
            from numbat_imaging.values.suv import suv

            volume = suv(volume, job.options.suv, **job.options.suv_given.to_dict())
        volume = job.options.regridding.apply(volume)
        written = write_volume(volume, Path(job.directory), job.stem, options=job.options)
    except Refusal as refusal:
        summary = {"name": job.stem, "status": "refused", "refusal": to_problem(refusal.diagnostic)}
        reasons = {instance.ref: refusal for instance in job.stack.instances}
        return Outcome(job.stem, summary, (), refusal.diagnostic, reasons)
    summary = {"name": job.stem, "status": "written", "files": list(written), **describe(volume)}
    aside: Reasons = dict(volume.aside)
    return Outcome(job.stem, summary, tuple(written), None, aside)


def describe(volume: Volume) -> dict[str, Any]:
    """A volume in a few JSON-safe words: shape, geometry, scale, notices."""
    grid, axis = volume.grid, volume.fourth_axis
    read = volume.as_read or grid
    return {
        "series_instance_uid": volume.key.series_instance_uid,
        "shape": list(volume.voxels.shape),
        "dtype": "rgb" if volume.voxels.dtype.fields else str(volume.voxels.dtype),
        "spacing_mm": [round(float(value), 6) for value in grid.spacing_mm],
        "affine_lps_mm": volume.affine_lps_mm.tolist(),
        "shear_deg": grid.shear_deg if grid.is_sheared else 0.0,
        "max_residual_mm": read.max_residual_mm,
        "rms_residual_mm": read.rms_residual_mm,
        "fourth_axis": None
        if axis is None
        else {"name": axis.name, "unit": axis.unit, "values": list(axis.values)},
        "value_scale": volume.scale.to_dict(),
        "padding": None if volume.padding is None else list(volume.padding),
        "images": len(volume.sources),
        "notices": [to_problem(diagnostic) for diagnostic in volume.notices],
    }


def _refused_series(series: Series, why: Diagnostic) -> Outcome:
    name = f"series {series.instances[0].series_number or '?'}"
    summary = {
        "name": name,
        "status": "refused",
        "series_instance_uid": series.uid,
        "images": len(series.instances),
        "refusal": to_problem(why),
    }
    return Outcome(name, summary, (), why)
