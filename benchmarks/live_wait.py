"""Share of the best arm where outcomes are late and one-sided, played through live bandits with a controlled clock.

    python benchmarks/live_wait.py [--seeds 6]

Conversions are reported after an exponential delay, failures never; `wait` and `default` are set. True rates are 0.10,
0.07, 0.16 and 0.08. Then 20 days of 500 decisions with rates 0.05, 0.08 and 0.12, where all outcomes of a day are
reported in the evening, in several orders."""

import argparse
import heapq
import random
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.bandit import Bandit

SECOND = 1_000_000
RATES, BEST = (0.10, 0.07, 0.16, 0.08), 2


def one_sided(
    seed: int, wait: int, delay: float, decisions: int = 12_000, each: int = 2000, together: int = 10, **options: Any
) -> list[float]:
    """The share of the best arm in each stretch of decisions. One decision a second; `wait` and `delay` count them, and
    `together` of them are made in one call."""
    rng, now = random.Random(seed), [1_700_000_000 * SECOND]
    reports: list[tuple[int, str]] = []
    played = []
    with tempfile.TemporaryDirectory() as folder:
        options = {"wait": wait, "default": 0.0, "clock": lambda: now[0], **options}
        with Bandit.open(Path(folder, "a.db"), "a", None, 4, seed=seed, durability="none", **options) as bandit:
            for _ in range(0, decisions, together):
                now[0] += together * SECOND
                due = []
                while reports and reports[0][0] <= now[0]:
                    due.append((heapq.heappop(reports)[1], 1.0))
                bandit.reward_many(due)
                for decision in bandit.decide_many(together):
                    played.append(decision.arm == BEST)
                    if rng.random() < RATES[decision.arm]:
                        heapq.heappush(reports, (now[0] + round(rng.expovariate(1.0 / delay) * SECOND), decision.id))
    return [sum(played[n : n + each]) / each for n in range(0, decisions, each)]


def evenings(seed: int, order: str, calls: str = "one", days: int = 20, a_day: int = 500) -> float:
    """The share of the best arm where a day's outcomes are reported in the evening: in one call, or in one each."""
    rng, rates, now = random.Random(seed), (0.05, 0.08, 0.12), [1_700_000_000 * SECOND]
    best = 0
    with tempfile.TemporaryDirectory() as folder:
        options: dict[str, Any] = {"seed": seed, "durability": "none", "clock": lambda: now[0]}
        with Bandit.open(Path(folder, "a.db"), "a", None, 3, **options) as bandit:
            for _ in range(days):
                pairs = []
                for _ in range(a_day):
                    now[0] += SECOND
                    decision = bandit.decide()
                    best += decision.arm == 2
                    pairs.append((decision.id, float(rng.random() < rates[decision.arm])))
                if order == "successes first":
                    pairs.sort(key=lambda pair: -pair[1])
                elif order == "shuffled":
                    rng.shuffle(pairs)
                if calls == "one":
                    bandit.reward_many(pairs)
                else:
                    tickets = [bandit._submit_rewards([(*pair, None)]) for pair in pairs]
                    tickets[-1].wait()
    return best / (days * a_day)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=6)
    seeds = range(parser.parse_args().seeds)
    for wait, delay in ((2000, 400.0), (200, 40.0)):
        for learn in ("wait", "arrival"):
            shares = np.mean([one_sided(seed, wait, delay, learn=learn) for seed in seeds], axis=0)
            shares_text = " ".join(f"{share:.2f}" for share in shares)
            print(f"wait {wait} decisions, mean delay {delay:g}, learn={learn!r}: {shares_text}", flush=True)
    for calls in ("one", "many"):
        for order in ("decisions", "shuffled", "successes first"):
            found = [evenings(seed, order, calls) for seed in seeds]
            print(f"evenings, {calls} call(s), {order}: {min(found):.2f} to {max(found):.2f}", flush=True)


if __name__ == "__main__":
    main()
