"""Do the propensities fit what was played? Over all events at which an arm was offered, 1[played] / propensity sums to
their number, but for chance. Two tests of that, both in one pass:

- over the whole log, arm by arm: a wrong number in the file, arms that were not drawn evenly;
- over time: right on the whole but wrong for long stretches, as when a log holds each arm's average share while the
  logger changed its mind. With true propensities the misses of successive stretches are uncorrelated whatever the
  logger did; with such ones they go together."""

import math

import numpy as np

from driftbandit.logs.faults import Faults

CERTAIN = 1.0 - 1e-9
_STRETCHES = 128  # the most that are kept; then two make one
_FEWEST = 24
_FAR, _STRANGE = 6.0, 4.4  # standard deviations: refused, and warned of (by chance one log in 100,000)


class RoundingTest:
    """Are the propensities rounded so coarsely that the smallest, which weigh most, are far from what they were?"""

    _SEVERAL = 8  # different values; fewer may well be exact, as 0.92 and 0.02
    _MUCH = 0.02

    def __init__(self) -> None:
        self.values: set[float] = set()
        self.decimals = 1
        self.least = 1.0

    def take(self, mu: np.ndarray) -> None:
        """Take in propensities, all of them in (0, 1] if the log is sound."""
        self.least = min(self.least, float(mu.min()))
        while self.decimals <= 4 and not np.allclose(mu, np.round(mu, self.decimals), rtol=0.0, atol=1e-9):
            self.decimals += 1
        if len(self.values) < self._SEVERAL:
            self.values.update(np.unique(mu)[: self._SEVERAL].tolist())

    def warning(self) -> str:
        """A sentence, if rounding matters."""
        off = 0.5 * 0.1**self.decimals / self.least
        if self.decimals > 4 or len(self.values) < self._SEVERAL or off < self._MUCH:
            return ""
        return (
            f"The propensities are rounded to {self.decimals} decimal{'s' if self.decimals > 1 else ''}: the smallest, "
            f"{self.least:g}, may be off by {100.0 * off:.0f} %, and so may the weight of its rows. Write more."
        )


class Fit:
    """Sums by arm, in the order in which arms are met."""

    def __init__(self, most_arms: int) -> None:
        self.inverse, self.variance, self.offered, self.even = (np.zeros(most_arms) for _ in range(4))
        self.least, self.most = np.ones(most_arms), np.zeros(most_arms)  # propensities of each arm
        self.stretches: list[np.ndarray] = []  # by arm: 1[played]/propensity - 1[offered], and plays without a number
        self.size = 256  # events of a stretch
        self.held, self.filled = np.zeros((2, most_arms)), 0

    def take(self, arm: np.ndarray, mu: np.ndarray, allowed: np.ndarray | None) -> None:
        """Count a piece; a propensity of NaN stands for 1 / number of arms, which is known at the end. Where one arm
        had all the chance the others were not offered, whatever the file says: such events fit by themselves."""
        free = ~(mu > CERTAIN)
        if not free.all():
            arm, mu, allowed = arm[free], mu[free], None if allowed is None else allowed[free]
        size = len(self.inverse)
        good = np.isfinite(mu) & (mu > 0)
        a, m = arm[good], mu[good]
        self.inverse += np.bincount(a, 1.0 / m, minlength=size)
        with np.errstate(divide="ignore"):  # a chance of 1e-200 is refused later
            self.variance += np.bincount(a, (1.0 - m) / (m * m), minlength=size)
        np.minimum.at(self.least, a, m)
        np.maximum.at(self.most, a, m)
        self.even += np.bincount(arm[~good], minlength=size)
        if allowed is None:
            self.offered += len(arm)
        else:
            width = min(allowed.shape[1], size)
            self.offered[:width] += allowed[:, :width].sum(axis=0)
            self.offered[width:] += allowed[:, -1].sum()
        self._stretch(arm, np.where(good, 1.0 / np.where(good, mu, 1.0), 0.0), ~good, allowed)

    def _stretch(self, arm: np.ndarray, inverse: np.ndarray, even: np.ndarray, allowed: np.ndarray | None) -> None:
        size, start = len(self.inverse), 0
        while start < len(arm):
            some = slice(start, min(start + self.size - self.filled, len(arm)))
            self.held[0] += np.bincount(arm[some], inverse[some], minlength=size)
            self.held[1] += np.bincount(arm[some], even[some], minlength=size)
            if allowed is None:
                self.held[0] -= some.stop - start
            else:
                width = min(allowed.shape[1], size)
                self.held[0, :width] -= allowed[some, :width].sum(axis=0)
                self.held[0, width:] -= allowed[some, -1].sum()
            self.filled += some.stop - start
            start = some.stop
            if self.filled == self.size:
                self.stretches.append(self.held)
                self.held, self.filled = np.zeros((2, size)), 0
                if len(self.stretches) == _STRETCHES:
                    pairs = zip(self.stretches[::2], self.stretches[1::2], strict=True)
                    self.stretches = [one + two for one, two in pairs]
                    self.size *= 2

    def over_time(self, order: list[int]) -> float:
        """How many standard deviations the misses of successive stretches go together: each product is a martingale
        difference, whose squares say how large their sum is by chance."""
        if len(self.stretches) < _FEWEST:
            return 0.0
        sums = np.array([stretch[:, order] for stretch in self.stretches])
        misses = sums[:, 0] + len(order) * sums[:, 1]
        products = (misses[:-1] * misses[1:]).sum(axis=1)
        scale = math.sqrt(float((products * products).sum()))
        return float(products.sum()) / scale if scale > 0.0 else 0.0

    def _unseen(self, code: int, missing: float) -> float:
        """The variance that plays would have shown which chance left out. A sum falls short where an arm had a small
        propensity and was not played; no row then says how small it was. It may have been as small as the smallest of
        the log, and of an arm whose propensities varied, as far below its smallest as that is below its largest."""
        varied = self.least[code] ** 2 / self.most[code] if self.most[code] > 0.0 else 1.0
        return max(missing, 0.0) * (1.0 / min(float(self.least.min()), float(varied)) - 1.0)

    def judge(self, arms: list[str], order: list[int], uniform: bool, faults: Faults, warnings: list[str]) -> None:
        """Refuse what cannot be, warn of what is strange."""
        k = len(arms)
        for name, code in zip(arms, order, strict=True):
            expected = float(self.offered[code])
            total = float(self.inverse[code] + k * self.even[code])
            variance = float(self.variance[code] + self.even[code] * (1.0 - 1.0 / k) * k * k)
            variance += self._unseen(code, expected - total)
            z = (total - expected) / math.sqrt(max(variance, 1.0))
            ratio = total / max(expected, 1.0)
            if abs(z) > _FAR and abs(ratio - 1.0) > 0.1:
                declared = "declared uniform" if uniform else "given"
                faults.add(
                    f"the propensities {declared} do not fit the counts: 1/propensity over the plays of {name!r:.40} "
                    f"sums to {total:.0f} where {expected:.0f} events are expected",
                    "Write the chance the arm really had at that moment, of all that was offered; where it could "
                    "not be chosen, say so in `available`.",
                    kind=f"fit {code}",
                )
            elif abs(z) > _STRANGE:
                warnings.append(
                    f"1/propensity over the plays of {name!r:.40} sums to {total:.0f}, expected about {expected:.0f} "
                    f"({z:+.1f} standard deviations)."
                )
        z = self.over_time(order)
        if z > _STRANGE:
            warnings.append(
                f"The propensities fit the counts on the whole but not over time ({z:.1f} standard deviations): for "
                "long stretches arms were played more, or less, than their propensity says. Averages in place of the "
                "chance at that moment make every value below wrong where the logger's mind changed with the rewards."
            )
