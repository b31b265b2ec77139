"""Headers to groups: whose they are, what one SeriesInstanceUID hides, and the fourth axis."""
