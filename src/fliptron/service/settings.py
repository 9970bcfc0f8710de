"""What is served and how: models, journal, address and tokens, from a TOML file or from a model's file alone."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

import msgspec

from fliptron.encoding.schema import Schema
from fliptron.learners import files
from fliptron.learners.base import Learner
from fliptron.policy import Policy, as_labels
from fliptron.refusals import InputError, named, one_of, real, whole
from fliptron.service.messages import Text
from fliptron.service.store import Token

GAMMA = 0.01
"""Blind exploration of a served model unless told otherwise: it makes the log good for audits and other policies."""
SCOPES = ("decide", "feedback", "admin")
"""What a token may allow. "admin" reads numbers, exports and rules over sources; it includes the others."""
Silence = Literal["ignore", "negative"]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True)
class ModelSettings:
    """One model. Either `file`, or `labels` with `schema` or `features`."""

    name: str
    file: str | None = None
    """What `Policy.save` or `Learner.save` wrote; where it begins. Later starts go on from the journal."""
    labels: tuple[Any, ...] | None = None
    schema: Mapping[str, Any] | None = None
    """Columns of a record: a kind by name, or kind, values (of a category) and gaps."""
    features: int | None = None
    """How many numbers x has, where there is no schema."""
    learner: str = "Fliptron"
    gamma: float = GAMMA
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    """Other parameters of the learner."""
    silence: Silence = "ignore"
    """What no feedback means: nothing; or, after `wait`, a bit 0."""
    wait: float | None = None
    """Seconds after which feedback is late; None: it never is."""
    apprentice: bool = False
    """Whether the caller's own label is returned and learnt from."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InputError(
                f"a model is called {self.name!r}; up to 64 letters, digits, '.', '_' and '-' are expected"
            )
        kinds = (("file", str, "a path"), ("schema", Mapping, "a table"), ("options", Mapping, "a table"))
        for what, kind, expected in kinds:
            value = getattr(self, what)
            if value is not None and not isinstance(value, kind):
                raise InputError(f"{what} of model {self.name!r} is {value!r}; {expected} is expected")
        if self.labels is not None:
            as_labels(self.labels)
        one_of(f"silence of model {self.name!r}", self.silence, ("ignore", "negative"))
        if self.wait is not None:
            real(f"wait of model {self.name!r}", self.wait, 0.0, 1e9, open_below=True)
        if self.silence == "negative" and self.wait is None:
            raise InputError(f"model {self.name!r} takes silence for a bit 0, but has no wait; seconds are expected")
        if self.file is None and (self.labels is None or (self.schema is None) == (self.features is None)):
            raise InputError(
                f"model {self.name!r} needs a file; or labels, and either a schema or a number of features"
            )
        if not isinstance(self.apprentice, bool):
            raise InputError(f"apprentice of model {self.name!r} is {self.apprentice!r}; true or false is expected")

    def build(self) -> Policy | Learner:
        """The model before its first decision here."""
        if self.file is not None:
            with files.opened(Path(self.file)) as saved:
                is_policy = "policy" in saved.more
            return Policy.load(self.file) if is_policy else Learner.load(self.file)
        settings = {"gamma": self.gamma, "seed": self.seed, **self.options}
        kind, labels = self._kind(), self.labels or ()
        if self.schema is not None:
            return Policy(labels, self._schema(), kind, **settings)
        try:
            made: Learner = kind(n_classes=len(labels), n_features=whole("features", self.features, 1), **settings)
        except TypeError as error:
            raise InputError(f"{kind.__name__} cannot be built ({error})") from None
        return made

    def check(self, labels: tuple[Any, ...], learner: Learner, schema: Schema | None) -> None:
        """Refuse to go on with a model in the journal that is not the one described here."""
        if self.labels is not None and tuple(self.labels) != labels:
            raise InputError(
                f"the journal's model {self.name!r} has the labels {named(labels)}, the settings {named(self.labels)}; "
                "another name begins anew"
            )
        if self.file is None and type(learner) is not self._kind():
            raise InputError(
                f"the journal's model {self.name!r} is a {type(learner).__name__}, and not a {self.learner}"
            )
        if self.schema is not None and self._schema() != schema:
            raise InputError(f"the journal's model {self.name!r} has another schema; another name begins anew")
        if self.features is not None and (schema is not None or self.features != learner.n_features):
            has = "a schema" if schema is not None else f"{learner.n_features} features"
            raise InputError(
                f"the journal's model {self.name!r} has {has}, the settings {self.features} features; another name "
                "begins anew"
            )

    def _kind(self) -> type[Any]:
        known = sys.modules["fliptron"]  # which loads a learner when it is asked for
        kind = getattr(known, self.learner, None) if isinstance(self.learner, str) else None
        if not (isinstance(kind, type) and issubclass(kind, Learner)) or kind.full_information or kind is Learner:
            raise InputError(
                f"the learner of model {self.name!r} is {self.learner!r}; one such as Fliptron is expected"
            )
        return kind

    def _schema(self) -> Schema:
        columns = []
        for name, told in (self.schema or {}).items():
            given = {"kind": told} if isinstance(told, str) else told
            if not isinstance(given, dict) or not set(given) <= {"kind", "values", "gaps", "buckets"}:
                raise InputError(
                    f"column {name!r} of model {self.name!r} is {told!r}; a kind such as number is expected"
                )
            values = given.get("values", [])
            if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
                raise InputError(f"the values of column {name!r} are {values!r}; a list of words is expected")
            columns.append({"name": name, "kind": None, "gaps": True} | given | {"values": values})
        return Schema.plain(columns)


@dataclass(frozen=True)
class Settings:
    """A whole service."""

    models: tuple[ModelSettings, ...]
    store: str = "journal.db"
    """The journal's file, or the address of a database: postgresql://…"""
    host: str = "127.0.0.1"
    port: int = 8000
    tokens: tuple[Token, ...] = ()
    queue: int = 10_000
    """Entries that may wait for the disk; more are refused."""

    def __post_init__(self) -> None:
        for what, value in (("store", self.store), ("host", self.host)):
            if not isinstance(value, str) or not value:
                raise InputError(f"{what} is {value!r}; a word is expected")
        whole("port", self.port, 0, 65535)
        whole("queue", self.queue, 1)
        names = [model.name for model in self.models]
        if not names or len(set(names)) < len(names):
            raise InputError(f"the models are {names}; at least one, each name once, is expected")
        for token in self.tokens:
            for model in token.models or ():
                if model not in names:
                    raise InputError(f"the token {token.name!r} is for the model {model!r}; {named(names)} are served")


def read_settings(path: str | os.PathLike[str]) -> Settings:
    """The settings in a TOML file.

    Parameters
    ----------
    path
        See the documentation of the service for what it may hold.
    """
    try:
        with Path(path).open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror})") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML ({error})") from None
    models = content.pop("models", {})
    tokens = content.pop("tokens", [])
    if not isinstance(models, dict) or not all(isinstance(each, dict) for each in models.values()):
        raise InputError(f"{path}: models must be tables, such as [models.shop]")
    if not isinstance(tokens, list):
        raise InputError(f"{path}: tokens must be tables, such as [[tokens]]")
    _known(path, "it", content, [each.name for each in fields(Settings) if each.name not in ("models", "tokens")])
    allowed = [each.name for each in fields(ModelSettings) if each.name != "name"]
    made = []
    for name, given in models.items():
        _known(path, f"model {name!r}", given, allowed)
        told = dict(given)
        if isinstance(told.get("labels"), list):
            told["labels"] = tuple(told["labels"])
        if isinstance(told.get("file"), str):
            told["file"] = str(Path(path).parent / told["file"])
        made.append(ModelSettings(name=name, **told))
    store = content.get("store")
    if store and isinstance(store, str) and not in_database(store):
        content["store"] = str(Path(path).parent / store)
    return Settings(models=tuple(made), tokens=tuple(_token(path, each) for each in tokens), **content)


def in_database(store: str) -> bool:
    """Whether a journal is kept in a database that several processes share, not in a file."""
    return store.startswith(("postgresql://", "postgres://"))


def _known(path: Any, what: str, given: Mapping[str, Any], allowed: list[str]) -> None:
    odd = [name for name in given if name not in allowed]
    if odd:
        raise InputError(f"{path}: {what} has {odd[0]!r}; {', '.join(allowed)} are known")


def token_name(name: Any) -> str:
    """The name of a token, if it can be one."""
    try:
        return msgspec.convert(name, Text)
    except msgspec.ValidationError:
        raise InputError(
            f"a token is called {name!r}; 1 to 200 characters are expected, and no control characters"
        ) from None


def _token(path: Any, given: Any) -> Token:
    try:
        _known(path, "a token", given, ["name", "sha256", "scopes", "models"])
        scopes = tuple(one_of("a token's scope", each, SCOPES) for each in given["scopes"])
        models = None if given.get("models") is None else tuple(map(str, given["models"]))
        digest = bytes.fromhex(given["sha256"])
        if len(digest) != 32:
            raise ValueError
        return Token(token_name(given["name"]), digest, scopes, models)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError):
        raise InputError(f"{path}: a token needs name, sha256 (64 hexadecimal digits) and scopes") from None
