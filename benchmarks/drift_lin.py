"""DriftLinTS: time of a choice and a lesson, and what its constants are worth.

    python benchmarks/drift_lin.py speed [--rounds 20000]
    python benchmarks/drift_lin.py constants [--rounds 4000] [--runs 4] [--only CAP ...]

`speed` prints microseconds for choose and learn together, one compiled run, next to the goal; with --interpreted, those
of the interpreter. `constants` prints the regret with half and with double of each constant over the regret as it is:
geometric means over five environments, interpreted, with the same rewards for all. Standard errors are over runs."""

import argparse
import time
from typing import Any

import numpy as np

from driftbandit.core.draws import Draws, Stream, round_key
from driftbandit.core.state import to_lists
from driftbandit.policies.drift import drift_lin_ts, lin_learning, regressions
from driftbandit.policies.drift.drift_lin_ts import DriftLinTS

GOALS = {  # arms, features, joint: microseconds
    (5, 0, False): 2.9, (5, 4, False): 4.0, (5, 9, False): 6.0, (5, 19, False): 8.0, (20, 19, False): 12.0,
    (10, 5, True): 5.1,
}  # fmt: skip
CONSTANTS = {
    "SHRINK": drift_lin_ts, "CUT": lin_learning, "FAR": lin_learning, "MEMORY": lin_learning, "COMMON": lin_learning,
    "CAP": regressions, "KEPT": lin_learning,
}  # fmt: skip
KINDS = ("abrupt", "smooth", "stationary", "common", "context")


def environment(kind: str, rounds: int, seed: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Features of every round, means of five arms, and the standard deviation of the noise."""
    rng, n_arms = np.random.default_rng([seed, KINDS.index(kind)]), 5
    features = rng.normal(size=(rounds, 4 if kind == "context" else 0))
    phase = np.arange(rounds) * 10 // rounds
    if kind == "context":
        effects = rng.normal(0.0, 0.45, (10, n_arms, 5))[phase]
        return features, effects[:, :, 0] + np.einsum("rkd,rd->rk", effects[:, :, 1:], features), 0.5
    if kind == "abrupt":
        return features, rng.uniform(size=(10, n_arms))[phase], 0.1
    if kind == "smooth":
        steps = np.cumsum(rng.normal(0.0, 0.01, (rounds, n_arms)), axis=0) + rng.uniform(size=n_arms)
        return features, np.abs((steps + 1.0) % 2.0 - 1.0), 0.1
    if kind == "common":
        level = np.repeat(rng.normal(0.0, 0.15, rounds // 100 + 1), 100)[:rounds]
        return features, rng.permutation(np.linspace(0.4, 0.6, n_arms)) + level[:, None], 0.1
    return features, np.tile(rng.uniform(size=n_arms), (rounds, 1)), 1.0


def regret(kind: str, rounds: int, seed: int) -> float:
    """Of one run, interpreted."""
    features, means, noise = environment(kind, rounds, seed)
    rewards = means + noise * np.random.default_rng([seed, 99]).normal(size=means.shape)
    policy, stream, lost = DriftLinTS(), Stream(seed), 0.0
    state = to_lists(policy.init(means.shape[1], features.shape[1]))
    for t, x in enumerate(features.tolist()):
        arm = policy.choose_in(state, t, stream.at(t), x)
        policy.learn_in(state, t, arm, float(rewards[t, arm]), x)
        lost += float(means[t].max() - means[t, arm])
    return lost


def print_constants(rounds: int, runs: int, only: list[str]) -> None:
    """The table of constants."""

    def logs() -> np.ndarray:
        return np.log([[regret(kind, rounds, seed) for kind in KINDS] for seed in range(runs)])

    plain = logs()
    for name in only or CONSTANTS:
        value, parts = getattr(CONSTANTS[name], name), []
        for factor in (0.5, 2.0):
            setattr(CONSTANTS[name], name, factor * value)
            ratios = (logs() - plain).mean(axis=1)
            error = ratios.std(ddof=1) / runs**0.5 if runs > 1 else np.nan
            parts.append(f"{factor:g} times {np.exp(ratios.mean()):.3f} ± {error:.3f}")
        setattr(CONSTANTS[name], name, value)
        print(f"{name:8} {', '.join(parts)}", flush=True)


def played(policy: Any, state: Any, key: Any, features: Any, rewards: Any, size: int, joint: bool) -> None:
    """Play all rounds; compiled by `print_speed`."""
    for t in range(len(features)):
        x = features[t]
        arm = policy.choose_in(state, t, Draws(round_key(key, t)), x)
        first = arm * size if joint else 0
        policy.learn_in(state, t, arm, rewards[t, arm], x[first : first + size])


def play_interpreted(policy: Any, state: Any, key: Any, features: Any, rewards: Any, size: int, joint: bool) -> None:
    """The same with the interpreter's state and random numbers."""
    stream, state, rewards = Stream(int(key)), to_lists(state), rewards.tolist()
    for t, x in enumerate(features.tolist()):
        arm = policy.choose_in(state, t, stream.at(t), x)
        policy.learn_in(state, t, arm, rewards[t][arm], x[arm * size : (arm + 1) * size] if joint else x)


def print_speed(rounds: int, interpreted: bool) -> None:
    """The table of times."""
    policy, play, goals = DriftLinTS(), play_interpreted, {(10, 0, False): 0.0, (10, 10, False): 300.0}
    if not interpreted:
        import numba

        from driftbandit.lab.engine import code_cache, numba_methods  # noqa: F401  what compiled loops call

        numba_methods.prepare(policy)
        numba_methods.prepare(Draws(np.uint64(1)))
        play, goals = numba.njit(error_model="numpy")(played), GOALS
    for (n_arms, size, joint), goal in goals.items():
        rng, times = np.random.default_rng(1), []
        features = rng.normal(size=(rounds, n_arms * size if joint else size))
        rewards = rng.normal(np.linspace(0.0, 1.0, n_arms), 0.5, (rounds, n_arms))
        for count in (20, rounds, rounds):  # the first compiles
            state = policy.init(n_arms, size, joint)
            began = time.process_time()
            play(policy, state, np.uint64(7), features[:count], rewards[:count], size, joint)
            times.append((time.process_time() - began) / rounds * 1e6)
        best = min(times[1:])
        ratio = f", goal {goal:g}, ratio {best / goal:.2f}" if goal else ""
        print(f"K {n_arms:2} d {size:2}{' joint' if joint else ''}: {best:.2f} µs{ratio}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "constants"])
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--only", nargs="*", default=[], choices=CONSTANTS)
    parser.add_argument("--interpreted", action="store_true")
    chosen = parser.parse_args()
    if chosen.what == "speed":
        print_speed(chosen.rounds or (600 if chosen.interpreted else 20_000), chosen.interpreted)
    else:
        print_constants(chosen.rounds or 4000, chosen.runs, chosen.only)
