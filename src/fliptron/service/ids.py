"""What an event is called outside: its number, and a keyed code that nobody can make up."""

from __future__ import annotations

import hmac
from hashlib import blake2b

KEY_BYTES = 32
_CODE = 8  # bytes: one guess in 2⁶⁴ passes


class Names:
    """The names of one model's events.

    Parameters
    ----------
    secret
        The key, which is in the journal.
    model
        The number of the model.

    Examples
    --------
    >>> names = Names(bytes(32), 1)
    >>> names.of(255)
    'ff-f8fd90d39375356d'
    >>> names.seq("ff-f8fd90d39375356d"), names.seq("fe-f8fd90d39375356d")
    (255, None)
    """

    def __init__(self, secret: bytes, model: int) -> None:
        self._start = blake2b(b"%d." % model, digest_size=_CODE, key=secret, person=b"fliptron-event")

    def of(self, seq: int) -> str:
        """The name of a decision."""
        told = self._start.copy()
        told.update(b"%d" % seq)
        return f"{seq:x}-{told.hexdigest()}"

    def seq(self, name: str) -> int | None:
        """The decision that a name stands for; None if we never gave that name. The journal is not looked at."""
        digits, _, code = name.partition("-")
        if not 1 <= len(digits) <= 15 or len(code) != 2 * _CODE or not name.isascii():
            return None
        try:
            seq = int(digits, 16)
        except ValueError:
            return None
        return seq if hmac.compare_digest(self.of(seq), name) else None
