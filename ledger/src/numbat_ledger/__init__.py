"""The raise-site ledger: an append-only, hash-chained record of every refusal and its coverage."""

from importlib.metadata import version as _version

from numbat_ledger.activation import activate, active_ledger, context
from numbat_ledger.chain import Ledger, read_entries
from numbat_ledger.entries import Entry
from numbat_ledger.measure import Coverage, coverage
from numbat_ledger.verification import LedgerState, verify_ledger

__version__ = _version("numbat-ledger")

__all__ = [
    "Coverage",
    "Entry",
    "Ledger",
    "LedgerState",
    "activate",
    "active_ledger",
    "context",
    "coverage",
    "read_entries",
    "verify_ledger",
]
