"""A user's policy that is wrong is refused before it is compiled: file, method and line, what is right, what to do."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftbandit import Agent, Bandit, cli
from driftbandit.environments import Abrupt
from driftbandit.lab.engine.simulate import simulate
from driftbandit.text import load, policy_check, user_code

RIGHT = """import math
from typing import Any, NamedTuple

import numpy as np

SOME = np.random.default_rng(1)


class State(NamedTuple):
    pulls: Any
    sums: Any
    scores: Any


def helper(x):
    return x


class Mine(NamedTuple):
    gamma: float = 0.9

    def init(self, n_arms):
        return State(np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms))

    def choose(self, state, t, rng):
        best = 0
        for arm in range(len(state.sums)):
            state.scores[arm] = state.sums[arm] / max(state.pulls[arm], 1.0) + rng.uniform(arm)
            if state.scores[arm] > state.scores[best]:
                best = arm
        return best

    def learn(self, state, t, arm, reward):
        state.pulls[arm] += 1.0
        state.sums[arm] += reward
"""
WORLD = Abrupt(n_arms=3, horizon=200, phases=2)
ZEROS = "State(np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms))"

# what is replaced, by what, the line that is wrong (a piece of it), the method, words of the message
FAULTS = {
    "numpy's chance in choose": ("rng.uniform(arm)", "np.random.rand()", "np.random.rand", "choose", "rng.uniform"),
    "a generator made at the top": ("rng.uniform(arm)", "SOME.random()", "SOME.random", "choose", "`SOME` draws from"),
    "numpy's chance in learn": (
        "+= reward",
        "+= np.random.uniform()",
        "np.random.uniform",
        "learn",
        "learn(self, state, t, arm, reward, rng)",
    ),
    "numpy's chance in init": (
        f"return {ZEROS}",
        "return State(np.random.rand(n_arms), np.zeros(n_arms), np.zeros(n_arms))",
        "np.random.rand",
        "init",
        "init be the same",
    ),
    "Python's chance": (
        "import math",
        "import math\nimport random",
        "random.random()",
        "choose",
        "draws from outside the seed",
    ),
    "chance in a helper": (
        "    return x\n",
        "    return np.random.rand()\n",
        "np.random.rand",
        "choose",
        "outside the",
    ),
    "import in a method": (
        "        best = 0\n",
        "        import math\n        best = 0\n",
        "        import math",
        "choose",
        "top of the file",
    ),
    "too few parameters": ("choose(self, state, t, rng)", "choose(self, state, rng)", "def choose", "choose", "t, rng"),
    "too many parameters": (
        "learn(self, state, t, arm, reward)",
        "learn(self, state, t, arm, reward, rng, more)",
        "def learn",
        "learn",
        "has other parameters",
    ),
    "a missing method": ("    def learn(", "    def learns(", "class Mine", "", "has no method learn"),
    "choose returns a float": ("return best", "return 1.0 * best", "return 1.0", "choose", "(float)"),
    "choose returns nothing": ("        return best\n", "", "", "choose", "None"),
    "choose returns text": ("return best", "return 'a'", "return 'a'", "choose", "'a' (str)"),
    "choose returns a truth": ("return best", "return best == 0", "return best ==", "choose", "(bool)"),
    "choose returns no such arm": ("return best", "return best + 7", "return best + 7", "choose", "from 0 to 2"),
    "init returns nothing": (f"return {ZEROS}", ZEROS, "def init", "init", "`return` may be missing"),
    "init returns a list": (f"return {ZEROS}", "return [0.0] * n_arms", "def init", "init", "init returned list"),
    "a field is a number": (ZEROS, "State(np.zeros(n_arms), 0.0, np.zeros(n_arms))", "def init", "init", "np.zeros(1)"),
    "a field is a list": (
        ZEROS,
        "State(np.zeros(n_arms), [0.0] * n_arms, np.zeros(n_arms))",
        "def init",
        "init",
        "'sums' of State is a list",
    ),
    "a field has two dimensions": (
        ZEROS,
        "State(np.zeros(n_arms), np.zeros((n_arms, 2)), np.zeros(n_arms))",
        "def init",
        "init",
        "2 dimensions",
    ),
    "a field of short floats": (
        ZEROS,
        "State(np.zeros(n_arms), np.zeros(n_arms, np.float32), np.zeros(n_arms))",
        "def init",
        "init",
        "'sums' of State has dtype float32",
    ),
    "a field of short integers": (
        ZEROS,
        "State(np.zeros(n_arms, np.int16), np.zeros(n_arms), np.zeros(n_arms))",
        "def init",
        "init",
        "dtype int16",
    ),
    "a forgotten field": (ZEROS, "State(np.zeros(n_arms), np.zeros(n_arms))", "return State", "init", "'scores'"),
    "a field that does not exist": ("state.pulls[arm] +=", "state.plays[arm] +=", "state.plays", "learn", "the fields"),
    "fractions into whole numbers": (
        ZEROS,
        "State(np.zeros(n_arms), np.zeros(n_arms, dtype=int), np.zeros(n_arms))",
        "state.sums[arm] += reward",
        "learn",
        "field 'sums'",
    ),
    "a position out of range": ("state.pulls[arm] +=", "state.pulls[arm + 3] +=", "arm + 3", "learn", "IndexError"),
    "a division by zero": ("max(state.pulls[arm], 1.0)", "state.pulls[arm]", "state.scores[arm] =", "choose", "inf or"),
    "a logarithm of zero": (
        "+ rng.uniform(arm)",
        "+ math.log(state.pulls[arm])",
        "math.log(state",
        "choose",
        "inf or nan",
    ),
    "a name that does not exist": ("+= reward", "+= rewrad", "rewrad", "learn", "NameError"),
    "text in a state": ("+= reward", "= 'x'", "= 'x'", "learn", "holds numbers"),
    "a number too large": ("+= reward", "= 2**53 + 1", "2**53", "learn", "53 bits"),
}


def made(folder: Path, text: str) -> Any:
    (folder / "mine.py").write_text(text)
    return load.load_policy(f"{folder / 'mine.py'}:Mine")


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_policy_is_refused_with_file_method_and_line(tmp_path: Path, fault: str, compiled: bool) -> None:
    old, new, marked, method, words = FAULTS[fault]
    assert old in RIGHT
    text = RIGHT.replace(old, new)
    if fault == "Python's chance":
        text = text.replace("rng.uniform(arm)", "random.random()")
    if fault == "chance in a helper":
        text = text.replace("rng.uniform(arm)", "helper(arm)")
    (tmp_path / "mine.py").write_text(text)
    with pytest.raises((TypeError, ValueError)) as caught:
        simulate(user_code.load(f"{tmp_path / 'mine.py'}:Mine")(), WORLD, runs=1, compiled=compiled)
    message = str(caught.value)
    assert message.startswith("mine.py, line "), message
    assert words in message, message
    assert message.endswith("."), message
    assert "\n" not in message
    if marked:
        line = int(re.match(r"mine.py, line (\d+)", message)[1])  # type: ignore[index]
        assert marked in text.splitlines()[line - 1], message
    if method:
        assert f"in {method}" in message, message


def test_what_is_right_passes_and_plays_alike(tmp_path: Path) -> None:
    policy = made(tmp_path, RIGHT)
    one, other = (simulate(policy, WORLD, runs=2, compiled=flag, trajectories=True) for flag in (True, False))
    assert np.array_equal(one.arms, other.arms)


def test_fractions_that_come_late_are_refused_by_the_compiler(tmp_path: Path) -> None:
    """After a thousand rounds the field of whole numbers gets 0.5: no rehearsal sees that, the compiler does."""
    text = RIGHT.replace(ZEROS, "State(np.zeros(n_arms), np.zeros(n_arms, dtype=int), np.zeros(n_arms))")
    text = text.replace("state.sums[arm] += reward", "if t > 1000:\n            state.sums[arm] += 0.5 * reward")
    with pytest.raises(TypeError, match=r"mine.py, line \d+: `state.sums.*fraction.*whole numbers.*np.zeros"):
        simulate(made(tmp_path, text), WORLD, runs=1)


def test_a_compiled_agent_refuses_as_the_simulator_does(tmp_path: Path) -> None:
    whole = "State(np.zeros(n_arms), np.zeros(n_arms, dtype=int), np.zeros(n_arms))"
    late = RIGHT.replace(ZEROS, whole).replace("+= reward", "+= 0.5 * reward if t > 1000 else 0")
    with pytest.raises(TypeError, match=r"mine.py, line \d+.*fraction.*whole numbers"):
        Agent(made(tmp_path, late), 3, compiled=True)
    with pytest.raises(TypeError, match=r"mine.py, line \d+.*sums"):
        Agent(made(tmp_path, RIGHT.replace(ZEROS, whole)), 3, compiled=True)


@pytest.mark.parametrize("fault", ["numpy's chance in choose", "numpy's chance in learn", "numpy's chance in init"])
def test_agents_and_bandits_refuse_it_before_they_decide(tmp_path: Path, fault: str) -> None:
    old, new, _, method, _ = FAULTS[fault]
    (tmp_path / "right").mkdir()
    policy, right = made(tmp_path, RIGHT.replace(old, new)), made(tmp_path / "right", RIGHT)
    journal = tmp_path / "a.db"
    with pytest.raises(policy_check.PolicyError, match=f"in {method}"):
        Agent(policy, 3)
    with pytest.raises(policy_check.PolicyError, match=f"in {method}"):
        Bandit.open(journal, "b", policy, 3)
    assert not journal.exists()
    with Bandit.open(journal, "b", right, 3) as bandit:
        with pytest.raises(policy_check.PolicyError, match=f"in {method}"):
            bandit.change(policy=policy)
        assert bandit._fold.changes == 1
        assert bandit.decide().arm in range(3)
    with pytest.raises(policy_check.PolicyError, match=f"in {method}"):
        Bandit.open(journal, "b", policies={"Mine": type(policy)})


def test_two_classes_with_the_same_fields_are_both_played_before_they_pass(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    policy_check.check(made(tmp_path, RIGHT), 3)
    with pytest.raises(policy_check.PolicyError, match="choose returned"):
        policy_check.check(made(tmp_path / "other", RIGHT.replace("return best", "return None")), 3)


def test_whole_numbers_in_a_state_give_the_same_bits_compiled_and_interpreted(tmp_path: Path) -> None:
    text = RIGHT.replace(ZEROS, "State(np.zeros(n_arms, dtype=int), np.zeros(n_arms), np.zeros(n_arms))")
    policy = made(tmp_path, text.replace("state.pulls[arm] += 1.0", "state.pulls[arm] += 1"))
    one, other = (simulate(policy, WORLD, runs=2, compiled=flag, trajectories=True) for flag in (True, False))
    assert np.array_equal(one.arms, other.arms)
    assert np.array_equal(one.regret, other.regret)


def test_a_class_without_fields_of_its_own_is_told_how_to_become_a_tuple(tmp_path: Path) -> None:
    text = RIGHT.replace("class Mine(NamedTuple):\n    gamma: float = 0.9\n", "class Mine:\n    gamma = 0.9\n")
    (tmp_path / "mine.py").write_text(text)
    policy = user_code.load(f"{tmp_path / 'mine.py'}:Mine")()
    with pytest.raises(TypeError, match=r"mine.py, line \d+: Mine is not a NamedTuple.*--interpreted"):
        simulate(policy, WORLD, runs=1)
    assert simulate(policy, WORLD, runs=1, compiled=False).regret.shape == (1, 200)


def test_a_policy_inside_a_wrapper_is_looked_at_too(tmp_path: Path) -> None:
    from driftbandit.policies.restart import PeriodicRestart

    policy = PeriodicRestart(made(tmp_path, RIGHT.replace("rng.uniform(arm)", "np.random.rand()")), period=50)
    with pytest.raises(TypeError, match=r"mine.py, line \d+, in choose"):
        simulate(policy, WORLD, runs=1)


def test_a_policy_that_learns_by_chance_passes_and_plays_alike(tmp_path: Path) -> None:
    text = RIGHT.replace("arm, reward):", "arm, reward, rng):").replace("+= reward", "+= reward * rng.uniform(50)")
    policy = made(tmp_path, text)
    one, other = (simulate(policy, WORLD, runs=2, compiled=flag, trajectories=True) for flag in (True, False))
    assert np.array_equal(one.arms, other.arms)


def test_the_packages_policies_pass_the_check_of_users_policies() -> None:
    """Held to what users are held to, with every option: a rehearsal on watched lists."""
    from test_late_rewards import LIVE, with_every_option

    for name in LIVE:
        if name == "Meta":  # keeps arms in two bytes, as many as its `init` allows
            continue
        for policy in with_every_option(name):
            policy_check._rehearsed.__wrapped__(policy, 4)


@pytest.mark.parametrize("command", [["run"], ["compare"], ["compare", "--drift"]])
def test_interpreted_play_is_at_hand_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    """A list is nothing for the compiler; the interpreter does not mind."""
    monkeypatch.setenv("DRIFTBANDIT_CACHE", str(tmp_path))  # what another test has played is not found there
    (tmp_path / "mine.py").write_text(
        RIGHT.replace("        best = 0\n", "        best = 0\n        names = {'a': [1, 'b']}\n").replace(
            "return best", "return best if names['a'][1] == 'b' else 0"
        )
    )
    words = [*command[:1], f"{tmp_path / 'mine.py'}:Mine", "--env", "abrupt(n_arms=3, horizon=200, phases=2)"]
    words += ["--runs", "2", *command[1:]]
    assert cli.main(words) != 0
    assert "--interpreted" in capsys.readouterr().err
    assert cli.main([*words, "--interpreted"]) == 0
