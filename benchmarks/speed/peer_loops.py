"""Other libraries on our workload, one library per process, in a separate environment that `make bench` makes.

Run as `python peer_loops.py LIBRARY JOB.json`. The job names the environments (for each number of arms a .npy file of
means, runs × phases × arms), the horizon, the discount and how long to play; every finished cell is printed as one line
of JSON. Nothing of driftbandit is imported here: the libraries decide what else is installed.

Each library plays its policy nearest to Thompson sampling that forgets, by its public calls, one decision at a time,
with the discount DS-TS has; a second line has other means."""

import json
import sys
import time

import numpy as np


def river_ucb(n_arms, gamma, seed):
    from river import bandit, stats

    policy = bandit.UCB(delta=1.0, reward_obj=stats.EWMean(fading_factor=1.0 - gamma), seed=seed)
    arms = list(range(n_arms))
    return lambda: policy.pull(arms), policy.update


def river_ts(n_arms, gamma, seed):
    from river import bandit, proba

    policy = bandit.ThompsonSampling(reward_obj=proba.Beta(), seed=seed)
    arms = list(range(n_arms))
    return lambda: policy.pull(arms), lambda arm, reward: policy.update(arm, bool(reward))


def _pymab(n_arms, gamma):
    from pymab.policies.nonstationary import DiscountedBernoulliThompsonSamplingPolicy

    return DiscountedBernoulliThompsonSamplingPolicy(n_arms=n_arms, discount_factor=gamma)


def pymab_ts(n_arms, gamma, seed):
    policy, rng = _pymab(n_arms, gamma), np.random.default_rng(seed)
    return lambda: policy.select_action(rng=rng), lambda arm, reward: policy.update(action=arm, reward=reward)


def pymab_core(n_arms, gamma, seed):
    core, seeds = _pymab(n_arms, gamma)._native_handle, iter(range(seed << 32, 1 << 62))
    return lambda: core.select_action(next(seeds), None), lambda arm, reward: core.update(arm, reward, None)


def mabwiser_ts(n_arms, gamma, seed):
    from mabwiser.mab import MAB, LearningPolicy

    policy = MAB(list(range(n_arms)), LearningPolicy.ThompsonSampling(), seed=seed)
    policy.fit([0], [0])  # it wants data before the first decision
    return policy.predict, lambda arm, reward: policy.partial_fit([arm], [int(reward)])


def pybandits_decay(n_arms, gamma, seed):
    from pybandits.model import Beta
    from pybandits.smab import SmabBernoulli

    actions = {str(arm): Beta(decay_factor=gamma) for arm in range(n_arms)}
    policy = SmabBernoulli(actions=actions, random_seed=seed)

    def learn(arm, reward):
        policy.update(actions=[str(arm)], rewards=[int(reward)])

    return lambda: int(policy.predict(n_samples=1)[0][0]), learn


def bayesianbandits_decay(n_arms, gamma, seed):
    from bayesianbandits import Agent, Arm, DirichletClassifier, StabilizedForgetting, ThompsonSampling

    arms = [
        Arm(arm, lambda samples: samples[..., 1], learner=DirichletClassifier({0: 1.0, 1: 1.0}))
        for arm in range(n_arms)
    ]
    agent = Agent(arms, ThompsonSampling(), random_seed=seed)
    fading = StabilizedForgetting(gamma)  # back to the prior; its default fades the prior too, and then all is noise

    def learn(arm, reward):
        agent.select_for_update(arm).update(np.array([int(reward)]))
        agent.decay(fading)

    return lambda: agent.pull()[0], learn


def smpybandits_dts(n_arms, gamma, seed):
    from SMPyBandits.Policies import DiscountedThompson

    np.random.seed(seed)  # noqa: NPY002  the library draws from the global generator
    policy = DiscountedThompson(n_arms, gamma=gamma)
    policy.startGame()
    return policy.choice, policy.getReward


PLAYERS = {
    "river": {"UCB, EWMean": river_ucb, "Thompson, Beta (never forgets)": river_ts},
    "pymab": {"discounted Thompson": pymab_ts, "its compiled core only (private call)": pymab_core},
    "mabwiser": {"Thompson (never forgets)": mabwiser_ts},
    "pybandits": {"Bernoulli, decay": pybandits_decay},
    "bayesianbandits": {"Dirichlet, decay to the prior": bayesianbandits_decay},
    "SMPyBandits": {"DiscountedThompson": smpybandits_dts},
}


def play(choose, learn, table, horizon, seed, deadline):
    """Rounds played and regret of one run, ended early at the deadline."""
    rewards_rng, regret, played = np.random.default_rng([seed, 2]), 0.0, 0
    for phase, row in enumerate(table):
        means = row.tolist()
        best, length = max(means), (phase + 1) * horizon // len(table) - phase * horizon // len(table)
        for u in rewards_rng.random(length).tolist():
            arm = choose()
            learn(arm, 1.0 if u < means[arm] else 0.0)
            regret += best - means[arm]
            played += 1
            if played % 64 == 0 and time.perf_counter() > deadline:
                return played, regret
    return played, regret


def contest(make, table, job, n_arms):
    """Whole runs until the budget is used up: the fastest one's time a round and the regret of each.

    At `whole_arms` arms the first run is played to the end however long it takes, so that there is a regret to show."""
    make(n_arms, job["gamma"], 1)  # imports the library, which is not what is timed
    started, cpu, wall, regrets = time.perf_counter(), [], [], []
    for run in range(len(table)):
        first = run == 0 and n_arms == job["whole_arms"]
        deadline = started + (600.0 if first else job["seconds"])
        choose, learn = make(n_arms, job["gamma"], run + 1)
        clocks = time.thread_time(), time.perf_counter()
        played, regret = play(choose, learn, table[run], job["horizon"], run, deadline)
        if played == job["horizon"] or not cpu:
            cpu.append((time.thread_time() - clocks[0]) / played)
            wall.append((time.perf_counter() - clocks[1]) / played)
        if played == job["horizon"]:
            regrets.append(regret)
        if time.perf_counter() > started + job["seconds"]:
            break
    return {"cpu": min(cpu), "wall": min(wall), "regrets": regrets}


def live(make, job, n_arms):
    """Time of one decision and one reward, asked for one by one: the best of some slices."""
    choose, learn = make(n_arms, job["gamma"], 1)
    cpu, wall, until = [], [], time.perf_counter() + job["live_seconds"]
    while time.perf_counter() < until or not cpu:
        clocks = time.thread_time(), time.perf_counter()
        for step in range(job["slice"]):
            learn(choose(), float(step & 1))
        cpu.append((time.thread_time() - clocks[0]) / job["slice"])
        wall.append((time.perf_counter() - clocks[1]) / job["slice"])
    return {"cpu": min(cpu), "wall": min(wall)}


def main():
    library = sys.argv[1]
    with open(sys.argv[2], encoding="utf-8") as file:
        job = json.load(file)
    for label, make in PLAYERS[library].items():
        about = {"library": library, "policy": label}
        try:
            for n_arms, path in job["environments"].items():
                cell = contest(make, np.load(path), job, int(n_arms))
                print(json.dumps({**about, "kind": "environment", "n_arms": int(n_arms), **cell}), flush=True)
            for n_arms in job["live"].get(library, []):
                print(json.dumps({**about, "kind": "live", "n_arms": n_arms, **live(make, job, n_arms)}), flush=True)
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
            print(json.dumps({**about, "kind": "failed", "reason": reason}), flush=True)


if __name__ == "__main__":
    main()
