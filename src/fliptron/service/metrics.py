"""Numbers for Prometheus, as text."""

from __future__ import annotations

from collections.abc import Iterable

from fliptron.service.live import Live, Number

_COUNTERS = {
    "decisions": "Decisions made.",
    "feedback": "Feedback received, duplicates included.",
    "late": "Bits that came after the deadline.",
    "duplicates": "Feedback for decisions that had it already.",
    "unusable": "Bits of sources in quarantine.",
    "audits": "Verified bits learnt.",
}
_ESTIMATES = ("rho0", "rho1", "beta", "accuracy", "greedy_accuracy")


def metrics(models: Iterable[Live], commits: int, failures: int) -> str:
    """What `/metrics` answers.

    Parameters
    ----------
    models
        The state of every model.
    commits, failures
        Transactions of the journal, and those that failed.
    """
    shown = list(models)
    lines: list[str] = []

    def add(name: str, kind: str, told: str, values: Iterable[tuple[dict[str, str], float | None]]) -> None:
        found = [(labels, value) for labels, value in values if value is not None]
        if found:
            lines.append(f"# HELP fliptron_{name} {told}\n# TYPE fliptron_{name} {kind}")
            lines.extend(f"fliptron_{name}{_labels(labels)} {value:.10g}" for labels, value in found)

    for name, told in _COUNTERS.items():
        add(f"{name}_total", "counter", told, [({"model": each.model}, getattr(each, name)) for each in shown])
    add("version", "gauge", "Bits and audits learnt.", [({"model": each.model}, each.version) for each in shown])
    for name in _ESTIMATES:
        ends: list[tuple[dict[str, str], float | None]] = []
        for each in shown:
            number: Number | None = getattr(each.noise, name)
            if number is not None:
                three = {"value": number.value, "low": number.low, "high": number.high}
                ends += [({"model": each.model, "bound": bound}, value) for bound, value in three.items()]
        add(name, "gauge", f"Estimated {name} and its 95 % interval.", ends)
    identified = [({"model": each.model}, float(each.noise.verdict == "identified")) for each in shown]
    add("identified", "gauge", "Whether the rates are identified.", identified)
    in_time = [({"model": each.model}, each.noise.in_time) for each in shown]
    add("in_time_ratio", "gauge", "Share of ones that come before the deadline.", in_time)
    add("exploration_ratio", "gauge", "Share of recent decisions that did not play the label thought best.",
        [({"model": each.model}, each.exploration) for each in shown])  # fmt: skip
    add("delay_seconds", "gauge", "Delay of feedback.",
        [({"model": each.model, "quantile": f"0.{name[1:]}"}, value)
         for each in shown for name, value in each.delay.items()])  # fmt: skip
    add("alarms", "gauge", "Alarms that are remembered.", [({"model": e.model}, len(e.alarms)) for e in shown])
    add("quarantined", "gauge", "Sources in quarantine.",
        [({"model": each.model}, sum(source.quarantined for source in each.sources)) for each in shown])  # fmt: skip
    if shown:
        add("waiting", "gauge", "Entries that wait for the disk.", [({}, shown[0].waiting)])
        add("journal_bytes", "gauge", "Size of the journal's parts.",
            [({"part": part}, size) for part, size in shown[0].journal.items()])  # fmt: skip
    add("commits_total", "counter", "Transactions of the journal.", [({}, commits)])
    add("failures_total", "counter", "Transactions that failed.", [({}, failures)])
    return "\n".join(lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in labels.items()) + "}" if labels else ""
