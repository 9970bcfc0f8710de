"""How fast is a round, beside peers and beside the hardware, in one run?

    make bench        # five minutes; writes benchmarks/results/speed.md, .json and two pictures in docs/images

How time is taken is said in `timing.py`. The spread is the median turn over the best one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numba
import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure

import fliptron
import peers
from fliptron import RCNBF, SOBA, Dataset, Learner, LeastMeanSquares, RidgeRegression, simulate
from fliptron.kernels import loop
from fliptron.kernels.rows import followed
from fliptron.kernels.vectors import argmax, scores_of
from fliptron.learners.player import layout_for
from hardware import ceilings, machine, roofline
from rewrites import REWRITES, compiler, in_c
from tabular import save, table
from timing import Turn, best, turns
from workloads import FORMS, KINDS, Workload, workload

GAMMA, RATES = peers.GAMMA, peers.RATES
RESULTS, IMAGES = Path("benchmarks/results"), Path("docs/images")
CSR = "ours, float64, handed over as CSR"
LEAST = "ours, float64, LeastMeanSquares"
ROUNDS = {"A": 200_000, "B": 20_000, "C": 50_000, "D20": 20_000, "D50": 10_000}
SECOND_ORDER = KINDS | {"RidgeRegression": partial(RidgeRegression, gamma=GAMMA), "SOBA, diagonal": SOBA}
DEEP = {64: 10_000, 256: 600, 784: 60}
GROWTH = {
    "rounds": (10_000, 100_000, 1_000_000, 10_000_000),
    "d": (64, 256, 1024, 4096),
    "K": (10, 40, 160, 640),
    "nnz": (25, 100, 400, 1600),
    "replicates": (1, 2, 4, 8),
}


def rcnbf(data: Dataset, dtype: str = "float64") -> Learner:
    return RCNBF(n_classes=data.n_classes, n_features=data.n_features, gamma=GAMMA, rates=RATES, dtype=dtype)


def ours(data: Dataset, learner: Learner) -> Callable[[int], object]:
    return lambda rounds: simulate(learner, data, rates=RATES, rounds=rounds)


@numba.njit(_nrt=False)
def _score_pass(X, rows, W, scores):
    total, n = 0, rows.shape[0]
    for i in range(n):
        scores_of(W, followed(X, rows[i], rows[min(i + 1, n - 1)]), scores)
        total += argmax(scores, -1)
    return total


def score_pass(data: Dataset, dtype: str) -> Callable[[int], object]:
    """The floor: K dot products per round, the best label, and nothing else."""
    learner = rcnbf(data, dtype)
    learner.arrange(layout_for(data.X))
    W = learner.state.W
    W[:] = np.random.default_rng(0).normal(size=W.shape)
    stream = fliptron.Stream(data.n_rows)
    return lambda rounds: _score_pass(data.X, stream.rows(0, rounds), W, learner.state.scores)


def rounds_beside_peers(repeats: int) -> dict[str, dict[str, list[float]]]:
    found = {}
    for name, rounds in ROUNDS.items():
        work = workload(name)
        contenders: dict[str, Turn] = {}
        plain = work.dataset("float64")
        for form, precision in FORMS.items():
            data = plain if form == "float64" else work.dataset(form)
            contenders[f"floor, {form}"] = score_pass(data, precision), rounds
            contenders[f"ours, {form}"] = ours(data, rcnbf(data, precision)), rounds
        if name == "B":  # four of five pixels are zero
            sparse = work._replace(X=sp.csr_array(work.X)).dataset("float64")
            contenders[CSR] = ours(sparse, rcnbf(sparse)), rounds
        for title, write in REWRITES.items():
            if write is not in_c or compiler():
                contenders[title] = write(work, plain), rounds
        contenders[LEAST] = (
            ours(plain, LeastMeanSquares(n_classes=plain.n_classes, n_features=plain.n_features)),
            rounds,
        )
        for peer, (make, turn) in peers.PEERS.items():
            if name[0] == "D" and peer == "authors' structure":
                continue  # X as a whole matrix would take 4 GB, and a round a million additions
            contenders[peer] = make(work, plain), max(turn // (4 if name != "A" else 1), 50)
        found[name] = turns(contenders, repeats)
        print(f"{name}: {', '.join(f'{key} {min(times):,.0f}' for key, times in found[name].items())}", flush=True)
    return found


def second_order(repeats: int) -> dict[int, dict[str, float]]:
    """Learners whose cost grows with d², and their cheaper forms."""
    found = {}
    for d, rounds in DEEP.items():
        random = np.random.default_rng(d)
        work = Workload(f"10×{d}", random.random((500, d)), random.integers(10, size=500), 10)
        data = work.dataset("float64")
        contenders: dict[str, Turn] = {
            kind: (ours(data, make(n_classes=10, n_features=d)), rounds) for kind, make in SECOND_ORDER.items()
        }
        contenders["RidgeRegression in NumPy and BLAS"] = numpy_ridge(data), max(rounds // 5, 20)
        contenders["MABWiser LinGreedy"] = peers.lin_greedy(work, data), max(rounds // 100, 10)
        found[d] = best(contenders, repeats)
        print(f"d = {d}: {', '.join(f'{key} {ns:,.0f}' for key, ns in found[d].items())}", flush=True)
    return found


def numpy_ridge(data: Dataset) -> Callable[[int], object]:
    """Ridge regression as one would write it with BLAS."""
    from scipy.linalg.blas import dsymv, dsyr

    K, d = data.n_classes, data.n_features

    def play(rounds: int) -> None:
        A, W = np.tile(np.eye(d), (K, 1, 1)), np.zeros((K, d))
        for i, e, other, bit in zip(*peers.drawn(data.n_rows, K, rounds), strict=True):
            x = data.X[i]
            label = other if e < GAMMA else (W @ x).argmax()
            u = dsymv(1.0, A[label].T, x, lower=0)
            scale = 1.0 / (1.0 + u @ x)
            W[label] += (round(bit) - W[label] @ x) * scale * u
            dsyr(-scale, u, a=A[label].T, lower=0, overwrite_a=1)

    return play


@numba.njit
def _rounds_alone(state, turn, key, X, rounds):
    for t in range(rounds):
        x = X[t % X.shape[0]]
        label, greedy, probability = loop.decide_one(state, turn, key, x)
        loop.learn_one(state, turn, x, (float(label), float(greedy), probability), 1.0)


def from_python(repeats: int) -> dict[str, float]:
    """`decide` and `learn` called from Python, and the same functions called from compiled code."""
    data = workload("A").dataset("float64")
    one, alone = rcnbf(data), rcnbf(data)
    one.warm_up()
    rows = list(data.X)

    def called(rounds: int) -> None:
        for x in rows[:rounds]:
            one.learn(x, one.decide(x), 1)

    return best(
        {
            "decide + learn": (called, 1500),
            "compiled": (lambda n: _rounds_alone(alone.state, alone.turn, np.uint64(alone.key), data.X, n), 1500),
            "empty loop": (lambda n: [None for _ in rows[:n]], 1500),
        },
        repeats * 5,
    )


@numba.njit(nogil=True, fastmath=True)
def _spin(a, rounds):
    """Arithmetic and nothing else: what two threads can give at best."""
    for _ in range(rounds):
        for i in range(a.shape[0]):
            a[i] = (a[i] * 0.5 + 0.5) * 0.5 + 0.5


def on_threads(repeats: int, replicates: int = 8) -> dict[str, float]:
    """Wall time of replicates on one thread over that on two."""

    def share(threads: int, plays: list[Callable[[], object]]) -> None:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda play: play(), plays))

    work = {"a loop that only multiplies": [partial(_spin, np.ones(256), 10**6) for _ in range(replicates)]}
    for name, form in (("A", "float64"), ("B", "uint8"), ("D20", "float32")):
        data, rounds = workload(name).dataset(form), ROUNDS[name] * 5
        learners = [rcnbf(data, FORMS[form]) for _ in range(replicates)]
        work[f"{name}, {form}"] = [partial(ours(data, learner), rounds) for learner in learners]
    contenders = {
        (key, n): (lambda _, n=n, plays=plays: share(n, plays), 1) for key, plays in work.items() for n in (1, 2)
    }
    found = turns(contenders, repeats, time.perf_counter)
    return {key: min(found[key, 1]) / min(found[key, 2]) for key in work}


def growth(repeats: int) -> dict[str, list[tuple[int, float]]]:
    """Nanoseconds as one thing grows, the rest at 10×64 (dense) or 20×50,000 (sparse)."""
    found: dict[str, list[tuple[int, float]]] = {}
    for thing, sizes in GROWTH.items():
        contenders: dict[int, Turn] = {}
        for size in sizes:
            random = np.random.default_rng(size)
            K, d = (size if thing == "K" else 10), (size if thing == "d" else 64)
            X = random.random((500, d))
            if thing == "nnz":
                K, d = 20, 50_000
                places = np.sort(np.argpartition(random.random((200, d)), size)[:, :size], axis=1).ravel()
                X = sp.csr_array(
                    (random.random(200 * size), places, np.arange(0, 200 * size + 1, size)), shape=(200, d)
                )
            data = Dataset.of(X, random.integers(K, size=X.shape[0]), classes=tuple(range(K)))
            rounds = size if thing == "rounds" else max(int(4e7 / (K * (size if thing == "nnz" else d))), 500)
            plays = [partial(ours(data, rcnbf(data)), rounds) for _ in range(size if thing == "replicates" else 1)]
            play = lambda _, plays=plays: [each() for each in plays]  # noqa: E731
            contenders[size] = play, (1 if thing == "rounds" else rounds)
        found[thing] = list(best(contenders, repeats).items())
        print(f"{thing}: slope {slope(found[thing]):.2f}", flush=True)
    return found


def slope(points: list[tuple[int, float]]) -> float:
    """Of log cost over log size, without the smallest size."""
    return float(np.polyfit(*np.log(np.array(points)[1:].T), 1)[0])


def peak_memory(rounds: int) -> float:
    """MB of a process that plays so many rounds on digits."""
    code = (
        "import fliptron; data = fliptron.load('digits');"
        f"fliptron.simulate(fliptron.RCNBF(n_classes=10, n_features=64, rates=(.2, .4)), data, rounds={rounds});"
        "print(*[line for line in open('/proc/self/status') if line.startswith('VmHWM')])"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)  # compiles
    told = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return int(told.split()[1]) * 1024 / 1e6


def growth_curves(curves: dict[str, list[tuple[int, float]]]) -> Figure:
    figure = Figure(figsize=(9.0, 2.6), layout="constrained")
    for axes, (thing, points) in zip(figure.subplots(1, len(curves)), curves.items(), strict=True):
        sizes, times = np.array(points).T
        axes.plot(sizes, times / times[0], "o-", color="#0072B2")
        axes.plot(sizes, sizes / sizes[0], ":", color="0.5")
        axes.loglog()
        axes.set_xticks(sizes, [f"{size:g}" for size in sizes], fontsize=7)
        axes.minorticks_off()
        axes.set_title(thing, fontsize=9)
    figure.supylabel("cost, first = 1", fontsize=9)
    return figure


def rounds_table(found: dict[str, dict[str, list[float]]]) -> str:
    def cell(times: dict[str, list[float]], key: str) -> str:
        if key not in times:
            return "–"
        ns, spread = min(times[key]), np.median(times[key]) / min(times[key])
        return f"{ns:,.0f} ns, **{ns / min(times['ours, float64']):.2f}×** (±{spread - 1:.0%})"

    keys = dict.fromkeys(key for times in found.values() for key in times)
    rows = [[key, *(cell(times, key) for times in found.values())] for key in keys]
    return table(["", *(f"{name}: {workload(name).title}" for name in found)], rows)


def bars(found: dict[str, dict[str, list[float]]], called: dict[str, float], threads: dict[str, float], memory: float):
    """What was to be shown, and what came."""

    def line(text: str, value: float, bound: float, sign: str = "≥") -> list[str]:
        verdict = "yes" if (value >= bound if sign == "≥" else value <= bound) else "**no**"
        return [text, f"{value:.2f}", f"{sign} {bound}", verdict]

    least = {name: {key: min(times) for key, times in each.items()} for name, each in found.items()}
    for name, form, bound in (("A", "float32", 3.5), ("B", "uint8", 2.5)):
        value = least[name][f"ours, {form}"] / least[name][f"floor, {form}"]
        yield line(f"{name}, {form}: times the bare score pass", value, bound, "≤")
    for name, times in least.items():
        compact = min(times["ours, float32"], times["ours, uint8"])
        whole = {"float64": times["ours, float64"]} | ({"float64 as CSR": times[CSR]} if CSR in times else {})
        if "authors' structure" in times:
            for form, ns, bound in (*((*each, 15) for each in whole.items()), ("float32 or uint8", compact, 20)):
                yield line(f"{name}: authors' structure ÷ {form}", times["authors' structure"] / ns, bound)
        yield line(f"{name}: Vowpal Wabbit's driver ÷ ours", times[list(peers.PEERS)[2]] / compact, 15)
        if "hand-written C" in times:
            yield line(f"{name}: float64 ÷ hand-written C", times["ours, float64"] / times["hand-written C"], 1.15, "≤")
        for form, ns in whole.items():
            yield line(f"{name}: NumPy loop ÷ {form}", times["NumPy loop"] / ns, 10)
    overhead = (called["decide + learn"] - called["compiled"] - called["empty loop"]) / 1000
    yield line("decide + learn from Python, µs beyond the arithmetic", overhead, 1.0, "≤")
    for name, value in threads.items():
        yield line(f"{name}: 8 replicates on 2 threads ÷ on 1", value, 1.8)
    yield line("peak memory of 10⁷ rounds on A, MB", memory, 300, "≤")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, help=f"a folder for all of it, instead of {RESULTS} and {IMAGES}")
    parser.add_argument("--quick", action="store_true", help="a few short turns, to see that it works")
    options = parser.parse_args()
    repeats = options.repeats
    if options.quick:
        repeats = 1
        for sizes in (ROUNDS, DEEP):
            sizes.update({key: max(rounds // 50, 20) for key, rounds in sizes.items()})
        GROWTH.update({thing: sizes[:3] for thing, sizes in GROWTH.items()})
    early = from_python(repeats)
    found = rounds_beside_peers(repeats)
    deep = second_order(max(repeats // 2, 3))
    threads, late = on_threads(repeats), from_python(repeats)
    called = {key: min(early[key], late[key]) for key in early}  # minutes apart: a shared machine has slow ones
    curves, tops = growth(min(repeats, 3)), ceilings(repeats)
    memory = peak_memory(10**7)
    deep_rows = [[kind, *(f"{times[kind] / 1000:,.2f}" for times in deep.values())] for kind in deep[64]]
    text = f"""# Speed

Nanoseconds of CPU per round of RCNBF (γ = {GAMMA}, noise {RATES}), one core, best of {repeats} turns; bold,
times ours at float64; in brackets, how far the median turn is above the best. Made by `make bench`; the floor is a bare
pass over the scores with the same kernels.

{rounds_table(found)}

Vowpal Wabbit's driver learns from a log made ahead and makes no choice; it regresses the bit by gradient steps, as
LeastMeanSquares does, which is the row to read it beside. SGDClassifier is told the true label. The two rewrites
(`benchmarks/rcnbf.c`, `rewrites.py`) play RCNBF and can do nothing else.

## What was to be shown

{table(["", "here", "wanted", ""], bars(found, called, threads, memory))}

A round from Python: {called["decide + learn"] / 1000:.2f} µs, {called["compiled"] / 1000:.2f} µs of it arithmetic.

## Second order, microseconds per round, K = 10

{table(["", *(f"d = {d}" for d in deep)], deep_rows)}

## Growth

Slope of log cost over log size, without the smallest size: \
{", ".join(f"{thing} {slope(points):.2f}" for thing, points in curves.items())}.

![growth](../../docs/images/growth.png)

## Beside the hardware

{", ".join(f"{key}: {value:.0f}" for key, value in tops.items())}.

![roofline](../../docs/images/roofline.png)

{", ".join(f"{key} {value}" for key, value in machine().items())}."""
    everything = {
        "rounds": found,
        "second order": deep,
        "from Python": called,
        "threads": threads,
        "growth": curves,
        "ceilings": tops,
        "memory": memory,
        "machine": machine(),
    }
    path = save((options.out or RESULTS) / "speed.md", text)
    save(path.with_suffix(".json"), json.dumps(everything, indent=1))
    roofline(found, tops).savefig((options.out or IMAGES) / "roofline.png", dpi=130)
    growth_curves(curves).savefig((options.out or IMAGES) / "growth.png", dpi=130)
    print(f"{text}\n\nWritten to {path}")


if __name__ == "__main__":
    main()
