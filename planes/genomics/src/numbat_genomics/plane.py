"""How the runner finds this plane."""

from __future__ import annotations

from numbat_gates.planes import Plane

__all__ = ["PLANE"]

PLANE = Plane(name="genomics", package="numbat_genomics", registry="genomics")
