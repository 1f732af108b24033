"""Contexts of a log: policies that follow it with them, guesses by regression, and whether context pays."""

import numpy as np
import pytest

from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.logs import Log, drift, replay
from driftbandit.logs.context import FOLDS, STRENGTHS, ContextGuesses, Sums, context_gains, contexts, events_needed
from driftbandit.logs.follow import DRAWS, follow
from driftbandit.logs.replay import candidates
from driftbandit.player import Player
from driftbandit.spec.half_life import SECOND

DEVICES = np.array(["desktop", "mobile", "tablet"])


def log_of(n, seed=0, effect=0.0, delay=0.0, features="device,basket:number,member", available=False):
    """Arms drawn uniformly. `effect` is what the arm of a device earns more; levels differ by device and basket."""
    rng = np.random.default_rng(seed)
    device, basket, arm = rng.integers(0, 3, n), rng.normal(size=n), rng.integers(0, 3, n)
    offered = np.tile(True, (n, 3))
    if available:
        offered[np.arange(n), (arm + rng.integers(0, 3, n)) % 3] = False
        offered[np.arange(n), arm] = True
    mean = np.array([0.42, 0.4, 0.41])[arm] + 0.1 * (device == 1) + 0.05 * np.tanh(basket)
    columns = {
        "time": np.arange(n, dtype=float),
        "arm": arm,
        "reward": (rng.random(n) < mean + effect * np.where(device == arm, 1.0, -0.5)).astype(float),
        "propensity": 1.0 / offered.sum(axis=1),
        "device": DEVICES[device],
        "basket": basket,
        "member": rng.random(n) < 0.5,
        "available": ["|".join(map(str, np.flatnonzero(row))) for row in offered],
    }
    if delay:
        columns["reward_time"] = columns["time"] + rng.exponential(delay, n)
    return Log(columns, features=features, propensity="propensity" if available else "uniform")


def twin(log, candidate):
    """The weights of the policy's player, which at each event starts from nothing and learns what was known."""
    events, features, key = log.whole(), contexts(log), stream_key(0, 0, POLICY)
    half_life = None if candidate.half_life is None else round(candidate.half_life * SECOND)
    weights, asked = [], 0
    for e in range(events.n):
        player = Player(candidate.policy, 3, key, half_life, n_features=features.shape[1])
        known = [w for w in range(e) if events.known[w] <= events.time[e]]
        for w in sorted(known, key=lambda w: (events.known[w], w)):
            decided = int(events.time[w] * SECOND)
            player.learn(int(events.arm[w]), float(events.reward[w]), decided, features=features[w].tolist())
        allowed = np.flatnonzero(log.menus[events.menu[e]]).tolist()
        now, played = int(events.time[e] * SECOND), []
        if len(allowed) > 1:
            for n in range(DRAWS):
                rng = Stream(key).at(asked + n)
                played.append(player.choose(rng, allowed, now, features=features[e].tolist()))
            asked += DRAWS
        weights.append(np.mean(np.array(played or allowed) == events.arm[e]) / events.propensity[e])
    return np.array(weights)


@pytest.mark.parametrize("text", ["lin-ucb", "d-lin-ts(gamma=0.95)", "drift-lin-ts", "stable-lin-ts @ 20"])
@pytest.mark.parametrize(("delay", "available"), [(0.0, False), (5.0, True)])
def test_a_contextual_follower_is_its_player(text, delay, available):
    log = log_of(40, seed=3, effect=0.2, delay=delay, available=available)
    (candidate,) = candidates([text])
    found = follow(log, [candidate], compiled=False, guesses=lambda events: np.zeros((events.n, 3)))
    weights = twin(log, candidate)
    assert found.weight.sum() == pytest.approx(weights.sum())
    assert found.value.sum() == pytest.approx((weights * log.whole().reward).sum())
    assert found.paid.sum() == pytest.approx((weights * log.whole().reward).sum())


@pytest.mark.long
def test_compiled_or_not_is_the_same():
    log, tried = log_of(300, effect=0.2, delay=5.0), candidates(["d-lin-ts", "stable-lin-ts @ 20"])
    one, two = (follow(log, tried, compiled=flag) for flag in (True, False))
    assert np.allclose(one.value, two.value, atol=1e-8)


def test_a_contextual_policy_earns_more_where_context_matters():
    """Playing each device's own arm gains 0.3, which a follower learns in a few hundred events."""
    result = replay(log_of(3000, effect=0.3), ["lin-ucb", "fixed(0)"], own=False, compiled=False)
    line = next(line for line in result.lines if line.label == "lin-ucb")
    assert line.over_ts.low > 0.1
    assert "IPS" in str(result)
    for estimate in (line.ips, line.snips):
        assert estimate.mean == pytest.approx(line.value.mean, abs=0.05)
        assert estimate.low < estimate.mean < estimate.high


def test_guesses_come_from_earlier_events_and_use_the_context():
    """Rewards from event 1,500 on are changed: no guess before changes, and guesses follow the device."""
    log = log_of(3000, effect=0.3)
    seen = []
    for factor in (1.0, 0.0):
        model = ContextGuesses(log, contexts(log))
        reward = np.where(np.arange(3000) < 1500, log.whole().reward, factor * log.whole().reward)
        model.events = log.whole()._replace(reward=reward)
        for begin in range(0, 1500, 100):
            model.learn(np.arange(max(begin - 100, 0), begin))
            seen.append(model.guess(slice(begin, begin + 100)))
    assert all(np.array_equal(a, b) for a, b in zip(seen[:15], seen[15:], strict=True))
    device = log.whole().context[1400:1500, 0].astype(int)
    assert (seen[14].argmax(axis=1) == device).mean() > 0.95


def test_the_regression_is_ridge_around_common_slopes():
    """Held to the plain solution of each arm's own equations, with the strength that predicts left-out folds best."""
    rng = np.random.default_rng(5)
    n, columns = 400, 4
    x = np.column_stack([np.ones(n), rng.normal(size=(n, columns - 1))])
    arm, fold = rng.integers(0, 3, n), np.arange(n) % FOLDS
    reward = x[:, 1] + 0.5 * x[:, 2] * (arm == 1) + rng.normal(size=n)
    sums = Sums.empty(FOLDS, 3, columns)
    for f in range(FOLDS):
        sums.add(f, x[fold == f], arm[fold == f], reward[fold == f], np.ones((fold == f).sum()))

    def plain(rows, strength):
        centred = [(x[at, 1:] - x[at, 1:].mean(axis=0), reward[at] - reward[at].mean()) for at in
                   (np.flatnonzero(rows & (arm == a)) for a in range(3))]  # fmt: skip
        gram, target = sum(c.T @ c for c, _ in centred), sum(c.T @ y for c, y in centred)
        common = np.linalg.solve(gram + 10.0 * np.eye(3), target)
        out = []
        for a, (c, y) in enumerate(centred):
            slopes = common + np.linalg.solve(c.T @ c + strength * np.eye(3), c.T @ (y - c @ common))
            at = rows & (arm == a)
            out.append([reward[at].mean() - x[at, 1:].mean(axis=0) @ slopes, *slopes])
        return np.array(out)

    errors = [
        sum(((reward - (x * plain(fold != f, s)[arm]).sum(axis=1))[fold == f] ** 2).sum() for f in range(FOLDS))
        for s in STRENGTHS
    ]
    expected = plain(fold >= 0, STRENGTHS[int(np.argmin(errors))])
    assert sums.fit(np.arange(FOLDS)) == pytest.approx(expected)


def test_drift_finds_the_feature_that_matters():
    found = drift(log_of(9000, effect=0.1))
    assert [gain.feature for gain in found.context] == ["device", "basket", "member", "all together"]
    assert [gain.pays for gain in found.context] == [True, False, False, True]
    assert found.context[0].gain.low < 0.1 < found.context[0].gain.high
    assert found.policy == "drift-lin-ts"
    assert "Context pays: the ranking differs by device, not by basket or member." in str(found)
    assert found.to_dict()["context"][0]["feature"] == "device"


def test_drift_keeps_quiet_where_only_levels_differ():
    found = drift(log_of(9000))
    assert not any(gain.pays for gain in found.context)
    assert "The ranking is not seen to differ by device, basket or member; context that gains +" in str(found)
    short = drift(log_of(2000))
    assert f"takes about {events_needed(log_of(2000)):,} events" in short.context_sentence


def test_a_choice_by_context_is_among_the_available_arms():
    """With one arm available, every choice is the same."""
    log = log_of(6000, effect=0.3, available=True)
    gains = context_gains(log, log.summary.span / 32)
    assert gains[0].gain.mean > 0.05
    menus = log.menus.copy()
    log.menus[:, 1:] = False
    log.menus[:, 0] = True
    assert all(gain.gain.mean == 0.0 for gain in context_gains(log, log.summary.span / 32))
    log.menus[:] = menus


def test_without_features_nothing_is_said_about_context():
    found = drift(log_of(2000, features=None))
    assert found.context == []
    assert "ontext" not in str(found)
