"""Are the exported probabilities those by which arms were drawn, and do estimates from them find the truth?"""

import math
import random

from driftbandit.bandit import Bandit
from driftbandit.bandit.export import log_rows
from driftbandit.bandit.opening import reading
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.policies.exp3 import EXP3S
from tests.drill.site import Finding, Site

MEANS = {"a": 0.3, "b": 0.5, "c": 0.6}


def check_probabilities(site: Site, decisions: int, seed: int = 1) -> list[Finding]:
    """For every arm the number of its decisions against the sum of its probabilities; the largest difference, in
    standard errors, must stay below 4."""
    target = site.journal()
    _played(target, DiscountedTS(), decisions, seed, holdback=0.1, baseline="a", floor=0.05)
    journal = reading(target)
    counts, sums, spread = dict.fromkeys(MEANS, 0), dict.fromkeys(MEANS, 0.0), dict.fromkeys(MEANS, 0.0)
    for row in log_rows(journal, 1, "all"):
        counts[row["arm"]] += 1
        for arm, p in row["probabilities"].items():
            sums[arm] += p
            spread[arm] += p * (1.0 - p)
    journal.close()
    largest = max(abs(counts[arm] - sums[arm]) / math.sqrt(spread[arm]) for arm in MEANS)
    result = f"largest deviation {largest:.2f} standard errors (above 4: once in 5,000 tries)"
    return [Finding("arms against probabilities", site.kind, f"{decisions} decisions", result, largest < 4.0)]


def estimates_cover(site: Site, journals: int, decisions: int, seed: int = 1) -> list[Finding]:
    """Inverse-propensity estimates of "always c" from journals of an adaptive policy: how many of their 95 % intervals
    hold the true value."""
    covered = 0
    for number in range(journals):
        target = site.journal()
        _played(target, EXP3S(explore=0.3, share=1e-3), decisions, seed + number)
        journal = reading(target)
        terms = [row["reward"] / row["propensity"] if row["arm"] == "c" else 0.0 for row in log_rows(journal, 1, "arm")]
        journal.close()
        mean = math.fsum(terms) / len(terms)
        error = math.sqrt(math.fsum((term - mean) ** 2 for term in terms) / (len(terms) - 1) / len(terms))
        covered += abs(mean - MEANS["c"]) <= 1.96 * error
    share = covered / journals
    slack = 3.0 * math.sqrt(0.95 * 0.05 / journals) + 0.02  # the normal interval itself is a little short
    result = f"{100 * share:.0f} % of 95 % intervals hold the truth"
    return [Finding("inverse-propensity estimates", site.kind, f"{journals} journals", result, share > 0.95 - slack)]


def _played(target: str, policy: object, decisions: int, seed: int, **options: object) -> None:
    rng = random.Random(seed)
    given = {"seed": seed, "reward_range": (0, 1), **options}
    with Bandit.open(target, "drill", policy, list(MEANS), **given) as bandit:  # type: ignore[arg-type]
        for first in range(0, decisions, 10):
            made = bandit.decide_many([f"e{n}" for n in range(first, min(decisions, first + 10))])
            bandit.reward_many([(d.id, float(rng.random() < MEANS[d.arm])) for d in made])
