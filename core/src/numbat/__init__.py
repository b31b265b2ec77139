"""The engine of numbat: tensors, automatic differentiation and training."""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("numbat-core")
