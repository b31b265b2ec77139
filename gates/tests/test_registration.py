"""Gates as declared: read from the source, loaded, and held against the requirements."""

from __future__ import annotations

from typing import Any

import pytest

from numbat_gates import gate
from numbat_gates.registration import declared_gates, load_gates
from numbat_gates.requirements import requirements_of
from numbat_registries import Refusal

TRUE = "check.true('measured', True)"


def load(plane: Any) -> Any:
    return load_gates(plane.plane, requirements_of(plane.plane))


def refusal_of(plane: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        load(plane)
    return caught.value


def test_source_and_module_give_one_table(plane: Any) -> None:
    plane.requirements().gate(TRUE).gate(TRUE, id="DEM-G02", title="Every slice", last=True)
    declared = declared_gates(plane.plane)
    loaded = load(plane)
    assert [item.id for item in declared] == ["DEM-G01", "DEM-G02"]
    assert [(g.id, g.title, g.phase, g.discharges, g.last) for g in declared] == [
        (g.id, g.title, g.phase, g.discharges, g.last) for g in loaded
    ]
    assert all(item.function is None for item in declared)
    assert all(item.function is not None for item in loaded)


def test_reading_the_table_runs_nothing(plane: Any) -> None:
    plane.requirements().gate(TRUE, before="raise RuntimeError('imported')")
    assert [item.id for item in declared_gates(plane.plane)] == ["DEM-G01"]


def test_a_gate_stays_a_function() -> None:
    @gate("DEM-G09", phase=1, discharges=["DEM-R001"], title="Itself")
    def measure(check: Any) -> None:
        """Kept."""

    assert measure.__doc__ == "Kept."
    del globals()["__numbat_gates__"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": "G01"},
        {"id": "DEM-R001"},
        {"phase": 0},
        {"phase": True},
        {"discharges": []},
        {"discharges": ["DEM-R001", "DEM-R001"]},
        {"discharges": "DEM-R001"},
        {"title": " "},
        {"last": 1},
    ],
)
def test_a_malformed_declaration_is_refused(wrong: dict[str, Any]) -> None:
    good = {"id": "DEM-G01", "phase": 1, "discharges": ["DEM-R001"], "title": "Files"}
    given: dict[str, Any] = good | wrong
    with pytest.raises(Refusal) as caught:
        gate(given.pop("id"), **given)
    assert caught.value.code == "GATE-0311"


def test_two_gates_of_one_id_are_refused(plane: Any) -> None:
    plane.requirements().gate(TRUE, module="one").gate(TRUE, module="two")
    refused = refusal_of(plane)
    assert refused.code == "GATE-0312"
    assert refused.diagnostic.fields["second"].endswith("gates.two:4")


def test_two_functions_of_one_name_are_two_gates(plane: Any) -> None:
    plane.requirements().write(
        "gates/both.py",
        """
        from numbat_gates import gate

        @gate("DEM-G01", phase=1, discharges=["DEM-R001"], title="One")
        def measure(check): ...

        @gate("DEM-G02", phase=1, discharges=["DEM-R001"], title="Two")
        def measure(check): ...
        """,
    )
    assert [item.id for item in load(plane)] == ["DEM-G01", "DEM-G02"]


def test_an_unknown_requirement_is_refused(plane: Any) -> None:
    plane.requirements().gate(TRUE, discharges=("DEM-R001", "DEM-R404"))
    refused = refusal_of(plane)
    assert refused.code == "GATE-0313"
    assert refused.diagnostic.fields["requirement"] == "DEM-R404"


@pytest.mark.parametrize(
    ("awaits", "code"),
    [
        ("clinical-data", "GATE-0314"),
        ("elapsed-time", "GATE-0314"),
        ("later-phase", "GATE-0314"),
        ("hardware", None),
        ("corpus", None),
        ("licence", None),
    ],
)
def test_a_gate_cannot_claim_what_no_machine_settles(
    plane: Any, awaits: str, code: str | None
) -> None:
    plane.requirements(f'awaits = "{awaits}"\nbecause = "Not yet."\n').gate(TRUE)
    if code is None:
        assert len(load(plane)) == 1
    else:
        assert refusal_of(plane).code == code


def test_a_module_that_is_no_python_is_refused(plane: Any) -> None:
    plane.requirements().write("gates/broken.py", "def measure(:\n")
    assert refusal_of(plane).code == "GATE-0315"


@pytest.mark.parametrize(
    "text",
    [
        # computed, hidden behind another name, and made in a loop
        "from numbat_gates import gate\nN = 1\n"
        "@gate(f'DEM-G0{N}', phase=1, discharges=['DEM-R001'], title='Files')\n"
        "def measure(check): ...\n",
        "from numbat_gates import gate as requires\n"
        "@requires('DEM-G01', phase=1, discharges=['DEM-R001'], title='Files')\n"
        "def measure(check): ...\n",
        "from numbat_gates import gate\nfor n in (1, 2):\n"
        "    made = gate(f'DEM-G0{n}', phase=1, discharges=['DEM-R001'], title='Files')\n"
        "    made(lambda check: None)\n",
    ],
)
def test_a_gate_that_the_source_does_not_show_is_refused(plane: Any, text: str) -> None:
    plane.requirements().write("gates/hidden.py", text)
    assert refusal_of(plane).code == "GATE-0316"


def test_helpers_hold_no_gates(plane: Any) -> None:
    plane.requirements().gate(TRUE).write("gates/_phantoms.py", "raise RuntimeError('a helper')\n")
    assert [item.id for item in load(plane)] == ["DEM-G01"]


def test_a_package_that_is_not_installed_is_named(plane: Any) -> None:
    plane.requirements().gate(TRUE, before="import numbat_no_such_tool.inside")
    (item,) = load(plane)
    assert (item.missing, item.function) == ("numbat_no_such_tool", None)


def test_a_missing_module_of_the_plane_itself_is_its_fault(plane: Any) -> None:
    plane.requirements().gate(TRUE, before=f"import {plane.package}.no_such_module")
    (item,) = load(plane)
    assert item.missing == ""
    assert item.fault.startswith("ModuleNotFoundError")


def test_a_module_that_breaks_gives_its_gate_a_fault(plane: Any) -> None:
    plane.requirements().gate(TRUE, before="1 / 0")
    (item,) = load(plane)
    assert item.fault.startswith("ZeroDivisionError")
