"""The estimators, held to slow twins that do the obvious: at each event, start from nothing and look at all events
before it."""

import math

import numpy as np
import pytest

from driftbandit import Agent
from driftbandit.beliefs import BetaBelief, NormalBelief, chance_of_largest
from driftbandit.draws import POLICY, Draws, round_key, stream_key
from driftbandit.logs import Log
from driftbandit.logs.candidates import Candidate, candidates
from driftbandit.logs.follow import follow
from driftbandit.logs.generic import PolicyPlayer
from driftbandit.logs.largest import BETA, NORMAL, chances_into, log_of_one_plus, room, stirling_rest
from driftbandit.logs.model import MEMORIES
from driftbandit.logs.replayed import effective_size, replay
from driftbandit.policies import BetaTS, DiscountedTS
from driftbandit.primitives import draw_from

N, K = 260, 3


def log_of(n=N, k=K, seed=0, delay=0.0, available=False, step=0.0, **more):
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
    return Log(columns, arms=range(k), **more)


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


def twin_chances(candidate, events, e, k, learnt):
    """The chances at event e from what was learnt, by weights 2**(-age / half-life) or by an agent."""
    allowed = list(range(k)) if events.allowed is None else np.flatnonzero(events.allowed[e]).tolist()
    if len(allowed) == 1:
        return np.eye(k)[allowed[0]]
    policy = candidate.policy
    if candidate.half_life is None:
        agent = Agent(policy, k, seed=0)
        for w in learnt:
            agent.learn(int(events.arm[w]), float(events.reward[w]))
        belief = policy.belief(agent.state)
    else:
        wins, losses = np.zeros(k), np.zeros(k)
        for w in learnt:
            weight = 0.5 ** ((events.time[e] - events.time[w]) / candidate.half_life)
            wins[events.arm[w]] += weight * events.reward[w]
            losses[events.arm[w]] += weight * (1.0 - events.reward[w])
        if isinstance(policy, DiscountedTS):
            pulls = wins + losses
            mean = np.where(pulls > 0, wins / np.maximum(pulls, 1e-300), 0.0)
            belief = NormalBelief(mean, np.minimum(policy.tau_max, np.maximum(policy.weight * pulls, 1e-300) ** -0.5))
        else:
            belief = BetaBelief(policy.prior_wins + wins, policy.prior_losses + losses)
    out = np.zeros(k)
    out[allowed] = chance_of_largest(type(belief)(*(np.asarray(field)[allowed] for field in belief)))[0]
    return out


def twin(log, candidate, own=False, key=0):
    """Every v_t, noise and weight, one event after the other."""
    events, k = log.whole(), log.n_arms
    accepted, value, noise, weight = [], [], [], []
    for e in range(events.n):
        learnt = [w for w in known_before(events, e) if not own or accepted[w]]
        pi = twin_chances(candidate, events, e, k, learnt)
        q = twin_guess(events, e, k)
        a, mu = events.arm[e], events.propensity[e]
        ratio = pi[a] / mu
        noise.append(ratio * (events.reward[e] - q[a]))
        value.append(pi @ q + noise[-1])
        weight.append(ratio)
        with np.errstate(over="ignore"):
            rng = Draws(round_key(np.uint64(key), e))
            accepted.append(draw_from(pi, rng.uniform(0)) == a and rng.uniform(1) * mu < log.summary.least)
    return np.array(value), np.array(noise), np.array(weight), np.array(accepted)


CANDIDATES = [
    "ts",
    "dts(gamma=0.95)",
    "ds-ts(gamma=0.95, tau_max=0.3)",
    "dts @ 60",
    "ds-ts(weight=3) @ 60",
    "ds-ts @ inf",
]


@pytest.mark.parametrize("text", CANDIDATES)
@pytest.mark.parametrize(("delay", "available"), [(0.0, False), (40.0, False), (10.0, True)])
def test_the_follower_is_its_slow_twin(text, delay, available):
    log = log_of(delay=delay, available=available, n=60)
    candidate = candidates([text], False)[0]
    found = follow(log, [candidate])
    value, noise, weight, _ = twin(log, candidate)
    assert found.events.sum() == found.pieces.sum() == log.n
    assert found.value.sum() == pytest.approx(value.sum(), abs=2e-4 * log.n)
    assert found.noise.sum() == pytest.approx(noise.sum(), abs=2e-4 * log.n)
    assert effective_size(found, 0) == pytest.approx(weight.sum() ** 2 / (weight**2).sum(), rel=2e-3)
    snips = found.weighted.sum() / found.weight.sum()
    assert snips == pytest.approx((weight * log.whole().reward).sum() / weight.sum(), abs=1e-3)


@pytest.mark.parametrize("text", ["ts", "ds-ts @ 60", "dts(gamma=0.95)"])
@pytest.mark.parametrize("delay", [0.0, 50.0])
def test_rows_of_equal_time_do_not_tell_each_other(text, delay, monkeypatch):
    """A stamp of 50 seconds holds seven rows; a reward 50 seconds late is there for the next stamp, not for its own."""
    log = log_of(n=60, step=50.0)
    events = log.whole()
    columns = {name: getattr(events, name) for name in ("time", "arm", "reward", "propensity")}
    log = Log({**columns, "reward_time": events.time + delay} if delay else columns, arms=range(K))
    candidate = candidates([text], False)[0]
    value, noise, _, _ = twin(log, candidate)
    for alone in (False, True):
        if alone:
            monkeypatch.setattr("driftbandit.logs.follow.fits", lambda policy: False)
        found = follow(log, [candidate])
        assert found.value.sum() == pytest.approx(value.sum(), abs=2e-4 * log.n)
        assert found.noise.sum() == pytest.approx(noise.sum(), abs=2e-4 * log.n)


@pytest.mark.parametrize("text", ["ts", "ds-ts @ 60", "ds-ts(gamma=0.95)"])
@pytest.mark.parametrize("delay", [0.0, 25.0])
def test_the_own_history_is_its_slow_twin(text, delay):
    log = log_of(n=60, delay=delay)
    candidate = candidates([text], False)[0]
    found = follow(log, [candidate], own=True, seed=4)
    value, _, _, accepted = twin(log, candidate, own=True, key=stream_key(4, 0, POLICY))
    assert found.accepted.sum() == accepted.sum()
    assert found.value.sum() == pytest.approx(value.sum(), abs=3e-4 * log.n)


@pytest.mark.parametrize(
    "policy", [BetaTS(), DiscountedTS(gamma=0.95), DiscountedTS(gamma=0.9, tau_max=0.1, weight=4.0)]
)
@pytest.mark.parametrize("compiled", [True, False])
def test_a_policy_played_alone_and_in_a_family_is_the_same(policy, compiled, monkeypatch):
    log = log_of(n=90, delay=5.0, available=True)
    tried = [Candidate("one", policy)]
    family = follow(log, tried, compiled=compiled)
    monkeypatch.setattr("driftbandit.logs.follow.fits", lambda policy: False)
    alone = follow(log, tried, compiled=compiled)
    for name in ("value", "noise", "weight", "weight2", "weighted"):
        assert np.allclose(getattr(family, name), getattr(alone, name), atol=1e-6), name


@pytest.mark.parametrize("text", ["ds-ts(tau_max=0.3) @ 60", "dts @ 45", "ds-ts @ inf"])
def test_a_policys_own_fade_and_take_forget_by_the_clock_as_a_family_does(text, monkeypatch):
    log = log_of(n=90, delay=30.0, available=True)
    tried = candidates([text], False)
    family = follow(log, tried)
    monkeypatch.setattr("driftbandit.logs.follow.fits", lambda policy: False)
    alone = follow(log, tried)
    for name in ("value", "noise", "weight", "weight2", "weighted"):
        assert np.allclose(getattr(family, name), getattr(alone, name), atol=1e-5), name


@pytest.mark.parametrize("text", ["d-ucb", "d-klucb"])
def test_every_policy_that_can_fade_has_a_half_life_by_the_clock(text):
    """Held to an agent with that half-life, told of each reward when it became known."""
    log = log_of(n=60, delay=30.0)
    events = log.whole()
    candidate = candidates([f"{text} @ 90"], False)[0]
    found = follow(log, [candidate])
    agent, expected = Agent(candidate.policy, K, half_life=90.0), []
    learnt: list[int] = []
    for e in range(events.n):
        for w in known_before(events, e)[len(learnt) :]:
            agent.learn(int(events.arm[w]), float(events.reward[w]), at=events.time[w], now=events.known[w])
            learnt.append(w)
        agent.choose(now=events.time[e])
        chance = np.bincount([agent.choose(now=events.time[e]) for _ in range(16)], minlength=K) / 16
        expected.append(chance[events.arm[e]] / events.propensity[e])
    expected = np.array(expected)
    ties = 6  # before all arms are known a bound plays the unknown ones in an order by chance
    assert found.weight.sum() == pytest.approx(expected.sum(), abs=ties)


@pytest.mark.parametrize(
    "text", ["kl-ucb", "exp3.s(explore=0.2, share=0.01)", "sw-ts(window=50)", "d-ucb", "ds-ts(forget_below=1e-8)"]
)
def test_any_policy_can_follow_compiled_or_not(text):
    from driftbandit.text.registry import policies

    shorts = {getattr(cls, "short", "") for cls in policies().values()}
    if text.split("(")[0] not in shorts:
        text = "exp3s(explore=0.2, share=0.01)" if "exp3s" in shorts else "ts"
    log = log_of(n=120)
    tried = candidates([text], False)
    one, two = (follow(log, tried, compiled=flag) for flag in (True, False))
    assert np.allclose(one.value, two.value, atol=1e-6)
    assert 0.0 < one.weight.sum() / log.n < 3.0


@pytest.mark.parametrize("text", ["kl-ucb", "exp3s(explore=0.2, share=0.01)", "lb-sda", "drift-ts"])
@pytest.mark.parametrize("available", [False, True])
def test_the_loop_that_asks_is_the_policy_asked_event_by_event(text, available, monkeypatch):
    log = log_of(n=90, delay=20.0, available=available)
    tried = candidates([text], False)
    found = [follow(log, tried), follow(log, tried, own=True, seed=2)]
    monkeypatch.setattr("driftbandit.logs.follow.must_be_asked", lambda candidate, k: False)
    for one, two in zip(found, [follow(log, tried), follow(log, tried, own=True, seed=2)], strict=True):
        for name in ("value", "noise", "weight", "weight2", "weighted", "accepted"):
            assert np.allclose(getattr(one, name), getattr(two, name), atol=1e-9), name
    assert 0 < found[1].accepted.sum() < log.n


def test_ties_of_a_deterministic_policy_are_shared_evenly():
    player = PolicyPlayer(candidates(["kl-ucb"], False)[0], 4, False, 0)
    chance = np.mean([player.chances([0, 1, 2, 3]).copy() for _ in range(200)], axis=0)
    assert np.abs(chance - 0.25).max() < 0.04  # 3200 draws: 5 standard errors


def test_an_oracle_cannot_follow_a_log():
    with pytest.raises(ValueError, match="looks into the world"):
        follow(log_of(), candidates(["oracle"], False))


@pytest.mark.parametrize("k", [2, 5, 10])
@pytest.mark.parametrize("kind", [NORMAL, BETA])
def test_the_fast_chances_are_the_slow_ones(k, kind):
    rng = np.random.default_rng(k)
    scratch, out = room(k), np.zeros(k)
    for case in range(12):
        if kind == NORMAL:
            width = 0.2 if case < 4 else 0.02 if case < 8 else 10.0 ** rng.uniform(-3, -0.5, k)
            p, q = rng.normal(0.5, 0.1, k), np.full(k, width)
            belief = NormalBelief(p, q)
        else:
            n = 10.0 ** rng.uniform(-1, 4, 1 if case < 8 else k)
            mean = rng.uniform(0.2, 0.7, k)
            p, q = 1.0 + n * mean, 1.0 + n * (1.0 - mean)
            belief = BetaBelief(p, q)
        chances_into(kind, p, q, scratch, out)
        expected, error = chance_of_largest(belief)
        assert np.abs(out - expected).max() < (5e-5 if case < 8 else 2e-4) + error


def test_the_short_ways_to_logarithms_are_right():
    for x in (1e-3, 0.3, 1.0, 1.7, 3.0, 9.0, 1e4):
        exact = math.lgamma(x) - (x - 0.5) * math.log(x) + x - 0.5 * math.log(2.0 * math.pi)
        assert abs(stirling_rest(x) - exact) < (3e-5 if x < 3.0 else 1e-9)
    for s in np.linspace(0.0, 1.0, 101):
        assert abs(log_of_one_plus(s) - math.log1p(s)) < 2e-11


def test_extreme_beliefs_give_chances_all_the_same():
    scratch, out = room(3), np.zeros(3)
    for kind, p, q in (
        (NORMAL, [0.5, 0.5, 0.5], [1e-9, 1e-9, 1e-9]),
        (NORMAL, [0.0, 1.0, 0.5], [1e-12, 0.2, 1e-6]),
        (BETA, [1.0, 1e7, 1e7], [1.0, 1e7, 1e7]),
        (BETA, [1e-3, 1e-3, 1.0], [1e-3, 1.0, 1.0]),
    ):
        chances_into(kind, np.array(p), np.array(q), scratch, out)
        assert np.isfinite(out).all()
        assert out.sum() == pytest.approx(1.0)
    chances_into(NORMAL, np.zeros(3), np.array([0.1, -1.0, 0.1]), scratch, out)
    assert out.tolist() == pytest.approx([0.5, 0.0, 0.5])


def test_cutting_the_log_into_steps_and_workers_changes_nothing(monkeypatch):
    log = log_of(delay=30.0)
    tried = candidates(CANDIDATES, False)
    whole = follow(log, tried, workers=1)
    monkeypatch.setattr("driftbandit.logs.follow.STEP", 7)
    cut = follow(log, tried, workers=2)
    for name in ("events", "value", "noise", "weight", "arm_value", "reward"):
        assert np.allclose(getattr(whole, name), getattr(cut, name), rtol=1e-12, atol=1e-12), name


def test_the_value_of_an_arm_is_its_inverse_propensity_average_around_the_guess():
    log = log_of()
    found, events = follow(log, candidates(["ts"], False)), log.whole()
    guesses = np.array([twin_guess(events, e, K) for e in range(N)])
    for arm in range(K):
        here = events.arm == arm
        plain = guesses[:, arm].sum() + ((events.reward - guesses[:, arm]) / events.propensity)[here].sum()
        assert found.arm_value[:, :, arm].sum() == pytest.approx(plain)
    assert found.reward.sum() == events.reward.sum()


def test_the_estimate_is_unbiased_for_logs_of_any_logger():
    """Over 300 logs of changing chances, the mean error is within 4.5 standard errors of 0: one failure in 150,000."""
    tried = candidates(["dts @ 60"], False)
    errors = []
    for seed in range(300):
        log = log_of(n=150, seed=seed)
        time = log.whole().time
        means = np.array([0.3, 0.5, 0.6]) + 0.2 * np.sin(time / 150.0)[:, None] * np.array([1, -1, 0])
        lookup = dict(zip(time.tolist(), means, strict=True))
        truth = follow(
            log,
            tried,
            workers=1,
            guesses=lambda events, lookup=lookup: np.array([lookup[t] for t in events.time.tolist()]),
        )
        errors.append(
            float(follow(log, tried, workers=1).value.sum() - (truth.value.sum() - truth.noise.sum())) / log.n
        )
    assert abs(np.mean(errors)) < 4.5 * np.std(errors) / math.sqrt(len(errors))


def test_replay_compares_with_ts_the_best_arm_and_the_logger():
    log = log_of(n=4000)
    result = replay(log, ["ds-ts @ 60"])
    assert [line.label for line in result.lines] == ["ts", "ds-ts @ 60"]
    ts, ds = result.lines
    assert ts.over_ts.here[:3] == (0.0, 0.0, 0.0)
    assert ds.over_ts.here.mean == pytest.approx(ds.value.mean - ts.value.mean)
    assert ds.over_logger.here.mean == pytest.approx(ds.value.mean - result.logger)
    assert ds.value.low < ds.value.mean < ds.value.high
    assert 0 < ds.accepted < log.n
    assert result.share == log.summary.least


def test_replay_refuses_what_it_cannot_tell():
    with pytest.raises(ValueError, match="Only 3 rewards differ from the rest"):
        replay(
            Log({"time": range(500), "arm": [0, 1] * 250, "reward": [1, 0, 1, 0, 1] + [0] * 495}, propensity="uniform")
        )
    with pytest.raises(ValueError, match=r"Blocks of 500 give only 2\.0 of them"):
        replay(log_of(), block=500)
    with pytest.raises(
        ValueError, match=r"62 events' worth of evidence about it .effective sample size.; 200 are needed"
    ):
        replay(log_of(n=240), ["dts @ 60"], own=False)
