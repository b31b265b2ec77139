"""The judge of gates: faults are seeded into a plane's code, and what no gate catches is told."""

from __future__ import annotations

from numbat_gates.mutation.results import Fate, Judgement, MutationRun
from numbat_gates.mutation.run import mutate
from numbat_gates.mutation.seeding import Fault, faults_in
from numbat_gates.mutation.settings import Settings, load_settings

__all__ = [
    "Fate",
    "Fault",
    "Judgement",
    "MutationRun",
    "Settings",
    "faults_in",
    "load_settings",
    "mutate",
]
