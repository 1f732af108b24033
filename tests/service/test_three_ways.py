"""One bandit in memory, with a journal and behind a service: the same verbs, the same types, the same refusals."""

import asyncio
import inspect
import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from driftbandit import Bandit, DiscountedTS
from driftbandit.bandit.audit import audit
from driftbandit.bandit.inputs import Config
from driftbandit.bandit.interface import AnyBandit, History, Outcome, ReadableBandit
from driftbandit.bandit.records import Decision
from driftbandit.bandit.remote import RemoteBandit
from driftbandit.bandit.reporting import Uplift
from driftbandit.bandit.reports import View
from driftbandit.errors import DriftbanditError, NotFound, RecordConflict
from driftbandit.player import Probabilities
from driftbandit.policies import DriftAuto, DriftLinTS, DriftTS

# What only a process with the journal can see.
OF_JOURNALS = {
    "stored",
    "player",
    "compile",
    "state",
    "fingerprint",
    "events",
    "settled",
    "lag",
    "stopped",
    "delays",
    "now",
}

ARMS = ["red", "green", ("blue", 2)]


@pytest.fixture(params=["memory", "sqlite", "postgres", "client"])
def target(request, tmp_path):
    """Where a journal is; None for a bandit in memory."""
    if request.param in ("memory", "postgres"):
        return None if request.param == "memory" else request.getfixturevalue("postgres")
    path = str(tmp_path / "journal.db")
    return path if request.param == "sqlite" else request.getfixturevalue("serve")(path).url


def made(target, config: Config, name: str = "x") -> Bandit:
    return Bandit(config=config, seed=3) if target is None else Bandit.open(target, name, config=config, seed=3)


@pytest.fixture
def bandit(target):
    with made(target, Config(ARMS, "ds-ts(gamma=0.95)", floor=0.05, holdback=0.2, baseline="uniform")) as opened:
        yield opened


def public(kind) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_every_way_has_the_methods_of_the_protocol_called_alike_and_no_others() -> None:
    shared = {"decide", "decide_many", "adecide", "adecide_many", "areward", "reward_many", "areward_many"}
    assert public(Bandit) - OF_JOURNALS - public(AnyBandit) == {"names", "open", "prune", "snapshot", "restore"}
    assert public(RemoteBandit) - public(AnyBandit) == {"open", "aclose"}
    assert public(View) - OF_JOURNALS == public(ReadableBandit)
    signature = inspect.signature(Bandit.open).parameters
    assert set(inspect.signature(RemoteBandit.open).parameters) == set(signature) - {"policies", "compiled"}
    for kind, protocol in ((Bandit, AnyBandit), (RemoteBandit, AnyBandit), (View, ReadableBandit)):
        for name in public(protocol):
            own, described = getattr(kind, name), getattr(protocol, name)
            assert inspect.getdoc(own), name
            assert name in shared or own is not described, name
            assert type(own) is type(described), name
            assert inspect.iscoroutinefunction(own) == inspect.iscoroutinefunction(described), name
            if callable(own):
                ours, theirs = (inspect.signature(call).parameters.values() for call in (own, described))
                assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs]


def test_every_verb_has_the_same_types_and_refusals_everywhere(bandit) -> None:
    assert isinstance(bandit, AnyBandit)
    decision = bandit.decide()
    assert type(decision) is Decision
    assert decision.arm in ARMS
    assert abs((datetime.now(UTC) - decision.at).total_seconds()) < 60
    assert bandit.decide("mine") == bandit.decide("mine")
    assert bandit.reward(decision, 1.0) == "learned"
    assert bandit.reward(decision.id, 1.0) == "again"
    for wrong, kind in (
        (lambda: bandit.reward(decision, 0.0), RecordConflict),
        (lambda: bandit.reward("nothing", 1.0), NotFound),
        (lambda: bandit.outcome("nothing"), NotFound),
        (lambda: bandit.decide("mine", available=["red"]), RecordConflict),
        (lambda: bandit.reward("mine", float("nan")), ValueError),
        (lambda: bandit.recent(0), ValueError),
        (lambda: bandit.add_arm("red"), ValueError),
        (lambda: bandit.change(floor=2.0), ValueError),
        (lambda: bandit.change(flor=0.1), TypeError),
        (lambda: bandit.decide_many(0), ValueError),
    ):
        with pytest.raises(kind) as error:
            wrong()
        assert kind not in (RecordConflict, NotFound) or isinstance(error.value, DriftbanditError)
    many = bandit.decide_many(3)
    assert bandit.reward_many([(one, 1.0) for one in many[:2]] + [("nothing", 1.0)])[:2] == ["learned", "learned"]
    assert type(bandit.outcome(many[0])) is Outcome
    assert bandit.outcome(many[0]).came >= many[0].at
    assert (bandit.settle(), bandit.resume_clock()) == (0, timedelta(0))
    probabilities = bandit.probabilities()
    assert type(probabilities) is Probabilities
    assert sum(probabilities.values()) == pytest.approx(1.0)
    assert bandit.arms == ARMS
    history = bandit.history(points=3)
    assert type(history) is History
    assert history.starts[0] + history.width == history.starts[1]
    assert bandit.health()["lag"] < timedelta(minutes=1)
    assert bandit.changes()[0]["at"] <= decision.at
    assert type(bandit.uplift()) is Uplift
    bandit.refresh()
    assert bandit.health()["rewards"] == 3
    bandit.fix("green")
    assert (bandit.decide().arm, bandit.decide().how) == ("green", "fixed")
    assert (bandit.release(), bandit.release()) == (True, False)
    bandit.add_arm("pink")
    bandit.retire_arm("red")
    bandit.change(floor=0.1, first=False)
    assert bandit.arms == ["green", ("blue", 2), "pink"]
    assert len(bandit.changes()) == 6
    bandit.change(policy="ds-ts", half_life="2 h", wait=90, from_now=True)
    assert bandit.config == Config(
        ["green", ("blue", 2), "pink"], DiscountedTS(), timedelta(hours=2), False, 0.1, 0.2, "uniform", False,
        timedelta(seconds=90), 0.0, "wait", None, "maximise", None, ("red",), candidates=False,
    )  # fmt: skip
    bandit.change(retention="90 d")
    assert bandit.config.retention == timedelta(days=90)
    bandit.change(policy="drift-auto", half_life=None, wait=None, retention=None, from_now=True)
    assert bandit.config.retention is None
    assert type(bandit.policy).__name__ == "DriftAuto"
    assert bandit.explain().arms

    async def both() -> str:
        made = await bandit.adecide()
        return await bandit.areward(made, 0.0)

    assert asyncio.run(both()) == "learned"


def test_parts_of_rewards_and_arms_with_a_past_are_the_same_everywhere(target) -> None:
    with made(target, Config(ARMS, "ts", reward_range=(0, 2), wait="1 s", default=0.0)) as bandit:
        bandit.decide_many(["a", "b"])
        assert bandit.reward("a", 0.5, add=True, part="1") == "waiting"
        assert bandit.reward("a", 0.5, add=True, part="1") == "again"
        assert bandit.reward_many([("b", 0.5, "1"), ("b", 0.25), ("b", 0.5, "1")], add=True)[2] == "again"
        for wrong, kind in (
            (lambda: bandit.reward("a", 0.25, add=True, part="1"), RecordConflict),
            (lambda: bandit.reward("a", 0.5), RecordConflict),
            (lambda: bandit.reward("no", 0.5, add=True), NotFound),
            (lambda: bandit.reward("a", 5.0, add=True), ValueError),
            (lambda: bandit.reward("a", 0.5, part="1"), ValueError),
            (lambda: bandit.add_arm("pink", mean=5.0, worth=10.0), ValueError),
            (lambda: bandit.add_arm("pink", like="brown"), ValueError),
            (lambda: bandit.add_arm("pink", mean=0.5), ValueError),
        ):
            with pytest.raises(kind):
                wrong()

        async def more() -> list:
            first = await bandit.areward("a", 0.5, add=True, part="2")
            return [first, *await bandit.areward_many([("a", 0.5, "3")], add=True)]

        assert asyncio.run(more()) == ["waiting", "waiting"]
        assert (bandit.outcome("a").added, bandit.outcome("a").waiting) == (1.5, True)
        time.sleep(1.1)
        bandit.settle()
        assert [bandit.outcome(id).reward for id in "ab"] == [1.5, 0.75]
        assert bandit.reward("a", 0.5, add=True, part="4") == "late"
        assert (bandit.outcome("a").late, bandit.outcome("a").added, bandit.outcome("a").waiting) == (0.5, 1.5, False)
        bandit.add_arm("pink", mean=1.9, worth=1000.0, who="ann")
        bandit.add_arm("rose", like="pink")
        assert bandit.greedy() == "pink"
        whats = [change["what"] for change in bandit.changes()[-2:]]
        assert whats == ["add_arm pink, mean 1.9 worth 1000", "add_arm rose, like pink"]
        assert {bandit.decide().how for _ in range(20)} <= {"policy", "floor", "first"}
    if target is not None and not target.startswith("http"):
        assert [text for report in audit(target) for text in report.differences] == []


def test_the_default_plays_successes_as_drift_ts_does_and_any_rewards_from_the_third_value_on(target) -> None:
    with made(target, Config(ARMS, holdback=0.1, baseline="red")) as bandit:
        assert bandit.config.policy == DriftAuto()
        assert (bandit.config.reward_range, bandit.config.goal) == (None, "maximise")
        assert [bandit.decide(f"first{n}").how for n in range(3)].count("policy") == 0
        twin = made(target, Config(ARMS, DriftTS(), holdback=0.1, baseline="red", reward_range=(0, 1)), "twin")
        for n in range(60):
            arms = [one.decide(f"d{n}").arm for one in (bandit, twin)]
            assert arms[0] == arms[1]
            for one in (bandit, twin):
                one.reward(f"d{n}", float((n * 7) % 5 < 2 + ARMS.index(arms[0])))
                one.refresh()
        twin.close()
        assert bandit.health()["plays"] == "DriftTS"
        for n in range(60, 120):
            decision = bandit.decide(f"d{n}")
            bandit.reward(decision, 19.9 + n % 7 if decision.arm == ARMS[2] else 5.0 + n % 3)
        bandit.refresh()
        health = bandit.health()
        assert (health["plays"], health["rewards"]) == ("DriftLinTS", 120)
        assert bandit.uplift(confidence=0.9).difference > 0.0
        with pytest.raises(ValueError, match="finite"):
            bandit.reward("first0", float("inf"))
        with pytest.raises(ValueError, match=r"finite number up to 1e\+30"):
            bandit.reward("first0", 1e31)
        bandit.reward("first0", -1e30)
        bandit.refresh()
        assert bandit.health()["cut"] >= health["cut"] + 1
        probabilities = bandit.probabilities()
        assert max(probabilities, key=probabilities.get) == ARMS[2]
        assert bandit.explain().arms[ARMS[2]].mean > 10.0
        assert bandit.uplift().low < -1e20  # the mean is that of the rewards as they were reported


def test_the_greedy_answer_is_the_arm_with_the_best_believed_mean_and_leaves_no_trace(target) -> None:
    for goal, best, second in (("maximise", "green", ("blue", 2)), ("minimise", "red", ("blue", 2))):
        with made(target, Config(ARMS, "ts", goal=goal, reward_range=(0, 10)), goal) as bandit:
            assert bandit.greedy() in ARMS
            for n in range(60):
                decision = bandit.decide(f"d{n}")
                bandit.reward(decision, {"red": 1.0, "green": 9.0, ("blue", 2): 5.0}[decision.arm])
            bandit.refresh()
            before, next_arms = bandit.health(), bandit.probabilities()
            assert [bandit.greedy() for _ in range(3)] == [best] * 3
            assert bandit.greedy(available=[arm for arm in ARMS if arm != best]) == second
            for wrong in (["pink"], [], "red"):
                with pytest.raises(ValueError, match=r"available|arm|array"):
                    bandit.greedy(available=wrong)
            assert (bandit.health()["decisions"], bandit.health()["events"]) == (before["decisions"], before["events"])
            assert bandit.probabilities() == next_arms
            bandit.fix(second)
            bandit.refresh()
            assert bandit.greedy() == second
            bandit.release()
            bandit.retire_arm(best)
            bandit.refresh()
            assert bandit.greedy() == second


@pytest.mark.long
def test_smaller_can_be_better(target) -> None:
    latency = {"red": 120.0, "green": 40.0, ("blue", 2): 80.0}
    with made(target, Config(ARMS, goal="minimise", holdback=0.2, baseline="red")) as bandit:
        assert bandit.config.goal == "minimise"
        for wrong in ({"goal": "maximise"}, {"reward_range": (0, 1)}):
            with pytest.raises(TypeError, match="Unknown option"):
                bandit.change(**wrong)
        with pytest.raises(ValueError, match="needs a default"):
            bandit.change(wait="1 min")
        for n in range(150):
            decision = bandit.decide(f"d{n}")
            bandit.reward(decision, latency[decision.arm] + n % 11)
        bandit.refresh()
        probabilities, uplift = bandit.probabilities(), bandit.uplift()
        assert max(probabilities, key=probabilities.get) == "green"
        assert bandit.explain().arms["green"].mean == pytest.approx(45.0, abs=10.0)
        assert uplift.high < 0.0
        assert "smaller is better" in str(uplift)


FEATURES = {"device": ["mobile", "desktop"], "basket": "number", "member": "flag", "hour": "hour of day"}
BEST = {"mobile": "red", "desktop": "green"}


def test_a_context_means_the_same_everywhere(target) -> None:
    with made(target, Config(ARMS, features=FEATURES, floor=0.1)) as bandit:
        assert (bandit.config.features, bandit.config.policy) == (FEATURES, DriftLinTS())
        for n in range(150):
            device = ("mobile", "desktop")[n * 7 % 5 % 2]
            context = {"device": device, "basket": np.float64(n % 7), "member": n % 3 == 0}
            decision = bandit.decide(f"d{n}", context=context)
            bandit.reward(decision, 20.0 * (decision.arm == BEST[device]) + n % 4)
            if n % 25 == 24:
                bandit.refresh()
        for device, best in BEST.items():
            context = {"device": device, "basket": 3.0}
            found = bandit.probabilities(context, draws=200)
            assert max(found, key=found.get) == best
            expected = bandit.expected(context)
            assert max(expected, key=lambda arm: expected[arm].mean) == best
            assert 0.0 < expected[best].sd < 5.0
        assert set(bandit.probabilities({"device": "mobile"}, available=["red", "green"], draws=50)) == {"red", "green"}
        assert set(bandit.expected()) == set(ARMS)
        explained = bandit.explain()
        assert "With device mobile, red earns" in str(explained)
        assert explained.features["member"] == []
        assert bandit.outcome("d4").context == {"device": "desktop", "basket": 4.0, "member": False}
        first = bandit.decide("mine", context={"device": "mobile"})
        assert bandit.decide("mine", context={"device": "desktop"}) == first
        many = bandit.decide_many(["m1", "m2"], context=[{"device": "mobile"}, {}], probability=True)
        assert all(0.0 < one.probability <= 1.0 for one in many)
        bandit.reward_many([("mine", 1.0), ("m1", 1.0), ("m2", 1.0)])
        bandit.reward(bandit.decide(context={"device": "fridge"}), 1.0)
        bandit.refresh()
        assert bandit.health()["missing"] == {"device": 1, "basket": 4, "member": 4}
        assert bandit.health()["undeclared"] == {"device": {"fridge": 1}}
        decisions = bandit.health()["decisions"]
        for wrong, words in (
            ({"devise": "mobile"}, "There is no feature 'devise'; did you mean device"),
            ({"basket": "much"}, "Feature 'basket' is a number"),
            ({"basket": 1e13}, "Feature 'basket' is a number"),
            ({"hour": 3.0}, "Feature 'hour' is taken from the decision's time"),
            ("mobile", "A context maps names"),
            (None, "This bandit decides in a context"),
        ):
            for call in (
                lambda context: bandit.decide(context=context),
                lambda context: bandit.decide_many(2, context=context),
            ):
                with pytest.raises(ValueError, match=words):
                    call(wrong)
        assert bandit.health()["decisions"] == decisions
        bandit.change(features={"device": ["mobile", "desktop", "fridge"]}, from_now=True)
        assert bandit.config.features == {"device": ["mobile", "desktop", "fridge"]}
        assert bandit.health()["undeclared"] == {}
        with pytest.raises(ValueError, match="DriftAuto cannot use features"):
            bandit.change(policy="drift-auto", from_now=True)
        bandit.change(features=None, from_now=True)
        bandit.decide()
        with pytest.raises(ValueError, match="no features, so it takes no context"):
            bandit.decide(context={})

    async def both() -> str:
        decision = await bandit.adecide(context={"device": "mobile"})
        await bandit.adecide_many(2, context={})
        return await bandit.areward(decision, 0.0)

    with made(target, Config(ARMS, "lin-ts", features=FEATURES), "other") as bandit:
        assert asyncio.run(both()) == "learned"


@pytest.mark.parametrize(
    ("features", "words"),
    [
        ({f"f{n}": "number" for n in range(60)} | {"d": ["a", "b", "c", "d", "e"]}, "65 columns, and at most 64"),
        ({"x": "numbre"}, "Feature 'x' is a list of levels"),
    ],
)
def test_features_that_cannot_be_are_refused_everywhere(target, features, words) -> None:
    with pytest.raises(ValueError, match=words):
        made(target, Config(ARMS, features=features))
    with pytest.raises(ValueError, match="DriftTS cannot use features"):
        made(target, Config(ARMS, "drift-ts", features=FEATURES))
