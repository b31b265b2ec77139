"""nibabel's CSA reader and mosaic geometry as peers, on the scans of its own test data."""

from __future__ import annotations

import gzip
import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydicom import Dataset, dcmread

from numbat_imaging.geometry.orientation import LPS_TO_RAS
from numbat_imaging.phantoms.vendor_forms import AXIAL, OBLIQUE, SAGITTAL, mosaics
from numbat_imaging.series.forms.siemens_csa import image_header, read_csa, series_header
from numbat_imaging.series.forms.siemens_mosaic import mosaic_tiles
from numbat_imaging.series.gradient import gradient_from_dataset

with warnings.catch_warnings():
    # It calls itself experimental at each import.
    warnings.simplefilter("ignore")
    nicom = pytest.importorskip("nibabel.nicom", reason="nibabel is not installed")
    from nibabel.nicom import csareader, dicomwrappers

DATA = Path(nicom.__file__).parent / "tests" / "data"
SCANS = ("siemens_dwi_0.dcm.gz", "siemens_dwi_1000.dcm.gz", "csa_slice_norm.dcm")
PHANTOMS = {"axial": AXIAL, "sagittal": SAGITTAL, "oblique": OBLIQUE}

pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="nibabel came without its test data")


def _content(name: str) -> bytes:
    content = (DATA / name).read_bytes()
    return gzip.decompress(content) if name.endswith(".gz") else content


def _scan(name: str) -> Dataset:
    return dcmread(io.BytesIO(_content(name)))


def _same(mine: tuple[str, ...], other: list[Any]) -> bool:
    kept = [value for value in other if value not in ("", b"")]
    return len(mine) == len(kept) and all(
        float(a) == b if isinstance(b, int | float) else a == b.strip()
        for a, b in zip(mine, kept, strict=True)
    )


@pytest.mark.parametrize("name", ["csa2_b0.bin", "csa2_b1000.bin", "csa2_zero_len.bin.gz"])
def test_csa_headers_hold_what_nibabel_finds(name: str) -> None:
    content = _content(name)
    other = csareader.read(content)["tags"]
    mine = read_csa(content)
    assert list(mine) == list(other)
    assert [key for key in mine if not _same(mine[key], other[key]["items"])] == []


@pytest.mark.parametrize("name", SCANS)
def test_headers_of_scans_hold_what_nibabel_finds(name: str) -> None:
    ds = _scan(name)
    for mine, kind in ((image_header(ds), "image"), (series_header(ds), "series")):
        other = csareader.get_csa_header(ds, kind)
        assert (mine is None) == (other is None)
        if mine is not None:
            assert [k for k in mine if not _same(mine[k], other["tags"][k]["items"])] == []


def _affines(ds: Dataset) -> tuple[np.ndarray, np.ndarray]:
    """(4, 4), column, row and tile to LPS mm: by the tiles, and by nibabel."""
    tiles = mosaic_tiles(ds, rows=int(ds.Rows), columns=int(ds.Columns)) or ()
    places = np.array([tile.position_lps_mm for tile in tiles])
    cosines = np.array([float(x) for x in ds.ImageOrientationPatient])
    rows_mm, columns_mm = (float(x) for x in ds.PixelSpacing)
    mine = np.eye(4)
    mine[:3, 0], mine[:3, 1] = cosines[:3] * columns_mm, cosines[3:] * rows_mm
    mine[:3, 2], mine[:3, 3] = places[1] - places[0], places[0]
    # nibabel counts rows first.
    return mine, np.asarray(dicomwrappers.wrapper_from_data(ds).affine)[:, [1, 0, 2, 3]]


def test_scans_lie_where_nibabel_puts_them() -> None:
    for name in SCANS:
        mine, other = _affines(_scan(name))
        assert np.allclose(mine, other, atol=1e-4), name
    assert np.allclose(LPS_TO_RAS @ LPS_TO_RAS, np.eye(4))


@pytest.mark.parametrize("name", list(PHANTOMS))
def test_phantoms_lie_where_nibabel_puts_them(name: str) -> None:
    ds = mosaics(PHANTOMS[name])[0]
    image = ds.private_block(0x0029, "SIEMENS CSA HEADER")[0x10]
    assert csareader.read(image.value)["tags"]["NumberOfImagesInMosaic"]["items"] == [10]
    mine, other = _affines(ds)
    assert np.allclose(mine, other, atol=1e-6)


def test_a_mosaic_has_the_voxels_that_nibabel_cuts_out() -> None:
    ds = _scan("siemens_dwi_1000.dcm.gz")
    plane = ds.pixel_array
    tiles = mosaic_tiles(ds, rows=int(ds.Rows), columns=int(ds.Columns)) or ()
    mine = np.stack(
        [
            plane[w.row : w.row + w.rows, w.column : w.column + w.columns]
            for w in (tile.window for tile in tiles)
        ],
        axis=-1,
    )
    assert np.array_equal(mine, dicomwrappers.wrapper_from_data(ds).get_unscaled_data())


def test_the_csa_header_tells_the_gradient_that_the_public_block_tells() -> None:
    ds = _scan("siemens_dwi_1000.dcm.gz")
    wanted = gradient_from_dataset(ds)
    for tag in [element.tag for element in ds if element.tag.group == 0x0019]:
        del ds[tag]
    assert wanted is not None
    assert wanted.b_value_s_mm2 == 1000
    assert gradient_from_dataset(ds) == wanted
