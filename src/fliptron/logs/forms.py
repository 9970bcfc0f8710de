"""Which form a log has, by its name or as told, and how one of another library's becomes a table."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from itertools import chain, starmap
from pathlib import Path
from typing import Any

from fliptron.lines import first_line, suffix_of
from fliptron.logs import dsjson, obp, vowpal
from fliptron.logs.events import lines_of, made_from
from fliptron.refusals import InputError, one_of
from fliptron.tables import Made, found_files, is_table

FORMATS = ("table", "vw", "dsjson", "obp")
"""A table (CSV, Parquet, JSON lines); Vowpal Wabbit's text and the decision service's JSON; a `bandit_feedback`."""
_SUFFIXES = {".vw": "vw", ".dsjson": "dsjson", ".npz": "obp"}


def made_table(source: str | Mapping[str, Any], form: str | None) -> Made | None:
    """The table that a log of another library's becomes; None if it is a table already.

    Parameters
    ----------
    source
        The name of a file, folder or pattern, - for standard input, or a `bandit_feedback`.
    form
        One of `FORMATS`, or None to go by the name.
    """
    if isinstance(source, Mapping):
        if form not in (None, "obp"):
            raise InputError(f"format is {form!r}; a dict is a bandit_feedback, whose format is 'obp'")
        made = made_from("the bandit_feedback", obp.events("the bandit_feedback", source), rewards=True)
        return made._replace(feedback=dict(source), beyond=obp.beyond(source))
    if form is not None:
        one_of("format", form, FORMATS)
    form = form or _guess(source)
    if form == "table":
        return None
    paths, spool = found_files(source, [suffix for suffix, each in _SUFFIXES.items() if each == form])
    if form == "obp":
        read = [obp.load_feedback(path) for path in paths]
        told = chain.from_iterable(starmap(obp.events, zip(paths, read, strict=True)))
        made = made_from(source, told, rewards=True)
        made = made._replace(feedback=read[0] if len(read) == 1 else None, beyond=obp.beyond(*read))
    else:
        read_events = vowpal.events if form == "vw" else dsjson.events
        made = made_from(source, chain.from_iterable(read_events(lines_of(path)) for path in paths))
    del spool  # what came from standard input is no longer needed
    return made


def _guess(name: str) -> str:
    """By the suffix; a folder by what is in it; a .json by its first line, since Personalizer's logs are called so."""
    path = Path(name)
    if path.is_dir():
        found = {"table" if is_table(each) else _SUFFIXES.get(suffix_of(each)) for each in path.iterdir()} - {None}
        return str(found.pop()) if len(found) == 1 else "table"
    suffix = suffix_of(path)
    if suffix in (".json", ".jsonl", ".ndjson"):
        first = next(iter([name] if path.is_file() else sorted(glob.glob(name))), None)
        return "dsjson" if first is not None and '"_label_cost"' in first_line(first) else "table"
    return _SUFFIXES.get(suffix, "table")
