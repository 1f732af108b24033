"""Contextual policies by the book, for tests: slow, and small enough to read."""

import math
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.primitives import argmax_fair, compilable


class LinUCBState(NamedTuple):
    inverse: Any  # of the design matrix, groups × n × n
    target: Any  # groups × n
    shape: Any  # groups, coefficients
    half: Any  # scratch
    scores: Any


@compilable
def dot_row(matrix: Any, first: int, x: Any, start: int, n: int) -> Any:
    total = 0.0
    for j in range(n):
        total += matrix[first + j] * x[start + j]
    return total


class BookLinUCB(NamedTuple):
    """LinUCB of Abbasi-Yadkori, Pál and Szepesvári (2011), without an intercept, with the radius of Russac's code."""

    ridge: float = 0.1
    delta: float = 0.01
    noise: float = 1.0

    def init(self, n_arms: int, n_features: int = 0, joint: bool = False) -> LinUCBState:
        n, groups = max(n_features, 1), 1 if joint else n_arms
        inverse = np.tile(np.eye(n) / self.ridge, (groups, 1, 1)).ravel()
        shape = np.array([groups, n])
        return LinUCBState(inverse, np.zeros(groups * n), shape, np.zeros(n), np.zeros(n_arms))

    def choose(self, state: LinUCBState, t: int, rng: Any) -> Any:
        return self.choose_in(state, t, rng, state.shape[1:])

    def choose_in(self, state: LinUCBState, t: int, rng: Any, features: Any) -> Any:
        groups, n, scores = state.shape[0], state.shape[1], state.scores
        width = self.noise * math.sqrt(2.0 * math.log(1.0 / self.delta) + n * math.log(1.0 + t / (self.ridge * n)))
        for arm in range(len(scores)):
            group = 0 if groups < len(scores) else arm
            start = arm * n if groups < len(scores) else 0
            mean = 0.0
            square = 0.0
            for i in range(n):
                row = dot_row(state.inverse, (group * n + i) * n, features, start, n)
                mean += row * state.target[group * n + i]
                square += row * features[start + i]
            scores[arm] = mean + (math.sqrt(self.ridge) + width) * math.sqrt(max(square, 0.0))
        return argmax_fair(scores, rng)

    def learn(self, state: LinUCBState, t: int, arm: Any, reward: Any) -> None:
        self.learn_in(state, t, arm, reward, state.shape[1:])

    def learn_in(self, state: LinUCBState, t: int, arm: Any, reward: Any, features: Any) -> None:
        self.take_in(state, arm, reward, 1.0, features)

    def take(self, state: LinUCBState, arm: Any, reward: Any, weight: float) -> None:
        self.take_in(state, arm, reward, weight, state.shape[1:])

    def fade(self, state: LinUCBState, factor: float) -> None:
        for i in range(len(state.inverse)):
            state.inverse[i] /= factor
        for i in range(len(state.target)):
            state.target[i] *= factor

    def take_in(self, state: LinUCBState, arm: Any, reward: Any, weight: float, features: Any) -> None:
        n, half = state.shape[1], state.half
        group = 0 if state.shape[0] < len(state.scores) else arm
        square = 1.0 / weight
        for i in range(n):
            half[i] = dot_row(state.inverse, (group * n + i) * n, features, 0, n)
            square += half[i] * features[i]
        for i in range(n):
            state.target[group * n + i] += weight * reward * features[i]
            for j in range(n):
                state.inverse[(group * n + i) * n + j] -= half[i] * half[j] / square
