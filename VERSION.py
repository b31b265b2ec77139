"""The one version of the whole workspace."""

__version__ = "0.1.0"
