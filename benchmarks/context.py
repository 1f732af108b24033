"""Does declaring a feature earn anything? One bandit with a device feature against one bandit per device and one bandit
without context; and what `hour of day` gains where rewards have a daily cycle and costs where they have none.

    python benchmarks/context.py [--runs 8] [--rounds 20000]
    python benchmarks/context.py --seasons docs/field/seasons.md

With --seasons, the environments of the suites whose means have a season, written to a file: a bandit with `hour of day`
against the same without. A day is one period of the season. Of N06-hourseason, whose features are harmonics of a day of
96 rounds, the bandit gets nothing but the clock; of H08-season it gets the three features.

Bandits in memory, made as the page recommends: nothing is given but arms and features. Three arms; 60% of decisions are
for mobile, 30% for desktop, 10% for tablet; a decision a minute. The mean reward of an arm is N(0, 0.3) plus N(0, 0.3)
for each device; all are drawn again at --changes random times. Rewards have normal noise of 0.5, or are 0 or 1 with
probability 0.5 + mean / 2, cut to [0.02, 0.98]. Regret is the mean reward of the arm that is best for the device and
the hour, less that of the arm chosen. Standard errors are over runs."""

import argparse
import math
from functools import cache
from pathlib import Path

import numpy as np

from driftbandit import Bandit
from driftbandit.core.draws import Stream
from driftbandit.field.suites import BINARY, LINEAR

ARMS, DEVICES, SHARES = ["a", "b", "c"], ["mobile", "desktop", "tablet"], [0.6, 0.3, 0.1]
MINUTE = 60_000_000
DAY = 1440


def means_by_device(rng, rounds, changes, cycle):
    """The mean of every arm for every device in every round, as changes x devices x arms, and the round of each."""
    starts = np.sort(np.append(0, rng.integers(1, rounds, changes)))
    tables = rng.normal(0.0, 0.3, (len(starts), 1, len(ARMS)))
    tables = tables + (0.0 if cycle else rng.normal(0.0, 0.3, (len(starts), len(DEVICES), len(ARMS))))
    return starts, np.broadcast_to(tables, (len(starts), len(DEVICES), len(ARMS)))


def regret(contender, seed, rounds, changes, binary, amplitude=0.0, cycle=False):
    """The regret after every round; amplitude is that of a daily cycle of every arm."""
    rng = np.random.default_rng(seed)
    starts, tables = means_by_device(rng, rounds, changes, cycle)
    phases = rng.uniform(0.0, 2.0 * math.pi, len(ARMS))
    devices, noise = rng.choice(len(DEVICES), rounds, p=SHARES), rng.normal(0.0, 0.5, rounds)
    uniform = rng.random(rounds)
    periods = np.searchsorted(starts, np.arange(rounds), side="right") - 1
    now = [1_700_000_000_000_000 // (DAY * MINUTE) * DAY * MINUTE]
    play = contender(seed, lambda: now[0])
    out = np.zeros(rounds)
    for n in range(rounds):
        now[0] += MINUTE
        device = devices[n]
        mean = tables[periods[n], device] + amplitude * np.sin(2.0 * math.pi * n / DAY + phases)
        mean = np.clip(0.5 + mean / 2.0, 0.02, 0.98) if binary else mean
        arm = play(
            DEVICES[device],
            lambda arm: float(uniform[n] < mean[arm]) if binary else float(mean[arm] + noise[n]),  # noqa: B023
        )
        out[n] = mean.max() - mean[arm]
    return np.cumsum(out)


def one_bandit(features, context):
    """A contender: one bandit with these features."""

    def make(seed, clock):
        bandit = Bandit(ARMS, features=features, seed=seed, compiled=True, clock=clock)

        def play(device, pay):
            decision = bandit.decide(context={"device": device} if context else None)
            arm = ARMS.index(decision.arm)
            bandit.reward(decision, pay(arm))
            return arm

        return play

    return make


def one_per_device(seed, clock):
    """A contender: a bandit for every device."""
    plays = {device: one_bandit(None, False)(seed + 1000 * n, clock) for n, device in enumerate(DEVICES)}
    return lambda device, pay: plays[device](device, pay)


CONTENDERS = {
    "one bandit, device as a feature": one_bandit({"device": DEVICES}, True),
    "one bandit per device": one_per_device,
    "one bandit without context": one_bandit(None, False),
}
HOURS = {
    "with hour of day": one_bandit({"hour": "hour of day"}, False),
    "without": one_bandit(None, False),
}


DAYS = {"seasonal-K5": 20_000, "seasonal-K20": 20_000, "H08-season": 5000, "N06-hourseason": 96}  # rounds


def season_regret(name, hour, seed):
    """The regret after every round of an environment of the suites, with or without `hour of day`."""
    suites = {one.name: one.environment for one in (*BINARY.environments, *LINEAR.environments)}
    environment = suites[name].realise(seed)
    linear, numbers = hasattr(environment, "features"), Stream(seed)
    names = [f"x{n}" for n in range(environment.n_features)] if name == "H08-season" else []
    features = dict.fromkeys(names, "number") | ({"hour": "hour of day"} if hour else {})
    midnight, now = 1_700_006_400_000_000, [0]
    arms = environment.n_arms
    bandit = Bandit(arms, features=features or None, seed=seed, compiled=True, clock=lambda: now[0])
    out, x = np.zeros(environment.horizon), np.zeros(environment.n_features if linear else 0)
    for t in range(environment.horizon):
        now[0], rng = midnight + t * DAY * MINUTE // DAYS[name], numbers.at(t)
        if linear:
            environment.features(t, rng, x)
        decision = bandit.decide(context=dict(zip(names, x.tolist(), strict=False)) if names else None)
        given = (x,) if linear else ()
        mean = environment.mean_in if linear else environment.mean
        bandit.reward(
            decision, float((environment.pull_in if linear else environment.pull)(t, decision.arm, *given, rng))
        )
        out[t] = max(mean(t, arm, *given) for arm in range(arms)) - mean(t, decision.arm, *given)
    return np.cumsum(out)


@cache
def played(name, hour, runs):
    return [season_regret(name, hour, seed) for seed in range(runs)]


def write_seasons(path, runs):
    """A table of the regret at the end, and after the first period."""
    note = f"Regret of a bandit with `hour of day` and without, {runs} runs; `a day` is in decisions. Made by\n"
    lines = ["# Seasons with and without the hour", "", f"{note}`python benchmarks/context.py --seasons FILE`.", ""]
    lines += ["| environment | a day | without, first day | with | without, all | with |"]
    lines += ["|---|--:|--:|--:|--:|--:|"]
    for name, day in DAYS.items():
        cells = []
        for place in (day - 1, -1):
            for hour in (False, True):
                found = played(name, hour, runs)
                ends = np.array([one[place] for one in found])
                cells.append(f"{ends.mean():,.0f} ± {ends.std(ddof=1) / math.sqrt(runs):,.0f}")
        lines.append(f"| {name} | {day:,} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    path.write_text("\n".join(lines) + "\n")


def table(title, contenders, runs, rounds, **environment):
    print(f"\n{title}, {runs} runs\n\n| | regret after 1,000 | after {rounds:,} |\n|---|--:|--:|", flush=True)
    for name, contender in contenders.items():
        found = np.array([regret(contender, seed, rounds, **environment)[[999, -1]] for seed in range(runs)])
        cells = zip(found.mean(axis=0), found.std(axis=0, ddof=1) / math.sqrt(runs), strict=True)
        print(f"| {name} | " + " | ".join(f"{mean:,.0f} ± {error:.0f}" for mean, error in cells) + " |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--changes", type=int, default=3)
    parser.add_argument("--seasons", type=Path, metavar="FILE")
    given = parser.parse_args()
    if given.seasons:
        return write_seasons(given.seasons, given.runs)
    for binary, law in ((False, "numbers"), (True, "successes")):
        for changes in (0, given.changes):
            what = f"Rewards are {law}, {changes or 'no'} changes"
            table(what, CONTENDERS, given.runs, given.rounds, changes=changes, binary=binary)
    for amplitude, what in ((0.3, "Rewards with a daily cycle"), (0.0, "Rewards without a cycle")):
        for changes in (0, given.changes):
            title = f"{what}, {changes or 'no'} changes"
            more = {"amplitude": amplitude, "cycle": True}
            table(title, HOURS, given.runs, given.rounds, changes=changes, binary=False, **more)


if __name__ == "__main__":
    main()
