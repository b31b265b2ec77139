"""DCMTK as a peer: what its tools encode is read, and what they decode is equal."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pydicom
import pytest

from numbat_imaging.phantoms import Phantom, write_datasets
from numbat_imaging.phantoms.reading import folder_of_fault
from numbat_imaging.values.pixels import read_pixels

BUNDLED = Path(pydicom.__file__).parent / "data" / "test_files"

pytestmark = pytest.mark.skipif(shutil.which("dcmcjpeg") is None, reason="DCMTK is not installed")


def run(tool: str, *arguments: str | Path) -> None:
    # A character set or a strange element is DCMTK's word, not a fault of the pixels.
    subprocess.run([tool, *map(str, arguments)], check=True, capture_output=True)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize(
    ("tool", "options"),
    [
        ("dcmcjpeg", ("+e1",)),
        ("dcmcjpeg", ("+el",)),
        ("dcmcjpls", ("+el",)),
        ("dcmcrle", ()),
        ("dcmcjpeg", ("+e1", "+fs", "1")),
        ("dcmcrle", ("+fs", "1")),
        ("dcmconv", ("+tb",)),
        ("dcmconv", ("+td",)),
        ("dcmconv", ("+ti",)),
    ],
)
def test_what_dcmtk_encodes_without_loss_is_read(
    tool: str, options: tuple[str, ...], dtype: str, tmp_path: Path
) -> None:
    phantom = Phantom(shape=(61, 43, 1), dtype=dtype)
    source = phantom.write(tmp_path / "plain")[0]
    run(tool, *options, source, tmp_path / "coded")
    np.testing.assert_array_equal(read_pixels(tmp_path / "coded"), phantom.plane(0))


@pytest.mark.parametrize("bits", [8, 12])
def test_twelve_bit_streams_of_dcmtk(bits: int, tmp_path: Path) -> None:
    phantom = Phantom(shape=(61, 43, 1), bits_stored=bits)
    source = phantom.write(tmp_path / "plain")[0]
    run("dcmcjpeg", "+e1", source, tmp_path / "coded")
    np.testing.assert_array_equal(read_pixels(tmp_path / "coded"), phantom.plane(0))


@pytest.mark.parametrize(
    ("name", "decoder", "most"),
    [
        ("JPGExtended.dcm", "dcmdjpeg", 1),
        ("SC_rgb_jpeg_gdcm.dcm", "dcmdjpeg", 0),
        ("SC_rgb_rle_16bit_2frame.dcm", "dcmdrle", 0),
        ("rtdose_rle.dcm", "dcmdrle", 0),
        ("emri", "dcmdjpls", 0),
        ("JPEGLSNearLossless_16.dcm", "dcmdjpls", 0),
    ],
)
def test_dcmtk_decodes_to_the_same_values(
    name: str, decoder: str, most: int, tmp_path: Path
) -> None:
    path = min(folder_of_fault("frames-jpeg-ls").iterdir()) if name == "emri" else BUNDLED / name
    run(decoder, path, tmp_path / "plain")
    theirs, ours = read_pixels(tmp_path / "plain"), read_pixels(path)
    # Lossy codecs may round their transform either way.
    assert np.abs(theirs.astype(np.int64) - ours.astype(np.int64)).max() <= most


@pytest.mark.parametrize("option", ["+cy", "+cr"])
def test_colours_of_dcmtk(option: str, tmp_path: Path) -> None:
    smooth = np.stack(np.broadcast_arrays(*np.mgrid[0:128:2, 0:192:3], 90), axis=-1).astype("u1")
    ds = Phantom(shape=(64, 64, 1), modality="SC", dtype="uint8", samples=3).slices()[0]
    ds.PixelData = smooth.tobytes()
    source = write_datasets([ds], tmp_path / "plain")[0]
    run("dcmcjpeg", "+eb", "+q", "100", option, "+s4", source, tmp_path / "coded")
    found = read_pixels(tmp_path / "coded", rgb=True)
    assert np.abs(found.astype(int) - smooth).max() <= 4
