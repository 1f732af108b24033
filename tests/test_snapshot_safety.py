"""Snapshots as data: they load and call nothing, and whatever is accepted can be played."""

import json
import math
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from driftbandit import Bandit, DiscountedTS
from driftbandit.core.state import start_state
from driftbandit.policies import SlidingTS
from driftbandit.spec import parse, user_code
from live_policies import LIVE, make


def edited(bandit: Bandit, change: Any) -> str:
    """A snapshot altered by somebody who knows that without a checksum none is compared."""
    data = json.loads(bandit.snapshot())
    del data["check"]
    change(data)
    return json.dumps(data)


# ---- nothing is loaded or called


@pytest.mark.parametrize(
    "policy",
    [
        "os:system('touch made')",
        "made.py:X()",
        "made.py:X",
        "a folder/made.py:X()",
        "sys:exit(7)",
        "PeriodicRestart(base=os:system('touch made'), period=5)",
        "PeriodicRestart(base=made.py:X(), period=5)",
        "os.system('touch made')",
        "subprocess.run(('touch', 'made'))",
        "DiscountedTS.half_life(70)",
        "Abrupt()",
        "Gaussian(sd=0.5)",
        "PeriodicRestart(base=Abrupt(), period=5)",
        "print",
        'exec(\'open("made", "w")\')',
        "DiscountedTS(gamma=1" + "0" * 5000 + ")",
        "DiscountedTS(gamma=1" + "0" * 400 + "/3)",
        "(" * 5000 + ")" * 5000,
    ],
    ids=lambda text: text[:40],
)
def test_restoring_loads_imports_and_calls_nothing(policy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made.py").write_text("open('made', 'w')\nclass X: pass\n")
    (tmp_path / "a folder").mkdir()
    (tmp_path / "a folder" / "made.py").write_text("open('made', 'w')\nclass X: pass\n")
    before = set(sys.modules)
    text = edited(Bandit(2, DiscountedTS(), seed=1), lambda data: data["fold"]["config"].update(policy=policy))
    with pytest.raises(ValueError, match=r"^This snapshot is damaged"):
        Bandit.restore(text)
    assert not (tmp_path / "made").exists()
    assert {name for name in set(sys.modules) - before if not name.startswith("driftbandit.")} == set()


def test_of_the_classes_handed_over_only_the_class_itself_is_called():
    called = []

    class Mine(DiscountedTS):
        @classmethod
        def remove_everything(cls):
            called.append("remove_everything")
            return cls()

    def tool():
        called.append("tool")

    bandit = Bandit(2, DiscountedTS(), seed=1)
    for text in ("Mine.remove_everything()", "tool()", "tool"):
        with pytest.raises(ValueError, match=r"^This snapshot is damaged"):
            Bandit.restore(
                edited(bandit, lambda data, text=text: data["fold"]["config"].update(policy=text)),
                {"Mine": Mine, "tool": tool},
            )
    assert called == []


def test_the_parser_itself_loads_nothing_and_the_loader_calls_policies_and_environments_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def X():\n    open('called', 'w')\n\nclass Y:\n    pass\n")
    for text in ("mine.py:X()", "os:system('touch made')", "PeriodicRestart(base=mine.py:X, period=3)"):
        with pytest.raises(ValueError, match="not loaded from here"):
            parse.parse(text)
    for text in ("os:system('touch made')", "mine.py:X()", "mine.py:Y()", "mine.py:X", "sys:exit(7)"):
        with pytest.raises(ValueError, match="is not a policy, an environment or a reward law"):
            user_code.load_policy(text)
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".pyc") in (
        ["mine.py"],
        ["__pycache__", "mine.py"],
    )


# ---- edited states


def settled(name: str, n_arms: int = 3, rounds: int = 160) -> Bandit:
    bandit = Bandit(n_arms, make(name), reward_range=(0, 1), seed=5)
    reward_rng = np.random.default_rng(3)
    for _ in range(rounds):
        bandit.reward(bandit.decide(), float(reward_rng.random() < 0.5))
    return bandit


def spoiled(state: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The state with one to three numbers replaced by something nasty or something near."""
    state = json.loads(json.dumps(state))
    fields = list(places(state))
    for _ in range(int(rng.integers(1, 4))):
        values = fields[int(rng.integers(len(fields)))]
        if not values:
            continue
        at = int(rng.integers(len(values)))
        old = values[at]
        near = old if isinstance(old, str) else old + int(rng.integers(-2, 3))
        nasty: list[Any] = [0, 1, -1, 2, 10**9, -(10**9), 2**62, 2**63 - 1, -(2**63), near, near, near]
        if isinstance(old, float | str):
            nasty += [0.5, -0.5, 1e-320, 1e308, -1e308, 1e15, 1e150, "inf", "-inf", "nan", math.pi, 1e-12]
        values[at] = nasty[int(rng.integers(len(nasty)))]
        if isinstance(old, float) and isinstance(values[at], int):
            values[at] = float(values[at])
    return state


def altered(base: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """The snapshot with a spoiled state, now and then with another clock; only the policy, since first and floor would
    hide what it does."""
    out = json.loads(json.dumps(base))
    player = out["fold"]["player"]
    if rng.random() < 0.2:
        player["learned"] = [0, 1, 159, 161, 10**6, 2**49][int(rng.integers(6))]
    player["state"] = spoiled(player["state"], rng)
    out["fold"]["config"] |= {"first": False, "floor": 0.0}
    return out


def places(state: dict[str, Any]) -> Any:
    for value in state.values():
        if isinstance(value, dict):
            yield from places(value)
        else:
            yield value


def plays(bandit: Bandit, rounds: int) -> None:
    reward_rng = np.random.default_rng(4)
    for t in range(rounds):
        decision = bandit.decide() if t % 3 else bandit.decide(available=[bandit.arms[t % len(bandit.arms)]])
        assert decision.arm in bandit.arms
        bandit.reward(decision, float(reward_rng.random() < 0.5))


@pytest.mark.parametrize("name", LIVE)
def test_a_state_that_came_about_by_playing_is_accepted(name):
    for rounds in (0, 1, 2, 7, 49, 50, 51, 160, 700):
        bandit = settled(name, rounds=rounds)
        assert Bandit.restore(bandit.snapshot()).snapshot() == bandit.snapshot()


FEW = {"DiscountedTS", "GlobalCTS", "SlidingTS"}  # with all others the test is long


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in FEW else pytest.mark.long) for name in LIVE])
def test_whatever_restore_accepts_plays_a_thousand_rounds(name):
    """A hundred altered states a policy; accepted or refused in one sentence, never a crash."""
    base = json.loads(settled(name).snapshot())
    del base["check"]
    rng, accepted, messages = np.random.default_rng(11), 0, []
    for n in range(100):
        try:
            bandit = Bandit.restore(json.dumps(altered(base, rng)))
        except ValueError as error:
            messages.append(str(error))
            continue
        accepted += 1
        plays(bandit, 1000 if accepted < 3 else 100)
        assert sum(bandit.probabilities(draws=20).values()) == pytest.approx(1.0), n
    assert accepted > 0
    assert all(text.startswith("This snapshot is damaged") and "\n" not in text for text in messages)


FOLLOWS_NUMBERS = [  # states in which numbers are positions in arrays
    "GlobalCTS",
    "PerArmCTS",
    "SlidingTS",
    "SlidingOSUB",
    "LBSDA",
    "SlidingLBSDA",
    "GLRKLUCB",
    "AdSwitch",
    "MonitoredUCB",
]

COMPILED = """
import json, sys
import numpy as np
sys.path.insert(0, {tests!r})
import test_snapshot_safety as safety
from driftbandit import Bandit
for name in {names!r}:
    base = json.loads(safety.settled(name).snapshot())
    del base["check"]
    rng, accepted = np.random.default_rng(12), 0
    for n in range(60):
        try:
            bandit = Bandit.restore(json.dumps(safety.altered(base, rng)), compiled=True)
        except ValueError:
            continue
        accepted += 1
        print(name, n, flush=True)
        safety.plays(bandit, 1000 if accepted < 8 else 100)
print("done")
"""


@pytest.mark.long
def test_whatever_restore_accepts_plays_compiled_too():
    """In a separate process, since a crash would take this one with it."""
    code = COMPILED.format(tests=__file__.rsplit("/", 1)[0], names=FOLLOWS_NUMBERS)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=900, check=False)
    assert done.stdout.endswith("done\n"), (done.returncode, done.stdout[-200:], done.stderr[-2000:])


def test_the_two_edits_that_once_crashed_are_refused():
    def size(data):
        data["fold"]["player"]["state"]["size"] = [10**9]

    def slots(data):
        data["fold"]["player"]["state"]["slots"][3] = 10**9

    for change in (size, slots):
        with pytest.raises(ValueError, match=r"^This snapshot is damaged and was not restored: "):
            Bandit.restore(edited(settled("GlobalCTS"), change))


# ---- sizes


def numbers(state: Any) -> int:
    return sum(numbers(field) if isinstance(field, tuple) else len(field) for field in state)


@pytest.mark.parametrize("name", LIVE)
def test_a_policy_knows_how_much_room_its_state_takes(name):
    """Where a parameter or the arms make the state large, `room` refuses it before anything is allocated."""
    policy = make(name)
    large = {field: 50_000 for field in ("window", "max_runs", "capacity", "horizon") if field in policy._fields}
    if name == "FixedArm":
        large = {}
    policy = policy._replace(**large)
    taken = numbers(start_state(policy, 4))
    if taken > 400:
        assert 0.8 * taken <= policy.state_size(4) <= 4 * taken + 4000, (taken, policy.state_size(4))


@pytest.mark.parametrize("name", [name for name in LIVE if hasattr(make(name), "state_size") and name != "GLRKLUCB"])
def test_a_size_that_no_memory_holds_is_refused_at_once(name):
    policy = make(name)
    fields = [field for field in ("window", "max_runs", "capacity", "horizon") if field in policy._fields]
    if name == "PeriodicRestart":  # bounded by what it wraps
        policy = type(make("PeriodicRestart"))(base=SlidingTS(window=10**12), period=5)
    else:
        policy = policy._replace(**dict.fromkeys(fields, 10**12))
    if not fields and name != "PeriodicRestart":  # nothing but the number of arms makes it large
        pytest.skip("has no size to choose")
    with pytest.raises(ValueError, match=r"(needs|keeps) .*\.$"):
        Bandit(3, policy)
    text = edited(Bandit(3, DiscountedTS(), seed=1), lambda data: data["fold"]["config"].update(policy=repr(policy)))
    with pytest.raises(ValueError, match=r"^This snapshot is damaged "):
        Bandit.restore(text)


def test_more_arms_or_decisions_than_are_allowed_are_refused_at_once():
    import itertools

    for arms in (10**12, itertools.count(), 1001):
        with pytest.raises(ValueError, match="A bandit has at most"):
            Bandit(arms, DiscountedTS())
    with pytest.raises(ValueError, match="One call makes 1 to 1000 decisions"):
        Bandit(2, DiscountedTS()).decide_many(10**12)
