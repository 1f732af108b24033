"""What a bandit's exploration costs and saves: each arm tried first, and a floor of even play, in regret.

    python benchmarks/safe_bandit.py [--runs 40] [--floor 0.01] [--quick]
    python benchmarks/safe_bandit.py --sweep

The lab plays `Explored`, a policy that decides as a bandit with these options does (`tests/test_safe_bandit.py` holds
the two together, arm by arm). Differences are within runs, with 95 % intervals: the same environments, rewards and
draws."""

import argparse
from typing import Any, NamedTuple

import numpy as np

from driftbandit import DiscountedTS
from driftbandit.bandit.fold import FLOOR_SLOT as FLOOR
from driftbandit.bandit.fold import UNIFORM_SLOT as EVEN
from driftbandit.bandit.settings import FLOOR as DEFAULT_FLOOR
from driftbandit.core.primitives import learn_reward
from driftbandit.environments import Abrupt, AbruptLimited, PhaseTable, Smooth
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.intervals import interval
from driftbandit.policies import DiscountedUCB, SlidingTS


class ExploredState(NamedTuple):
    """The wrapped policy's state, and which arms have been tried."""

    base: Any
    tried: Any


class Explored(NamedTuple):
    """`Bandit(arms, base, first=..., floor=...)` as a policy."""

    base: Any
    first: bool = True
    floor: float = DEFAULT_FLOOR

    def init(self, n_arms):
        tried = np.zeros(n_arms, np.int64) if self.first else np.ones(n_arms, np.int64)
        return ExploredState(self.base.init(n_arms), tried)

    def choose(self, state, t, rng):
        asked = self.base.choose(state.base, t, rng)
        untried = 0
        for arm in range(len(state.tried)):
            untried += 1 - state.tried[arm]
        if untried > 0:
            skip = int(rng.uniform(EVEN) * untried)
            for arm in range(len(state.tried)):
                if state.tried[arm] == 0:
                    if skip == 0:
                        return arm
                    skip -= 1
        if self.floor > 0.0 and rng.uniform(FLOOR) < self.floor:
            return int(rng.uniform(EVEN) * len(state.tried))
        return asked

    def learn(self, state, t, arm, reward, rng):
        learn_reward(self.base, state.base, t, arm, reward, rng)
        state.tried[arm] = 1


def cases(quick):
    """Environments and policies: the paper's, then two in which the policy as published goes wrong."""
    long, short = (5_000, 2_000) if quick else (100_000, 10_000)
    for name, environment in (
        ("abrupt, 5 arms", Abrupt(n_arms=5, horizon=long)),
        ("abrupt, 10 arms", Abrupt(n_arms=10, horizon=long)),
        ("abrupt, 30 arms", Abrupt(n_arms=30, horizon=long)),
        ("limited, 10 arms", AbruptLimited(n_arms=10, horizon=long)),
    ):
        for policy in (DiscountedTS.text, DiscountedTS.code, SlidingTS.text, DiscountedUCB.text):
            yield name, policy(environment.horizon, environment.phases, environment.n_arms), environment
    smooth = Smooth(n_arms=5, horizon=short)
    for policy in (DiscountedTS.text, SlidingTS.text):
        yield "smooth, 5 arms", policy(smooth.horizon, 1, 5, smooth=True), smooth
    live = DiscountedTS.half_life(200)
    yield "means .8, .85, .95", live, PhaseTable(means=((0.8, 0.85, 0.95),), starts=(0,), horizon=short)
    rising = ((0.85, 0.1), (0.85, 0.98))
    yield "B rises past A", live, PhaseTable(means=rising, starts=(0, short // 5), horizon=short)


def neglected(floor):
    """How often arms are left alone: the best arm of three never tried in 10,000 rounds, and an arm that becomes best
    in round 2,000 played in less than 1 % of the next 5,000."""
    still = PhaseTable(means=((0.8, 0.85, 0.95),), starts=(0,), horizon=10_000)
    rising = PhaseTable(means=((0.85, 0.1), (0.85, 0.98)), starts=(0, 2_000), horizon=7_000)
    base = DiscountedTS.half_life(200)
    print("| | best of .8, .85, .95 never tried | B under 1 % after it rose past A |")
    print("|---|--:|--:|")
    for name, policy in (
        ("ds-ts alone", base),
        ("with first", Explored(base, True, 0.0)),
        ("with floor", Explored(base, False, floor)),
        ("with both, the bandit's default", Explored(base, True, floor)),
    ):
        pulls = simulate(policy, still, runs=60, seed=0, pulls=True, checkpoints=1, progress=False).pulls
        arms = simulate(policy, rising, runs=20, seed=0, trajectories=True, checkpoints=1, progress=False).arms
        few = (arms[:, 2_000:] == 1).mean(axis=1) < 0.01
        print(f"| {name} | {(pulls[:, 2] == 0).sum()} of 60 runs | {few.sum()} of 20 runs |", flush=True)
    print()


def sweep(runs):
    """What each floor costs in the paper's environment of five arms, and what it is worth where B rises past A."""
    abrupt = Abrupt(n_arms=5, horizon=100_000)
    rising = PhaseTable(means=((0.85, 0.1), (0.85, 0.98)), starts=(0, 2_000), horizon=7_000)
    columns = (DiscountedTS.text(100_000, 10), DiscountedTS.code(100_000, 10), SlidingTS.text(100_000, 10))
    print(f"| floor | {' | '.join(short(policy) for policy in columns)} | B rises | B under 1 % | B under 20 % |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for floor in (0.0, 0.001, 0.002, 0.005, 0.01, 0.02):
        costs = [regret(Explored(policy, True, floor), abrupt, runs).mean() for policy in columns]
        live = Explored(DiscountedTS.half_life(200), True, floor)
        played = simulate(live, rising, runs=100, seed=0, trajectories=True, checkpoints=1, progress=False)
        share = (played.arms[:, 2_000:] == 1).mean(axis=1)
        cells = [f"{cost:.0f}" for cost in [*costs, played.regret[:, -1].mean()]]
        print(
            f"| {floor:g} | {' | '.join(cells)} | {(share < 0.01).sum()} of 100 | {(share < 0.2).sum()} of 100 |",
            flush=True,
        )


def regret(policy, environment, runs):
    return simulate(policy, environment, runs=runs, seed=0, checkpoints=1, progress=False).regret[:, -1]


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--floor", type=float, default=DEFAULT_FLOOR)
    parser.add_argument("--quick", action="store_true", help="short horizons, to see that it runs")
    parser.add_argument(
        "--sweep", action="store_true", help="several floors instead: what they cost and what they find"
    )
    args = parser.parse_args(argv)
    if args.sweep:
        return sweep(args.runs)
    neglected(args.floor)
    print(f"Mean regret of {args.runs} runs, seed 0; differences with 95 % intervals within runs.\n")
    print("| environment | policy | alone | first | floor | first and floor |")
    print("|---|---|--:|--:|--:|--:|")
    for name, policy, environment in cases(args.quick):
        alone = regret(policy, environment, args.runs)
        cells = []
        for first, floor in ((True, 0.0), (False, args.floor), (True, args.floor)):
            mean, low, high = interval(regret(Explored(policy, first, floor), environment, args.runs) - alone)
            cells.append(f"{mean:+.0f} [{low:+.0f}, {high:+.0f}]")
        print(f"| {name} | {short(policy)} | {alone.mean():.0f} | {' | '.join(cells)} |", flush=True)


def short(policy):
    kind = type(policy).short
    return f"{kind}(window={policy.window})" if hasattr(policy, "window") else f"{kind}(gamma={policy.gamma:.4g})"


if __name__ == "__main__":
    main()
