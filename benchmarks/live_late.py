"""A late reward divided by the probability with which its arm was played, compared with the present probability.

    python benchmarks/live_late.py [--runs 200] [--out docs/live/late.csv]

EXP3.S and REXP3, tuned by theory for the environment, get every reward so many rounds late. `Present` hides from
`delayed(...)` that the policy could use the probability at decision time. Both play the same environments with the same
random numbers. The last figures are the policy's estimate of what all arms would have paid, divided by what they would
have paid."""

import argparse
import csv
from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.draws import ENVIRONMENT, POLICY, REWARD, Stream, stream_key
from driftbandit.core.primitives import learn_reward
from driftbandit.core.state import to_lists
from driftbandit.environments import Abrupt, Smooth
from driftbandit.lab import simulate
from driftbandit.policies.exp3 import EXP3S, REXP3
from driftbandit.policies.wrappers import Delayed

HORIZON, ARMS, PHASES = 10_000, 5, 5
ENVIRONMENTS = {
    "abrupt": Abrupt(n_arms=ARMS, horizon=HORIZON, phases=PHASES),
    "smooth": Smooth(n_arms=ARMS, horizon=HORIZON, sigma=0.001),
}
POLICIES = {"EXP3S": EXP3S.tuned(HORIZON, PHASES, ARMS), "REXP3": REXP3.tuned(HORIZON, PHASES, ARMS)}
DELAYS = (10, 100, 1000)
COLUMNS = ("regret, kept", "regret, present", "difference", "estimate, kept", "estimate, present")


class Present(NamedTuple):
    """A policy without the methods that know of the probability at decision time."""

    base: Any

    def init(self, n_arms):
        """The policy's state."""
        return self.base.init(n_arms)

    def choose(self, state, t, rng):
        """The policy's choice."""
        return self.base.choose(state, t, rng)

    def learn(self, state, t, arm, reward, rng):
        """Divide by the present probability."""
        learn_reward(self.base, state, t, arm, reward, rng)


def estimates(environment, policy, rounds, runs):
    """What a policy believes all arms would have paid, the sum of reward over probability, over what they would have
    paid on average: 1 where it is unbiased. Divided by the probability at decision time, and by the present one, of the
    same plays. Mean and standard error over runs."""
    found = []
    for run in range(runs):
        place = to_lists(ENVIRONMENTS[environment].realise(stream_key(7, run, ENVIRONMENT)))
        rng, rewards_rng = Stream(stream_key(7, run, POLICY)), Stream(stream_key(7, run, REWARD))
        state, under_way, sums, truth = to_lists(policy.init(ARMS)), deque(), [0.0, 0.0], 0.0
        for t in range(HORIZON):
            arm = policy.choose(state, t, rng.at(t))
            under_way.append((arm, place.pull(t, arm, rewards_rng.at(t)), state.chances[arm]))
            if t + rounds < HORIZON:
                truth += sum(place.mean(t, i) for i in range(ARMS))
            if len(under_way) > rounds:
                arm, reward, chance = under_way.popleft()
                sums[0] += reward / chance
                sums[1] += reward / state.chances[arm]
                policy.learn_late(state, t - rounds, arm, reward, chance)
        found.append([total / truth for total in sums])
    return [
        (float(mean), float(sd / np.sqrt(runs))) for mean, sd in zip(np.mean(found, 0), np.std(found, 0), strict=True)
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--out", default="docs/live/late.csv")
    given = parser.parse_args()
    rows = []
    for environment, name, rounds in ((w, p, r) for w in ENVIRONMENTS for p in POLICIES for r in DELAYS):
        kept, present = (
            simulate(Delayed(base, rounds), ENVIRONMENTS[environment], given.runs, 7, progress=False).regret[:, -1]
            for base in (POLICIES[name], Present(POLICIES[name]))
        )
        numbers = [
            number
            for values in (kept, present, kept - present)
            for number in (float(values.mean()), float(values.std(ddof=1) / np.sqrt(given.runs)))
        ]
        for pair in estimates(environment, POLICIES[name], rounds, max(2, given.runs // 5)):
            numbers += pair
        rows.append([environment, name, rounds, *(round(number, 3) for number in numbers)])
        print(
            "| {} | {} | {} | {:.0f} ± {:.0f} | {:.0f} ± {:.0f} | {:+.0f} ± {:.0f} | {:.3f} ± {:.3f} "
            "| {:.3f} ± {:.3f} |".format(environment, name, rounds, *numbers),
            flush=True,
        )
    with Path(given.out).open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["environment", "policy", "rounds late", *(f"{what}{error}" for what in COLUMNS for error in ("", " (se)"))]
        )
        writer.writerows(rows)


if __name__ == "__main__":
    main()
