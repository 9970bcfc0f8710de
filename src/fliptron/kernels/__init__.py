"""The engine: compiled, pure, and the same for one round and for a million."""
