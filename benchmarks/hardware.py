"""What the machine could do at best: multiply-adds and reads per second, and how near to them a round comes."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numba
import numpy as np
import scipy.sparse as sp
from matplotlib.figure import Figure

import fliptron
from timing import best
from workloads import FORMS, workload


@numba.njit(fastmath=True)
def _multiply_add(a, b, rounds):
    """Fused multiply-adds on 64 numbers that stay in registers or the first cache."""
    for _ in range(rounds):
        for i in range(a.shape[0]):
            for _ in range(8):
                a[i] = a[i] * b + b


@numba.njit(fastmath=True)
def _read(a, rounds):
    total = a.dtype.type(0)
    for _ in range(rounds):
        for i in range(a.shape[0]):
            total += a[i]
    return total


def ceilings(repeats: int) -> dict[str, float]:
    """GFLOP/s of multiply-adds, and GB/s read from each cache and from memory."""
    found = {}
    for dtype in ("float64", "float32"):
        a, b = np.full(256, 0.5, dtype), np.dtype(dtype).type(0.5)
        ns = best({"": (lambda n, a=a, b=b: _multiply_add(a, b, n), 20_000)}, repeats)[""]
        found[f"GFLOP/s, {dtype}"] = 256 * 16 / ns
    for level, size in (("L1", 2**14), ("L2", 2**18), ("L3", 2**22), ("memory", 2**27)):
        a = np.ones(size // 4, np.float32)
        ns = best({"": (lambda n, a=a: _read(a, n), max(2**28 // size, 2))}, repeats)[""]
        found[f"GB/s, {level}"] = size / ns
    return found


def roofline(found: dict[str, dict[str, list[float]]], tops: dict[str, float]) -> Figure:
    """Operations per byte against operations per second, of scores and steps: 2·K·n and a tenth more than 2·n."""
    figure = Figure(figsize=(8.0, 5.0), layout="constrained")
    axes = figure.add_subplot()
    x = np.geomspace(0.1, 10, 200)
    for level, style in (("L1", "-"), ("L3", "--"), ("memory", ":")):
        peak = tops["GFLOP/s, float32"]
        axes.plot(x, np.minimum(x * tops[f"GB/s, {level}"], peak), style, color="0.4", linewidth=1)
        side = 1.15 if level == "L1" else 0.8  # the caches may lie close
        axes.annotate(level, (x[8], x[8] * tops[f"GB/s, {level}"] * side), fontsize=8, color="0.3")
    axes.axhline(tops["GFLOP/s, float64"], color="0.75", linewidth=1)
    axes.annotate("float64 peak", (4, tops["GFLOP/s, float64"] * 1.06), fontsize=8, color="0.4")
    axes.annotate("float32 peak", (4, tops["GFLOP/s, float32"] * 1.06), fontsize=8, color="0.4")
    colours = dict(zip(found, ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00"), strict=True))
    marks = {"float64": "o", "float32": "s", "uint8": "^"}
    for name, times in found.items():
        work = workload(name)
        n = work.X.nnz / work.X.shape[0] if sp.issparse(work.X) else work.X.shape[1]
        for form, precision in FORMS.items():
            weight = np.dtype(precision).itemsize
            value = np.dtype(form).itemsize + (4 if sp.issparse(work.X) else 0)
            operations, moved = 2 * work.K * n + 2.2 * n, work.K * n * weight + n * value
            axes.plot(
                operations / moved,
                operations / min(times[f"ours, {form}"]),
                marks[form],
                color=colours[name],
                markersize=8,
                label=f"{name}, {form}",
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("operations per byte of weights and example")
    axes.set_ylabel("GFLOP/s of a whole round")
    figure.legend(loc="outside right center", frameon=False, fontsize=8)
    return figure


def machine() -> dict[str, str]:
    facts = {"processor": platform.processor() or platform.machine(), "cores": str(os.cpu_count())}
    if Path("/proc/cpuinfo").exists():
        lines = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().splitlines() if ":" in line)
        facts["processor"] = {key.strip(): value.strip() for key, value in lines.items()}["model name"]
    for level in range(4):
        size = Path(f"/sys/devices/system/cpu/cpu0/cache/index{level}/size")
        if size.exists():
            facts[f"cache {level}"] = size.read_text().strip()
    facts |= {"Python": platform.python_version(), "NumPy": np.__version__, "Numba": numba.__version__}
    return facts | {"fliptron": fliptron.__version__}
