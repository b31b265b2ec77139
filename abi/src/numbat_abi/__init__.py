"""The C interface of numbat and its bindings."""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("numbat-abi")
