"""numbat-imaging: inspect and convert."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from numbat_gates.command import answer_console, answer_json, command_group, talk_console, verb
from numbat_gates.verdicts import ExitCode

if TYPE_CHECKING:
    from numbat_imaging.conversion import Conversion
    from numbat_imaging.geometry.regridding import Regridding
    from numbat_imaging.geometry.resampling import Interpolation
    from numbat_imaging.series.forms.siemens_mosaic import Direction

_Command = TypeVar("_Command", bound=Callable[..., Any])

cli = command_group("numbat-imaging", "DICOM files to a volume one can trust.")

_PATHS = click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
_WORKERS = click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Processes that read and convert.",
)
_AXIS = click.option(
    "--fourth-axis",
    type=click.Choice(["time", "diffusion", "acquisition", "cardiac-phase", "instance-order"]),
    help="What the fourth index counts, when the files leave it open.",
)
_TOLERANCE = click.option(
    "--position-mm",
    type=click.FloatRange(min=0, min_open=True),
    help="Accept slices up to this far from the fitted grid.",
)

_SCALE = click.option(
    "--value-scale",
    metavar="NAME",
    default="default",
    show_default=True,
    help="stored, displayed, precise (Philips), dose, or real-world[:LABEL].",
)

_MOSAIC_SLICES = click.option(
    "--mosaic-slices",
    type=click.IntRange(1),
    help="Slices of each Siemens mosaic that does not say it.",
)
_MOSAIC_DIRECTION = click.option(
    "--mosaic-direction",
    type=click.Choice(["along-normal", "against-normal"]),
    help="Which way the slices of a mosaic run, as row × column, when the file does not say it.",
)

_OBJECTS_BETWEEN_COLLECTIONS = 100_000

_MOMENTS = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S%z"]

_REGRIDDING = (
    click.option("--axes", metavar="CODE", help="Turn volumes to axes such as RAS or LPS."),
    click.option("--spacing-mm", metavar="MM[,MM,MM]", help="Resample to voxels of this size."),
    click.option(
        "--like",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="Resample to the grid of a NIfTI file.",
    ),
    click.option(
        "--interpolation",
        type=click.Choice(["linear", "cubic", "nearest"]),
        default="linear",
        show_default=True,
        help="How to resample; nearest for labels.",
    ),
    click.option("--fill", type=float, help="Value of voxels outside the image, with --like."),
    click.option(
        "--registered",
        is_flag=True,
        help="State that image and --like have one frame of reference, which NIfTI does not name.",
    ),
)


def _regridding_options(command: _Command) -> _Command:
    for option in reversed(_REGRIDDING):
        command = option(command)
    return command


def _regridding(
    axes: str | None,
    spacing_mm: str | None,
    like: Path | None,
    interpolation: Interpolation,
    fill: float | None,
    registered: bool,
) -> Regridding:
    from numbat_imaging.geometry.regridding import Regridding

    if like is not None and (axes is not None or spacing_mm is not None):
        raise click.UsageError("--like has its own axes and spacing")
    target = None
    if like is not None:
        from numbat_imaging.output.nifti_grid import grid_of_nifti

        target = grid_of_nifti(like)
    return Regridding(
        axes=axes,
        spacing_mm=_lengths(spacing_mm),
        like=target,
        interpolation=interpolation,
        fill=fill,
        registered=registered,
    )


def _lengths(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise click.BadParameter(
            "numbers, such as 1 or 0.5,0.5,2", param_hint="--spacing-mm"
        ) from None


def _tolerances(position_mm: float | None):  # type: ignore[no-untyped-def]
    from numbat_imaging.geometry.tolerances import DEFAULT_TOLERANCES, Tolerances

    if position_mm is None:
        return DEFAULT_TOLERANCES
    return Tolerances(position_mm=position_mm, position_fraction=0.5)


def _untold(done: int, total: int) -> None:
    """Progress that nobody watches."""


@contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[str], Callable[[int, int], None]]]:
    """Progress bars on stderr; none when stderr is not a terminal or the talk is not wanted."""
    if quiet or not sys.stderr.isatty():
        yield lambda says: _untold
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=talk_console()) as progress:

        def start(says: str) -> Callable[[int, int], None]:
            task = progress.add_task(says, total=None)

            def step(done: int, total: int) -> None:
                progress.update(task, completed=done, total=total)

            return step

        yield start


@verb(cli)
@_PATHS
@_WORKERS
@_AXIS
@_SCALE
@_MOSAIC_SLICES
@_MOSAIC_DIRECTION
@_TOLERANCE
@click.option("--residuals", is_flag=True, help="Print every slice's residual against the grid.")
def inspect(
    paths: tuple[Path, ...],
    workers: int,
    fourth_axis: str | None,
    value_scale: str,
    mosaic_slices: int | None,
    mosaic_direction: Direction | None,
    position_mm: float | None,
    residuals: bool,
    as_json: bool,
) -> ExitCode:
    """Show the series in PATHS (folders, zips, DICOMDIRs, files): geometry, values, refusals."""
    from numbat_imaging.inspection import inspect as look
    from numbat_imaging.output.inspection_table import show

    with _bar(as_json) as start:
        found = look(
            paths,
            workers=workers,
            fourth_axis=fourth_axis,
            value_scale=value_scale,
            mosaic_slices=mosaic_slices,
            mosaic_direction=mosaic_direction,
            tolerances=_tolerances(position_mm),
            progress=start("reading headers"),
        )
    if as_json:
        answer_json(found.to_dict())
    else:
        show(found, answer_console(width=160), residuals=residuals)
    return ExitCode.PASS if found.complete else ExitCode.REFUSED


@verb(cli)
@_PATHS
@click.argument("out", type=click.Path(path_type=Path, file_okay=False))
@_WORKERS
@_AXIS
@_SCALE
@_MOSAIC_SLICES
@_MOSAIC_DIRECTION
@_TOLERANCE
@click.option(
    "--dask", metavar="ADDRESS", help="Convert on a Dask cluster, such as tcp://host:8786."
)
@click.option("--overwrite", is_flag=True, help="Replace files of the same name.")
@click.option("--no-compress", is_flag=True, help="Write .nii instead of .nii.gz.")
@click.option(
    "--tilt",
    type=click.Choice(["keep", "square"]),
    default="keep",
    show_default=True,
    help="Keep a sheared affine, or resample onto a square grid.",
)
@_regridding_options
@click.option(
    "--slice-thickness-mm",
    type=click.FloatRange(min=0, min_open=True),
    help="Thickness of single slices that state none.",
)
@click.option(
    "--suv",
    type=click.Choice(["bw", "lbm", "lbm-janma", "lbm-james128", "ibw", "bsa"]),
    help="Write PET as standardised uptake values; lbm is lbm-janma.",
)
@click.option(
    "--weight-kg", type=click.FloatRange(min=0, min_open=True), help="Body weight for --suv."
)
@click.option(
    "--dose-bq", type=click.FloatRange(min=0, min_open=True), help="Injected activity for --suv."
)
@click.option(
    "--injected-at", type=click.DateTime(_MOMENTS), help="Local time of injection for --suv."
)
@click.option(
    "--nifti", type=click.Choice(["1", "2"]), help="NIfTI version; 2 where 1 cannot hold the size."
)
@click.option("--contact-sheet", is_flag=True, help="Also write a PNG of slices for each volume.")
@click.option(
    "--identifying",
    is_flag=True,
    help="Put device serial numbers, times and accession into sidecars.",
)
def convert(
    paths: tuple[Path, ...],
    out: Path,
    workers: int,
    fourth_axis: str | None,
    value_scale: str,
    mosaic_slices: int | None,
    mosaic_direction: Direction | None,
    position_mm: float | None,
    dask: str | None,
    overwrite: bool,
    no_compress: bool,
    tilt: str,
    axes: str | None,
    spacing_mm: str | None,
    like: Path | None,
    interpolation: Interpolation,
    fill: float | None,
    registered: bool,
    slice_thickness_mm: float | None,
    suv: str | None,
    weight_kg: float | None,
    dose_bq: float | None,
    injected_at: datetime | None,
    nifti: str | None,
    contact_sheet: bool,
    identifying: bool,
    as_json: bool,
) -> ExitCode:
    """Convert PATHS to NIfTI with sidecars in OUT; what is refused leaves no file."""
    from numbat_imaging.conversion import Options
    from numbat_imaging.conversion import convert as run
    from numbat_imaging.values.suv_inputs import SuvGiven

    options = Options(
        overwrite=overwrite,
        compress=not no_compress,
        tilt="square" if tilt == "square" else "keep",
        regridding=_regridding(axes, spacing_mm, like, interpolation, fill, registered),
        fourth_axis=fourth_axis,
        value_scale=value_scale,
        mosaic_slices=mosaic_slices,
        mosaic_direction=mosaic_direction,
        slice_thickness_mm=slice_thickness_mm,
        suv=suv,
        suv_given=SuvGiven(weight_kg=weight_kg, dose_bq=dose_bq, injected_at=injected_at),
        contact_sheet=contact_sheet,
        nifti_version=int(nifti) if nifti else None,
        identifying=identifying,
        tolerances=_tolerances(position_mm),
    )
    with _bar(as_json) as start:
        done = run(
            paths,
            out,
            options=options,
            workers=workers,
            dask=dask,
            on_scan=start("reading headers"),
            on_volume=start("converting"),
        )
    if as_json:
        answer_json(done.to_dict())
    else:
        _show_conversion(done, out)
    return ExitCode.PASS if done.complete else ExitCode.REFUSED


def _show_conversion(done: Conversion, out: Path) -> None:
    from numbat_imaging.output.inspection_table import show_account
    from numbat_registries.rendering import to_rich

    console, talk = answer_console(width=160), talk_console()
    for outcome in done.outcomes:
        if outcome.refusal is not None:
            console.print(f"refused  {outcome.stem}  {outcome.refusal.code}")
            talk.print(to_rich(outcome.refusal))
            continue
        summary = outcome.summary
        shape = "×".join(str(n) for n in summary["shape"])
        spacing = "×".join(f"{n:.4g}" for n in summary["spacing_mm"])
        console.print(
            f"written  {out / outcome.written[-1]}  {shape}  {spacing} mm  "
            f"residual {summary['max_residual_mm']:.4f} mm"
        )
        for problem in summary["notices"]:
            talk.print(f"  {problem['code']} {problem['detail']}")
    for diagnostic in done.notices:
        talk.print(f"{diagnostic.code} {diagnostic.message}")
    told = {outcome.refusal.code for outcome in done.outcomes if outcome.refusal is not None}
    show_account(done.account, console, told=told)


def main() -> None:
    """The console script."""
    # Headers become a hundred thousand objects that stay. To look for cycles among them after every
    # few hundred takes a tenth of the time.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        cli.main()
    finally:
        # Nor are there any worth a tenth of a second when the process ends.
        gc.freeze()
