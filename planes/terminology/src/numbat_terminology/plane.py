"""How the runner finds this plane."""

from __future__ import annotations

from numbat_gates.planes import Plane

__all__ = ["PLANE"]

PLANE = Plane(name="terminology", package="numbat_terminology", registry="terminology")
