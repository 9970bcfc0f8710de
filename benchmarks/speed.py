"""Speed of RCNBF on 10 classes × 64 features (digits, float64), beside plain loops, in one run.

    python benchmarks/speed.py           # writes benchmarks/results/speed.md (about two minutes)

Contenders take turns and each keeps its best CPU time of several, since a shared machine adds time and
never takes any away: read the ratios, not the times. All play the same learner with the same settings.
"""

from __future__ import annotations

import argparse
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np

import fliptron
from fliptron import RCNBF
from fliptron.kernels.vectors import argmax, scores_of

GAMMA, RATES = 0.1, (0.2, 0.4)
DIGITS = fliptron.load("digits")
K, D = DIGITS.n_classes, DIGITS.n_features


def learner(seed: int = 0) -> RCNBF:
    return RCNBF(n_classes=K, n_features=D, gamma=GAMMA, rates=RATES, seed=seed)


# --- contenders: each plays `rounds` rounds -------------------------------------------------------


def through_simulate(rounds: int) -> None:
    fliptron.simulate(learner(), DIGITS, rates=RATES, rounds=rounds)


def one_by_one(rounds: int) -> None:
    """decide and learn called from Python; rows and flips drawn ahead, as for the NumPy loop."""
    rows, _, _, flips = drawn(rounds)
    X, y, one = DIGITS.X, DIGITS.y, learner()
    rho0, rho1 = RATES
    for row, u in zip(rows, flips, strict=True):
        x = X[row]
        decision = one.decide(x)
        bit = u >= rho1 if decision.label == y[row] else u < rho0
        one.learn(x, decision, bit)


def numpy_loop(rounds: int) -> None:
    """The update on two rows, with every random number drawn ahead: the best plain NumPy does."""
    rows, explore, labels, flips = drawn(rounds)
    X, y, W = DIGITS.X, DIGITS.y, np.zeros((K, D))
    rho0, rho1 = RATES
    beta = 1 - rho0 - rho1
    for row, e, other, u in zip(rows, explore, labels, flips, strict=True):
        x = X[row]
        greedy = (W @ x).argmax()
        label = other if e < GAMMA else greedy
        p = GAMMA / K + (1 - GAMMA if label == greedy else 0)
        bit = u >= rho1 if label == y[row] else u < rho0
        W[greedy] -= x
        W[label] += (bit - rho0) / (beta * p) * x


def drawn(rounds: int) -> tuple[list[int], list[float], list[int], list[float]]:
    random = np.random.default_rng(0)
    rows, labels = random.integers(DIGITS.n_rows, size=rounds), random.integers(K, size=rounds)
    return rows.tolist(), random.random(rounds).tolist(), labels.tolist(), random.random(rounds).tolist()


@numba.njit
def whole_matrix(X, y, rounds, gamma, rho0, rho1, W, errors, log):  # type: ignore[no-untyped-def]
    """The published code's structure, compiled as theirs is: per round a vector of probabilities, a
    K×d outer product added to all of W, a copy of x to the log, and the running error rate."""
    n_classes, n_features = W.shape
    beta, wrong = 1 - rho0 - rho1, 0
    for t in range(rounds):
        row = np.random.randint(0, X.shape[0])
        x = X[row].copy().reshape(n_features, 1)
        greedy = np.argmax(np.dot(W, x).ravel())
        probabilities = np.full(n_classes, gamma / n_classes)
        probabilities[greedy] += 1 - gamma
        label = min(np.searchsorted(np.cumsum(probabilities), np.random.random()), n_classes - 1)
        correct = label == y[row]
        bit = np.random.random() >= rho1 if correct else np.random.random() < rho0
        step = np.zeros((n_classes, 1))
        step[label, 0] = (bit - rho0) / (beta * probabilities[label])
        step[greedy, 0] -= 1
        W += np.kron(step, x.T)
        log[t, :n_features] = x[:, 0]
        log[t, n_features], log[t, n_features + 1] = label, bit
        wrong += not correct
        errors[t] = wrong / (t + 1)


def authors_structure(rounds: int) -> None:
    W, errors, log = np.zeros((K, D)), np.zeros(rounds), np.zeros((rounds, D + 2))
    whole_matrix(DIGITS.X, DIGITS.y, rounds, GAMMA, *RATES, W, errors, log)


@numba.njit
def score_pass(X, rows, W, scores):  # type: ignore[no-untyped-def]
    best = 0
    for i in range(rows.shape[0]):
        scores_of(W, X[rows[i]], scores)
        best += argmax(scores, -1)
    return best


def bare_scores(rounds: int) -> None:
    """The floor: K dot products a round and nothing else."""
    score_pass(DIGITS.X, fliptron.Stream(DIGITS.n_rows).rows(0, rounds), WEIGHTS, np.zeros(K))


WEIGHTS = np.random.default_rng(0).normal(size=(K, D))

# --- measuring ------------------------------------------------------------------------------------


def nanoseconds(contenders: dict[str, tuple[Callable[[int], None], int]], repeats: int) -> dict[str, float]:
    """Best CPU time a round of each contender, taking turns."""
    best = dict.fromkeys(contenders, np.inf)
    for play, _ in contenders.values():
        play(100)  # compiles
    for _ in range(repeats):
        for name, (play, rounds) in contenders.items():
            began = time.process_time()
            play(rounds)
            best[name] = min(best[name], (time.process_time() - began) / rounds * 1e9)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--longest", type=float, default=1e7, help="rounds of the longest growth run")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/speed.md"))
    options = parser.parse_args()

    ours, alone, plain, theirs = "simulate", "decide + learn", "NumPy loop", "authors' structure"
    times = nanoseconds(
        {
            "bare score pass": (bare_scores, 300_000),
            ours: (through_simulate, 300_000),
            alone: (one_by_one, 30_000),
            theirs: (authors_structure, 50_000),
            plain: (numpy_loop, 30_000),
        },
        options.repeats,
    )
    lines = [
        "# Speed of one RCNBF round, 10×64, float64, one core",
        "",
        "| | ns a round | against `simulate` |",
        "|---|---|---|",
        *(f"| {name} | {ns:,.0f} | {ns / times[ours]:.2f}× |" for name, ns in times.items()),
        "",
        f"`simulate` against the NumPy loop: **{times[plain] / times[ours]:.1f}×** faster; "
        f"against the authors' structure: **{times[theirs] / times[ours]:.1f}×** faster.  ",
        f"`decide` + `learn` from Python: **{times[alone] / times[plain]:.2f}** of the NumPy loop's cost "
        "(rows and flips included in both).",
        "",
        "## Cost and memory as rounds grow",
        "",
        "| rounds | ns a round | peak memory of the process, MiB |",
        "|---|---|---|",
    ]
    rounds = 10_000
    while rounds <= options.longest:
        ns = nanoseconds({"": (through_simulate, rounds)}, max(1, min(options.repeats, int(5e6 / rounds))))[""]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        lines.append(f"| {rounds:,} | {ns:,.0f} | {peak:,.0f} |")
        rounds *= 10
    lines += [
        "",
        f"fliptron {fliptron.__version__}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"Numba {numba.__version__}, {platform.machine()}; best of {options.repeats} turns, CPU time.",
        "Made by `make bench`.",
    ]
    text = "\n".join(lines) + "\n"
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(text)
    print(text + f"\nWritten to {options.out}")


if __name__ == "__main__":
    main()
