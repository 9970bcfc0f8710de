"""Who may do what: bearer tokens, of which only a digest is known."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from hashlib import sha256

from fliptron.refusals import InputError
from fliptron.service.messages import Refusal
from fliptron.service.settings import SCOPES, token_name
from fliptron.service.store import Token

_UNKNOWN = {"www-authenticate": 'Bearer realm="fliptron"'}


def new_token(name: str, scopes: Iterable[str], models: tuple[str, ...] | None = None) -> tuple[str, Token]:
    """A token to hand out once, and what to keep of it.

    >>> text, kept = new_token("web", ["decide", "feedback"])
    >>> text.startswith("ft_"), kept.scopes
    (True, ('decide', 'feedback'))
    """
    chosen = tuple(scopes)
    token_name(name)
    for scope in chosen:
        if scope not in SCOPES:
            raise InputError(f"the scope is {scope!r}; one of {', '.join(SCOPES)} is expected")
    text = f"ft_{secrets.token_urlsafe(24)}"
    return text, Token(name, sha256(text.encode()).digest(), chosen, models)


class Tokens:
    """All tokens that are good.

    Parameters
    ----------
    known
        What is kept of them.
    """

    def __init__(self, known: Iterable[Token]) -> None:
        self.known = tuple(known)
        """What is kept of them."""

    def find(self, text: str | bytes) -> Token | None:
        """The token that a text is. Every digest is compared, each in constant time."""
        digest = sha256(text.encode() if isinstance(text, str) else text).digest()
        found = None
        for token in self.known:
            if hmac.compare_digest(token.digest, digest):
                found = token
        return found

    def of(self, headers: Iterable[tuple[bytes, bytes]]) -> Token | None:
        """The token in a request's headers."""
        for name, value in headers:
            if name == b"authorization":
                kind, _, text = value.partition(b" ")
                return self.find(text.strip()) if kind.lower() == b"bearer" else None
        return None

    def check(self, token: Token | None, scope: str, model: str | None = None) -> Token:
        """Refuse what a token does not allow."""
        if token is None:
            raise Refusal(401, "a bearer token is expected in the header Authorization, and a known one", _UNKNOWN)
        if scope not in token.scopes and "admin" not in token.scopes:
            raise Refusal(403, f"the token {token.name!r} does not allow this; one with scope {scope!r} is expected")
        if model is not None and token.models is not None and model not in token.models:
            raise Refusal(403, f"the token {token.name!r} is not for the model {model!r}")
        return token
