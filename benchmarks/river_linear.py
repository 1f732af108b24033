"""river's contextual LinUCB compared with ours, all of them as river policies in the same environments.

Run with `build/adapters/bin/python -m benchmarks.river_linear --out docs/field/river-linear.md` after
`make test-adapters`. Both LinUCBs have river's defaults: prior precision 1, noise precision 1, and a bound of one
standard deviation. In river it is that of a reward and in ours that of the mean reward, so river's explores less.
river's has no intercept, so it is given a feature that is always 1. `smoothing` is its way to forget;
it forgets an arm only when that arm is played. Its argument `burn_in` is left at 0: in river 0.26.1 it is passed on in
the place of `reward_scaler`, and `update` fails with any other value."""

import argparse
import math
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from river import bandit

from benchmarks.pages import shown_and_kept
from driftbandit.adapters.gymnasium import BanditEnv
from driftbandit.adapters.river import RiverContextualPolicy

ENVIRONMENTS = {
    "stationary": "linear(n_arms=3, n_features=2, horizon={horizon}, changes=0)",
    "three changes": "linear(n_arms=3, n_features=2, horizon={horizon}, changes=3)",
}
_ALONE = {"floor": 0.0, "first": False}  # the policy without the rules of a bandit
PLAYERS: dict[str, Callable[[int], Any]] = {
    "driftbandit, the default bandit (DriftLinTS)": lambda seed: RiverContextualPolicy(seed=seed),
    "driftbandit, DriftLinTS without the bandit's rules": lambda seed: RiverContextualPolicy(
        "drift-lin-ts", seed, **_ALONE
    ),
    "driftbandit, LinUCB": lambda seed: RiverContextualPolicy("lin-ucb(alpha=1)", seed, **_ALONE),
    "river, LinUCBDisjoint": lambda seed: bandit.LinUCBDisjoint(seed=seed),
    "river, LinUCBDisjoint(smoothing=0.99)": lambda seed: bandit.LinUCBDisjoint(smoothing=0.99, seed=seed),
    "river, LinUCBDisjoint(smoothing=0.999)": lambda seed: bandit.LinUCBDisjoint(smoothing=0.999, seed=seed),
}


def play(make: Callable[[int], Any], environment: str, seed: int) -> tuple[float, float]:
    """Regret and seconds of one run."""
    env, policy = BanditEnv(environment), make(seed)
    arms, more = list(range(int(env.action_space.n))), {"one": 1.0} if isinstance(policy, bandit.LinUCBDisjoint) else {}
    observation, _ = env.reset(seed=seed)
    regret, seconds, over = 0.0, 0.0, False
    while not over:
        context = {f"x{n}": value for n, value in enumerate(observation.tolist())} | more
        began = time.thread_time()
        arm = policy.pull(arms, context=context)
        seconds += time.thread_time() - began
        observation, reward, _, over, info = env.step(arm)
        began = time.thread_time()
        policy.update(arm, context, reward)
        seconds += time.thread_time() - began
        regret += info["regret"]
    return regret, seconds


def lines(runs: int, horizon: int) -> Iterator[str]:
    """The page."""
    yield "# LinUCB of river, and ours\n"
    yield f"Regret after {horizon:,} rounds with 3 arms and 2 features, mean of {runs} runs ± one standard error, and"
    yield f"CPU time per round. river {version('river')}. Made by this command, whose docstring says what is compared:"
    yield f"`python -m benchmarks.river_linear --runs {runs} --horizon {horizon}`\n"
    yield f"| policy | {' | '.join(ENVIRONMENTS)} | µs per round |"
    yield f"|---|{'--:|' * (len(ENVIRONMENTS) + 1)}"
    for name, make in PLAYERS.items():
        cells, fastest = [], math.inf
        for environment in ENVIRONMENTS.values():
            played = [play(make, environment.format(horizon=horizon), seed) for seed in range(runs)]
            regrets = np.array([regret for regret, _ in played])
            fastest = min(fastest, *(seconds for _, seconds in played))
            cells.append(f"{regrets.mean():,.0f} ± {regrets.std(ddof=1) / math.sqrt(runs):.0f}")
        yield f"| {name} | {' | '.join(cells)} | {1e6 * fastest / horizon:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--horizon", type=int, default=5000)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    shown_and_kept(lines(args.runs, args.horizon), args.out)


if __name__ == "__main__":
    main()
