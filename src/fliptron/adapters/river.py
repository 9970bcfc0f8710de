"""Our learners in river: a classifier that learns behind a channel, and a contextual policy for its bandits."""

from __future__ import annotations

import random
from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Any

from fliptron.adapters.growing import Growing, check_bit
from fliptron.channel import FlipChannel
from fliptron.learners.base import Learner
from fliptron.noise.estimate import Estimate
from fliptron.refusals import InputError, missing, whole
from fliptron.rounds import Decision

try:
    from river import bandit, base
except ImportError as error:
    raise missing("river", "peers", error) from None

WAITING = 100_000
"""The most pairs of arm and context whose rewards are waited for, and the most pulls of one pair; of more, the oldest
are forgotten."""


class NoisyBanditClassifier(base.Classifier):
    """A classifier that learns from one bit per example, right or wrong, which is sometimes flipped.

    `learn_one` is given the true label, as river wants it, but does not show it to the learner: the learner plays a
    label, and a channel answers with a bit. So `evaluate.progressive_val_score` tells how well one learns from such
    bits. Labels and features may turn up at any time. Where there are no true labels, use `NoisyBanditPolicy`.

    Numbers are taken as they are; `preprocessing.StandardScaler` in front helps. Words have places of their own.
    Labels come one by one, and `AnytimeRCNBF`, `Gappletron`, `Newtron`, `RCINE` and `RDUE` refuse more than two then.

    Parameters
    ----------
    learner
        The class of the learner. None: `Fliptron`, which has nothing to tune.
    settings
        The learner's other parameters, such as ``{"gamma": 0.1}``.
    rates
        (ρ0, ρ1) of the channel, each ≥ 0 with a sum below 1.
    fit_intercept
        Whether a constant 1 is added to every example.
    seed
        Of flips and exploration. None: another one every time.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | NoisyBanditClassifier(rates=(0.1, 0.2), seed=1)
    >>> evaluate.progressive_val_score(datasets.ImageSegments(), model, metrics.Accuracy()).get() > 0.75
    True
    """

    def __init__(
        self,
        learner: type[Learner] | None = None,
        settings: Mapping[str, Any] | None = None,
        rates: tuple[float, float] = (0.0, 0.0),
        fit_intercept: bool = True,
        seed: int | None = None,
    ) -> None:
        self.learner = learner
        self.settings = settings
        self.rates = rates
        self.fit_intercept = fit_intercept
        self.seed = seed
        start = _seed(seed)
        self._channel = FlipChannel(*rates, seed=start)
        self._growing = Growing(learner, settings, start, constant=fit_intercept)
        self._rounds = 0

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Play a round on x, behind the channel.

        Parameters
        ----------
        x
            Names and values: numbers or words.
        y
            The true label. The channel sees it, and the learner does not.
        """
        growing = self._growing
        truth = growing.number(y, x)
        row, decision, _, _ = growing.decide(x, growing.labels)
        if decision is None:  # one label, and nothing to choose
            return
        bit = self._channel.bit(self._rounds, decision[0] == truth)
        growing.learn(row, decision, truth if growing.full_information else bit)
        self._rounds += 1

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The greedy label; None before there is one.

        Parameters
        ----------
        x
            As of `learn_one`.
        """
        growing = self._growing
        if growing.learner is None:
            return growing.labels[0] if growing.labels else None
        return growing.labels[int(growing.scores(x).argmax())]

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """How likely each label is right, as far as the learner can say; see `Learner.chances`.

        `Fliptron` tells its belief, in which the doubt about its weights counts. Of other learners it is the softmax of
        the scores, which merely orders the labels.

        Parameters
        ----------
        x
            As of `learn_one`.
        """
        return self._growing.chances(x)

    def estimate(self) -> Estimate:
        """What the learner has found out about the noise and its own true accuracy; see `Estimate`."""
        return self._growing.estimate()

    @property
    def _multiclass(self) -> bool:
        return True


class NoisyBanditPolicy(bandit.base.ContextualPolicy):
    """A contextual policy for `river.bandit` whose rewards are bits, right or wrong, that are sometimes flipped.

    `update` says nothing of the probability with which an arm was pulled, and learning needs it. So the policy keeps
    the decision of every pull until a reward comes for the same arm and context, at once or much later. Of several that
    wait for the same, a reward belongs to the pull just made, if the context is the very object of it, and else to the
    oldest. An arm that it did not choose itself, as in a burn-in, counts as pulled for certain.

    Parameters
    ----------
    learner, settings, fit_intercept, seed
        As of `NoisyBanditClassifier`; nothing is flipped here, the seed is that of the exploration.
    reward_obj
        What measures the rewards of each arm, for `ranking`.
    reward_scaler
        What scales the rewards that are measured. The learner gets the bits as they are.
    burn_in
        How often every arm is pulled before the learner chooses.

    Examples
    --------
    >>> policy = NoisyBanditPolicy(seed=1)
    >>> context = {"age": 0.3, "city": "Rome"}
    >>> arm = policy.pull(["hats", "shoes"], context)
    >>> policy.update(arm, context, 1)
    """

    def __init__(
        self,
        learner: type[Learner] | None = None,
        settings: Mapping[str, Any] | None = None,
        reward_obj: Any = None,
        reward_scaler: Any = None,
        burn_in: int = 0,
        fit_intercept: bool = True,
        seed: int | None = None,
    ) -> None:
        super().__init__(reward_obj=reward_obj, reward_scaler=reward_scaler, burn_in=burn_in)
        self.learner = learner
        self.settings = settings
        self.fit_intercept = fit_intercept
        self.seed = seed
        self._growing = Growing(learner, settings, _seed(seed), constant=fit_intercept)
        self._pulled: tuple[Any, Any, int] = (None, None, -1)
        self._waiting: OrderedDict[tuple[int, bytes], deque[tuple[Decision, list[int] | None]]] = OrderedDict()
        if self._growing.full_information:
            raise InputError("the learner learns from true labels, which bandits do not have")

    def _pull(self, arm_ids: Any, context: dict[Any, Any]) -> Any:  # type: ignore[override]  # as river's own
        growing, arms = self._growing, list(arm_ids)
        if not arms:
            raise InputError("there are no arms; at least one is expected")
        row, decision, _, eligible = growing.decide(context, arms)
        self._pulled = context, row, -1 if decision is None else decision[0]
        if decision is None:
            return arms[0]
        waiting, key = self._waiting, _key(decision[0], row)
        same = waiting.get(key)
        if same is None:
            waiting[key] = deque(((decision, eligible),), maxlen=WAITING)
            if len(waiting) > WAITING:
                waiting.popitem(last=False)
        else:
            same.append((decision, eligible))
        return growing.labels[decision[0]]

    def update(self, arm_id: Any, context: dict[Any, Any], *reward_args: Any, **reward_kwargs: Any) -> None:
        """Learn from the bit that came back for an arm.

        Parameters
        ----------
        arm_id
            The arm that was pulled.
        context
            What was known when it was pulled.
        reward_args
            The bit: 1 or True for right, 0 or False for wrong.
        reward_kwargs
            What else `reward_obj` takes.
        """
        try:
            (bit,) = reward_args
        except ValueError:
            raise InputError(f"{len(reward_args)} rewards are given; one, the bit, is expected") from None
        growing = self._growing
        label, (latest, row, just) = growing.number(arm_id, context, bit), self._pulled
        late = context is not latest or row is None  # the reward of an earlier pull
        if late or row.size != growing.places.width:
            check_bit(bit)
            row = growing.places.row(context)
        if growing.learner is not None:
            key = _key(label, row)
            kept = self._waiting.get(key)
            which = 0 if late or label != just else -1
            decision, eligible = kept[which] if kept else (growing.outside(label, context), None)
            growing.learn(row, decision, bit, eligible)
            if kept:
                del kept[which]
                self._pulled = latest, self._pulled[1], just if which == 0 else -1
                if not kept:
                    del self._waiting[key]
        super().update(arm_id, context, bit, **reward_kwargs)  # type: ignore[no-untyped-call]

    def estimate(self) -> Estimate:
        """What the learner has found out about the noise and its own true accuracy; see `Estimate`."""
        return self._growing.estimate()


def _key(label: int, row: Any) -> tuple[int, bytes]:
    """What a pull is known by until its reward comes; places that came later make no difference."""
    return label, row.tobytes().rstrip(b"\0")


def _seed(seed: int | None) -> int:
    return random.SystemRandom().randrange(2**31) if seed is None else whole("seed", seed, 0, 2**63 - 1)
