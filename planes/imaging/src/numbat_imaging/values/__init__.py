"""Stored pixels to values, and the scale that travels with them."""
