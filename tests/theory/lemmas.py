"""The deterministic lemmas of the analysis, as measurements on a trajectory.

Indexing matters. The paper's text counts round t in N_t; its algorithm and half of its proofs do not. Lemmas 1 and 6
hold for the first reading only (`after=True`, evidence after the round's update), and for the second after a small
correction: gamma^(-1/2) U in Lemma 1, gamma A + 1 for A in Lemma 6."""

import math

import numpy as np
from numpy.typing import NDArray

from driftbandit.paper.theory import theorem as f

Series = NDArray[np.float64]
Plays = NDArray[np.bool_]


def discounted(values: Series, eps: float, after: bool = True) -> Series:
    """sum_{j <= t} gamma^(t-j) values_j for each t (`after=False`: what the algorithm holds before round t)."""
    gamma, total = 1.0 - eps, 0.0
    out = np.empty(len(values))
    for t, value in enumerate(values.tolist()):
        if after:
            total = gamma * total + value
            out[t] = total
        else:
            out[t] = total
            total = gamma * total + value
    return out


def counts(plays: Plays, eps: float, after: bool = True) -> Series:
    """N_t of one arm; `plays` says in which rounds it was played."""
    return discounted(plays.astype(np.float64), eps, after)


def rare_plays(plays: Plays, level: float, eps: float, after: bool = True) -> int:
    """Left side of Lemma 6: rounds in which the arm is played with a discounted count below `level`."""
    return int((plays & (counts(plays, eps, after) < level)).sum())


def rare_plays_limit(horizon: int, level: float, eps: float, after: bool = True) -> float:
    """Right side of Lemma 6: ceil(T eps) level G. Before the update, N < A means N' < gamma A + 1 after it."""
    return math.ceil(horizon * eps) * (level if after else (1.0 - eps) * level + 1.0) * f.G(eps)


def bias(plays: Plays, means: Series, eps: float, after: bool = True) -> tuple[Series, Series]:
    """(|mu_t - mu2_t|, N_t): how far the discounted average of an arm's past means is from its present mean.

    The bias is NaN where the arm has no evidence; compare only where N_t > 0."""
    weight = counts(plays, eps, after)
    total = discounted(np.where(plays, means, 0.0), eps, after)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.abs(means - total / weight), weight


def bias_limit(weight: Series, eps: float, drift: float = 0.0, after: bool = True) -> Series:
    """Right side of Lemma 1 (drift 0, pseudo-stationary rounds) and Lemma 3 (any round): U + drift D."""
    with np.errstate(divide="ignore"):
        limit = np.sqrt(-eps * math.log(eps) / weight) + (drift * f.D(eps) if drift else 0.0)
    return limit if after else limit / math.sqrt(1.0 - eps)


def deviation_tail(level: float, total_count: float, eta: float = 2.0) -> float:
    """Garivier and Moulines' bound on P(N (mean - mu2) / sqrt(N(gamma^2)) > level), with total_count = n_t.

    It sums one Hoeffding bound for each slice of N(gamma^2) between 1 and n_t, so it needs N(gamma^2) >= 1 and at
    least one slice. Without the first an arm that stops being played at a lucky moment keeps its ratio forever: the
    ratio is then frozen while the bound stays put, and the inequality fails."""
    slices = max(1, math.ceil(math.log(total_count) / math.log1p(eta)))
    return slices * math.exp(-2.0 * level * level * (1.0 - eta * eta / 16.0))


def log_lemma7_tail(eps: float) -> float:
    """ln of Lemma 7's bound eps^48 ln(1/eps) on a well-explored arm looking a third of its gap too good."""
    return 48.0 * math.log(eps) + math.log(-math.log(eps))
