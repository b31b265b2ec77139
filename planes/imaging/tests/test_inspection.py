"""inspect: what convert would do, without reading pixels."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from numbat_imaging import convert
from numbat_imaging.output.inspection_table import show
from numbat_imaging.phantoms import FAULTS
from numbat_imaging.phantoms.reading import folder_of_fault, inspect_fault, read_fault
from numbat_registries import Refusal

#: Codes about pixels that a header alone gives away.
_IN_HEADER = {"IMG-1401", "IMG-1402", "IMG-1404", "IMG-1408", "IMG-1409", "IMG-1410"}

_CHEAP = [name for name in FAULTS if not name.startswith(("tilt-", "jitter", "drift", "first-gap"))]


@pytest.mark.parametrize("name", _CHEAP)
def test_inspect_foretells_what_read_does(name: str) -> None:
    refused_as = ""
    try:
        volume = read_fault(name)
    except Refusal as refusal:
        refused_as = refusal.code
    if refused_as in {"IMG-1801", "IMG-1802"}:
        return
    if refused_as.startswith("IMG-14") and refused_as not in _IN_HEADER:
        return
    if refused_as:
        found = inspect_fault(name)
        codes = {diagnostic.code for diagnostic in found.refusals}
        codes |= {r.diagnostic.code for r in found.account.having("refused") if r.diagnostic}
        assert refused_as in codes
        return
    found = inspect_fault(name)
    assert found.complete
    (stack,) = found.stacks
    assert stack.grid is not None
    assert stack.grid.affine_lps_mm.tolist() == volume.affine_lps_mm.tolist()
    assert stack.scale == volume.scale
    assert stack.fourth_axis == volume.fourth_axis


def test_inspection_is_json_and_holds_every_residual() -> None:
    found = inspect_fault("jitter-0.03")
    body = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    geometry = body["stacks"][0]["geometry"]
    assert len(geometry["residuals_mm"]) == geometry["slices"] == 100
    assert max(geometry["residuals_mm"]) == pytest.approx(geometry["max_residual_mm"])
    assert geometry["max_residual_mm"] == pytest.approx(0.03, abs=0.002)
    assert body["tolerances_mm"]["position_mm"] == 0.05


def test_the_names_are_those_that_convert_writes(tmp_path: pytest.TempPathFactory) -> None:
    done = convert(folder_of_fault("localizer-inside"), str(tmp_path))
    names = {outcome.stem for outcome in done.outcomes}
    assert {stack.name for stack in inspect_fault("localizer-inside").stacks} == names


def test_the_table_names_code_and_residuals() -> None:
    def shown(name: str, **options: bool) -> str:
        text = io.StringIO()
        show(inspect_fault(name), Console(file=text, width=160), **options)
        return text.getvalue()

    assert "refused IMG-1206" in shown("middle-slice-missing")
    assert "PHANTOM" not in shown("two-patients").upper().replace("5_PHANTOM", "")
    assert shown("clean", residuals=True).count("+0.00000") >= 20
