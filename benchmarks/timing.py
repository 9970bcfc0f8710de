"""How time is taken: contenders take turns, and each keeps its best CPU time of several.

A shared machine adds time and never takes any away: read the ratios, not the times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

Turn = tuple[Callable[[int], object], int]
"""What plays so many rounds, and how many it is to play."""


def turns(
    contenders: dict[Any, Turn], repeats: int, clock: Callable[[], float] = time.process_time
) -> dict[Any, list[float]]:
    """Nanoseconds per round of every turn of every contender."""
    found: dict[Any, list[float]] = {name: [] for name in contenders}
    for play, rounds in contenders.values():
        play(min(rounds, 100))  # compiles
        if rounds > 100:
            play(rounds)
    for _ in range(repeats):
        for name, (play, rounds) in contenders.items():
            began = clock()
            play(rounds)
            found[name].append((clock() - began) / rounds * 1e9)
    return found


def best(contenders: dict[Any, Turn], repeats: int) -> dict[Any, float]:
    """Nanoseconds per round, the least of several turns."""
    return {name: min(times) for name, times in turns(contenders, repeats).items()}
