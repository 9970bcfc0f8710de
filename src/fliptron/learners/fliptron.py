"""Fliptron: a softmax seen through the noise, with error bars on every score, that learns the noise as it plays."""

from __future__ import annotations

from math import sqrt
from typing import Any, Literal, get_args

import numpy as np

from fliptron.arrays import Array, count_rows
from fliptron.exploration import Exploration
from fliptron.learners import axes, forgetting
from fliptron.learners.alarms import KINDS, Alarm, alarms_of, last_alarms
from fliptron.learners.base import Learner
from fliptron.learners.belief import PRIOR, WIDEST
from fliptron.learners.channel import (
    COLUMNS,
    DOUBTFUL,
    DOUBTFUL_ONES,
    DOUBTFUL_RIGHT,
    FOR_EVER,
    MEMORY,
    NEXT,
    PLATEAU,
    RHO0,
    SCALARS,
    SINCE,
    SURE,
    SURE_ONES,
    TOLD,
    flaw_of_counts,
    start,
)
from fliptron.learners.filtering import (
    ALARMS,
    EPOCHS,
    ORDINARY,
    SOME,
    WINDOW,
    FliptronState,
    count_audit,
    damp_all,
    teach,
)
from fliptron.learners.growth import grow
from fliptron.learners.memory import check_memory
from fliptron.learners.player import Layout
from fliptron.noise import tallies
from fliptron.noise.estimate import Estimate
from fliptron.noise.plateaus import Plateaus
from fliptron.refusals import InputError, one_of, real, whole
from fliptron.rounds import Decision, Rates

FULL = 2**19
"""The most numbers K·d² for which every label keeps a whole d×d covariance: what a second-level cache holds."""
PRECISE = 32
"""Below as many features whole covariances are float64; from there on float32, which is faster only then."""
_LEAST_BETA = 1e-9  # of rates that are told: with less, a bit says nothing that a float can hold
Form = Literal["auto", "full", "axes", "diagonal"]


class Fliptron(Learner):
    r"""The default learner: it learns weights and noise from the bits alone, and has nothing to tune.

    The model is a softmax seen through the channel, with a Gaussian belief about every label's weights:

    .. math::

        P(f_\rho = 1 \mid x, \tilde{y}) &= \rho_0 + \beta\,q_{\tilde{y}}(x) \\
        q_r(x) &= \frac{e^{s_r}}{\sum_j e^{s_j}}, \qquad s_r = w_r \cdot x / \lVert x \rVert \\
        w_r &\sim \mathcal{N}(W_r, \Sigma_r)

    **Learning.** Each bit moves every label's score by Bayes' rule, one label at a time. Let m and v be the mean and
    variance of s_r, and Z(m) the probability of the bit, averaged over the doubt in the scores (MacKay's formula). Then

    .. math::

        g &= \frac{\partial \log Z}{\partial m}, \qquad h = -\frac{\partial^2 \log Z}{\partial m^2} \\
        W_r &\leftarrow W_r + g\,\Sigma_r x \\
        \Sigma_r &\leftarrow \Sigma_r - h\,(\Sigma_r x)(\Sigma_r x)^\top

    Only differences of scores matter to a softmax. So the other labels' steps are scaled down until they add up to the
    played label's own. A surprising bit makes h negative, and the doubt grows: no label is ever given up for good.

    **Choosing.** One random number z decides how optimistic to be about all labels:

    .. math::

        \tilde{y} = \arg\max_r \; s_r + z\,Z_r\,\sigma_r, \qquad z \text{ uniform on } [0, 1]

    where σ_r is the standard deviation of s_r, and Z_r falls from 2½ to ½ as that label's bits tell more. Each label's
    value is a line in z, so it wins on an interval, whose length is its exact probability. Besides, with a small
    probability γ_t, any label is played: a *blind* round.

    **Which features matter.** All weights have the same prior, of variance 100. Where the full Σ_r are kept, a feature
    gets a wider one if its weights turn out larger. So small features that tell much are found, such as the few curves
    of an `Encoder` that matter (`fliptron.learners.belief`).

    **The noise.** A random label is right once in K rounds, so the bits of doubtful labels give ρ0. The bits of labels
    of which the learner is sure give 1 − ρ1. These are the rates it learns by (`fliptron.learners.channel`).
    `estimate()` counts the same bits as `Plateaus` does, and tells rates, intervals, a verdict and the true accuracy.

    **Size.** The length of x does not matter, but its features should be of one size, as an `Encoder` makes them. Up to
    K·d² = 2¹⁹ every label keeps a full Σ_r, in O(K·d²) per round. Beyond, Σ_r is full along the 32 main axes of a dense
    x, and a diagonal for the rest, in O(K·d + 32·d) (`fliptron.learners.axes`); of a sparse x it is a diagonal, in
    O(K·d).

    **Change.** A sure label that is right at most half as often as it should be raises an alarm: the noise has changed,
    if all labels disappoint, and otherwise the data. `alarms` lists them; `fliptron.learners.alarms` says what follows.

    Parameters
    ----------
    n_classes, n_features
        K ≥ 2 labels, d ≥ 1 features.
    gamma
        Blind exploration in [0, 1], a number or an `Exploration`. None means 0.15/√t, or 0.15/√half_life where a
        half-life is given. More of it estimates ρ0 better; less of it makes fewer mistakes.
    form
        Which part of Σ_r is kept: "full", "axes" or "diagonal". "auto" decides by the size, as told above.
    rates
        (ρ0, ρ1) where they are known, with 1 − ρ0 − ρ1 at least 10⁻⁹; None: they are learnt. Told rates are never
        doubted, and wrong ones cost far more than none; `estimate()` goes by the bits alone, and shows whether they
        fit.
    half_life
        Rounds, from 1,000 to 10¹⁵, after which what was learnt counts half. None: only an alarm makes it forget.
    seed
        Of the exploration.

    Examples
    --------
    >>> from fliptron import load, simulate
    >>> learner = Fliptron(n_classes=10, n_features=64, seed=1)
    >>> trace = simulate(learner, load("digits"), rates=(0.2, 0.4), rounds=50_000, seed=1)
    >>> trace.error < 0.1
    True
    >>> learner.estimate().verdict
    'identified'

    References
    ----------
    Opper (1998), "A Bayesian approach to on-line learning"; MacKay (1992), "The evidence framework applied to
    classification networks"; MacKay (1994), "Bayesian non-linear modeling for the prediction competition"; Vaswani et
    al. (2020), "Old dog learns new tricks: randomized UCB".
    """

    tables = 1

    def __init__(
        self,
        *,
        n_classes: int,
        n_features: int,
        gamma: float | Exploration | None = None,
        form: Form = "auto",
        rates: tuple[float, float] | None = None,
        half_life: float | None = None,
        seed: int = 0,
    ) -> None:
        self.told = None if rates is None else Rates.of(rates)
        if self.told is not None and self.told.beta < _LEAST_BETA:
            raise InputError(
                f"1 - rho0 - rho1 is {self.told.beta:.2g}; at least {_LEAST_BETA:g} is expected of rates that are told"
            )
        self.form = one_of("form", form, get_args(Form))
        self.half_life = None if half_life is None else real("half_life", half_life, 1000.0, 1e15)
        if gamma is None:
            gamma = Exploration(0.15, power=0.5) if half_life is None else 0.15 / sqrt(self.half_life or 1.0)
        super().__init__(n_classes=n_classes, n_features=n_features, gamma=gamma, seed=seed)

    @property
    def by_feature(self) -> bool:  # type: ignore[override]
        """Whether weights may be laid out by feature: only where Σ_r is its diagonal."""
        return self.kept == "diagonal"

    @property
    def kept(self) -> str:
        """Which part of Σ_r is kept: "full", "axes" or "diagonal"."""
        if self.form != "auto":
            return self.form
        if self.n_classes * self.n_features**2 <= FULL:
            return "full"
        return "diagonal" if self._layout == "by feature" else "axes"

    def arrange(self, layout: Layout) -> None:
        """Lay out the weights for dense or sparse examples; sparse ones have no axes unless these were asked for."""
        with self.held():
            if self._layout is None and layout == "by feature" and self.form == "auto":
                self._layout = layout
                self.state = self._start()
                self._layout = None
            super().arrange(layout)

    def _start(self) -> FliptronState:
        K, d = self.n_classes, self.n_features
        n = {"full": d, "axes": min(axes.AXES, d), "diagonal": 0}[self.kept]  # rows of a matrix
        along = n if self.kept == "axes" else 0
        precision = "float64" if n < PRECISE else "float32"
        if n:
            check_memory(f"Fliptron(form={self.kept!r}) at K={K}, d={d}", K * n * n, "form='diagonal', which needs K·d")
            covariance = np.tile((np.eye(n) * PRIOR).astype(precision), (K, 1, 1))
        else:
            covariance = np.full((K, d), PRIOR)
        counts = np.zeros(SCALARS)
        start(counts)
        counts[MEMORY] = FOR_EVER if self.half_life is None else self.half_life
        if self.told is not None:
            counts[[TOLD, RHO0, PLATEAU]] = 1.0, self.told.rho0, 1.0 - self.told.rho1
        return FliptronState(
            self._weights(),
            self._scores(),
            covariance,
            prior=np.full(d if self.kept == "full" else 0, PRIOR),
            along=np.zeros((K, along)),
            rest=np.full((K, d if along else 0), PRIOR),
            axes=np.zeros((along, d) if along else 0, precision),
            gathered=np.zeros((along, d), precision),
            taken=np.array([0.0, along, 0.0, 0.0]),
            counts=counts,
            labels=np.zeros((K, COLUMNS)),
            alarms=np.zeros((ALARMS, 3)),
            memory=np.zeros((EPOCHS, tallies.CELLS, 3)),
            edges=np.zeros(len(tallies.BANDS)),
            spreads=np.zeros(K),
            work=np.zeros((4, K)),
            pulls=np.zeros((K, n), precision),
            values=np.zeros(d, precision if n == d else "float64"),
            z=np.zeros(along, precision),
            left=np.zeros(d if along else 0, precision),
            seen=np.zeros(d),
            places=np.zeros(d, dtype=np.int64),
            fresh=np.array([-1, *ORDINARY]),
        )

    def _bounds(self) -> dict[str, tuple[float, float]]:
        known = {"counts": (-1e18, 1e18), "labels": (-1e18, 1e18), "alarms": (0.0, 1e18), "edges": (-1e300, 1e300)}
        known |= {"axes": (-1.01, 1.01), "gathered": (-1e9, 1e9), "taken": (0.0, 1e18)}
        return known | {"prior": (PRIOR, WIDEST * PRIOR), "memory": (0.0, 1e80)}  # Σ1/P² over very many rounds

    def _flaw(self) -> str:
        covariance, counts, labels = self.state.covariance, self.state.counts, self.state.labels
        n = int(self.state.taken[axes.FOUND]) if self.kept == "axes" else None
        own = covariance if self.kept == "diagonal" else np.diagonal(covariance, axis1=1, axis2=2)[:, :n]
        for variances in (own, self.state.rest):
            if not ((variances > 1e-30) & (variances < 1e12)).all():  # xᵀΣx hardly exceeds PRIOR, single ones may
                return "a variance is not a positive number of a sensible size"
        if miscounted := axes.flaw(self.state.taken, len(self.state.gathered)):
            return miscounted
        if not {*last_alarms(counts, self.state.alarms)[:, 1]} <= {*KINDS}:
            return "an alarm is of no kind"
        told = counts[TOLD] == (self.told is not None)
        kept = counts[MEMORY] == (FOR_EVER if self.half_life is None else self.half_life)
        return flaw_of_counts(counts, labels) if told and kept else "its counts are not those of its parameters"

    @property
    def params(self) -> dict[str, Any]:
        """Keyword arguments that build this learner anew; plain values, fit for JSON."""
        return super().params | {"rates": None if self.told is None else list(self.told)}

    @property
    def rates(self) -> Rates:
        """The flip rates: those it was told, or its estimate."""
        return self.told or self.estimate().rates

    @property
    def alarms(self) -> list[Alarm]:
        """When the world seemed to change, the last 32 times."""
        with self.held():
            return alarms_of(self.state.counts, self.state.alarms)

    @property
    def weights(self) -> Array:
        """The K×d matrix behind `scores` (a copy)."""
        with self.held():
            return axes.whole_weights(self.state) if self.kept == "axes" else super().weights

    def estimate(self) -> Estimate:
        """The rates with 95 % intervals and a verdict, and the true accuracy, from the bits since the last alarm."""
        with self.held():
            window = int(WINDOW if self.half_life is None else min(self.half_life, WINDOW))
            account = Plateaus(n_classes=self.n_classes, window=window, half_life=self.half_life)
            account.memory[:], account.edges[:] = self.state.memory, self.state.edges
            account.rounds[0] = self.state.counts[SINCE]
            account.memory[0, tallies.DOUBTFUL] = self.state.counts[[DOUBTFUL, DOUBTFUL_ONES, DOUBTFUL_RIGHT]]
            account.sure[1] = self.state.labels[:, [SURE, SURE_ONES]]
        return account.estimate()

    def logits(self, X: Any) -> Array:
        """The scores s_r, all damped alike by the doubt in the best one's lead (n×K).

        Their softmax, `chances`, is what it holds right: 1/K if nothing is known, whatever the length of the row. The
        labels keep the order of their scores.

        Parameters
        ----------
        X
            n rows of d numbers, dense or sparse.
        """
        matrix = self._matrix(X)
        with self.held():
            out = np.empty((count_rows(matrix), self.n_classes))
            damp_all(self.state, matrix, out)
        return out

    def learn(
        self,
        x: Any,
        decision: Decision,
        feedback: int | None = None,
        *,
        truth: int | None = None,
        eligible: Any = None,
    ) -> None:
        """Learn from the bit that came back for a decision, from the right label if somebody verified it, or from both.

        Parameters
        ----------
        x
            The example that the decision was about.
        decision
            What `decide` returned, or the same three numbers from a log.
        feedback
            The bit, 0 or 1, or None.
        truth
            The right label, where it is known for certain; it is learnt instead of the bit. The two together also say
            how the bit was made, which makes the intervals of `estimate()` narrower. Choose what to verify without
            looking at the bit. Of a bit that was learnt from before, say it with `audit`.
        eligible
            The labels that could be played, if not all. The right one may have been missing, so the round says nothing
            about what a random label earns.
        """
        if truth is None and eligible is None:
            super().learn(x, decision, feedback)  # type: ignore[arg-type]  # None is refused there
        else:
            verified = -1 if truth is None else whole("truth", truth, 0, self.n_classes - 1)
            some = eligible is not None and self._only_some(decision, eligible)
            silent = feedback is None and truth is not None
            with self.held():
                self.state.fresh[SOME:] = some, verified, silent
                try:
                    super().learn(x, decision, 0 if silent else feedback)  # type: ignore[arg-type]
                finally:
                    self.state.fresh[SOME:] = ORDINARY
        self.settle()

    def audit(self, x: Any, decision: Decision, feedback: int, truth: int | None) -> None:
        """Take in what came out about a round whose bit was learnt from before.

        Parameters
        ----------
        x
            The example that the decision was about.
        decision
            The decision.
        feedback
            The bit, 0 or 1.
        truth
            The right label. None: it is not known, but the label that was played is wrong.
        """
        row, _ = self._admit(x)
        label = whole("the label of the decision", self._label(decision), 0, self.n_classes - 1)
        bit = whole("feedback", int(feedback) if isinstance(feedback, bool | np.bool_) else feedback, 0, 1)
        right = None if truth is None else whole("truth", truth, 0, self.n_classes - 1)
        with self.held():
            count_audit(self.state, label == right, bit)
            if right is not None:
                teach(self.state, row, right)

    def _label(self, decision: Any) -> Any:
        """What a decision says was played, before anything is checked."""
        return next(iter(self._as_tuple(decision, None)), None)

    def _only_some(self, decision: Decision, eligible: Any) -> bool:
        """Whether some labels were not eligible; the played one was."""
        mask = self._mask(eligible)
        label = self._label(decision)
        if label in range(self.n_classes) and not mask[int(label)]:
            raise InputError(f"label {label} was played, and eligible is {eligible!r}; one that holds it is expected")
        return not mask.all()

    def add_label(self) -> None:
        """Let one more label be played from now on. Bits are accounted for anew: a random label is right less often."""
        with self.held():
            if self._layout is None:  # nothing is known, and the first example may still change the form
                self._add_unseen()
                return
            grow(self, n_classes=self.n_classes + 1, form=self.kept)
            if self.kept == "full":
                self.state.covariance[-1] = np.diag(self.state.prior)
            self.state.memory[:] = 0.0
            self.state.counts[[SINCE, NEXT]] = 0.0

    def _add_unseen(self) -> None:
        self.n_classes += 1
        try:
            self.state = self._start()
        except InputError:  # there is no room for one more
            self.n_classes -= 1
            raise

    def room(self) -> int:
        """How many rounds may be learnt before the next step of forgetting, or before the axes turn."""
        return min(forgetting.rounds_left(self.state.counts, self.half_life), axes.rounds_left(self.state.taken))

    def settle(self) -> None:
        """Turn the axes, or forget a little, when it is time."""
        if self.room() > 0:
            return
        with self.held():  # another thread may have been faster
            if axes.rounds_left(self.state.taken) <= 0:
                axes.turn(self.state)
            if forgetting.rounds_left(self.state.counts, self.half_life) <= 0:
                forgetting.forget_a_little(self.state, self.kept)
