"""Clinical evidence: measurements, their uncertainty, and the claims they support."""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("numbat-evidence")
