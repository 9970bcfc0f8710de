"""The demo of `fliptron serve`: a made-up shop that asks over HTTP; clicks come late and lie, and we know the truth."""

from __future__ import annotations

import heapq
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from fliptron.datasets.shop import CITIES, OFFERS, shop
from fliptron.service.client import Client, ServiceError
from fliptron.service.settings import ModelSettings

MODEL = ModelSettings(
    name="shop",
    labels=OFFERS,
    schema={
        "age": "number", "income": "number", "visits": "number", "member": "boolean",
        "city": {"kind": "category", "values": list(CITIES)},
    },
    wait=8.0,
)  # fmt: skip
"""What the shop asks of the service. A bit that comes after 8 seconds is late."""
RATES = (0.1, 0.5)
"""An offer that is not wanted is clicked in one visit out of ten; one that is, in one out of two."""
SITES = tuple(f"site-{number}" for number in range(1, 9))
BOT = "site-9"
"""Where something clicks at everything, after a while."""
_PER_SECOND = 400
_STEP = 0.1  # seconds between two calls
_DELAY = 2.0  # seconds until the mean visitor clicks, or is taken for gone
_BOT_AFTER = 8000  # visitors
_COLUMNS = ("age", "income", "visits", "city", "member")
_REMEMBERED = 10_000  # bits; the service speaks of its last 4,000 to 8,000


class Storefront(threading.Thread):
    """Visitors that come until `stop`, each asking for an offer; and what came of it, told every few seconds.

    Parameters
    ----------
    address, token
        Of the service.
    say
        Called with lines for whoever watches.
    seed
        Of visitors and clicks.
    every
        Seconds between two lines.
    """

    def __init__(
        self, address: str, token: str, say: Callable[[str], Any], *, seed: int = 0, every: float = 5.0
    ) -> None:
        super().__init__(name="storefront", daemon=True)
        self._client = Client(address, token, model=MODEL.name, timeout=20.0, attempts=2)
        self._say, self._every = say, every
        self._random = np.random.default_rng(seed)
        self._seed, self._visitor = seed, 0
        self._visitors: Any = None
        self._coming: list[tuple[float, int, dict[str, Any], bool]] = []  # bits, by the time at which they are sent
        self._right: deque[bool] = deque(maxlen=_REMEMBERED)
        self._stopped = threading.Event()

    def stop(self) -> None:
        """No more visitors; the thread ends when its last call has."""
        self._stopped.set()

    def run(self) -> None:
        """Let visitors come."""
        told = begun = time.monotonic()
        try:
            while not self._stopped.wait(_STEP):
                now = time.monotonic()
                due = min(int((now - begun) * _PER_SECOND) - self._visitor, 1000)
                if due > 0:
                    self._ask(due, now)
                self._answer(now)
                if now - told >= self._every and not self._stopped.is_set():
                    told = now
                    self._tell()
        except ServiceError as error:
            if not self._stopped.is_set():
                self._say(f"The shop has closed: {error}")
        finally:
            self._client.close()

    def _ask(self, count: int, now: float) -> None:
        """So many visitors come in, and are shown what the service says."""
        asks, wanted = [], []
        for _ in range(count):
            record, wants = self._next()
            bot = self._visitor > _BOT_AFTER and self._random.random() < 0.05
            asks.append({"features": record, "source": BOT if bot else str(self._random.choice(SITES))})
            wanted.append(wants)
        for ask, wants, answer in zip(asks, wanted, self._client.decide_many(asks), strict=True):
            right = answer.label == wants
            clicked = ask["source"] == BOT or self._random.random() < (1.0 - RATES[1] if right else RATES[0])
            after = now + self._random.exponential(_DELAY)
            bit = {"event_id": answer.event_id, "bit": int(clicked)}
            heapq.heappush(self._coming, (after, self._visitor + len(self._coming), bit, right))

    def _next(self) -> tuple[dict[str, Any], str]:
        """A visitor, and what he or she wants."""
        at = self._visitor % 10_000
        if at == 0:
            self._visitors = shop(10_000, seed=self._seed + 1 + self._visitor // 10_000)
        self._visitor += 1
        log = self._visitors.log
        record = {name: log[name][at].item() if name != "city" else log[name][at] for name in _COLUMNS}
        if np.isnan(record["age"]):
            record["age"] = None
        return record, self._visitors.wanted[at]

    def _answer(self, now: float) -> None:
        """Send what is due."""
        bits: list[dict[str, Any]] = []
        truths: list[bool] = []
        while self._coming and self._coming[0][0] <= now and len(bits) < 1000:
            _, _, bit, right = heapq.heappop(self._coming)
            bits.append(bit)
            truths.append(right)
        if bits:
            statuses = self._client.feedback_many(bits)
            self._right.extend(right for right, status in zip(truths, statuses, strict=True) if status == "accepted")

    def _tell(self) -> None:
        found = self._client.estimate()
        same = list(self._right)[-found["recent_bits"] :]  # the bits that the service speaks of
        truth = f"truth {np.mean(same):6.1%}" if same else "nobody has answered yet"
        recent, raw = found["recent"], found["recent_bit"]
        page = found["verdict"] if recent is None else (
            f"the page says {recent['value']:.1%} ({recent['low']:.1%} to {recent['high']:.1%}), {found['verdict']}"
        )  # fmt: skip
        clicks = "" if raw is None else f"; raw clicks {raw:.1%}"
        self._say(f"{self._visitor:9,} visitors: {truth}; {page}{clicks}")
