"""What every policy promises, run on everything that discovery finds. A new policy is tested here without being
named."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from driftbandit import Agent
from driftbandit.agent.snapshots import FORMAT
from driftbandit.draws import POLICY, REWARD, Stream, stream_key
from driftbandit.environments import Abrupt, PhaseTable
from driftbandit.lab.engine.code_cache import compiled_advance
from driftbandit.lab.engine.simulate import simulate
from driftbandit.parameters import FAMILIES, parameters
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.primitives import teach
from driftbandit.state import to_lists
from driftbandit.text.parse import parse
from driftbandit.text.registry import environments, policies
from naive.plays import PARAMETERS

NAMES = sorted(policies())
WRAPPERS: dict[str, dict[str, Any]] = {
    "Delayed": {"base": DiscountedTS(gamma=0.97), "rounds": 20, "random": True},
    "Oracle": {},
    "PeriodicRestart": {"base": DiscountedTS(gamma=0.97), "period": 90},
}
NEVER_FORGETS = {name for name, cls in policies().items() if cls.family in ("never forgets", "baseline")}
LOOKS_INTO_THE_WORLD = {name for name, cls in policies().items() if hasattr(cls, "with_world")}
LEARNS = [name for name in NAMES if name not in ("Uniform", "FixedArm", "Oracle")]
WORLD = Abrupt(n_arms=4, horizon=600, phases=3, world="1")
SAME_LOOP = {"trajectories": True, "pulls": True}  # one compiled loop per policy serves all tests here
EASY = PhaseTable(means=((0.1, 0.9, 0.2),), starts=(0,), horizon=3000)


def make(name: str) -> Any:
    """One choice of parameters a policy: small windows and thresholds, so that everything happens within a few
    hundred rounds."""
    given = WRAPPERS.get(name, PARAMETERS.get(name, {}))
    return policies()[name](**given)


@cache
def played(name: str) -> Any:
    """The simulator's trajectories, compiled."""
    return simulate(make(name), WORLD, runs=2, seed=3, checkpoints=20, **SAME_LOOP)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_run_compiled_or_interpreted(name: str) -> None:
    slow = simulate(make(name), WORLD, runs=2, seed=3, checkpoints=20, compiled=False, **SAME_LOOP)
    for field in ("regret", "pulls", "arms", "rewards"):
        assert (getattr(played(name), field) == getattr(slow, field)).all(), field


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LOOKS_INTO_THE_WORLD])
def test_an_agent_fed_the_simulators_rewards_chooses_the_simulators_arms(name: str) -> None:
    agent = Agent(make(name), 4, seed=3, first=False, floor=0.0)
    world, reward_rng = WORLD.realise(0), Stream(stream_key(3, 0, REWARD))
    for t in range(WORLD.horizon):
        arm = agent.choose()
        assert arm == played(name).arms[0, t], t
        agent.learn(arm, float(world.pull(t, arm, reward_rng.at(t))))


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_says_what_it_is(name: str) -> None:
    cls: Any = policies()[name]
    assert cls.family in FAMILIES
    assert all(getattr(cls, fact) for fact in ("short", "forgets", "knows", "cost", "reference"))


@pytest.mark.parametrize("name", NAMES)
def test_arms_are_within_range_and_all_are_tried(name: str) -> None:
    assert set(played(name).arms.ravel()) <= set(range(4))
    assert (played(name).pulls.sum(axis=1) == WORLD.horizon).all()
    if name not in ("FixedArm", "Oracle"):
        # Over both runs: DS-TS starts every arm at mean 0, so with three good arms it may leave the fourth alone for
        # long.
        assert (played(name).pulls.sum(axis=0) > 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_choosing_twice_gives_the_same_arm_and_changes_nothing(name: str) -> None:
    policy = make(name)
    bound = policy.with_world(WORLD.realise(0)) if hasattr(policy, "with_world") else policy
    once, twice = to_lists(bound.init(4)), to_lists(bound.init(4))
    stream = Stream(stream_key(5, 0, POLICY))
    for t in range(200):
        rng = stream.at(t)
        assert bound.choose(twice, t, rng) == bound.choose(twice, t, rng) == bound.choose(once, t, rng)
        arm, reward = t % 4, float(t % 3 == 0)
        teach(bound, once, t, arm, reward, rng)
        teach(bound, twice, t, arm, reward, rng)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in LOOKS_INTO_THE_WORLD])
def test_an_arm_left_alone_is_tried_again_however_bad_it_was(name: str) -> None:
    """Fifty failures of arm 1, then a long silence while arm 0 always pays: with the defaults of the agent arm 1 comes
    back, whatever the policy. In 6000 decisions the floor alone brings it 15 times; none at all has a chance of
    3e-7."""
    policy = make(name)
    agent = Agent(policy._replace(arm=0) if name == "FixedArm" else policy, 2, seed=6)
    for t in range(1500):
        arm = 1 if 100 <= t < 150 else 0
        agent.learn(arm, float(arm == 0))
    came_back = 0
    for _ in range(6000):
        arm = agent.choose()
        came_back += arm
        agent.learn(arm, float(arm == 0))
    assert came_back > 0


@pytest.mark.parametrize("name", [name for name in NAMES if name not in NEVER_FORGETS | LOOKS_INTO_THE_WORLD])
def test_a_policy_that_forgets_returns_by_itself_to_an_arm_while_the_leader_pays_little(name: str) -> None:
    """Fifty failures of arm 1, then a long silence while arm 0 pays 0.6: a policy that forgets comes back to arm 1 at
    times. With a leader that pays more DS-TS does not: hence the agent's floor, and the test above."""
    policy = make(name)
    state, stream = to_lists(policy.init(2)), Stream(stream_key(6, 0, POLICY))
    for t in range(4000):
        policy.choose(state, t, stream.at(t))
        arm = 1 if 100 <= t < 150 else 0
        teach(policy, state, t, arm, 0.0 if arm == 1 else float(t % 5 < 3), stream.at(t))
    came_back = 0
    for t in range(4000, 8000):
        arm = policy.choose(state, t, stream.at(t))
        came_back += arm
        teach(policy, state, t, arm, 0.0 if arm == 1 else float(t % 5 < 3), stream.at(t))
    assert came_back > 0


@pytest.mark.parametrize("name", [name for name in LEARNS if name not in LOOKS_INTO_THE_WORLD])
def test_a_snapshot_in_mid_run_continues_identically(name: str) -> None:
    agent = Agent(make(name), ["a", "b", "c"], seed=4)
    for t in range(150):
        agent.learn(agent.choose(), float(t % 3 == 0))
    text = agent.snapshot()
    assert json.loads(text)["format"] == FORMAT
    other = Agent.restore(text)
    for t in range(150):
        arm = agent.choose()
        assert other.choose() == arm
        agent.learn(arm, float(t % 4 == 0))
        other.learn(arm, float(t % 4 == 0))
    assert agent.snapshot() == other.snapshot()


@pytest.mark.parametrize("name", LEARNS)
def test_every_policy_beats_uniform_play_on_an_easy_problem(name: str) -> None:
    """By more than 5 standard errors: a chance failure about once in three million tries, were they equal."""
    policy = make(name)
    if hasattr(policy, "horizon"):
        policy = policy._replace(horizon=EASY.horizon)
    final = simulate(policy, EASY, runs=24, seed=1, checkpoints=1, **SAME_LOOP).regret[:, 0]
    uniform = simulate(policies()["Uniform"](), EASY, runs=24, seed=1, checkpoints=1, **SAME_LOOP).regret[:, 0]
    gain = uniform - final
    assert gain.mean() > 5 * gain.std(ddof=1) / math.sqrt(len(gain))


@pytest.mark.parametrize("name", [name for name in LEARNS if "OSUB" not in name])
def test_relabelling_the_arms_leaves_the_regret_as_it_is(name: str) -> None:
    """Within 4.5 standard errors of the difference: one chance failure in 150 000 a policy. The unimodal policies
    know the order by design."""
    there = PhaseTable(means=((0.3, 0.7, 0.5), (0.8, 0.2, 0.5)), starts=(0, 700), horizon=1400)
    back = PhaseTable(means=((0.5, 0.3, 0.7), (0.5, 0.8, 0.2)), starts=(0, 700), horizon=1400)
    finals = [
        simulate(make(name), world, runs=60, seed=seed, checkpoints=1, **SAME_LOOP).regret[:, 0]
        for seed, world in enumerate((there, back))
    ]
    error = math.sqrt(sum(final.var(ddof=1) / len(final) for final in finals))
    assert abs(finals[0].mean() - finals[1].mean()) <= 4.5 * error + 1e-9


@pytest.mark.parametrize("name", NAMES)
def test_other_parameter_values_need_no_second_compilation(name: str) -> None:
    policy = make(name)
    played(name)
    world = WORLD.realise(0)
    bound = policy.with_world(world) if hasattr(policy, "with_world") else policy
    compiled = compiled_advance(bound, bound.init(4), world)
    before = len(compiled.signatures)
    changed = {
        p.name: p.kind(1)
        for p in parameters(type(policy))
        if p.kind is float and p.domain is not None and p.domain.holds(1)
    }
    simulate(
        type(policy)(**{**policy._asdict(), **changed}) if changed else policy,
        WORLD,
        runs=2,
        trajectories=True,
        pulls=True,
    )
    assert len(compiled.signatures) == before


@pytest.mark.parametrize("name", [name for name in NAMES if getattr(policies()[name], "lockstep", False)])
def test_lanes_hold_what_single_runs_give(name: str) -> None:
    together, alone = (simulate(make(name), WORLD, runs=8, seed=3, pulls=True, lockstep=flag) for flag in (True, False))
    assert (together.regret == alone.regret).all()
    assert (together.pulls == alone.pulls).all()


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


def test_adding_or_reordering_policies_changes_no_other_policys_curve(tmp_path) -> None:
    from driftbandit.lab import run

    ds, ts, ucb = make("DiscountedTS"), make("BetaTS"), make("DiscountedUCB")
    several = run({"ucb": ucb, "ds": ds, "ts": ts}, WORLD, 3, folder=tmp_path / "a")
    alone = run({"ds": ds}, WORLD, 3, folder=tmp_path / "b")
    assert (several.curve("ds") == alone.curve("ds")).all()


@pytest.mark.parametrize("name", sorted(environments()))
def test_a_pull_takes_the_same_numbers_whichever_arm_is_pulled(name: str, tmp_path: Path) -> None:
    """Rewards of all arms in a round come from the same slots, so that policies are compared on the same reward_rng."""
    given: dict[str, Any] = {"horizon": 50}
    if name == "PhaseTable":
        given = {"means": ((0.5, 0.5),), "starts": (0,), "horizon": 50}
    elif name == "Table":
        (tmp_path / "world.csv").write_text("rounds,a,b\n20,0.5,0.5\n30,0.6,0.4\n")
        given = {"file": str(tmp_path / "world.csv")}
    elif "phases" in environments()[name]._fields:
        given["phases"] = 2
    elif name in ("Bursts", "CommonShift"):  # of a length of their own
        given = {}
    world = to_lists(environments()[name](**given).realise(7))
    asked: list[list[int]] = []

    class Watched(Stream):
        def uniform(self, slot: int) -> float:
            asked[-1].append(slot)
            return super().uniform(slot)

    reward_rng = Watched(99)
    for arm in range(2):
        asked.append([])
        for t in range(50):
            world.pull(t, arm, reward_rng.at(t))
    assert asked[0] == asked[1]
