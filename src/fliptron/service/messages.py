"""What goes over the wire: the shape of every body, and the one shape of an error."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

MOST_BATCH = 1000
"""Decisions or bits in one call."""
Text = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern="^[^\\x00-\\x1f\\x7f]+(?!\\n)$")]
"""A name that somebody gives: no control characters, nor a new line at its end, which `$` alone would let pass."""
BODY, BATCH_BODY = 64 * 2**10, 8 * 2**20
"""Bytes of a body, at most."""


class Refusal(Exception):  # noqa: N818  # it refuses; it is not always an error
    """What the service does not do, with the status of HTTP and one sentence."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.headers = headers or ({"retry-after": "1"} if status in (503, 507) else {})


class Error(msgspec.Struct):
    """The body of every answer that is not a success."""

    error: str
    """One sentence."""
    status: int


class Ask(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Body of `decide`."""

    features: list[float] | dict[str, str | float | bool | None]
    """A record of names and values, or the numbers of x themselves where the model has no schema."""
    eligible: list[str | int | float | bool] | None = None
    """The labels that may be played this time; all unless given."""
    key: Text | None = None
    """Yours: the same key gives the same decision, so that a call may be repeated."""
    source: Text | None = None
    """Who asks: a site, a device. Feedback without a source of its own counts as from here."""
    baseline: str | int | float | bool | None = None
    """In apprentice mode: the label that you play."""


class AskMany(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Body of `decisions`: a list of asks; or rows of float32 in base64, little-endian, one after the other."""

    decisions: list[Ask] | None = None
    x: str | None = None
    source: Text | None = None
    """Of rows in base64."""


class Answer(msgspec.Struct, gc=False):
    """Answer of `decide`."""

    event_id: str
    """What to send with the feedback."""
    label: Any
    """The label to play."""
    greedy: Any
    """The label thought best."""
    probability: float
    """The probability with which the label to play was drawn."""
    model_version: int
    """How many bits and audits the model had learnt from."""


class Feedback(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Body of `feedback`."""

    event_id: str
    bit: Literal[0, 1]
    """1: the label was right, as far as can be told; 0: it was wrong."""
    source: Text | None = None
    """Who says so; the source of the decision unless given."""
    verified: bool = False
    """Whether the bit is certain: somebody checked."""


class FeedbackMany(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `feedbacks`."""

    feedbacks: list[Feedback]


class Received(msgspec.Struct, gc=False):
    """Answer of `feedback`."""

    status: Literal["accepted", "duplicate", "late", "unknown"]
    """Only `feedbacks` answers "unknown"; `feedback` answers 404."""


class ModelShown(msgspec.Struct):
    """One of the models that are served."""

    name: str
    learner: str
    labels: tuple[Any, ...]
    version: int


class Quarantine(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `sources`: put a source into quarantine, or let it out."""

    source: Text
    quarantined: bool
    reason: Text = "by hand"
