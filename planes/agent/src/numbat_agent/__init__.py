"""The machine-readable surface: gates, codes and planes as tools for agents."""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("numbat-agent")
