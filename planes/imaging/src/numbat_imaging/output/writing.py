"""One volume to all its files: NIfTI, sidecar, gradient tables, contact sheet; together or not."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from numbat_imaging.output.contact_sheet import contact_sheet
from numbat_imaging.output.diffusion import directionless, fsl_tables
from numbat_imaging.output.json_text import json_text
from numbat_imaging.output.nifti import Written, affine_ras_mm, file_digest, write_file
from numbat_imaging.output.publishing import publish
from numbat_imaging.output.sidecar import sidecar

if TYPE_CHECKING:
    from numbat_imaging.conversion import Options
    from numbat_imaging.intake.files import FileRef
    from numbat_imaging.volume import Volume

#: Every file that one volume may have, the NIfTI file last: who sees it sees all of them.
SUFFIXES = (".bval", ".bvec", ".png", ".json", ".nii", ".nii.gz")


def write_volume(
    volume: Volume,
    directory: str | PathLike[str],
    stem: str,
    *,
    options: Options | None = None,
) -> Written:
    """Write everything that belongs to one volume as `stem` and its suffixes.

    Nothing appears under its name before all of it is written, read back and on disk. With
    `options.overwrite`, files of an earlier result under the same stem go, also those that this
    volume does not have. Each source file is read once more for its SHA-256.

    Raises IMG-1701 to IMG-1705 as `publish` and `write_nifti` do, and IMG-10xx for a source that
    is gone or damaged by now.
    """
    from numbat_imaging.conversion import Options as Defaults

    chosen = options or Defaults()
    if volume.diffusion is not None:
        volume = replace(volume, notices=(*volume.notices, *directionless(volume.diffusion)))
    with (
        publish(directory, overwrite=chosen.overwrite) as publication,
        ThreadPoolExecutor(max_workers=1) as beside,
    ):
        paths = {
            suffix: publication.path(f"{stem}{suffix}") for suffix in _suffixes(volume, chosen)
        }
        publication.retire(f"{stem}{suffix}" for suffix in SUFFIXES)
        # Packing and reading back leave the interpreter free.
        told = beside.submit(_write_sidecar, volume, paths[".json"], identifying=chosen.identifying)
        if volume.diffusion is not None:
            values, vectors = fsl_tables(volume.diffusion, affine_ras_mm(volume))
            paths[".bval"].write_text(values, encoding="ascii")
            paths[".bvec"].write_text(vectors, encoding="ascii")
        if chosen.contact_sheet:
            contact_sheet(volume).save(paths[".png"])
        image = ".nii.gz" if chosen.compress else ".nii"
        image_digest = write_file(
            volume,
            paths[image],
            nifti_version=chosen.nifti_version,
            compress=chosen.compress,
        )
        told.result()
        written = {
            f"{stem}{suffix}": image_digest if suffix == image else file_digest(path)
            for suffix, path in paths.items()
        }
    return Written(Path(directory), written)


def _suffixes(volume: Volume, options: Options) -> list[str]:
    present = {
        ".bval": volume.diffusion is not None,
        ".bvec": volume.diffusion is not None,
        ".png": options.contact_sheet,
        ".json": True,
        ".nii": not options.compress,
        ".nii.gz": options.compress,
    }
    return [suffix for suffix in SUFFIXES if present[suffix]]


def _write_sidecar(volume: Volume, path: Path, *, identifying: bool) -> None:
    body = sidecar(volume, identifying=identifying, source_digests=source_digests(volume))
    path.write_text(f"{json_text(body)}\n", encoding="utf-8")


def source_digests(volume: Volume) -> dict[str, str]:
    """SHA-256 of each source file by SOPInstanceUID, in hexadecimal digits."""
    refs = {source.sop_instance_uid: source.ref for source in volume.sources}
    with ThreadPoolExecutor(max_workers=2) as pool:
        return dict(zip(refs, pool.map(_digest, refs.values()), strict=True))


def _digest(ref: FileRef) -> str:
    digest = hashlib.sha256()
    with ref.stored.open() as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
