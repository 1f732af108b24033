"""Which features matter, how much and for which arm; in numbers and in words."""

import math
from collections.abc import Iterator
from itertools import accumulate
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from driftbandit.bandit.beliefs import Coefficients
from driftbandit.bandit.carrying import Seen
from driftbandit.bandit.features import Feature, Features
from driftbandit.policies.drift.belief import Expected, Explanation

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_SHARP = 3.5  # differences between arms, in units of the noise, beyond which rare arms are not known well enough
_DOUBT = 0.05  # probability of naming any feature where none matters


class ContextExplanation(NamedTuple):
    """Which features matter, printable: sentences for each feature, none where it has no visible effect on the choice.
    `environment` is what the policy believes about changes, and `arms` are the expected rewards at mean features."""

    environment: Explanation | None
    arms: dict[Any, Expected]
    features: dict[str, list[str]]

    def __str__(self) -> str:
        if not self.features:
            return str(self.environment or "")
        parts = [] if self.environment is None else [str(self.environment)]
        parts += [sentence for sentences in self.features.values() for sentence in sentences]
        useless = [name for name, sentences in self.features.items() if not sentences]
        if useless:
            parts.append(f"No effect on the choice is visible so far of {', '.join(useless)}.")
        return "\n".join(parts)


class FeatureEffect(NamedTuple):
    """What a feature does: the expected reward of every arm for some of its values, all other features at their means;
    of candidates, by how much it differs from that of the average one. A feature matters if the choice depends on it by
    more than chance explains."""

    feature: str
    matters: bool
    cases: list[str]  # values, in words
    mean: list[list[float]]  # cases × arms, in units of the rewards
    sd: list[list[float]]


def measure_effects(
    found: Coefficients,
    features: Features,
    seen: Seen,
    slots: list[int],
    scale: tuple[float, float],
    candidates: bool = False,
    hours: int = 4,
) -> list[FeatureEffect]:
    """The effect of every feature on these slots. The hour of day is looked at `hours` times."""
    out, means = [], seen.means
    best = max(slots, key=lambda slot: found.expected(means)[0][slot])
    tests = max(1, max(1, len(slots) - 1) * len(features))
    for feature, start, stop in _places(features):
        labels, values = zip(*_cases(feature, seen, start, hours), strict=True)
        x = found.rows([[*means[:start], *value, *means[stop:]] for value in values])
        origin, (mean, sd, _) = scale[0], found.rewards(x)
        if candidates:
            average = found.rows(means)
            origin, slope = 0.0, found.rewards(average)[2]
            mean, sd, _ = found._replace(log_odds=False).rewards(x - average)
            mean, sd = slope * mean, slope * sd
        others = [slot for slot in slots if slot != best]
        # An arm is chosen by its difference to the best one; a candidate by its own features.
        matters = any(
            _differs(x, found.mean[best] - found.mean[other], found.covariance[best] + found.covariance[other], tests)
            for other in others
        ) or (candidates and feature.name in features.given and _differs(x, found.mean[0], found.covariance[0], tests))
        shown = origin + scale[1] * mean[:, slots], abs(scale[1]) * sd[:, slots]
        out.append(FeatureEffect(feature.name, matters, list(labels), *(part.tolist() for part in shown)))
    return out


def _places(features: Features) -> Iterator[tuple[Feature, int, int]]:
    """Every feature with the place of its first column and that after its last."""
    ends = list(accumulate(len(feature.columns) for feature in features))
    return zip(features, [0, *ends], ends, strict=False)


def describe_effects(effects: list[FeatureEffect], names: list[Any], sign: float) -> dict[str, list[str]]:
    """Sentences about each feature that matters, one for each case: which arm is best or, of candidates, how much they
    differ from the average one."""
    out: dict[str, list[str]] = {}
    more = "more" if sign > 0.0 else "less"
    for one in effects:
        rows = zip(one.cases, one.mean, one.sd, strict=True) if one.matters else ()
        out[one.feature] = []
        for label, mean, sd in rows:
            if len(mean) == 1:
                if sd[0] > 0.0:
                    gain = f"{abs(mean[0]):.3g} ± {sd[0]:.2g} {'more' if mean[0] > 0.0 else 'less'}"
                    out[one.feature].append(f"With {label}, a candidate earns {gain} than the average one.")
                continue
            first, second = sorted(range(len(mean)), key=lambda arm: -sign * mean[arm])[:2]
            gain = f"{abs(mean[first] - mean[second]):.3g} ± {math.hypot(sd[first], sd[second]):.2g}"
            out[one.feature].append(f"With {label}, {names[first]} earns {gain} {more} than {names[second]}.")
    return out


def _differs(x: np.ndarray, mean: np.ndarray, covariance: np.ndarray, tests: int) -> bool:
    """Whether a regression with these coefficients differs between these rows, by Wald's test. The quantile of
    chi-square is Wilson and Hilferty's."""
    away = x[1:] - x[:1]
    n = int(np.linalg.matrix_rank(away)) if len(away) and np.isfinite(away).all() else 0
    if n == 0:
        return False
    values, z = away @ mean, NormalDist().inv_cdf(1.0 - _DOUBT / tests)
    spread = away @ covariance @ away.T
    largest = n * (1.0 - 2.0 / (9.0 * n) + z * math.sqrt(2.0 / (9.0 * n))) ** 3
    return bool(values @ np.linalg.pinv(spread, rcond=1e-9, hermitian=True) @ values > largest)


def _cases(feature: Feature, seen: Seen, start: int, hours: int) -> list[tuple[str, list[float]]]:
    """Values of a feature worth comparing, in words and in numbers."""
    name, kind = feature.name, feature.kind
    if kind == "levels":
        other = [("other", [0.0] * len(feature.levels))] if len(feature.levels) == 1 else []
        return [(f"{name} {level}", feature.encode(level, 0) or []) for level in feature.levels] + other
    if kind == "flag":
        return [(name, [1.0]), (f"not {name}", [0.0])]
    if kind == "hour of day":
        every = [24 * place // hours for place in range(hours)]
        return [(f"{name} {hour}:00", feature.harmonics(hour / 24.0)) for hour in every]
    if kind == "day of week":
        return [(f"{name} {day}", feature.harmonics((place + 0.5) / 7.0)) for place, day in enumerate(_DAYS)]
    ends = [seen.means[start], seen.means[start] + seen.spread(start)][: 1 + (seen.spread(start) > 0.0)]
    shown = [math.copysign(math.expm1(abs(end)), end) if kind == "log number" else end for end in ends]
    return [(f"{name} {value:.3g}", [end]) for value, end in zip(shown, ends, strict=True)]


class BestArms(NamedTuple):
    """The best arm by level and by hour, all other features at their means: its place among the arms, and how many
    standard deviations it is ahead of the next one."""

    rows: list[str]  # levels and flags
    columns: list[str]  # hours, if the hour of day is a feature
    best: list[list[int]]
    lead: list[list[float]]


def map_best_arms(found: Coefficients, features: Features, seen: Seen, slots: list[int]) -> BestArms:
    """The best arm by level and by hour."""
    means, rows, hours, clock = seen.means, dict[str, list[float]](), [""], None
    for feature, start, stop in _places(features):
        cases = _cases(feature, seen, start, 24)
        if feature.kind in ("levels", "flag"):
            rows |= {label: [*means[:start], *values, *means[stop:]] for label, values in cases}
        elif feature.kind == "hour of day" and clock is None:
            hours, clock = [f"{hour}:00" for hour in range(24)], (start, stop, [values for _, values in cases])
    rows = rows or {"all": means}
    best: list[list[int]] = []
    lead: list[list[float]] = []
    for row in rows.values():
        cells = [row] if clock is None else [[*row[: clock[0]], *values, *row[clock[1] :]] for values in clock[2]]
        mean, sd = (part[:, slots] for part in found.rewards(found.rows(cells))[:2])
        order = np.argsort(-mean, axis=1)[:, :2]
        first, second = np.take_along_axis(mean, order, 1).T
        spread = np.hypot(*np.take_along_axis(sd, order, 1).T)
        best.append(order[:, 0].tolist())
        lead.append(np.divide(first - second, spread, out=np.zeros_like(first), where=spread > 0.0).tolist())
    return BestArms(list(rows), hours, best, lead)


class BelievedGain(NamedTuple):
    """How much more the best arm of each context earns than the best single arm, in some recent contexts, by what the
    policy believes. The interval holds it with probability 0.95. The choice with context is better if the
    gain is positive, whatever the goal. Where arms differ by several standard deviations of the noise, the single arm
    is hardly ever played outside its own contexts, and believed to be closer to the others than it is there: the gain
    is then too small, and has no interval."""

    gain: float
    low: float | None
    high: float | None
    contexts: int
    arm: Any  # the best single one


def measure_gain(found: Coefficients, contexts: Any, slots: list[int], names: list[Any], unit: float) -> BelievedGain:
    """The gain in these contexts, each given by its numbers. The two choices are those of the believed means, so the
    gain is a sum over coefficients, whose covariance gives the interval; arms count as independent."""
    x = found.rows(contexts)
    mean, _, slope = found.rewards(x)
    chosen = np.array(slots)[mean[:, slots].argmax(axis=1)]
    single = slots[int(mean[:, slots].mean(axis=0).argmax())]
    gain = float((mean[np.arange(len(x)), chosen] - mean[:, single]).mean())
    variance = 0.0
    for slot in slots:
        part = ((chosen == slot).astype(float) - (slot == single)) * slope[:, slot]
        weights = part @ x / len(x)
        variance += float(weights @ found.covariance[slot] @ weights)
    gain, width = abs(unit) * gain, 1.96 * abs(unit) * math.sqrt(max(0.0, variance))
    sharp = float((mean[:, slots].max(axis=1) - mean[:, slots].min(axis=1)).max()) > _SHARP * found.noise
    low, high = (None, None) if sharp else (gain - width, gain + width)
    return BelievedGain(gain, low, high, len(x), names[single])


class Effects(NamedTuple):
    """What the features do: the arms, the effect of each feature, the best arm by level and hour, and how much context
    gains. The last two are None while nothing is known, and for candidates."""

    arms: list[Any]
    features: list[FeatureEffect]
    best: BestArms | None
    gain: BelievedGain | None
