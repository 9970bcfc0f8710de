"""What was tried to make a round faster, with and without, in one run: what pays is in the kernels, the rest here.

python benchmarks/trials.py        # two minutes; writes docs/tables/trials.md
"""

from __future__ import annotations

import time
from pathlib import Path

import numba
import numpy as np

import fliptron
from fliptron.arrays import aligned
from fliptron.kernels.matrices import apply, downdate
from fliptron.kernels.memory import ask_for
from fliptron.kernels.rows import row
from fliptron.kernels.vectors import add, argmax, dot, scores_of
from workloads import workload

REORDER = {"reassoc", "nsz", "contract"}
REPEATS = 9


def best(contenders: dict, rounds: int) -> dict[str, float]:
    """Nanoseconds a round, best of several turns."""
    found = dict.fromkeys(contenders, np.inf)
    for play in contenders.values():
        play()
    for _ in range(REPEATS):
        for name, play in contenders.items():
            began = time.process_time()
            play()
            found[name] = min(found[name], (time.process_time() - began) / rounds * 1e9)
    return found


@numba.njit(forceinline=True)
def ten_a_pass(W, x, scores):
    scores_of(W, x, scores)


@numba.njit(forceinline=True)
def one_by_one(W, x, scores):
    for r in range(W.shape[0]):
        scores[r] = dot(W, r, x)


@numba.njit(forceinline=True)
def step(W, x, scores, t, score=ten_a_pass):
    """A round without its randomness: scores, the best label, one step or two."""
    score(W, x, scores)
    greedy = argmax(scores, -1)
    add(W, greedy, -0.001, x)
    if t % 10 == 0:
        add(W, t % W.shape[0], 0.001, x)


@numba.njit
def plain(X, rows, W, scores, ahead, score=ten_a_pass):
    for t in range(rows.shape[0] - 1):
        if ahead:
            ask_for(X, rows[t + 1])
        step(W, row(X, rows[t]), scores, t, score)


@numba.njit
def shared(X, rows, many, scores, ahead):
    """Replicates that meet the same x, one after the other within a round."""
    for t in range(rows.shape[0] - 1):
        if ahead:
            ask_for(X, rows[t + 1])
        x = row(X, rows[t])
        for m in range(many.shape[0]):
            step(many[m], x, scores, t + m)


@numba.njit
def apart(X, rows, many, scores, ahead):
    for m in range(many.shape[0]):
        plain(X, rows, many[m], scores, ahead)


@numba.njit(fastmath=REORDER)
def four_scores(W, a, b, c, d, S):
    """Scores of four examples in one pass over W, two labels at a time."""
    T = W.dtype.type
    for r in range(0, W.shape[0], 2):
        w, z = W[r], W[r + 1]
        s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = T(0)
        for j in range(a.shape[0]):
            p, q, u, v = T(a[j]), T(b[j]), T(c[j]), T(d[j])
            s0 += w[j] * p
            s1 += w[j] * q
            s2 += w[j] * u
            s3 += w[j] * v
            t0 += z[j] * p
            t1 += z[j] * q
            t2 += z[j] * u
            t3 += z[j] * v
        S[0, r], S[1, r], S[2, r], S[3, r] = s0, s1, s2, s3
        S[0, r + 1], S[1, r + 1], S[2, r + 1], S[3, r + 1] = t0, t1, t2, t3


@numba.njit(fastmath=REORDER)
def product(W, a, b):
    total = W.dtype.type(0)
    for j in range(a.shape[0]):
        total += W.dtype.type(a[j]) * W.dtype.type(b[j])
    return total


@numba.njit
def micro_batches(X, rows, W, S, ahead):
    """Four rounds at once: one pass over W for all, then each round's scores mended for the steps before it."""
    for t in range(0, rows.shape[0] - 8, 4):
        if ahead:
            for m in range(4):
                ask_for(X, rows[t + 4 + m])
        four_scores(W, X[rows[t]], X[rows[t + 1]], X[rows[t + 2]], X[rows[t + 3]], S)
        for m in range(4):
            x = X[rows[t + m]]
            greedy = argmax(S[m], -1)
            for later in range(m + 1, 4):
                S[later, greedy] -= 0.001 * product(W, x, X[rows[t + later]])
            add(W, greedy, -0.001, x)
            if (t + m) % 10 == 0:
                add(W, (t + m) % W.shape[0], 0.001, x)


@numba.njit
def half(A, x, u, rounds):
    for t in range(rounds):
        apply(A[t % A.shape[0]], x, u)
        downdate(A[t % A.shape[0]], u, 1e-9)


@numba.njit(fastmath=REORDER)
def whole(A, x, u, rounds):
    for t in range(rounds):
        a = A[t % A.shape[0]]
        u[:] = 0.0
        for i in range(x.shape[0]):
            for j in range(x.shape[0]):
                u[j] += a[i, j] * x[i]
        for i in range(x.shape[0]):
            for j in range(x.shape[0]):
                a[i, j] -= 1e-9 * u[i] * u[j]


def a_round(name: str, form: str) -> str:
    data = workload(name).dataset(form)
    X = data.X.rows if form == "uint8" else data.X
    rounds = 60_000 if name == "A" else 6000
    rows = fliptron.Stream(data.n_rows).rows(0, rounds)
    weights = np.random.default_rng(0).normal(size=(8, 10, X.shape[1]))
    many = aligned(weights.astype("float64" if form == "float64" else "float32"))
    S = aligned(np.zeros((4, 10), many.dtype))
    one, eight = many[0], rows[: rounds // 4]
    found = best(
        {
            "plain": lambda: plain(X, rows, one, S[0], False),
            "labels one by one": lambda: plain(X, rows, one, S[0], False, one_by_one),
            "asked ahead": lambda: plain(X, rows, one, S[0], True),
            "four rounds at once": lambda: micro_batches(X, rows, one, S, False),
            "four at once, asked ahead": lambda: micro_batches(X, rows, one, S, True),
        },
        rounds,
    )
    together = best(
        {
            "apart": lambda: apart(X, eight, many, S[0], True),
            "shared": lambda: shared(X, eight, many, S[0], True),
        },
        len(eight) * 8,
    )
    cells = [f"{found['plain']:,.0f}", *(f"{found['plain'] / ns:.2f}" for ns in list(found.values())[1:])]
    return f"| {name}, {form} | {' | '.join(cells)} | {together['apart'] / together['shared']:.2f} |"


def a_matrix(d: int) -> str:
    A, x, u = np.tile(np.eye(d), (10, 1, 1)), np.full(d, d**-0.5), np.zeros(d)
    turns = max(int(2e7 / d**2), 20)
    times = best({"half": lambda: half(A, x, u, turns), "whole": lambda: whole(A, x, u, turns)}, turns)
    faster = times["whole"] / times["half"]
    return f"| {d} | {times['whole'] / 1000:.2f} | {times['half'] / 1000:.2f} | {faster:.2f} |"


class ByLabel(fliptron.RCNBF):
    """RCNBF whose weights stay label by label."""

    by_feature = False


def a_layout(name: str) -> str:
    data, rounds = workload(name).dataset("float64"), 20_000
    shape = {"n_classes": data.n_classes, "n_features": data.n_features}
    learners = {kind.__name__: kind(**shape, rates=(0.2, 0.4)) for kind in (ByLabel, fliptron.RCNBF)}
    times = best(
        {kind: lambda each=each: fliptron.simulate(each, data, rounds=rounds) for kind, each in learners.items()},
        rounds,
    )
    faster = times["ByLabel"] / times["RCNBF"]
    return f"| {workload(name).title} | {times['ByLabel']:,.0f} | {times['RCNBF']:,.0f} | {faster:.2f} |"


def main() -> None:
    lines = [a_round(name, form) for name in "AB" for form in ("float64", "float32", "uint8")]
    matrices = [a_matrix(d) for d in (64, 256, 784)]
    layouts = [a_layout(name) for name in ("C", "D20", "D50")]
    text = f"""# What was tried to make a round faster

How many times faster than the plain round (nanoseconds, ten labels a pass, without randomness); the last column is what
eight replicates gain that meet the same x in one pass, beside eight passes. Best of {REPEATS} turns, made by
`make study-trials`. Kept: ten labels a pass, asking for rows ahead where the data is larger than the cache. Not kept:
four rounds at once, which help with floats, cost with bytes, and change the last bits of the scores, so that the loop
and single rounds would part; shared examples, since weights, not examples, are what a round waits for.

| | plain, ns | labels one by one | asked ahead | four rounds at once | the same, asked ahead | 8 sharing x |
|---|---|---|---|---|---|---|
{chr(10).join(lines)}

A·x and a rank-one step on ten symmetric matrices, microseconds, the whole matrix and its lower half:

| d | whole | half | times faster |
|---|---|---|---|
{chr(10).join(matrices)}

A round of RCNBF on sparse rows, nanoseconds, weights label by label and feature by feature:

| | by label | by feature | times faster |
|---|---|---|---|
{chr(10).join(layouts)}
"""
    Path("docs/tables/trials.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
