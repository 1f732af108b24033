"""Tiny environments with known means, and a way to compare a number with printed digits."""

import math

import numpy as np


class Table:
    """An environment given row by row; remembers the largest block it was asked for."""

    def __init__(self, rows):
        self.rows = np.asarray(rows, dtype=float)
        self.horizon, self.n_arms = self.rows.shape
        self.largest = 0

    def means(self, start, stop):
        self.largest = max(self.largest, stop - start)
        return self.rows[start:stop]


class Smooth:
    """The paper's smooth environment: mu_t(i) = (K-1)/K - |w(t) - i|/K, w(t) = 1 + (K-1)(1 + sin(t sigma))/2."""

    def __init__(self, n_arms, horizon, sigma, first=1):
        self.n_arms, self.horizon, self.sigma, self.first = n_arms, horizon, sigma, first

    def means(self, start, stop):
        arms = self.n_arms
        t = np.arange(start, stop) + self.first
        w = 1.0 + (arms - 1) * (1.0 + np.sin(t * self.sigma)) / 2.0
        return (arms - 1) / arms - np.abs(w[:, None] - np.arange(1, arms + 1)) / arms


class Phases:
    """Constant means in each of several phases of equal length; rows are computed, not stored."""

    def __init__(self, levels, length):
        self.levels, self.length = np.asarray(levels, dtype=float), length
        self.horizon, self.n_arms = length * len(levels), self.levels.shape[1]

    def means(self, start, stop):
        return self.levels[np.arange(start, stop) // self.length]


def shows(value, text):
    """Does `value` round to the digits of `text`, written like 35.7927 or 2.859076e-7?"""
    mantissa, _, exponent = text.partition("e")
    decimals = len(mantissa.partition(".")[2])
    scaled = value / 10.0 ** int(exponent or 0)
    return math.isclose(round(scaled, decimals), float(mantissa), rel_tol=1e-12)
