"""The decision service: ask over HTTP, answer late, lose nothing, see the true accuracy."""
