"""Forms in which one file holds several slices, and how each is told apart."""
