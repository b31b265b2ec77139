"""Volumes to files: NIfTI, JSON sidecar, gradient tables, contact sheet; all or nothing."""
