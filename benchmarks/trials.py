"""What was tried to make a round faster? With and without, in one run: what pays is in the kernels, the rest here.

make bench NAME=trials        # two minutes; writes docs/tables/trials.md
"""

from __future__ import annotations

import sys
from pathlib import Path

import numba
import numpy as np
from numba import types
from numba.extending import intrinsic

import fliptron
from fliptron.arrays import aligned
from fliptron.kernels.compiling import LOOP, STEP
from fliptron.kernels.matrices import apply, downdate
from fliptron.kernels.registers import LINE, Registers, fetch
from fliptron.kernels.rows import followed
from fliptron.kernels.vectors import add, argmax, dot, scores_of
from tabular import save, table
from timing import best
from workloads import workload

REORDER = {"reassoc", "nsz", "contract"}
REPEATS = 9
_WAYS = ("not asked ahead", "labels one by one", "four rounds at once", "8 sharing x, by 1", "by 4", "by 16")
_LAYOUTS = ("by label", "by feature", "times faster", "sums in memory", "in registers", "times faster")


@numba.njit(**STEP)
def ten_a_pass(W, x, scores):
    scores_of(W, x, scores)


@numba.njit(**STEP)
def one_by_one(W, x, scores):
    for r in range(W.shape[0]):
        scores[r] = dot(W, r, x)


@numba.njit(**STEP)
def step(W, x, scores, t, score=ten_a_pass):
    """A round without its randomness: scores, the best label, one step or two."""
    score(W, x, scores)
    greedy = argmax(scores, -1)
    add(W, greedy, -0.001, x)
    if t % 10 == 0:
        add(W, t % W.shape[0], 0.001, x)


@numba.njit(**LOOP)
def plain(X, rows, W, scores, ahead, score=ten_a_pass):
    """Rounds as the engine plays them; `ahead` is 1 if the next row is asked for, or 0: what is asked for is there."""
    for t in range(rows.shape[0] - 1):
        step(W, followed(X, rows[t], rows[t + ahead]), scores, t, score)


@numba.njit(**LOOP)
def shared(X, rows, many, scores, visit):
    """Replicates that meet the same examples: each plays `visit` rounds before the next has its turn."""
    for start in range(0, rows.shape[0] - 2 * visit, visit):
        for m in range(many.shape[0]):
            for t in range(start, start + visit):
                step(many[m], followed(X, rows[t], rows[t + visit]), scores, t + m)


@numba.njit(**LOOP)
def apart(X, rows, many, scores):
    for m in range(many.shape[0]):
        plain(X, rows, many[m], scores, 1)


@intrinsic
def four_scores(typing, W, r, xs, after, S):
    """Scores of labels r and r + 1 for four examples, in one pass over the two; for d a multiple of 16."""

    def generate(context, builder, signature, arguments):
        on = Registers(context, builder, W.dtype)
        weights, out = on.array(W, arguments[0]), on.array(S, arguments[4])
        d, K = builder.extract_value(weights.shape, 1), builder.extract_value(out.shape, 1)
        line = LINE * 8 // W.dtype.bitwidth
        examples = [on.array(xs.dtype, builder.extract_value(arguments[2], e)).data for e in range(4)]
        places = [builder.add(arguments[1], on.number(k)) for k in range(2)]
        labels = [builder.gep(weights.data, [builder.mul(k, d)]) for k in places]
        sums = [[on.total() for _ in labels] for _ in examples]
        with on.steps(on.number(0), d, line) as start:
            fetch(builder, builder.gep(on.array(after, arguments[3]).data, [start]))
            for part in range(0, line, on.lanes):
                j = builder.add(start, on.number(part))
                w = [on.load(builder.gep(label, [j]), W.dtype, on.lanes) for label in labels]
                for example, totals in zip(examples, sums, strict=True):
                    v = on.load(builder.gep(example, [j]), xs.dtype.dtype, on.lanes)
                    for total, each in zip(totals, w, strict=True):
                        on.multiply_add(total, each, v)
        for e, totals in enumerate(sums):
            for k, total in zip(places, totals, strict=True):
                place = builder.add(builder.mul(on.number(e), K), k)
                builder.store(on.sum_lanes([total]), builder.gep(out.data, [place]))
        return context.get_dummy_value()

    return types.void(W, types.intp, xs, after, S), generate


@numba.njit(fastmath=REORDER)
def product(W, a, b):
    total = W.dtype.type(0)
    for j in range(a.shape[0]):
        total += W.dtype.type(a[j]) * W.dtype.type(b[j])
    return total


@numba.njit(**LOOP)
def micro_batches(X, rows, W, S):
    """Four rounds at once: one pass over W for all, then each round's scores mended for the steps before it."""
    for t in range(0, rows.shape[0] - 8, 4):
        xs = (X[rows[t]], X[rows[t + 1]], X[rows[t + 2]], X[rows[t + 3]])
        for r in range(0, W.shape[0], 2):
            four_scores(W, r, xs, X[rows[t + 4 + min(r // 2, 3)]], S)
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
    """Lower triangles, as the kernels keep them."""
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


def a_round(name: str, form: str) -> list[str]:
    data = workload(name).dataset(form)
    X = data.X.rows if form == "uint8" else data.X
    rounds = 60_000 if name == "A" else 6000
    rows = fliptron.Stream(data.n_rows).rows(0, rounds)
    weights = np.random.default_rng(0).normal(size=(8, 10, X.shape[1]))
    many = aligned(weights.astype("float64" if form == "float64" else "float32"))
    S = aligned(np.zeros((4, 10), many.dtype))
    plays = {
        "plain": lambda n: plain(X, rows[:n], many[0], S[0], 1),
        "not asked ahead": lambda n: plain(X, rows[:n], many[0], S[0], 0),
        "labels one by one": lambda n: plain(X, rows[:n], many[0], S[0], 1, one_by_one),
        "four rounds at once": lambda n: micro_batches(X, rows[:n], many[0], S),
    }
    eight = {"apart": lambda n: apart(X, rows[: n // 8], many, S[0])}
    eight |= {f"{v}": lambda n, v=v: shared(X, rows[: n // 8], many, S[0], v) for v in (1, 4, 16)}
    first, *alone = best({key: (play, rounds) for key, play in plays.items()}, REPEATS).values()
    separate, *together = best({key: (play, 2 * rounds) for key, play in eight.items()}, REPEATS).values()
    gains = [*(first / ns for ns in alone), *(separate / ns for ns in together)]
    return [f"{name}, {form}", f"{first:,.0f}", *(f"{gain:.2f}" for gain in gains)]


def a_matrix(d: int) -> list[str]:
    A, x, u = np.tile(np.eye(d), (10, 1, 1)), np.full(d, d**-0.5), np.zeros(d)
    turns = max(int(2e7 / d**2), 20)
    times = best({each.__name__: (lambda n, each=each: each(A, x, u, n), turns) for each in (half, whole)}, REPEATS)
    faster = times["whole"] / times["half"]
    return [f"{d}", f"{times['whole'] / 1000:.2f}", f"{times['half'] / 1000:.2f}", f"{faster:.2f}"]


class ByLabel(fliptron.RCNBF):
    """RCNBF whose weights stay label by label."""

    by_feature = False


@numba.njit(**LOOP, fastmath=REORDER)
def sums_in_memory(X, rows, W, out):
    """Sparse scores, four features at a time, all labels of each side by side."""
    for t in range(rows.shape[0]):
        start, stop = X.indptr[rows[t]], X.indptr[rows[t] + 1]
        n = stop - start
        out[:] = 0.0
        for j in range(start, start + n - n % 4, 4):
            a, b = W[:, np.uint64(X.indices[j])], W[:, np.uint64(X.indices[j + 1])]
            c, d = W[:, np.uint64(X.indices[j + 2])], W[:, np.uint64(X.indices[j + 3])]
            p, q, s, u = X.data[j], X.data[j + 1], X.data[j + 2], X.data[j + 3]
            for r in range(out.shape[0]):
                out[r] += (a[r] * p + b[r] * q) + (c[r] * s + d[r] * u)
        for j in range(start + n - n % 4, stop):
            a, p = W[:, np.uint64(X.indices[j])], X.data[j]
            for r in range(out.shape[0]):
                out[r] += a[r] * p


@numba.njit(**LOOP)
def sums_in_registers(X, rows, W, out):
    for t in range(rows.shape[0]):
        scores_of(W, followed(X, rows[t], rows[min(t + 1, rows.shape[0] - 1)]), out)


def a_layout(name: str) -> list[str]:
    data, rounds = workload(name).dataset("float64"), 20_000
    shape = {"n_classes": data.n_classes, "n_features": data.n_features}
    learners = {kind.__name__: kind(**shape, rates=(0.2, 0.4)) for kind in (ByLabel, fliptron.RCNBF)}
    plays = {key: lambda n, each=each: fliptron.simulate(each, data, rounds=n) for key, each in learners.items()}
    times = best({key: (play, rounds) for key, play in plays.items()}, REPEATS)
    rows, out, W = fliptron.Stream(data.n_rows).rows(0, rounds), np.zeros(data.n_classes), learners["RCNBF"].state.W
    plays = {each: lambda n, each=each: each(data.X, rows[:n], W, out) for each in (sums_in_memory, sums_in_registers)}
    passes = best({key: (play, rounds) for key, play in plays.items()}, REPEATS)
    pairs = [tuple(found.values()) for found in (times, passes)]
    cells = [cell for slow, fast in pairs for cell in (f"{slow:,.0f}", f"{fast:,.0f}", f"{slow / fast:.2f}")]
    return [workload(name).title, *cells]


def main(out: Path) -> None:
    lines = [a_round(name, form) for name in "AB" for form in ("float64", "float32", "uint8")]
    matrices = [a_matrix(d) for d in (64, 256, 784)]
    layouts = [a_layout(name) for name in ("C", "D20", "D50")]
    text = f"""# What was tried to make a round faster

How many times faster than a round as the engine plays it (nanoseconds, without randomness): below 1, slower. The last
three columns are what eight replicates gain that meet the same examples, each playing 1, 4 or 16 rounds before the next
has its turn, beside eight runs one after the other. Best of {REPEATS} turns, made by `make bench NAME=trials`.

Kept: ten labels a pass, the next row asked for line by line. Not kept: four rounds at once, which help nowhere as much
as they cost elsewhere, and change the last bits of the scores, so that the loop and single rounds would part; shared
examples, which help only where weights are few and short (A with bytes, up to 1.3 times), since weights, not examples,
are what a round waits for.

{table(["", "plain, ns", *_WAYS], lines)}

A·x and a rank-one step on ten symmetric matrices, microseconds, the whole matrix and its lower half:

{table(["d", "whole", "half", "times faster"], matrices)}

A round of RCNBF on sparse rows, nanoseconds, with weights label by label, one after the other, and feature by feature,
all at once; and a pass over the scores with the labels' sums in memory, four features at a time, and in registers, the
next row asked for:

{table(["", *_LAYOUTS], layouts)}"""
    print(text, save(out, text), sep="\n\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/tables/trials.md"))
