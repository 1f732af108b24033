"""What it costs to export a journal with the probabilities behind its decisions: processor time per decision.

    python benchmarks/live_export.py [--decisions 2000] [--arms 10]

Once each decision is rewarded before the next, so that all were made from different views; once rewards come for 20
decisions at a time, which then share one."""

import argparse
import os
import random
import tempfile
import time

from driftbandit import DiscountedTS, DriftTS
from driftbandit.bandit import Bandit
from driftbandit.bandit.export import export


def played(path, policy, decisions, arms, together):
    """A journal of so many decisions, the best arm changing every 800."""
    luck = random.Random(1)
    with Bandit.open(path, "b", policy, arms, reward_range=(0, 1), seed=1) as bandit:
        for first in range(0, decisions, together):
            made = bandit.decide_many([f"d{n}" for n in range(first, first + together)])
            means = [0.1 + 0.8 * ((arm + 3 * (first // 800)) % arms) / arms for arm in range(arms)]
            bandit.reward_many([(one.id, float(luck.random() < means[one.arm])) for one in made])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decisions", type=int, default=2000)
    parser.add_argument("--arms", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for policy in (DiscountedTS(), DriftTS()):
            for together in (1, 20):
                path = os.path.join(folder, f"{type(policy).__name__}{together}.db")
                played(path, policy, options.decisions, options.arms, together)
                costs = []
                for propensity in ("none", "arm"):
                    began = time.process_time()
                    export(path, os.path.join(folder, "log.jsonl"), "b", propensity)
                    costs.append((time.process_time() - began) / options.decisions * 1000.0)
                name = f"{type(policy).__name__:14} {together:3} decisions per view"
                print(f"{name}: {costs[0]:6.2f} ms each without probabilities, {costs[1]:6.2f} ms with", flush=True)


if __name__ == "__main__":
    main()
