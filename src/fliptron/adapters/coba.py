"""Our learners in coba's experiments, environments behind our channel, and an evaluator that scores the truth."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fliptron.adapters.growing import Growing, check_bit, hashable
from fliptron.arrays import Csr
from fliptron.channel import FlipChannel
from fliptron.datasets.dataset import Dataset
from fliptron.learners.base import Learner
from fliptron.noise.estimate import Estimate
from fliptron.refusals import InputError, missing, real, whole
from fliptron.rounds import LEAST_PROBABILITY, Decision, Rates
from fliptron.stream import Order, Stream

try:
    import coba
    from coba.environments import Finalize
    from coba.primitives import DiscreteReward
except ImportError as error:
    raise missing("coba", "peers", error) from None

_BLOCK = 8192  # rows that are looked up in one go
_STRANGE = 20  # rounds in a row of which no action was known


class NoisyBanditLearner(coba.Learner):  # type: ignore[misc]  # coba has no types
    """A learner of ours for coba's experiments, whose rewards are bits, right or wrong, that are sometimes flipped.

    Contexts may be dense or sparse, with numbers and words; actions may be anything, and may turn up at any time. An
    action is a name: what it is made of is not used, so the same actions should come again.

    Parameters
    ----------
    learner
        The class of the learner. None: `Fliptron`, which has nothing to tune.
    settings
        The learner's other parameters, such as ``{"gamma": 0.1}``.
    fit_intercept
        Whether a constant 1 is added to every example.
    seed
        Of the exploration.

    Examples
    --------
    >>> learner = NoisyBanditLearner(seed=1)
    >>> action, probability, more = learner.predict((0.3, "Rome"), ["hats", "shoes"])
    >>> learner.learn((0.3, "Rome"), action, 1, probability, **more)
    """

    def __init__(
        self,
        learner: type[Learner] | None = None,
        settings: Mapping[str, Any] | None = None,
        *,
        fit_intercept: bool = True,
        seed: int = 0,
    ) -> None:
        self._growing = Growing(learner, settings, whole("seed", seed, 0, 2**63 - 1), constant=fit_intercept)
        if self._growing.full_information:
            raise InputError("the learner learns from true labels, which coba's interactions do not have")
        self._latest: tuple[Any, Any, Any, Decision] = (object(), None, None, Decision(-1, -1, 0.0))
        self._unknown = 0  # lists in a row of which no action had been seen before
        self._named = {"family": self._growing.name, **(settings or {}), "seed": seed}

    @property
    def params(self) -> dict[str, Any]:
        """What coba's tables and legends call it."""
        plain = str, int, float, bool
        return {name: value if isinstance(value, plain) else str(value) for name, value in self._named.items()}

    def predict(self, context: Any, actions: Sequence[Any]) -> tuple[Any, float, dict[str, Any]]:
        """Choose one of the actions.

        Parameters
        ----------
        context
            What is known: None, a value, a sequence, or a dict.
        actions
            Those that can be chosen.
        """
        features = context if type(context) is tuple else _features(context)
        among = actions if type(actions) is list else list(actions)
        if not among:
            raise InputError("there are no actions; at least one is expected")
        labels = self._growing.labels
        known = len(labels)
        row, decision, places, eligible = self._growing.decide(features, among)
        if known and len(labels) == known + len(among):
            self._warn()
        elif self._unknown > 0:
            self._unknown = 0
        if decision is None:
            return among[0], 1.0, {"greedy": 0}
        label, greedy, probability = decision
        action = among[places[label]]
        self._latest = context, row, action, decision
        return action, probability, {"greedy": greedy} if eligible is None else {"greedy": greedy, "eligible": eligible}

    def learn(
        self,
        context: Any,
        action: Any,
        reward: float,
        probability: float | None,
        greedy: int | None = None,
        eligible: list[int] | None = None,
    ) -> None:
        """Learn from the bit that came back.

        Parameters
        ----------
        context
            What was known.
        action
            What was chosen.
        reward
            The bit, 0 or 1.
        probability
            The probability with which it was chosen; None, where a log does not say it, counts as 1.
        greedy
            The number of the action thought best, from `predict`; None: the one that is held best now.
        eligible
            The numbers of the actions that could be chosen, from `predict`; None: all that are known.
        """
        growing = self._growing
        latest, row, chosen, decision = self._latest
        mine = context is latest and action is chosen and greedy == decision[1] and probability == decision[2]
        if mine and row.size == growing.places.width:  # most often: what was decided last, and on which row
            growing.learn(row, decision, reward, eligible)
            return
        features, chance = _features(context), 1.0 if probability is None else probability
        if type(chance) is not float or not LEAST_PROBABILITY <= chance <= 1.0:
            chance = real("probability", chance, LEAST_PROBABILITY, 1.0)
        label = growing.number(hashable(action), features, reward)
        check_bit(reward)
        row = growing.places.row(features)
        if growing.learner is None:
            return
        decision = growing.outside(label, features, chance) if greedy is None else Decision(label, greedy, chance)
        growing.learn(row, decision, reward, eligible)

    def score(self, context: Any, actions: Sequence[Any], action: Any) -> float:
        """The probability with which `predict` would choose an action now. Nothing is chosen.

        Parameters
        ----------
        context, actions
            As of `predict`.
        action
            The one that is asked for.
        """
        return self._growing.chance(_features(context), list(actions), action)

    def estimate(self) -> Estimate:
        """What the learner has found out about the noise and its own true accuracy; see `Estimate`."""
        return self._growing.estimate()

    def _warn(self) -> None:
        """Say that nothing can be learnt of actions that never come again, once, when it has become plain."""
        self._unknown += 1
        if self._unknown == _STRANGE:
            self._unknown = -(2**62)
            warnings.warn(
                f"all actions of {_STRANGE} rounds in a row were new; an action is a name, and what it is made of is "
                "not used, so nothing is learnt of actions that do not come again",
                stacklevel=3,
            )


class NoisyEnvironment(coba.Environment):  # type: ignore[misc]
    """An environment whose rewards are bits behind a channel; the truth stays beside them, for `NoisyEvaluator`.

    The actions of a `Dataset` are its classes in their order, one-hot, as coba's own learners want them.

    What round t shows and whether its bit is flipped depends on (seed, t) alone, so it reads the same every time, for
    every learner and in every process.

    Parameters
    ----------
    source
        A `Dataset`, or an environment of coba's in which exactly one action of each interaction has reward 1 and the
        others 0, such as one from ``Environments.from_supervised``.
    rates
        (ρ0, ρ1), each ≥ 0 with a sum below 1.
    rounds
        How many interactions of a `Dataset`: one per row by default. Environments of coba's are read to their
        end, and kept, since not all of them can be read twice.
    seed
        Of rows and flips.
    order
        The order of a `Dataset`'s rows: "resample", "shuffle" or "file".

    Examples
    --------
    >>> from fliptron import load
    >>> environment = NoisyEnvironment(load("iris"), rates=(0.2, 0.4), rounds=100)
    >>> first, again = list(environment.read()), list(environment.read())
    >>> first == again, len(first)
    (True, 100)
    """

    def __init__(
        self,
        source: Any,
        *,
        rates: tuple[float, float] = (0.0, 0.0),
        rounds: int | None = None,
        seed: int = 0,
        order: Order = "shuffle",
    ) -> None:
        self._source, self._rates, self._seed = source, Rates.of(rates), whole("seed", seed, 0, 2**63 - 1)
        if isinstance(source, Dataset):
            if source.encoder is not None:
                raise InputError(f"{source.name} holds records; a data set of numbers is expected: see Dataset.of")
            Stream(source.n_rows, order=order, seed=seed)  # a wrong order is refused at once
            self._rounds = source.n_rows if rounds is None else whole("rounds", rounds, 1, 10**15)
        elif not hasattr(source, "read"):
            raise InputError(f"the source is a {type(source).__name__}; a Dataset or an environment is expected")
        elif rounds is not None:
            raise InputError("rounds are told for a Dataset only; `take` of coba's shortens its environments")
        self._order = order
        self._kept: list[Any] | None = None

    @property
    def params(self) -> dict[str, Any]:
        """What coba's tables call it."""
        rho0, rho1 = self._rates
        ours = {"rho0": rho0, "rho1": rho1, "flips": self._seed}
        if isinstance(self._source, Dataset):
            return {"env_type": "NoisyEnvironment", "dataset": self._source.name, **ours}
        return {**getattr(self._source, "params", {}), **ours}

    def read(self) -> Iterator[dict[str, Any]]:
        """The interactions: `rewards` are what comes back, and `truth` is the right action."""
        channel = FlipChannel(*self._rates, seed=self._seed)
        told = self._rows() if isinstance(self._source, Dataset) else self._interactions()
        for t, (interaction, actions, right) in enumerate(told):
            bits = [float(channel.bit(t, correct)) for correct in (False, True)]
            rewards = DiscreteReward(actions, [bits[at == right] for at in range(len(actions))])
            yield {**interaction, "actions": actions, "rewards": rewards, "truth": actions[right]}

    def _rows(self) -> Iterator[tuple[dict[str, Any], list[Any], int]]:
        data: Dataset = self._source
        stream, K = Stream(data.n_rows, order=self._order, seed=self._seed), data.n_classes
        actions = [tuple(int(r == label) for r in range(K)) for label in range(K)]
        for start in range(0, self._rounds, _BLOCK):
            for row in stream.rows(start, min(start + _BLOCK, self._rounds)):
                x = data.row(row)
                sparse = isinstance(data.X, Csr) or not isinstance(x, np.ndarray)
                context = dict(zip(x.indices.tolist(), x.data.tolist(), strict=True)) if sparse else tuple(x.tolist())
                yield {"context": context}, actions, int(data.y[row])

    def _interactions(self) -> Iterator[tuple[dict[str, Any], list[Any], int]]:
        if self._kept is None:  # what `from_supervised` makes of X and Y is empty when it is read again
            self._kept = list(Finalize().filter(self._source.read()))
            if not self._kept:
                raise InputError(
                    "the source has no interactions; if it has been read before, use Dataset.of(X, y), which can be"
                )
        for each in self._kept:
            if not each.get("actions") or "rewards" not in each:
                raise InputError("an interaction has no actions or no rewards; both are expected")
            values = [each["rewards"](action) for action in each["actions"]]
            if sorted(values) != [0] * (len(values) - 1) + [1]:
                raise InputError(f"the rewards are {values}; a single 1, and 0 for all other actions, is expected")
            yield each, each["actions"], values.index(1)


class NoisyEvaluator(coba.SequentialCB):  # type: ignore[misc]
    """Teaches flipped bits, and scores the truth: coba's own evaluator for a `NoisyEnvironment`.

    In its results `reward` is 1 where the right action was chosen, and `bit` is what the learner was told.

    Parameters
    ----------
    record
        What else is kept of each interaction: "time", "probability", "action", "context", "actions".
    seed
        As in coba's `SequentialCB`.
    """

    def __init__(self, record: Sequence[str] = (), seed: float | None = None) -> None:
        super().__init__(record=[*record, "reward", "action"], seed=seed)
        self._keeps_action = "action" in record

    def evaluate(self, environment: Any, learner: Any) -> Iterator[dict[str, Any]]:
        """One row of results per interaction.

        Parameters
        ----------
        environment
            A `NoisyEnvironment`.
        learner
            One of coba's, or a `NoisyBanditLearner`.
        """
        for row in super().evaluate(environment, learner):
            if "truth" not in row:
                raise InputError("the environment does not know the truth; a NoisyEnvironment does")
            truth, action = row.pop("truth"), row["action"]
            if not self._keeps_action:
                del row["action"]
            yield {**row, "bit": row["reward"], "reward": float(action == truth)}


def _features(context: Any) -> Any:
    """A context as names and values, or as values."""
    if context is None or type(context) in (tuple, list, dict):
        return context
    if hasattr(context, "items"):
        return dict(context.items())
    try:
        return (context,) if isinstance(context, str | int | float) else tuple(context)
    except TypeError:  # a value of NumPy's, or of another kind
        return (context,)
