"""The follower, held to a slow twin that does the obvious: at each event, start from nothing and look at all events
before it."""

import numpy as np
import pytest

from driftbandit.core.draws import POLICY, Draws, Stream, round_key, stream_key
from driftbandit.core.primitives import draw_from
from driftbandit.logs import Log
from driftbandit.logs.follow import CALM, DRAWS, MEMORIES, follow, schedule
from driftbandit.logs.replay import Candidate, candidates, effective_size
from driftbandit.player import Player
from driftbandit.policies import KLUCB, Uniform
from driftbandit.spec.half_life import SECOND
from driftbandit.spec.parse import expand_grid

K = 3


def log_of(n=90, k=K, seed=0, delay=0.0, available=False, step=0.0):
    rng = np.random.default_rng(seed)
    time = np.sort(rng.uniform(0, 1000, n))
    time = np.floor(time / step) * step if step else time
    p = rng.dirichlet(np.full(k, 3.0), n)
    offered = rng.random((n, k)) < (0.7 if available else 1.0)
    offered[np.arange(n), rng.integers(0, k, n)] = True
    p = p * offered / (p * offered).sum(axis=1, keepdims=True)
    arm = np.array([rng.choice(k, p=row) for row in p])
    means = np.array([0.3, 0.5, 0.6, 0.2])[:k] + 0.2 * np.sin(time / 150.0)[:, None] * np.array([1, -1, 0, 1])[:k]
    columns = {
        "time": time,
        "arm": arm,
        "reward": (rng.random(n) < means[np.arange(n), arm]).astype(float),
        "propensity": p[np.arange(n), arm],
    }
    if delay:
        columns["reward_time"] = time + rng.exponential(delay, n)
    if available:
        columns["available"] = [[str(a) for a in np.flatnonzero(row)] for row in offered]
    return Log(columns)


def known_before(events, e):
    """The events whose reward was known at event e, in the order in which they became known; what was decided at the
    same time cannot be."""
    some = [w for w in range(e) if events.known[w] <= events.time[e] and events.time[w] < events.time[e]]
    return sorted(some, key=lambda w: (events.known[w], w))


def twin_guess(events, e, k):
    """The guesses at event e: for each memory the discounted average of each arm and its squared error so far."""
    errors, means = [], []
    for memory in MEMORIES:
        total, mean, error = np.ones(k), np.full(k, 0.5), 0.0
        for w in known_before(events, e):
            a, r = events.arm[w], events.reward[w]
            error += (r - mean[a]) ** 2
            total[a] = total[a] * (1.0 - 1.0 / memory) + 1.0
            mean[a] += (r - mean[a]) / total[a]
        errors.append(error)
        means.append(mean)
    best = max(m for m in range(len(errors)) if errors[m] == min(errors))
    return means[best]


def twin(log, policy, own=False, seed=0):
    """Every v_t and weight, one event after the other, by the bandit's own player and law of availability."""
    events, k = log.whole(), log.n_arms
    key, own_key = (stream_key(seed, number, POLICY) for number in (0, 1))
    accepted, value, weight = [], [], []
    asked = calm = 0
    for e in range(events.n):
        learned = [w for w in known_before(events, e) if not own or accepted[w]]
        player, stream = Player(policy, k, key), Stream(key)
        for w in learned:
            player.learn(int(events.arm[w]), float(events.reward[w]))
        allowed = np.flatnonzero(log.menus[events.menu[e]]).tolist()
        pi = np.zeros(k)
        if len(allowed) == 1:
            pi[allowed] = 1.0
        elif hasattr(player.state, "probabilities"):
            player.choose(stream.at(asked))
            asked += 1
            probabilities = np.array(player.state.probabilities)
            pi[allowed] = probabilities[allowed] / probabilities[allowed].sum()
        else:
            draws = DRAWS if calm < CALM else 2
            for n in range(draws):
                pi[player.choose(stream.at(asked + n), allowed)] += 1.0 / draws
            asked += draws
            calm = calm + 1 if pi.max() > 1.0 - 1e-9 else 0
        q = twin_guess(events, e, k)
        a, mu = events.arm[e], events.propensity[e]
        weight.append(pi[a] / mu)
        value.append(pi @ q + weight[-1] * (events.reward[e] - q[a]))
        with np.errstate(over="ignore"):
            rng = Draws(round_key(np.uint64(own_key), e))
            accepted.append(draw_from(pi, rng.uniform(0)) == a and rng.uniform(1) * mu < log.summary.least)
    return np.array(value), np.array(weight)


@pytest.mark.parametrize("text", ["ts", "ds-ts(gamma=0.95)", "kl-ucb", "exp3s(explore=0.2, share=0.01)", "uniform"])
@pytest.mark.parametrize(("delay", "available", "step"), [(0.0, False, 0.0), (40.0, False, 50.0), (10.0, True, 0.0)])
def test_the_follower_is_its_slow_twin(text, delay, available, step):
    log = log_of(delay=delay, available=available, step=step)
    (candidate,) = candidates([text])
    found = follow(log, [candidate], compiled=False)
    value, weight = twin(log, candidate.policy)
    assert found.events.sum() == log.n
    assert found.value.sum() == pytest.approx(value.sum(), abs=1e-8)
    assert effective_size(found, 0) == pytest.approx(weight.sum() ** 2 / (weight**2).sum())


@pytest.mark.parametrize("text", ["ts", "exp3s(explore=0.2, share=0.01)"])
@pytest.mark.parametrize("delay", [0.0, 25.0])
def test_the_history_of_the_logger_equals_its_slow_twin(text, delay):
    log = log_of(delay=delay)
    (candidate,) = candidates([text])
    found = follow(log, [candidate], own=True, seed=4, compiled=False)
    value, _ = twin(log, candidate.policy, own=True, seed=4)
    assert found.value.sum() == pytest.approx(value.sum(), abs=1e-8)


@pytest.mark.long
@pytest.mark.parametrize("text", ["ts", "dts @ 45"])
def test_compiled_or_not_is_the_same(text):
    log = log_of(n=60, delay=20.0, available=True)
    one, two = (follow(log, candidates([text]), compiled=flag) for flag in (True, False))
    assert np.allclose(one.value, two.value, atol=1e-9)


@pytest.mark.parametrize("text", ["d-ucb", "ds-ts"])
def test_a_half_life_by_the_clock_is_that_of_a_player(text):
    """Held to a player that learns each reward when it became known; but for ties, and for Thompson sampling up to 16
    draws an event: 4.5 standard errors, one failure in 100,000."""
    log = log_of(n=60, delay=30.0)
    events = log.whole()
    (candidate,) = candidates([f"{text} @ 90"])
    found = follow(log, [candidate], compiled=False)
    player, stream = Player(candidate.policy, K, 7, half_life=90 * SECOND), Stream(7)
    expected, variance, learned = [], 0.0, 0
    for e in range(events.n):
        for w in known_before(events, e)[learned:]:
            player.learn(int(events.arm[w]), float(events.reward[w]), decided=round(events.time[w] * SECOND))
            learned += 1
        now = round(events.time[e] * SECOND)
        choices = [player.choose(stream.at(160 * e + n), at=now) for n in range(160)]
        p, mu = np.mean(np.array(choices) == events.arm[e]), events.propensity[e]
        expected.append(p / mu)
        variance += max(p * (1.0 - p), 0.02) * (1 / 16 + 1 / 160) / mu**2
    assert found.weight.sum() == pytest.approx(sum(expected), abs=4.5 * np.sqrt(variance))


def test_the_schedule_is_what_is_known_before_each_event():
    log = log_of(n=200, delay=60.0, step=25.0)
    events = log.whole()
    order, first = schedule(events)
    for e in range(events.n):
        assert order[first <= e].tolist() == known_before(events, e)


def test_cutting_the_log_into_steps_and_workers_changes_nothing(monkeypatch):
    log, tried = log_of(n=200, delay=30.0), candidates(["ts", "dts @ 60"])
    whole = follow(log, tried, workers=1)
    monkeypatch.setattr("driftbandit.logs.follow.STEP", 7)
    cut = follow(log, tried, workers=2)
    for name in ("events", "value", "weight", "arm_value", "reward"):
        assert np.allclose(getattr(whole, name), getattr(cut, name), rtol=1e-12, atol=1e-12), name


def test_ties_of_a_deterministic_policy_are_shared():
    """Before any reward every arm of kl-UCB is as good: 16 draws at each of 200 events of one time."""
    n = 200
    columns = {"time": [*[0.0] * (n - 1), 1.0], "arm": np.arange(n) % 4, "reward": np.arange(n) % 3 == 0}
    log = Log(columns, propensity="uniform")
    found = follow(log, [Candidate("kl-ucb", KLUCB())], guesses=lambda events: np.tile([1.0, 0, 0, 0], (events.n, 1)),
                   compiled=False)  # fmt: skip
    assert found.truth.sum() / n == pytest.approx(0.25, abs=0.04)  # 3,200 draws: 5 standard errors


def test_a_policy_that_needs_the_truth_is_refused():
    with pytest.raises(ValueError, match="needs the true means, which a log does not contain"):
        candidates(["oracle"])


def test_a_grid_is_every_combination():
    assert expand_grid("ds-ts") == ["ds-ts"]
    assert expand_grid("ds-ts(gamma=[0.9, 0.99, 0.999])") == [f"ds-ts(gamma={g})" for g in ("0.9", "0.99", "0.999")]
    both = expand_grid("ds-ts(gamma=[0.9, 0.99], tau_max=[0.1,0.2]) @ 6 h")
    assert both[1] == "ds-ts(gamma=0.9, tau_max=0.2) @ 6 h"
    assert len(both) == 4
    assert [c.policy.gamma for c in candidates(["ds-ts(gamma=[0.9, 0.99])", Uniform()])[:2]] == [0.9, 0.99]
    for bad, said in (("ds-ts(gamma=[])", "empty list"), (f"ds-ts(gamma=[{'0.9,' * 2000}])", "more than 1000")):
        with pytest.raises(ValueError, match=said):
            expand_grid(bad)
    with pytest.raises(ValueError, match="given twice"):
        candidates(["ts", "ts"])


def test_the_value_of_an_arm_is_its_inverse_propensity_average_around_the_guess():
    log = log_of()
    found, events = follow(log, candidates(["uniform"]), compiled=False), log.whole()
    guesses = np.array([twin_guess(events, e, K) for e in range(events.n)])
    for arm in range(K):
        here = events.arm == arm
        plain = guesses[:, arm].sum() + ((events.reward - guesses[:, arm]) / events.propensity)[here].sum()
        assert found.arm_value[:, arm].sum() == pytest.approx(plain)
