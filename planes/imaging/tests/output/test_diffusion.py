"""FSL's gradient tables say, through the written affine, what the header said of the patient."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import nibabel
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numbat_imaging import Options
from numbat_imaging.output.diffusion import directionless, fsl_tables
from numbat_imaging.output.writing import write_volume
from numbat_imaging.series.fourth_axis import FourthAxis
from numbat_imaging.series.gradient import Gradient
from numbat_imaging.volume import Volume

MakeVolume = Callable[..., Volume]
_part = st.floats(-1, 1)
vectors = st.tuples(_part, _part, _part).filter(lambda v: np.linalg.norm(v) > 0.1)


def _unit(vector: tuple[float, float, float]) -> tuple[float, float, float]:
    return tuple((np.asarray(vector) / np.linalg.norm(vector)).tolist())


def _frame(first: tuple[float, float, float], second: tuple[float, float, float]) -> np.ndarray:
    row = np.array(_unit(first))
    normal = np.cross(row, second)
    normal /= np.linalg.norm(normal)
    return np.column_stack([row, np.cross(normal, row), normal])


frames = (
    st.tuples(vectors, vectors)
    .filter(lambda pair: np.linalg.norm(np.cross(*pair)) > 0.05)
    .map(lambda pair: _frame(*pair))
)


@settings(max_examples=40, deadline=None)
@given(frames, st.lists(vectors, min_size=1, max_size=4), st.sampled_from([0.0, 0.8]))
def test_written_tables_lead_back_to_the_patient(
    make_volume: MakeVolume,
    axes: np.ndarray,
    directions: list[tuple[float, float, float]],
    slide_mm: float,
) -> None:
    gradients = (Gradient(0.0), *(Gradient(1000.0, _unit(v)) for v in directions))
    volume = make_volume(
        np.zeros((2, 3, 4, len(gradients)), np.int16),
        axes=axes,
        slide_mm=(0.0, slide_mm),
        fourth_axis=FourthAxis("diffusion", tuple(g.b_value_s_mm2 for g in gradients), "s/mm2"),
        diffusion=gradients,
    )
    with TemporaryDirectory() as folder:
        write_volume(volume, folder, "dwi")
        affine = nibabel.load(Path(folder) / "dwi.nii.gz").affine
        values = np.loadtxt(Path(folder) / "dwi.bval", ndmin=1)
        table = np.loadtxt(Path(folder) / "dwi.bvec", ndmin=2)
    assert values.tolist() == [0.0] + [1000.0] * len(directions)
    assert table[:, 0].tolist() == [0.0, 0.0, 0.0]
    # The way back, as FSL reads a table: along the axes of the image, x reversed for a positive
    # determinant (a written volume's is negative).
    assert np.linalg.det(affine[:3, :3]) < 0
    i, j = (affine[:3, axis] / np.linalg.norm(affine[:3, axis]) for axis in (0, 1))
    k = np.cross(j, i)
    for t, vector in enumerate(directions, start=1):
        ras = np.column_stack([i, j, k]) @ table[:, t]
        assert ras * [-1, -1, 1] == pytest.approx(_unit(vector), abs=1e-5)


def test_a_rotation_of_patient_and_image_together_changes_no_table(
    make_volume: MakeVolume,
) -> None:
    turn = _frame((0.3, -0.5, 0.9), (0.1, 0.7, 0.2))
    from numbat_imaging.output.nifti import affine_ras_mm

    direction = np.array([0.48, -0.6, 0.64])
    plain = make_volume()
    turned = make_volume(axes=turn)
    first = fsl_tables([Gradient(700.0, tuple(direction.tolist()))], affine_ras_mm(plain))
    moved = tuple((turn @ direction).tolist())
    second = fsl_tables([Gradient(700.0, moved)], affine_ras_mm(turned))
    assert np.loadtxt(first[1].splitlines()) == pytest.approx(np.loadtxt(second[1].splitlines()))


def test_weighted_volumes_without_direction_are_told(
    make_volume: MakeVolume, tmp_path: Path
) -> None:
    import json

    gradients = (Gradient(0.0), Gradient(1000.0, (0.0, 0.0, 1.0)), Gradient(1000.0))
    (warning,) = directionless(gradients)
    assert (warning.code, warning.fields["volumes"]) == ("IMG-1706", [2])
    assert directionless(gradients[:2]) == []
    volume = make_volume(
        np.zeros((2, 2, 2, 3), np.int16),
        fourth_axis=FourthAxis("diffusion", (0.0, 1000.0, 1000.0), "s/mm2"),
        diffusion=gradients,
    )
    write_volume(volume, tmp_path, "dwi", options=Options())
    assert (tmp_path / "dwi.bvec").read_text() == "0 0 0\n0 0 0\n0 1 0\n"
    body = json.loads((tmp_path / "dwi.json").read_text())
    assert [problem["code"] for problem in body["numbat"]["notices"]] == ["IMG-1706"]
