"""Positions and orientations to an affine, with every residual measured in millimetres."""
