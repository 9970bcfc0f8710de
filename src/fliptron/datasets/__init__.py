"""Data sets: by name, by path, or from arrays."""
