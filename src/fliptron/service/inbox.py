"""What waits to be taken in where several processes write, and what comes of it."""

from __future__ import annotations

import msgspec

from fliptron.service.store import Applied, Flag, Heard, Keep, Row

MADE, DUE, NOTED = 2, 3, 4
"""What waits in the inbox besides a bit and an audit: a decision that was made; one whose deadline will pass, where
silence is an answer; feedback that is counted and never learnt."""


class Claimed(msgspec.Struct, gc=False):
    """Something in the inbox."""

    kind: int
    row: Row
    heard: Heard | None
    """The feedback, or of an audit the auditor's; None if there is none yet."""
    learnt: int | None
    """The bit of the decision that was learnt before."""
    done: bool
    """Whether a bit of the decision was learnt before, or set aside."""


class Lessons(msgspec.Struct):
    """What came of what was claimed."""

    applied: list[Applied]
    waiting: list[Row]
    """Decisions to be claimed again when their deadline has passed."""
    entries: list[Keep | Flag]
