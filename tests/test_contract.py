"""The promises of every policy, tested on everything that discovery finds: a new policy need not be named here.

Every policy is played interpreted. Tests that compile or play long use the CHOSEN policies; with all others they are
marked `long`."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from driftbandit import Bandit
from driftbandit.bandit.opening import FORMAT
from driftbandit.core.draws import POLICY, REWARD, Stream, stream_key
from driftbandit.core.parameters import parameters
from driftbandit.core.primitives import learn_reward
from driftbandit.core.state import to_lists
from driftbandit.environments import Abrupt, PhaseTable
from driftbandit.lab.engine import loop
from driftbandit.lab.engine.code_cache import compiled as as_machine_code
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.spec.parse import environments, parse, policies
from naive.plays import PARAMETERS
from small_policies import play_arm

NAMES = sorted(policies())
WRAPPERS: dict[str, dict[str, Any]] = {
    "Delayed": {"base": DiscountedTS(gamma=0.97), "rounds": 20, "random": True},
    "LBSDA": {"capacity": 3000},
    "Oracle": {},
    "PeriodicRestart": {"base": DiscountedTS(gamma=0.97), "period": 90},
}
NEVER_FORGETS = {name for name, cls in policies().items() if cls.family in ("never forgets", "baseline")}
LOOKS_INTO_THE_ENVIRONMENT = {name for name, cls in policies().items() if hasattr(cls, "with_environment")}
LEARNS = [name for name in NAMES if name not in ("Uniform", "FixedArm", "Oracle")]
CHOSEN = {"DiscountedTS", "SlidingUCB"}  # cheap to compile, and different in kind
ENVIRONMENT = Abrupt(n_arms=4, horizon=600, phases=3, instance="1")
SAME_LOOP = {"trajectories": True, "pulls": True}  # one compiled loop per policy serves all tests of this file
EASY = PhaseTable(means=((0.1, 0.9, 0.2),), starts=(0,), horizon=3000)
FAMILIES = {"never forgets", "discounts", "window", "detects", "infers", "restarts", "shares weight", "wrapper",
            "baseline"}  # fmt: skip


def long_unless_chosen(names: list[str]) -> list[Any]:
    return [pytest.param(name, marks=() if name in CHOSEN else pytest.mark.long) for name in names]


def make(name: str) -> Any:
    """One choice of parameters a policy: small windows and thresholds, so that everything happens within a few
    hundred rounds."""
    given = WRAPPERS.get(name, PARAMETERS.get(name, {}))
    return policies()[name](**given)


@cache
def played(name: str) -> Any:
    """The simulator's trajectories, interpreted."""
    return simulate(make(name), ENVIRONMENT, runs=2, seed=3, checkpoints=20, compiled=False, **SAME_LOOP)


@pytest.mark.parametrize("name", long_unless_chosen(NAMES))
def test_the_same_seed_gives_the_same_run_compiled_or_interpreted(name: str) -> None:
    fast = simulate(make(name), ENVIRONMENT, runs=2, seed=3, checkpoints=20, **SAME_LOOP)
    for field in ("regret", "pulls", "arms", "rewards"):
        assert (getattr(played(name), field) == getattr(fast, field)).all(), field


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LOOKS_INTO_THE_ENVIRONMENT])
def test_a_bandit_fed_the_simulators_rewards_chooses_the_simulators_arms(name: str) -> None:
    bandit = Bandit(4, make(name), reward_range=(0, 1), seed=3, first=False, floor=0.0)
    environment, reward_rng = ENVIRONMENT.realise(0), Stream(stream_key(3, 0, REWARD))
    for t in range(ENVIRONMENT.horizon):
        decision = bandit.decide()
        arm = decision.arm
        assert arm == played(name).arms[0, t], t
        bandit.reward(decision, float(environment.pull(t, arm, reward_rng.at(t))))


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_describes_itself(name: str) -> None:
    cls: Any = policies()[name]
    assert cls.family in FAMILIES
    assert all(getattr(cls, fact) for fact in ("short", "forgets", "knows", "cost", "reference"))


@pytest.mark.parametrize("name", NAMES)
def test_arms_are_within_range_and_all_are_tried(name: str) -> None:
    assert set(played(name).arms.ravel()) <= set(range(4))
    assert (played(name).pulls.sum(axis=1) == ENVIRONMENT.horizon).all()
    if name not in ("FixedArm", "Oracle"):
        # Over both runs: DS-TS starts every arm at mean 0, so with three good arms it may not play the fourth for
        # long.
        assert (played(name).pulls.sum(axis=0) > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_choosing_twice_gives_the_same_arm_and_changes_nothing(name: str) -> None:
    policy = make(name)
    bound = policy.with_environment(ENVIRONMENT.realise(0)) if hasattr(policy, "with_environment") else policy
    once, twice = to_lists(bound.init(4)), to_lists(bound.init(4))
    stream = Stream(stream_key(5, 0, POLICY))
    for t in range(200):
        rng = stream.at(t)
        assert bound.choose(twice, t, rng) == bound.choose(twice, t, rng) == bound.choose(once, t, rng)
        arm, reward = t % 4, float(t % 3 == 0)
        learn_reward(bound, once, t, arm, reward, rng)
        learn_reward(bound, twice, t, arm, reward, rng)


@pytest.mark.parametrize("name", long_unless_chosen([name for name in NAMES if name not in LOOKS_INTO_THE_ENVIRONMENT]))
def test_an_idle_arm_is_tried_again_however_bad_it_was(name: str) -> None:
    """Fifty failures of arm 1, then a long silence while arm 0 always pays: with the defaults of the bandit arm 1 comes
    back, whatever the policy. In 6000 decisions the floor itself brings it 15 times; none at all has a probability of
    3e-7."""
    policy = make(name)
    bandit = Bandit(2, policy._replace(arm=0) if name == "FixedArm" else policy, reward_range=(0, 1), seed=6)
    for t in range(1500):
        arm = 1 if 100 <= t < 150 else 0
        play_arm(bandit, arm, float(arm == 0))
    came_back = 0
    for _ in range(6000):
        decision = bandit.decide()
        arm = decision.arm
        came_back += arm
        bandit.reward(decision, float(arm == 0))
    assert came_back > 0


@pytest.mark.parametrize(
    "name", long_unless_chosen([name for name in NAMES if name not in NEVER_FORGETS | LOOKS_INTO_THE_ENVIRONMENT])
)
def test_a_policy_that_forgets_returns_to_an_arm_while_the_leader_pays_little(name: str) -> None:
    """Fifty failures of arm 1, then a long silence while arm 0 pays 0.6: a policy that forgets comes back to arm 1 at
    times. With a leader that pays more DS-TS does not: hence the bandit's floor, and the test above."""
    policy = make(name)
    state, stream = to_lists(policy.init(2)), Stream(stream_key(6, 0, POLICY))
    for t in range(4000):
        policy.choose(state, t, stream.at(t))
        arm = 1 if 100 <= t < 150 else 0
        learn_reward(policy, state, t, arm, 0.0 if arm == 1 else float(t % 5 < 3), stream.at(t))
    came_back = 0
    for t in range(4000, 8000):
        arm = policy.choose(state, t, stream.at(t))
        came_back += arm
        learn_reward(policy, state, t, arm, 0.0 if arm == 1 else float(t % 5 < 3), stream.at(t))
    assert came_back > 0


@pytest.mark.parametrize("name", [name for name in LEARNS if name not in LOOKS_INTO_THE_ENVIRONMENT])
def test_a_snapshot_in_mid_run_continues_identically(name: str) -> None:
    bandit = Bandit(
        ["a", "b", "c"], make(name), reward_range=(0, 1), seed=4, clock=lambda: 1
    )  # a snapshot has times in it
    for t in range(150):
        bandit.reward(bandit.decide(), float(t % 3 == 0))
    text = bandit.snapshot()
    assert json.loads(text)["format"] == FORMAT
    other = Bandit.restore(text, clock=lambda: 1)
    for t in range(150):
        decision = bandit.decide()
        arm = decision.arm
        same = other.decide()
        assert same.arm == arm
        bandit.reward(decision, float(t % 4 == 0))
        other.reward(same, float(t % 4 == 0))
    assert bandit.snapshot() == other.snapshot()


@pytest.mark.parametrize("name", long_unless_chosen(LEARNS))
def test_every_policy_beats_uniform_play_on_an_easy_problem(name: str) -> None:
    """By more than 5 standard errors: a chance failure about once in three million tries, were they equal."""
    policy = make(name)
    if hasattr(policy, "horizon"):
        policy = policy._replace(horizon=EASY.horizon)
    final = simulate(policy, EASY, runs=24, seed=1, checkpoints=1, **SAME_LOOP).regret[:, 0]
    uniform = simulate(policies()["Uniform"](), EASY, runs=24, seed=1, checkpoints=1, **SAME_LOOP).regret[:, 0]
    gain = uniform - final
    assert gain.mean() > 5 * gain.std(ddof=1) / math.sqrt(len(gain))


@pytest.mark.parametrize("name", long_unless_chosen([name for name in LEARNS if "OSUB" not in name]))
def test_relabelling_the_arms_leaves_the_regret_as_it_is(name: str) -> None:
    """Within 4.5 standard errors of the difference: one chance failure in 150 000 a policy. The unimodal policies
    know the order by design."""
    there = PhaseTable(means=((0.3, 0.7, 0.5), (0.8, 0.2, 0.5)), starts=(0, 700), horizon=1400)
    back = PhaseTable(means=((0.5, 0.3, 0.7), (0.5, 0.8, 0.2)), starts=(0, 700), horizon=1400)
    finals = [
        simulate(make(name), environment, runs=60, seed=seed, checkpoints=1, **SAME_LOOP).regret[:, 0]
        for seed, environment in enumerate((there, back))
    ]
    error = math.sqrt(sum(final.var(ddof=1) / len(final) for final in finals))
    assert abs(finals[0].mean() - finals[1].mean()) <= 4.5 * error + 1e-9


@pytest.mark.parametrize("name", long_unless_chosen(NAMES))
def test_other_parameter_values_need_no_second_compilation(name: str) -> None:
    policy = make(name)
    simulate(policy, ENVIRONMENT, runs=2, **SAME_LOOP)
    environment = ENVIRONMENT.realise(0)
    bound = policy.with_environment(environment) if hasattr(policy, "with_environment") else policy
    compiled = as_machine_code(loop.advance, bound, bound.init(4), environment)
    before = len(compiled.signatures)
    changed = {
        p.name: p.kind(1)
        for p in parameters(type(policy))
        if p.kind is float and p.domain is not None and p.domain.holds(1)
    }
    simulate(
        type(policy)(**{**policy._asdict(), **changed}) if changed else policy,
        ENVIRONMENT,
        runs=2,
        **SAME_LOOP,
    )
    assert len(compiled.signatures) == before


@pytest.mark.long
@pytest.mark.parametrize(
    "name", long_unless_chosen([name for name in NAMES if getattr(policies()[name], "lockstep", False)])
)
def test_lanes_hold_what_single_runs_give(name: str) -> None:
    together, single = (
        simulate(make(name), ENVIRONMENT, runs=8, seed=3, pulls=True, lockstep=flag) for flag in (True, False)
    )
    assert (together.regret == single.regret).all()
    assert (together.pulls == single.pulls).all()


@pytest.mark.parametrize(
    ("name", "constructor"),
    [(name, made) for name in NAMES for made in ("tuned", "text", "code") if hasattr(policies()[name], made)],
)
def test_named_constructors_refuse_impossible_sizes_in_one_sentence(name: str, constructor: str) -> None:
    cls = policies()[name]
    maker = getattr(cls, constructor)
    extra = {"base": DiscountedTS()} if "base" in cls._fields else {}
    assert maker(10_000, 4, 5, **extra) is not None
    bad_sizes = [(bad, 3, 5) for bad in (0, -5, math.nan, math.inf, "x", None, 2.5)]
    bad_sizes += [(1000, bad, 5) for bad in (0, -1, math.nan, "x", 2000)] + [
        (1000, 3, bad) for bad in (-1, math.nan, "x")
    ]
    for sizes in bad_sizes:
        with pytest.raises(ValueError, match=rf"^{name}\.{constructor} ") as caught:
            maker(*sizes, **extra)
        assert str(caught.value).endswith(".")


@pytest.mark.parametrize("kind", [policies, environments])
def test_bad_parameters_are_refused_in_one_sentence(kind: Any) -> None:
    for name, cls in kind().items():
        for p in parameters(cls):
            if p.kind not in (int, float):
                continue
            for bad in (
                math.nan,
                math.inf if p.domain is None or not p.domain.holds(math.inf) else None,
                "0.5",
                None,
                -1e9,
            ):
                if bad is None and p.default is None:
                    continue
                if isinstance(bad, float) and p.domain is not None and p.domain.holds(bad):
                    continue
                given = {**PARAMETERS.get(name, {}), **WRAPPERS.get(name, {})}
                if name == "PhaseTable":
                    given = {"means": ((0.1, 0.2),), "starts": (0,), "horizon": 5}
                given[p.name] = bad
                with pytest.raises(ValueError, match=cls.__name__) as caught:
                    cls(**given)
                assert p.name in str(caught.value)
                assert "\n" not in str(caught.value)
                assert str(caught.value).endswith(".")


@pytest.mark.parametrize("name", NAMES)
def test_the_text_of_a_policy_gives_it_back(name: str) -> None:
    assert parse(repr(make(name))) == make(name)


@pytest.mark.long
def test_adding_or_reordering_policies_does_not_change_other_curves(tmp_path) -> None:
    from driftbandit.lab import run

    ds, ts, ucb = make("DiscountedTS"), make("BetaTS"), make("DiscountedUCB")
    several = run({"ucb": ucb, "ds": ds, "ts": ts}, ENVIRONMENT, 3, folder=tmp_path / "a")
    single = run({"ds": ds}, ENVIRONMENT, 3, folder=tmp_path / "b")
    assert (several.curve("ds") == single.curve("ds")).all()


@pytest.mark.parametrize("name", sorted(environments()))
def test_a_pull_takes_the_same_numbers_whichever_arm_is_pulled(name: str, tmp_path: Path) -> None:
    """Rewards of all arms in a round come from the same slots, so that policies are compared on the same reward_rng."""
    given: dict[str, Any] = {"horizon": 50}
    if name == "PhaseTable":
        given = {"means": ((0.5, 0.5),), "starts": (0,), "horizon": 50}
    elif name == "Table":
        (tmp_path / "environment.csv").write_text("rounds,a,b\n20,0.5,0.5\n30,0.6,0.4\n")
        given = {"file": str(tmp_path / "environment.csv")}
    elif "phases" in environments()[name]._fields:
        given["phases"] = 2
    elif name in ("Bursts", "CommonShift"):  # with their own length
        given = {}
    environment = to_lists(environments()[name](**given).realise(7))
    asked: list[list[int]] = []

    class Watched(Stream):
        def uniform(self, slot: int) -> float:
            asked[-1].append(slot)
            return super().uniform(slot)

    reward_rng = Watched(99)
    features = [0.5] * getattr(environment, "n_features", 0)
    for arm in range(2):
        asked.append([])
        for t in range(50):
            if features:
                environment.pull_in(t, arm, features, reward_rng.at(t))
            else:
                environment.pull(t, arm, reward_rng.at(t))
    assert asked[0] == asked[1]
