"""How the runner finds this plane."""

from __future__ import annotations

from numbat_gates.planes import Plane

__all__ = ["PLANE"]

PLANE = Plane(name="voice", package="numbat_voice", registry="voice")
