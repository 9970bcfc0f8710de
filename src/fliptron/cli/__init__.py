"""The command line: each command parses, calls one function, and formats what comes back."""

from fliptron.cli import advise, data, estimate, plans, run
from fliptron.cli.group import main

__all__ = ["advise", "data", "estimate", "main", "plans", "run"]
