"""Textbook twins: every update as its paper writes it, with whole matrices and no care for speed."""

from __future__ import annotations

import numpy as np


def outer(r, x, K):
    """e_r ⊗ x as a K×d matrix."""
    return np.outer(np.eye(K)[r], x)


class Twin:
    """W (K×d) and the ε-greedy choice of the Banditron paper."""

    def __init__(self, K, d):
        self.K, self.d = K, d
        self.W = np.zeros((K, d))

    def scores(self, x):
        return self.W @ x

    def probabilities(self, x, gamma):
        greedy = int(np.argmax(self.scores(x)))
        return [(1 - gamma) * (r == greedy) + gamma / self.K for r in range(self.K)]


class PerceptronTwin(Twin):
    def learn(self, x, label, greedy, p, y):
        for r in range(self.K):
            self.W[r] += x * (float(y == r) - float(greedy == r))


class RcnbfTwin(Twin):
    """The paper's two-case h, and H entry by entry."""

    def __init__(self, K, d, rates=(0.0, 0.0)):
        super().__init__(K, d)
        self.rates = rates

    def H(self, x, label, greedy, p, bit):
        rho, other = self.rates, 1 - bit
        h = ((1 - rho[other]) * bit - rho[bit] * other) / (1 - rho[0] - rho[1])
        return np.array([x * (h * (label == r) / p - (greedy == r)) for r in range(self.K)])

    def learn(self, x, label, greedy, p, bit):
        self.W = self.W + self.H(x, label, greedy, p, bit)


class AveragedTwin(RcnbfTwin):
    """Keeps every past W and averages them."""

    def __init__(self, K, d, rates=(0.0, 0.0)):
        super().__init__(K, d, rates)
        self.past = []

    @property
    def mean(self):
        return np.mean(self.past, axis=0) if self.past else self.W

    def scores(self, x):
        return self.mean @ x

    def learn(self, x, label, greedy, p, bit):
        super().learn(x, label, greedy, p, bit)
        self.past.append(self.W)


class BpaTwin(Twin):
    def __init__(self, K, d, correct_margin=1.0, variant="PA", C=1.0):
        super().__init__(K, d)
        self.margin, self.variant, self.C = correct_margin, variant, C

    def learn(self, x, label, greedy, p, bit):
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


class SobaTwin(Twin):
    """SOBA with A kept as a matrix and W solved for anew each time; diagonal on request."""

    def __init__(self, K, d, a=1.0, diagonal=False):
        super().__init__(K, d)
        self.A, self.theta, self.S, self.diagonal = a * np.eye(K * d), np.zeros(K * d), 0.0, diagonal

    def learn(self, x, label, greedy, p, bit):
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


class RidgeTwin(Twin):
    """Keeps A_l and b_l and solves."""

    def __init__(self, K, d, lam=1.0, signed=False):
        super().__init__(K, d)
        self.A, self.b, self.signed = [lam * np.eye(d) for _ in range(K)], np.zeros((K, d)), signed

    def bonus(self, x):
        return np.array([np.sqrt(x @ np.linalg.solve(A, x)) for A in self.A])

    def learn(self, x, label, greedy, p, bit):
        self.A[label] = self.A[label] + np.outer(x, x)
        self.b[label] += (2 * bit - 1 if self.signed else bit) * x
        self.W[label] = np.linalg.solve(self.A[label], self.b[label])


class LmsTwin(Twin):
    def __init__(self, K, d, step):
        super().__init__(K, d)
        self.G, self.step = np.zeros((K, d)), step

    def learn(self, x, label, greedy, p, bit):
        g = (self.W[label] @ x - bit) * x
        self.G[label] += g**2
        moved = self.G[label] > 0
        self.W[label][moved] -= self.step * g[moved] / np.sqrt(self.G[label][moved])
