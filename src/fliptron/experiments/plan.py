"""Plans are data: a run is a spec with an id, a plan is a list of specs, a user's plan is a TOML file."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

from fliptron import source
from fliptron.arrays import KEPT
from fliptron.datasets.registry import REGISTRY
from fliptron.experiments.roster import PEERS, ROSTER, TOLD, effective, maker, module, settings
from fliptron.refusals import InputError, whole
from fliptron.rounds import Rates
from fliptron.stream import Order
from fliptron.tables import parts_of

# What cannot change a number: how things are said, written and kept.
_BESIDE = ("fliptron.output", "fliptron.refusals", "fliptron.learners.files", "fliptron.source")
_NEEDS = PEERS | {"RCINE-NREst": "torch", "RCINE-NREst-one-hot": "torch"}
_OPTIONAL = {"order": "resample", "raw": False, "dtype": "float64", "rows": None, "encode": None, "label": None}


@dataclass(frozen=True)
class Spec:
    """One run: everything that decides its numbers, and nothing else."""

    dataset: str
    """A name that ``fliptron data`` lists, or the path of a file."""
    rates: tuple[float, float]
    """(ρ0, ρ1) of the channel."""
    learner: str
    """The name of a learner."""
    rounds: int
    """How many rounds to play."""
    seed: int
    """The seed of rows, flips and learner."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of the learner that are not its defaults."""
    order: Order = "resample"
    """The order of rows; see `Stream`."""
    raw: bool = False
    """Whether rows stay as they are instead of being scaled to length 1."""
    dtype: str = "float64"
    """How examples are kept: "float64", "float32", "uint8" or "sparse"; see `Dataset.of`."""
    rows: int | None = None
    """The size of a synthetic data set."""
    encode: bool | None = None
    """Whether rows are encoded; None: those of a user's own table are."""
    label: str | None = None
    """The column of a table that holds the right label."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """What columns hold, by name, where it should not be inferred."""

    @cached_property
    def id(self) -> str:
        """A hash of what decides the numbers: equal runs have equal ids, in every plan.

        Parameters count with their defaults, data with its content, and the code that plays this learner by its
        meaning: a changed default or update is another run, a comment or an edit elsewhere is not.
        """
        told = {name: value for name, value in asdict(self).items() if name != "kinds" or value}
        text = json.dumps(told | {"params": self.effective, "code": self.code}, sort_keys=True)
        return hashlib.sha256((text + _identity(self.dataset)).encode()).hexdigest()[:16]

    @cached_property
    def effective(self) -> dict[str, Any]:
        """The learner's parameters with their defaults."""
        return effective(self.learner, self.dataset, **{"rates": self.rates, "dtype": self.dtype, **self.params})

    @property
    def code(self) -> str:
        """A digest of the code that plays this learner, and of a peer's version."""
        peer = _NEEDS.get(self.learner)
        return _code(module(self.learner)) + (f"-{_version(peer)}" if peer else "")

    @property
    def group(self) -> str:
        """What it shares with its replicates."""
        return json.dumps({**asdict(self), "params": dict(self.params), "seed": None})


def _code(learner: str) -> str:
    return source.digest(learner, "fliptron.simulation", without=_BESIDE)[:16]


def _version(package: str) -> str:
    try:
        return version(package)
    except ImportError:
        return "none"


def _identity(dataset: str) -> str:
    """What a data set's content is known by: its checksums or the file itself, and the code that reads or makes it."""
    entry = REGISTRY.get(dataset)
    makers = ("synthetic", "features")
    others = [
        f"fliptron.datasets.{name}" for name in makers if entry is None or name not in f"{entry.source} {dataset}"
    ]
    code = source.digest("fliptron.datasets.registry", without=(*_BESIDE, *others))
    if entry is None:  # a user's file may change under its name
        paths = [each for each in (Path(each) for each in parts_of(dataset) or [dataset]) if each.is_file()]
        return code + "".join(hashlib.sha256(path.read_bytes()).hexdigest() for path in paths)
    return code + "".join(file.sha256 for file in entry.files)


def grid(
    *,
    datasets: Sequence[str],
    rates: Iterable[Sequence[float]],
    learners: Mapping[str, Mapping[str, Sequence[Any]]],
    rounds: int,
    seeds: Iterable[int],
    **options: Any,
) -> list[Spec]:
    """Every combination of data set, rates, learner, parameter values and seed.

    Parameters
    ----------
    datasets
        Names or paths.
    rates
        Pairs (ρ0, ρ1).
    learners
        For each learner's name, the values to try of each of its parameters.
    rounds
        How many rounds per run.
    seeds
        One run per seed.
    options
        `order`, `raw`, `dtype`, `rows`, `encode`, `label` and `kinds`, as in `Spec`.

    Examples
    --------
    >>> learners = {"RCNBF": {"gamma": [0.1, 0.2]}, "Fliptron": {}}
    >>> len(grid(datasets=["digits"], rates=[(0.2, 0.4)], learners=learners, rounds=1000, seeds=range(10)))
    30
    """
    seeds = list(seeds)
    return [
        Spec(
            dataset=dataset,
            rates=(float(pair[0]), float(pair[1])),
            learner=name,
            rounds=rounds,
            seed=seed,
            params=dict(zip(params, values, strict=True)),
            **options,
        )
        for dataset in datasets
        for pair in rates
        for name, params in learners.items()
        for values in itertools.product(*params.values())
        for seed in seeds
    ]


def read_plan(path: str | Path) -> list[Spec]:
    """Read a plan from a TOML file. What is wrong in it is refused with line and field.

    .. code-block:: toml

        [[grid]]
        datasets = ["digits", "iris"]
        rates = [[0.2, 0.4], [0.15, 0.15]]
        rounds = 100_000
        seeds = 10                               # 0 … 9, or a list
        learners.RCNBF.gamma = [0.1, 0.2]        # a list is a grid
        learners.Fliptron = {}
        order = "resample"                       # optional, as are raw, dtype, rows, encode, label
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}") from None
    reader = _Reader(path, text)
    grids = content.get("grid")
    if set(content) - {"grid"} or not isinstance(grids, list) or not all(isinstance(each, dict) for each in grids):
        odd = next(iter(set(content) - {"grid"}), "grid")
        raise reader.refuse(0, odd, "one or more [[grid]] tables and nothing else are expected")
    specs: list[Spec] = []
    seen: dict[str, int] = {}
    for number, table in enumerate(grids):
        for spec in reader.grid(number, table):
            if spec.id in seen:
                where = f"{spec.learner} on {spec.dataset}, rates {spec.rates}, seed {spec.seed}"
                raise reader.refuse(number, "learners", f"{where} is already in grid {seen[spec.id] + 1}")
            seen[spec.id] = number
            specs.append(spec)
    return specs


class _Reader:
    """Checks the tables of a plan, and knows in which line a field is."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.lines = path, text.splitlines()

    def refuse(self, number: int, name: str, why: str) -> InputError:
        return InputError(f"{self.path}, line {self._line(number, name)}, field {name!r}: {why}")

    def _line(self, number: int, name: str) -> int:
        starts = [i for i, line in enumerate(self.lines) if re.match(r"\s*\[\[\s*grid\s*\]\]", line)]
        first = starts[number] if number < len(starts) else 0
        last = starts[number + 1] if number + 1 < len(starts) else len(self.lines)
        for words in (name, name.rsplit(".", maxsplit=1)[-1], name.split(".", maxsplit=1)[0]):
            for i in [*range(first, last), *range(first)]:
                if re.search(rf"(^|[\s.\[\"']){re.escape(words)}([\s.=\]\"']|$)", self.lines[i].split("#")[0]):
                    return int(i) + 1
        return first + 1

    def grid(self, number: int, table: Mapping[str, Any]) -> list[Spec]:
        needed = ("datasets", "rates", "rounds", "seeds", "learners")
        for name in table:
            if name not in (*needed, *_OPTIONAL):
                raise self.refuse(number, name, f"unknown; {', '.join((*needed, *_OPTIONAL))} are expected")
        for name in needed:
            if name not in table:
                raise self.refuse(number, name, "missing")

        def check(name: str, good: bool, allowed: str) -> None:
            if not good:
                raise self.refuse(number, name, f"{table.get(name)!r} will not do; {allowed} is expected")

        datasets, seeds, options = table["datasets"], table["seeds"], _OPTIONAL | dict(table)
        check("datasets", _list_of(datasets, str), "a list of names")
        for name in datasets:
            if name not in REGISTRY and not Path(name).exists() and not parts_of(name):
                raise self.refuse(
                    number, "datasets", f"{name!r} is neither a data set ({', '.join(REGISTRY)}) nor a file"
                )
        check("rates", isinstance(table["rates"], list) and bool(table["rates"]), "a list of pairs")
        try:
            rates = [Rates.of(pair) for pair in table["rates"]]
            rounds = whole("rounds", table["rounds"], 1, 10**15)
            rows = None if options["rows"] is None else whole("rows", options["rows"], 1)
        except InputError as error:
            named = next((name for name in ("rounds", "rows") if str(error).startswith(name)), "rates")
            raise self.refuse(number, named, str(error)) from None
        count = seeds if isinstance(seeds, int) and not isinstance(seeds, bool) else 0
        check(
            "seeds",
            count > 0 or (_list_of(seeds, int) and min(seeds) >= 0 and max(seeds) < 2**62),
            "a number of seeds or a list of them",
        )
        fixed = [name for name in datasets if name not in REGISTRY or "synthetic" not in REGISTRY[name].source]
        check("rows", rows is None or not fixed, f"none for {', '.join(fixed)}, which has the rows it has,")
        check("order", options["order"] in get_args(Order), "'resample', 'shuffle' or 'file'")
        check("raw", isinstance(options["raw"], bool), "true or false")
        check("encode", options["encode"] is None or isinstance(options["encode"], bool), "true or false")
        check("label", options["label"] is None or isinstance(options["label"], str), "the name of a column")
        check("dtype", options["dtype"] in KEPT, "'float64', 'float32', 'uint8' or 'sparse'")
        check("learners", isinstance(table["learners"], dict) and bool(table["learners"]), "a table of learners")
        return grid(
            datasets=datasets,
            rates=rates,
            learners={name: self._learner(number, name, params) for name, params in table["learners"].items()},
            rounds=rounds,
            seeds=range(count) if count else seeds,
            rows=rows,
            **{name: options[name] for name in ("order", "raw", "dtype", "encode", "label")},
        )

    def _learner(self, number: int, name: str, params: Any) -> dict[str, list[Any]]:
        if name not in ROSTER:
            raise self.refuse(number, f"learners.{name}", f"unknown learner; one of {', '.join(ROSTER)} is expected")
        if not isinstance(params, dict):
            raise self.refuse(number, f"learners.{name}", f"{params!r} will not do; a table of parameters is expected")
        known = settings(name)
        values = {}
        for key, value in params.items():
            if key not in known:
                raise self.refuse(number, f"learners.{name}.{key}", f"unknown; one of {', '.join(known)} is expected")
            values[key] = value if isinstance(value, list) and key != "rates" else [value]
            plain = known[key]
            if not values[key] or (isinstance(plain, bool) and not all(isinstance(each, bool) for each in values[key])):
                allowed = "true or false" if isinstance(plain, bool) else "at least one value"
                raise self.refuse(number, f"learners.{name}.{key}", f"{value!r} will not do; {allowed} is expected")
        told = {"rates": (0.0, 0.0)} if name in TOLD else {}
        for choice in itertools.product(*values.values()):
            try:
                maker(name)(n_classes=3, n_features=2, seed=0, **told | dict(zip(values, choice, strict=True)))
            except (InputError, TypeError, AttributeError, ValueError) as error:
                wrong = next((key for key in values if key in str(error)), next(iter(values), name))
                raise self.refuse(number, f"learners.{name}.{wrong}", str(error)) from None
        return values


def _list_of(values: Any, kind: type) -> bool:
    return isinstance(values, list) and bool(values) and all(type(value) is kind for value in values)
