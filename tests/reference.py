"""Textbook twins: every update as its paper writes it, with whole matrices and no care for speed."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np


def outer(r: Any, x: Any, K: Any) -> Any:
    """e_r ⊗ x as a K×d matrix."""
    return np.outer(np.eye(K)[r], x)


class Twin:
    """W (K×d) and the ε-greedy choice of the Banditron paper."""

    def __init__(self, K: Any, d: Any) -> None:
        self.K, self.d = K, d
        self.W = np.zeros((K, d))

    def scores(self, x: Any) -> Any:
        return self.W @ x

    def probabilities(self, x: Any, gamma: Any) -> Any:
        greedy = int(np.argmax(self.scores(x)))
        return [(1 - gamma) * (r == greedy) + gamma / self.K for r in range(self.K)]


class PerceptronTwin(Twin):
    def learn(self, x: Any, label: Any, greedy: Any, p: Any, y: Any) -> None:
        for r in range(self.K):
            self.W[r] += x * (float(y == r) - float(greedy == r))


class RcnbfTwin(Twin):
    """The paper's two-case h, and H entry by entry."""

    def __init__(self, K: Any, d: Any, rates: Any = (0.0, 0.0), step: Any = 1.0) -> None:
        super().__init__(K, d)
        self.rates, self.step = rates, step

    def H(self, x: Any, label: Any, greedy: Any, p: Any, bit: Any) -> Any:
        rho, other = self.rates, 1 - bit
        h = ((1 - rho[other]) * bit - rho[bit] * other) / (1 - rho[0] - rho[1])
        return np.array([x * (h * (label == r) / p - (greedy == r)) for r in range(self.K)])

    def learn(self, x: Any, label: Any, greedy: Any, p: Any, bit: Any) -> None:
        self.W = self.W + self.step * self.H(x, label, greedy, p, bit)


class AveragedTwin(RcnbfTwin):
    """Keeps every past W and averages them."""

    def __init__(self, K: Any, d: Any, rates: Any = (0.0, 0.0)) -> None:
        super().__init__(K, d, rates)
        self.past: list[Any] = []

    @property
    def mean(self) -> Any:
        return np.mean(self.past, axis=0) if self.past else self.W

    def scores(self, x: Any) -> Any:
        return self.mean @ x

    def learn(self, x: Any, label: Any, greedy: Any, p: Any, bit: Any) -> None:
        super().learn(x, label, greedy, p, bit)
        self.past.append(self.W)


class BpaTwin(Twin):
    def __init__(self, K: Any, d: Any, correct_margin: Any = 1.0, variant: Any = "PA", C: Any = 1.0) -> None:
        super().__init__(K, d)
        self.margin, self.variant, self.C = correct_margin, variant, C

    def learn(self, x: Any, label: Any, greedy: Any, p: Any, bit: Any) -> None:
        if not x.any():
            return
        z = self.W[label] @ x
        loss = max(0.0, (self.margin if bit else 1.0) + (1 - 2 * bit) * z)
        tau = {
            "PA": lambda: loss / (x @ x),
            "PA-I": lambda: min(self.C, loss / (x @ x)),
            "PA-II": lambda: loss / (x @ x + 1 / (2 * self.C)),
        }[self.variant]()
        self.W[label] += (2 * bit - 1) * tau * x


class EpabfTwin(Twin):
    """The dual of the quadratic problem, by trying which of its constraints hold with equality, are slack, or at C."""

    def __init__(self, K: Any, d: Any, most: Any = np.inf, slack: Any = 0.0, everyone: Any = False) -> None:
        super().__init__(K, d)
        self.most, self.slack, self.everyone = most, slack, everyone

    def learn(self, x: Any, label: Any, greedy: Any, p: Any, bit: Any) -> None:
        if not x.any():
            return
        rivals = [r for r in range(self.K) if (r != label if bit else r == label or self.everyone)]
        normals = np.array([bit / p * outer(label, x, self.K).ravel() - outer(r, x, self.K).ravel() for r in rivals])
        gram, lacking = normals @ normals.T + self.slack * np.eye(len(rivals)), 1 - normals @ self.W.ravel()
        for kinds in itertools.product(["none", "some", "most"], repeat=len(rivals)):
            price, some = np.where(np.array(kinds) == "most", self.most, 0.0), np.array(kinds) == "some"
            if not np.isfinite(price).all():
                continue
            price[some] = np.linalg.solve(gram[np.ix_(some, some)], (lacking - gram @ price)[some])
            left = lacking - gram @ price
            right = {"none": left <= 1e-12, "some": (price >= 0) & (price <= self.most), "most": left >= -1e-12}
            if all(right[kind][i] for i, kind in enumerate(kinds)):
                self.W = self.W + (price @ normals).reshape(self.K, self.d)
                return
        raise AssertionError("no price fits")


class SobaTwin(Twin):
    """SOBA with A kept as a matrix and W solved for anew each time; diagonal on request."""

    def __init__(self, K: Any, d: Any, a: Any = 1.0, diagonal: Any = False) -> None:
        super().__init__(K, d)
        self.A, self.theta, self.S, self.diagonal = a * np.eye(K * d), np.zeros(K * d), 0.0, diagonal

    def learn(self, x: Any, label: Any, greedy: Any, p: Any, bit: Any) -> None:
        if bit == 0:
            return
        scores = self.W @ x
        rival = max((i for i in range(self.K) if i != label), key=lambda i: scores[i])
        g = ((outer(rival, x, self.K) - outer(label, x, self.K)) / p).ravel()
        z = np.sqrt(p) * g
        w = self.W.ravel()
        m = ((w @ z) ** 2 + 2 * (w @ g)) / (1 + z @ np.linalg.solve(self.A, z))
        if self.S + m >= 0:
            self.S += m
            self.A = self.A + (np.diag(z * z) if self.diagonal else np.outer(z, z))
            self.theta = self.theta - g
            self.W = np.linalg.solve(self.A, self.theta).reshape(self.K, self.d)


class NewtronTwin(Twin):
    """Newtron with A and b kept, −A⁻¹b solved for anew and projected each time."""

    def __init__(self, K: Any, d: Any, rates: Any = (0.0, 0.0), diagonal: Any = False) -> None:
        super().__init__(K, d)
        self.A, self.b, self.rates, self.diagonal = np.eye(K * d), np.zeros(K * d), rates, diagonal

    def softmax(self, x: Any) -> Any:
        odds = np.exp(10.0 * (self.W @ x - np.max(self.W @ x)))
        return odds / odds.sum()

    def probabilities(self, x: Any, gamma: Any) -> Any:
        return (1 - gamma) * self.softmax(x) + gamma / self.K

    def learn(self, x: Any, label: Any, greedy: Any, p: Any, bit: Any) -> None:
        f = (bit - self.rates[0]) / (1 - self.rates[0] - self.rates[1])
        delta = (f - self.softmax(x)[label]) / p * np.kron(np.ones(self.K) / self.K - np.eye(self.K)[label], x)
        weight = 0.01 * (p if bit == 1 else 1.0)
        self.b = self.b + (1 - weight * (delta @ self.W.ravel())) * delta
        self.A = self.A + weight * (np.diag(delta * delta) if self.diagonal else np.outer(delta, delta))
        w = -np.linalg.solve(self.A, self.b)
        self.W = (w / max(float(np.linalg.norm(w)), 1.0)).reshape(self.K, self.d)


class GappletronTwin(Twin):
    """Every gradient is kept, and the length of a step is summed anew each time."""

    rates: Any = (0.1, 0.2)

    def __init__(self, K: Any, d: Any) -> None:
        super().__init__(K, d)
        self.past: list[Any] = []

    def softmax(self, x: Any) -> Any:
        odds = np.exp(self.W @ x)
        return odds / odds.sum()

    def probabilities(self, x: Any, gamma: Any) -> Any:
        p = self.softmax(x)
        doubt = 1 - p.max() if p.max() >= 0.5 else 1.0
        return super().probabilities(x, max(doubt, gamma))

    def h(self, bit: Any) -> Any:
        return (bit - self.rates[0]) / (1 - self.rates[0] - self.rates[1])

    def gradient(self, x: Any, label: Any, p: Any, bit: Any) -> Any:
        return self.h(bit) / p * np.outer(self.softmax(x) - np.eye(self.K)[label], x)

    def learn(self, x: Any, label: Any, greedy: Any, p: Any, bit: Any) -> None:
        self.past.append(self.gradient(x, label, p, bit))
        self.W = self.W - 3.0 / np.sqrt(2 * (1e-8 + np.sum(np.square(self.past)))) * self.past[-1]


class RdueTwin(GappletronTwin):
    """Gappletron's gradient, and choices from the softmax itself."""

    def probabilities(self, x: Any, gamma: Any) -> Any:
        p = self.softmax(x)
        m = min(1, 2 * (1 - p.max()))
        return (1 - gamma) * ((1 - m) * np.eye(self.K)[p.argmax()] + m * p) + gamma / self.K


class PseudoRdueTwin(RdueTwin):
    """The gradient from V⁻¹P⁺, with the paper's matrices: V is the loss of every label against every other."""

    def gradient(self, x: Any, label: Any, p: Any, bit: Any) -> Any:
        V, played = np.ones((self.K, self.K)) - np.eye(self.K), np.eye(self.K)[label]
        return np.outer(self.softmax(x) - np.linalg.solve(V, played / p * (1 - self.h(bit))), x)


class SeparableTwin(Twin):
    """K perceptrons, each stepping when the bit proves it wrong."""

    def probabilities(self, x: Any, gamma: Any) -> Any:
        scores = self.scores(x)
        return np.eye(self.K)[scores.argmax()] if scores.max() >= 0 else np.full(self.K, 1 / self.K)

    def learn(self, x: Any, label: Any, greedy: Any, p: Any, bit: Any) -> None:
        scores = self.scores(x)
        for r in range(self.K):
            if r == label and bit == 1 and scores[r] <= 0:
                self.step(r, 1.0, x)
            elif ((r != label and bit == 1) or (r == label and bit == 0)) and scores[r] >= 0:
                self.step(r, -1.0, x)

    def step(self, r: Any, sign: Any, x: Any) -> None:
        self.W[r] += sign * x


class KernelTwin(SeparableTwin):
    """The same on a list of examples; W are their signs, one column per place."""

    def __init__(self, K: Any, d: Any, budget: Any) -> None:
        super().__init__(K, d)
        self.kept: list[Any] = []
        self.budget, self.place = budget, -1
        self.W = np.zeros((K, budget))

    def scores(self, x: Any) -> Any:
        return np.array([sum(signs[r] / (1 - 0.5 * (z @ x)) for z, signs in self.kept) for r in range(self.K)])

    def learn(self, x: Any, label: Any, greedy: Any, p: Any, bit: Any) -> None:
        self.new = np.zeros(self.K)
        super().learn(x, label, greedy, p, bit)
        if self.new.any():
            self.kept = [*self.kept, (x, self.new)][-self.budget :]
            self.place = (self.place + 1) % self.budget
            self.W[:, self.place] = self.new

    def step(self, r: Any, sign: Any, x: Any) -> None:
        self.new[r] = sign


class RidgeTwin(Twin):
    """Keeps A_l and b_l and solves."""

    def __init__(self, K: Any, d: Any, lam: Any = 1.0, signed: Any = False) -> None:
        super().__init__(K, d)
        self.A, self.b, self.signed = [lam * np.eye(d) for _ in range(K)], np.zeros((K, d)), signed

    def bonus(self, x: Any) -> Any:
        return np.array([np.sqrt(x @ np.linalg.solve(A, x)) for A in self.A])

    def learn(self, x: Any, label: Any, greedy: Any, p: Any, bit: Any) -> None:
        self.A[label] = self.A[label] + np.outer(x, x)
        self.b[label] += (2 * bit - 1 if self.signed else bit) * x
        self.W[label] = np.linalg.solve(self.A[label], self.b[label])


class LmsTwin(Twin):
    def __init__(self, K: Any, d: Any, step: Any) -> None:
        super().__init__(K, d)
        self.G, self.step = np.zeros((K, d)), step

    def learn(self, x: Any, label: Any, greedy: Any, p: Any, bit: Any) -> None:
        g = (self.W[label] @ x - bit) * x
        self.G[label] += g**2
        moved = self.G[label] > 0
        self.W[label][moved] -= self.step * g[moved] / np.sqrt(self.G[label][moved])


class FliptronTwin(Twin):
    """Bayes' rule for one bit with derivatives taken by complex steps, and choices by every crossing of
    the labels' upper bounds."""

    def __init__(self, K: Any, d: Any, diagonal: Any = False, rates: Any = None) -> None:
        super().__init__(K, d)
        self.cov, self.kept = [100.0 * np.eye(d) for _ in range(K)], np.eye(d) if diagonal else np.ones((d, d))
        self.channel = ChannelTwin(K, rates)

    def probabilities(self, x: Any, gamma: Any) -> Any:
        gamma = 1.0 if self.channel.warming_up() else gamma
        s, sigma = self.W @ x, self.channel.reach() * np.array([np.sqrt(x @ C @ x) for C in self.cov])
        crossings = [
            (s[a] - s[b]) / (sigma[b] - sigma[a]) for a in range(self.K) for b in range(a) if sigma[a] != sigma[b]
        ]
        cuts = np.unique([0.0, 1.0, *(z for z in crossings if 0 < z < 1)])
        P = np.full(self.K, gamma / self.K)
        for low, high in itertools.pairwise(cuts):
            P[np.argmax(s + (low + high) / 2 * sigma)] += (1 - gamma) * (high - low)
        return P

    def learn(self, x: Any, label: Any, greedy: Any, p: Any, bit: Any) -> None:
        if not x.any():  # which says nothing of any label
            self.channel.count(np.full(self.K, 1 / self.K), label, p, bit)
            return
        x = x / np.linalg.norm(x)
        s, v = self.W @ x, np.array([x @ C @ x for C in self.cov])
        rho0, sure = self.channel.rates_to_learn_by(label)
        best = int(np.argmax(s))
        others = np.exp(np.delete(s - s[best], best))
        doubt = np.sum(others**2 * np.delete(v, best)) / others.sum() ** 2
        damped = np.exp((s - s[best]) / np.sqrt(1 + np.pi / 8 * (v[best] + doubt)))
        alarm = self.channel.count(damped / damped.sum(), label, p, bit)
        chances = []
        for r in range(self.K):
            others = [k for k in range(self.K) if k != r]
            weights = np.exp(s[others])
            doubt = np.sum((weights / weights.sum()) ** 2 * v[others])

            def chance(m: Any, r: Any = r, others: Any = others, weights: Any = weights, doubt: Any = doubt) -> Any:
                lead = (m - np.log(weights.sum())) / np.sqrt(1 + np.pi / 8 * (v[r] + doubt))
                beside = 1.0 if r == label else weights[others.index(label)] / weights.sum()
                return rho0 + (sure - rho0) * beside / (1 + np.exp(-lead if r == label else lead))

            chances.append(chance)
        slopes = np.array([complex_step(chance, s[r]) for r, chance in enumerate(chances)])
        part = min(1.0, slopes[label] / -np.delete(slopes, label).sum())
        for r, chance in enumerate(chances):
            weight = 1.0 if r == label else part
            bend = (complex_step(chance, s[r] + 1e-5) - complex_step(chance, s[r] - 1e-5)) / 2e-5
            likely, sign = (chance(s[r]), 1) if bit else (1 - chance(s[r]), -1)
            g = sign * weight * slopes[r] / likely
            if abs(g) * np.sqrt(v[r]) < 1e-3:
                continue
            h = g**2 - sign * weight * bend / likely
            h = min(max(h, -1 / v[r], (v[r] - 100) / v[r] ** 2), 0.9 / v[r])
            pull = self.cov[r] @ x
            self.W[r] += g * pull
            self.cov[r] = self.cov[r] - h * np.outer(pull, pull) * self.kept
        if alarm == "data":
            self.W[:] = 0
            self.cov = [100.0 * np.eye(x.size) for _ in range(self.K)]
        for r in self.channel.overlooked():
            self.W[r], self.cov[r] = 0, 100.0 * np.eye(x.size)


class AxesTwin(FliptronTwin):
    """A Fliptron on (z, x − Vᵀz), whole in z and diagonal in the rest, whose axes V are powers of the examples."""

    def __init__(self, K: Any, d: Any) -> None:
        super().__init__(K, 2 * d)  # as many axes as features
        self.kept[d:] = self.kept[:, d:] = 0.0
        self.kept += np.diag(np.repeat([0.0, 1.0], d))
        self.V = np.zeros((d, d))
        self.examples: list[Any] = []

    def split(self, x: Any) -> Any:
        return np.concatenate([self.V @ x, x - self.V.T @ self.V @ x])

    def scores(self, x: Any) -> Any:
        return super().scores(self.split(x))

    def probabilities(self, x: Any, gamma: Any) -> Any:
        return super().probabilities(self.split(x), gamma)

    def learn(self, x: Any, *told: Any) -> None:
        d = len(self.V)
        if x.any():
            self.examples.append(x / np.linalg.norm(x))
        super().learn(self.split(x), *told)
        if len(self.examples) == d:  # the first axes are the first examples; before, there were none
            V = np.linalg.qr(np.array(self.examples).T)[0].T
            self.W = np.hstack([self.W[:, d:] @ V.T, self.W[:, d:]])
            for C in self.cov:
                C[:d, :d] = V @ C[d:, d:] @ V.T
            self.V = V

    @property
    def mean(self) -> Any:
        d = len(self.V)
        P = np.eye(d) - self.V.T @ self.V
        return self.W[:, :d] @ self.V + self.W[:, d:] @ P


class ChannelTwin:
    """The rates that Fliptron learns by, from lists of bits."""

    def __init__(self, K: Any, rates: Any) -> None:
        self.K, self.told = K, rates
        self.bits: list[Any] = []
        self.doubtful: list[Any] = []  # label, bit, chance of being right
        self.sure = np.zeros((K + 1, 2))  # the last row: all labels
        self.level, self.evidence, self.guess = np.zeros(K), np.zeros((K, 3)), 0.75
        self.history: list[Any] = []  # label, log likelihood ratio
        self.began = [0] * K
        self.since = self.restarts = self.next = 0
        self.played, self.open = np.zeros(K), 0.0
        self.best = np.zeros(K + 1)  # rounds with a sure best label; the last: of all
        self.rho0: Any = 0.25 if rates is None else rates[0]
        self.plateau: Any = 0.75 if rates is None else 1 - rates[1]
        self.at_least = self.asking = False

    def warming_up(self) -> Any:
        return self.asking or (min(sum(self.bits), len(self.bits) - sum(self.bits)) < 5 and len(self.bits) < 3000)

    def told_by(self, bits: Any) -> Any:
        beta = self.plateau - self.rho0
        m = self.rho0 + beta / self.K
        return bits * beta**2 / (m * (1 - m)) / (1000 + 10 * self.K**2)

    def reach(self) -> Any:
        return 0.5 + 2 / (1 + self.told_by(self.K * self.played))

    def overlooked(self) -> Any:
        if self.since < self.next or self.told_by(self.since) < 1:
            return []
        self.next = 4 * self.since
        found = [r for r in range(self.K) if self.best[r] * self.K < 0.1 * self.best[-1]]
        if 1.5 * len(found) >= self.open * self.K:
            return []
        self.played[found] = 0
        return found

    def rates_for(self, label: Any) -> Any:
        beta = self.plateau - self.rho0
        if self.told is not None:
            return self.rho0, beta
        worth = max(self.plateau * (1 - self.plateau) / (0.1 * beta) ** 2, 20)
        plateau = (self.sure[label, 1] + worth * self.plateau) / (self.sure[label, 0] + worth)
        worth = max(self.rho0 * (1 - self.rho0) / (0.1 * beta) ** 2, 20)
        mine = np.array([(1, bit, q) for which, bit, q in self.doubtful if which == label]).reshape(-1, 3)
        n, ones, right = mine.sum(axis=0)
        rho0 = (max(ones - right * plateau, 0) + worth * self.rho0) / (n - right + worth)
        return rho0, max(plateau - rho0, 0.25 * beta)

    def rates_to_learn_by(self, label: Any) -> Any:
        rho0, beta = self.rates_for(label)
        return rho0 + 0.01 * beta, rho0 + 0.9 * beta

    def count(self, q: Any, label: Any, p: Any, bit: Any) -> Any:
        K, best, alarm = self.K, int(np.argmax(q)), None
        self.bits.append(bit)
        self.since += 1
        self.played[label] += 1
        self.open += (1 - q[best] - self.open) / max(self.since / 4, 200)
        if q[best] * (K - 1) > 5 * (1 - q[best]):
            for row, recent in ((best, max(self.since / 4 / K, 50)), (K, max(self.since / 4, 200))):
                self.best[row] += 1 - self.best[row] / recent
        above = q[best] >= self.level[best]
        self.level[best] += 0.02 * (0.8 - (not above)) * max(1 - self.level[best], 0.01)
        self.level[best] = np.clip(self.level[best], 0, 0.99)
        odds = q[label] * (K - 1) / max(1 - q[label], 1e-9)
        if p == 1 / K or odds < 2:
            self.doubtful.append((label, bit, 1 / K if p == 1 / K else q[label]))
        elif odds > 5:
            if q[label] >= self.level[label]:
                for row, recent in ((label, max(self.since / 4 / K, 50)), (K, max(self.since / 4, 200))):
                    self.sure[row] = self.sure[row] * (1 - 1 / recent) + (1, bit)
            alarm = self.suspect(label, q[label], bit)
        if self.told is None and self.settle():
            alarm = "data"
        if alarm == "data":
            self.restarts += 1
            self.sure *= 0 if self.at_least else 20 / max(self.sure[-1, 0], 20)
            self.since, self.evidence[:], self.history, self.began = 0, 0, [], [0] * K
            self.next, self.played[:] = 0, 0
            self.guess *= 0.5 if self.at_least else 1
        return alarm

    def settle(self) -> Any:
        n, ones, right = np.sum([(1, bit, q) for _, bit, q in self.doubtful] + [(1, 0.5, 1 / self.K)], axis=0)
        m, r = ones / n, right / n
        bound = min(m / r, (1 - m) / (1 - r))
        guess = min(self.guess * bound, np.sqrt((1000 + 10 * self.K**2) * m * (1 - m) / self.since)) * (1 - r)
        plateau, least = (self.sure[-1, 1] + 20 * (m + guess)) / (self.sure[-1, 0] + 20), m + 0.5 * guess
        little = self.sure[-1, 0] * guess**2 < 200 * m * (1 - m)
        self.at_least, self.plateau = plateau < least and little, max(plateau, least) if little else plateau
        odd = plateau < m + 0.25 * guess and not little
        self.asking = odd and n < 200
        hopeless = odd and n >= 200 and plateau < m + 0.05 * guess
        if hopeless:
            self.at_least, self.plateau = True, least
        self.rho0 = max(min(max(ones - self.plateau * right, 0) / (n - right), self.plateau - 0.05 * bound), 0)
        return hopeless

    def suspect(self, label: Any, q: Any, bit: Any) -> Any:
        rho0, beta = self.rates_for(label)
        good, bad = np.clip(rho0 + beta * q, 0.002, 0.99), np.clip(rho0 + beta * q / 2, 0.001, 0.99)
        ratio = np.log(bad / good) if bit else np.log((1 - bad) / (1 - good))
        self.evidence[label] += (ratio, 1, bit)
        self.history.append((label, ratio))
        if self.evidence[label, 0] <= 0:
            self.evidence[label], self.began[label] = 0, len(self.history)
        others = sum(r for which, r in self.history[self.began[label] :] if which != label)
        enough, mine = (4 + np.log(len(self.bits))) * (1 + self.restarts), self.evidence[label, 0]
        if mine <= (enough if others > 4 else 2 * enough):
            return None
        if others <= 4 and self.evidence[label, 2] > (rho0 + 0.55 * beta) * self.evidence[label, 1]:
            return None
        _, n, ones = self.evidence.sum(axis=0)
        assert not (others > 0 and ones > (rho0 + 0.25 * beta) * n), "a change of the noise, which no twin is asked for"
        return "data"


def complex_step(f: Any, at: Any) -> Any:
    """f′(at), exact to rounding."""
    return np.imag(f(at + 1e-30j)) / 1e-30
