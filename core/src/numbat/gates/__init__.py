"""The gates of the engine."""
