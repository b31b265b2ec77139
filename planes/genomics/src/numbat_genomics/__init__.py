"""Clinical genomics: alignments, variants and genomes one can trust."""

from __future__ import annotations

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("numbat-genomics")
