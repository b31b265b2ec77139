"""What this installation holds: planes, requirements, gates and codes, counted at the source."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from numbat_gates.planes import Plane, broken_planes, discover_planes, find_plane
from numbat_gates.registration import declared_gates
from numbat_gates.requirements import requirements_of
from numbat_registries.registry import registry_path

if TYPE_CHECKING:
    from rich.console import Console


def list_planes() -> list[dict[str, Any]]:
    """One row for each installed plane, with how much it has to prove and how many gates do so."""
    rows = [_row(plane) for plane in discover_planes()]
    rows += [{"plane": name, "fault": reason} for name, reason in broken_planes().items()]
    return sorted(rows, key=lambda row: str(row["plane"]))


def _row(plane: Plane) -> dict[str, Any]:
    requirements = requirements_of(plane)
    gates = declared_gates(plane) if plane.has_requirements else ()
    return {
        "plane": plane.name,
        "distribution": plane.distribution_name,
        "version": plane.version,
        "registry": plane.registry,
        "phases": list(requirements.phases),
        "requirements": len(requirements.requirements),
        "clauses": len(requirements.clauses),
        "gates": len(gates),
        "codes": _live_codes(plane.registry),
    }


def _live_codes(registry: str) -> int:
    path = registry_path(registry)
    if not path.is_file():
        return 0
    codes = json.loads(path.read_text(encoding="utf-8"))["codes"]
    return sum("retired_in" not in code for code in codes)


def describe_plane(name: str) -> dict[str, Any]:
    """One plane with each of its gates and requirements.

    Raises GATE-0901 for an unknown plane, and what reading its files raises.
    """
    plane = find_plane(name)
    requirements = requirements_of(plane)
    gates = declared_gates(plane) if plane.has_requirements else ()
    return _row(plane) | {
        "phases": [
            {"phase": phase.number, "title": phase.title} for phase in requirements.phases.values()
        ],
        "requirements": [
            {
                "id": item.id,
                "phase": item.phase,
                "text": item.text,
                "awaits": str(item.awaits) if item.awaits else None,
                "gates": [gate.id for gate in gates if item.id in gate.discharges],
            }
            for item in requirements.requirements.values()
        ],
        "gates": [
            {
                "id": gate.id,
                "phase": gate.phase,
                "title": gate.title,
                "discharges": list(gate.discharges),
                "source": gate.source,
            }
            for gate in gates
        ],
    }


def print_planes(rows: list[dict[str, Any]], console: Console) -> None:
    """Print the planes as a table."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for title in ("plane", "distribution", "version"):
        table.add_column(title, no_wrap=True)
    for title in ("phases", "requirements", "gates", "codes"):
        table.add_column(title, justify="right")
    for row in rows:
        if "fault" in row:
            table.add_row(row["plane"], "cannot be loaded", "", "", "", "", "")
            continue
        counts = [len(row["phases"]), row["requirements"], row["gates"], row["codes"]]
        table.add_row(row["plane"], row["distribution"], row["version"], *map(str, counts))
    console.print(table)
    for row in rows:
        if "fault" in row:
            console.print(f"{row['plane']}: {row['fault']}", style="red")


def print_plane(plane: dict[str, Any], console: Console) -> None:
    """Print one plane's gates and requirements, phase by phase."""
    from rich.table import Table
    from rich.text import Text

    head = f"{plane['distribution']} {plane['version']}"
    console.print(
        Text(head, style="bold"),
        f"· {len(plane['gates'])} gates, {len(plane['requirements'])} requirements, "
        f"{plane['codes']} codes",
    )
    if not plane["phases"]:
        console.print("It is installed and has no requirements yet.")
    for phase in plane["phases"]:
        console.print(Text(f"\nPhase {phase['phase']}  {phase['title']}", style="bold"))
        for kind in ("gates", "requirements"):
            table = Table.grid(padding=(0, 2))
            table.add_column(no_wrap=True)
            table.add_column(overflow="fold", ratio=1)
            table.add_column(no_wrap=True)
            for item in (row for row in plane[kind] if row["phase"] == phase["phase"]):
                if kind == "gates":
                    last = ", ".join(item["discharges"])
                else:
                    last = ", ".join(item["gates"]) or f"awaits {item['awaits'] or 'nothing named'}"
                table.add_row(f"  {item['id']}", item.get("title") or item["text"], last)
            console.print(table)
