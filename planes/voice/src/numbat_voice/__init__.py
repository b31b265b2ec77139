"""Clinical voice: duplex speech sessions with bounded latency and a record."""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("numbat-voice")
