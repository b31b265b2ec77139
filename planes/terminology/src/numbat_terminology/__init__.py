"""Clinical terminology: code systems, maps, units and text, offline."""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("numbat-terminology")
