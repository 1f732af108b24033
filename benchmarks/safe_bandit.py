"""The regret that a bandit's exploration costs and saves: each arm tried first, and a floor of uniform play.

    python benchmarks/safe_bandit.py [--runs 40] [--quick] [--out docs/live/exploration.md]

The lab plays `Explored`, a policy that decides as a bandit with these options does (`tests/test_safe_bandit.py`
compares the two, arm by arm)."""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit import DiscountedTS
from driftbandit.bandit.fold import FLOOR_SLOT as FLOOR
from driftbandit.bandit.fold import UNIFORM_SLOT as UNIFORM
from driftbandit.bandit.settings import FLOOR as DEFAULT_FLOOR
from driftbandit.core.primitives import learn_reward
from driftbandit.environments import Abrupt, AbruptLimited, PhaseTable, Smooth
from driftbandit.lab.engine.simulate import simulate
from driftbandit.lab.summaries import interval
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
            skip = int(rng.uniform(UNIFORM) * untried)
            for arm in range(len(state.tried)):
                if state.tried[arm] == 0:
                    if skip == 0:
                        return arm
                    skip -= 1
        if self.floor > 0.0 and rng.uniform(FLOOR) < self.floor:
            return int(rng.uniform(UNIFORM) * len(state.tried))
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
    yield "means 0.8, 0.85, 0.95", live, PhaseTable(means=((0.8, 0.85, 0.95),), starts=(0,), horizon=short)
    rising = ((0.85, 0.1), (0.85, 0.98))
    yield "B rises past A", live, PhaseTable(means=rising, starts=(0, short // 5), horizon=short)


RISING = PhaseTable(means=((0.85, 0.1), (0.85, 0.98)), starts=(0, 2_000), horizon=7_000)  # B rises past A


def lines(runs: int, quick: bool) -> Iterator[str]:
    """The page, line by line as it is measured."""
    yield "# The cost of trying every arm, and of a floor"
    yield ""
    yield f"Made by `python benchmarks/safe_bandit.py`: {runs} runs, seed 0. Intervals are of 95%, and of differences"
    yield "paired by run: the same environments, rewards and draws."
    yield ""
    yield from neglected()
    yield ""
    yield "| environment | policy | without either | first | floor | first and floor |"
    yield "|---|---|--:|--:|--:|--:|"
    for name, policy, environment in cases(quick):
        plain = regret(policy, environment, runs)
        cells = []
        for first, floor in ((True, 0.0), (False, DEFAULT_FLOOR), (True, DEFAULT_FLOOR)):
            mean, low, high = interval(regret(Explored(policy, first, floor), environment, runs) - plain)
            cells.append(f"{mean:+.0f} [{low:+.0f}, {high:+.0f}]")
        yield f"| {name} | {short(policy)} | {plain.mean():.0f} | {' | '.join(cells)} |"
    yield ""
    yield from floors(runs, quick)


def neglected() -> Iterator[str]:
    """How often arms are ignored: the best of three never tried in 10,000 rounds, and an arm that becomes the best in
    round 2,000 played in less than 1% of the next 5,000."""
    still = PhaseTable(means=((0.8, 0.85, 0.95),), starts=(0,), horizon=10_000)
    base = DiscountedTS.half_life(200)
    yield "| | best of 0.8, 0.85, 0.95 never tried | B under 1% after it rose past A |"
    yield "|---|--:|--:|"
    for name, policy in (
        ("ds-ts without either", base),
        ("with first", Explored(base, True, 0.0)),
        ("with floor", Explored(base, False)),
        ("with both, the bandit's default", Explored(base)),
    ):
        pulls = simulate(policy, still, runs=60, seed=0, pulls=True, checkpoints=1, progress=False).pulls
        few = (share_of_b(policy, 20) < 0.01).sum()
        yield f"| {name} | {(pulls[:, 2] == 0).sum()} of 60 runs | {few} of 20 runs |"


def floors(runs: int, quick: bool) -> Iterator[str]:
    """The cost of each floor in the paper's environment of five arms, and its worth where B rises past A."""
    abrupt = Abrupt(n_arms=5, horizon=5_000 if quick else 100_000)
    columns = [maker(abrupt.horizon, 10) for maker in (DiscountedTS.text, DiscountedTS.code, SlidingTS.text)]
    yield f"| floor | {' | '.join(short(policy) for policy in columns)} | B rises | B under 1% | B under 20% |"
    yield "|--:|--:|--:|--:|--:|--:|--:|"
    for floor in (0.0, 0.001, 0.002, 0.005, 0.01, 0.02):
        live = Explored(DiscountedTS.half_life(200), True, floor)
        costs = [regret(Explored(policy, True, floor), abrupt, runs) for policy in columns]
        means = [f"{cost.mean():.0f}" for cost in [*costs, regret(live, RISING, 100)]]
        share = share_of_b(live, 100)
        yield f"| {floor:g} | {' | '.join(means)} | {(share < 0.01).sum()} of 100 | {(share < 0.2).sum()} of 100 |"


def share_of_b(policy, runs):
    """The share of rounds in which B is played once it has risen past A, by run."""
    arms = simulate(policy, RISING, runs=runs, seed=0, trajectories=True, checkpoints=1, progress=False).arms
    return (arms[:, 2_000:] == 1).mean(axis=1)


def regret(policy, environment, runs):
    return simulate(policy, environment, runs=runs, seed=0, checkpoints=1, progress=False).regret[:, -1]


def short(policy):
    kind = type(policy).short
    return f"{kind}(window={policy.window})" if hasattr(policy, "window") else f"{kind}(gamma={policy.gamma:.4g})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--quick", action="store_true", help="short horizons, to see that it runs")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    from pages import shown_and_kept  # `driftbandit field` reads this file without its folder

    shown_and_kept(lines(args.runs, args.quick), args.out)


if __name__ == "__main__":
    main()
