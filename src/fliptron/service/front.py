"""The door of the page at `/`: its files under a strict policy, and a login that turns a token into a cookie.

The cookie says which token it stands for and until when, with a keyed code; the key is the store's, so that a login
outlives a restart and holds for every replica, and ends when the token does. It opens what a browser reads; what
changes something also needs a header that no other site can make a browser send.
"""

from __future__ import annotations

import hmac
import secrets
import time
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from fliptron.service.bodies import decoder, read_body
from fliptron.service.messages import BODY, Refusal
from fliptron.service.store import Token
from fliptron.service.tokens import Tokens

PAGE = Path(__file__).parent / "page"
"""The files of the page."""
COOKIE = "fliptron"
HEADER = "x-fliptron-page"
"""What the page sends with every call that changes something."""
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "require-trusted-types-for 'script'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}
_LASTS = 12 * 3600  # seconds until a login ends
_INVITED = 600  # seconds within which a link that logs in once must be used


class Login(msgspec.Struct, forbid_unknown_fields=True):
    """Body of `/login`."""

    token: str
    """A token with scope admin; or the code of a link that logs in once."""


class Front:
    """The page and who is logged in.

    Parameters
    ----------
    key
        Of the cookies' codes; made up unless given.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self.key = key or secrets.token_bytes(32)
        self.tokens = Tokens(())
        """Those that are good."""
        self._invited: dict[bytes, tuple[float, Token]] = {}

    def routes(self) -> list[Any]:
        """What is to be added after everything else."""
        files = _Files(directory=PAGE, html=True, check_dir=False)
        return [
            Route("/login", self._login, methods=["POST"]),
            Route("/logout", self._logout, methods=["POST"]),
            Mount("/", files),
        ]

    def invite(self, token: Token) -> str:
        """A code that logs in once, in place of a token, within ten minutes: the page takes it from `/#CODE`."""
        code = f"once_{secrets.token_urlsafe(18)}"
        self._invited[sha256(code.encode()).digest()] = time.time() + _INVITED, token
        return code

    def of(self, request: Request) -> Token | None:
        """The token that a request's cookie stands for."""
        if request.method not in ("GET", "HEAD") and HEADER not in request.headers:
            return None
        until, _, rest = request.cookies.get(COOKIE, "").partition(".")
        name, _, code = rest.partition(".")
        if not (until.isdecimal() and until.isascii() and len(until) < 16 and time.time() < int(until)):
            return None
        found = None
        for token in self.tokens.known:
            if token.digest.hex()[:16] == name and hmac.compare_digest(self._code(until, token), code.encode()):
                found = token
        return found

    def _code(self, until: str, token: Token) -> bytes:
        told = blake2b(until.encode() + b"." + token.digest, digest_size=16, key=self.key, person=b"fliptron-page")
        return told.hexdigest().encode()

    async def _login(self, request: Request) -> Response:
        given = decoder(Login)(await read_body(request.receive, BODY)).token.strip()
        token = self._guest(given) or self.tokens.find(given)
        if token is None:
            once = given.startswith("once_")
            raise Refusal(401, "this link was used already, or is too old; log in with a token" if once else
                          "this token is not known here; the first start of the service printed one")  # fmt: skip
        self.tokens.check(token, "admin")
        until = f"{time.time() + _LASTS:.0f}"
        cookie = f"{until}.{token.digest.hex()[:16]}.{self._code(until, token).decode()}"
        response = Response(status_code=204, headers={"cache-control": "no-store"})
        secure = request.url.scheme == "https"
        response.set_cookie(COOKIE, cookie, max_age=_LASTS, httponly=True, samesite="strict", secure=secure)
        return response

    def _guest(self, code: str) -> Token | None:
        until, token = self._invited.pop(sha256(code.encode()).digest(), (0.0, None))
        return token if time.time() < until else None

    async def _logout(self, request: Request) -> Response:
        response = Response(status_code=204, headers={"cache-control": "no-store"})
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response


class _Files(StaticFiles):
    """Files with the page's headers."""

    def file_response(self, *args: Any, **more: Any) -> Response:
        response = super().file_response(*args, **more)
        response.headers.update(HEADERS)
        return response
