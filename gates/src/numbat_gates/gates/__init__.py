"""The gates of the frameworks themselves: one module a gate."""
