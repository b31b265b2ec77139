"""The acceptance gates of the imaging plane, one module a gate."""
