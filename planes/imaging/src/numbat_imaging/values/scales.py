"""Value scales as data: how a stored value becomes a value, by name, with unit and source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from numbat_registries import Diagnostic, Refusal, refuse

#: Names of value scales that a caller may choose; a real-world map adds its label after a colon.
DEFAULT, STORED, DISPLAYED, PRECISE = "default", "stored", "displayed", "precise"
DOSE, REAL_WORLD = "dose", "real-world"


@dataclass(frozen=True, slots=True)
class Table:
    """One value for each stored value from `first` on.

    `data`: the entries, little endian, of numpy type `dtype`.
    """

    first: int
    dtype: str
    data: bytes = field(repr=False)

    @property
    def entries(self) -> NDArray[Any]:
        """The entries in order, (n,)."""
        return np.frombuffer(self.data, self.dtype)

    def look_up(self, stored: NDArray[Any]) -> NDArray[Any]:
        """The entry of each stored value; those beyond the ends take the entry at the end."""
        entries = self.entries
        index = np.clip(stored.astype(np.int64) - self.first, 0, len(entries) - 1)
        found: NDArray[Any] = entries[index]
        return found


@dataclass(frozen=True, slots=True)
class Scale:
    """value = slope × stored + intercept, or the entry of `table`, in `unit`.

    `name`: one of the names above, a real-world map with its label. `unit` is None where no element
    states one. `source` names the elements that the scale came from. `mapped`: first and last
    stored value for which it is defined; None where it is for all.
    """

    name: str
    slope: float = 1.0
    intercept: float = 0.0
    unit: str | None = None
    source: str = ""
    table: Table | None = None
    mapped: tuple[float, float] | None = None

    @property
    def numbers(self) -> tuple[float, float, Table | None]:
        """What decides the values, whatever the scale is called."""
        return (self.slope, self.intercept, self.table)

    @property
    def is_identity(self) -> bool:
        """Whether the values are the stored values."""
        return self.numbers == (1.0, 0.0, None)

    def apply(self, stored: NDArray[Any]) -> NDArray[Any]:
        """Values of stored values: entries of the table as they are, float64 otherwise."""
        if self.table is not None:
            return self.table.look_up(stored)
        return stored.astype(np.float64) * self.slope + self.intercept


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A scale that the file states and that cannot be read, and why."""

    name: str
    why: Diagnostic = field(compare=False)


@dataclass(frozen=True, slots=True)
class Scales:
    """Every value scale that one slice states, the default first; "stored" is always among them."""

    offered: tuple[Scale | Unreadable, ...]

    def __iter__(self) -> Iterator[Scale | Unreadable]:
        return iter(self.offered)

    @property
    def names(self) -> list[str]:
        """Names of the scales, those that cannot be read included."""
        return [scale.name for scale in self.offered]

    def chosen(self, wanted: str, *, file: str) -> Scale:
        """The scale that a caller names: a name, "default", or "real-world:LABEL".

        Without a label there must be one real-world map. "displayed" is what the file displays:
        the stored values where it states no scale.

        Raises IMG-1505 when the file states no such scale, IMG-1506 when several maps answer to the
        name, and the refusal of a scale that cannot be read.
        """
        found = self._called(wanted)
        if not found:
            raise refuse("IMG-1505", asked=wanted, offered=self.names, file=file)
        if len(found) > 1:
            names = [scale.name for scale in found]
            raise refuse("IMG-1506", asked=wanted, offered=names, file=file)
        if isinstance(found[0], Unreadable):
            raise Refusal(found[0].why)
        return found[0]

    def _called(self, wanted: str) -> list[Scale | Unreadable]:
        if wanted == DEFAULT:
            return [self.offered[0]]
        found = [scale for scale in self.offered if scale.name == wanted]
        if not found and wanted == REAL_WORLD:
            found = [s for s in self.offered if s.name.startswith(f"{REAL_WORLD}:")]
        if not found and wanted == DISPLAYED:
            found = [scale for scale in self.offered if scale.name == STORED]
        return found
