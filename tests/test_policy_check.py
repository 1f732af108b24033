"""A user's policy that is wrong is refused before it is compiled: file, method and line, what is right, what to do."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftbandit import Bandit
from driftbandit.core.draws import Stream
from driftbandit.environments import Abrupt
from driftbandit.errors import PolicyError
from driftbandit.lab.engine.simulate import simulate
from driftbandit.spec import policy_check, user_code

RIGHT = """import math
from typing import Any, NamedTuple

import numpy as np

SOME = np.random.default_rng(1)


class State(NamedTuple):
    pulls: Any
    sums: Any
    scores: Any


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
ENVIRONMENT = Abrupt(n_arms=3, horizon=200, phases=2)
ZEROS = "State(np.zeros(n_arms), np.zeros(n_arms), np.zeros(n_arms))"

# what is replaced, by what, the line that is wrong (a piece of it), the method, words of the message
FAULTS = {
    "numpy's chance in choose": ("rng.uniform(arm)", "np.random.rand()", "class Mine", "", "same seed"),
    "a generator made at the top": ("rng.uniform(arm)", "SOME.random()", "class Mine", "", "same seed"),
    "numpy's chance in learn": ("+= reward", "+= np.random.uniform()", "class Mine", "", "last parameter"),
    "numpy's chance in init": (
        "np.zeros(n_arms), np.zeros(n_arms), np",
        "np.random.rand(n_arms), np.zeros(n_arms), np",
        "class Mine",
        "",
        "init draws none",
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
    "choose returns a float": ("return best", "return 1.0 * best", "def choose", "choose", "(float)"),
    "choose returns nothing": ("        return best\n", "", "", "choose", "None"),
    "choose returns text": ("return best", "return 'a'", "def choose", "choose", "'a' (str)"),
    "choose returns a truth": ("return best", "return best == 0", "def choose", "choose", "(bool)"),
    "choose returns no such arm": ("return best", "return best + 7", "def choose", "choose", "from 0 to 2"),
    "init returns nothing": (f"return {ZEROS}", ZEROS, "def init", "init", "NoneType"),
    "init returns a list": (f"return {ZEROS}", "return [0.0] * n_arms", "def init", "init", "init returned list"),
    "a field is a number": (ZEROS, "State(np.zeros(n_arms), 0.0, np.zeros(n_arms))", "def init", "init", "np.zeros(1)"),
    "a field is a list": (
        ZEROS,
        "State(np.zeros(n_arms), [0.0] * n_arms, np.zeros(n_arms))",
        "def init",
        "init",
        "'sums' of State (list)",
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
        "'sums' of State (float32",
    ),
    "a field of short integers": (
        ZEROS,
        "State(np.zeros(n_arms, np.int16), np.zeros(n_arms), np.zeros(n_arms))",
        "def init",
        "init",
        "int16",
    ),
    "a forgotten field": (ZEROS, "State(np.zeros(n_arms), np.zeros(n_arms))", "return State", "init", "'scores'"),
    "a field that does not exist": ("state.pulls[arm] +=", "state.plays[arm] +=", "state.plays", "learn", "Its fields"),
    "fractions into whole numbers": (
        ZEROS,
        "State(np.zeros(n_arms), np.zeros(n_arms, dtype=int), np.zeros(n_arms))",
        "def learn",
        "learn",
        "field 'sums'",
    ),
    "a position out of range": ("state.pulls[arm] +=", "state.pulls[arm + 3] +=", "arm + 3", "learn", "IndexError"),
    "a logarithm of zero": (
        "+ rng.uniform(arm)",
        "+ math.log(state.pulls[arm])",
        "math.log(state",
        "choose",
        "math domain error",
    ),
    "a name that does not exist": ("+= reward", "+= rewrad", "rewrad", "learn", "NameError"),
    "text in a state": ("+= reward", "= 'x'", "def learn", "learn", "ValueError"),
    "a number too large": ("+= reward", "= 2**53 + 1", "def learn", "learn", "field 'sums'"),
}


LIVE = {  # refused by live bandits, and played interpreted by simulations
    "init returns nothing",
    "init returns a list",
    "a field is a number",
    "a field is a list",
    "a field has two dimensions",
    "a field of short floats",
    "a field of short integers",
    "fractions into whole numbers",
    "text in a state",
    "a number too large",
}


def made(folder: Path, text: str) -> Any:
    (folder / "mine.py").write_text(text)
    return user_code.load_policy(f"{folder / 'mine.py'}:Mine")


@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_policy_is_refused_with_file_method_and_line(tmp_path: Path, fault: str, live: bool) -> None:
    old, new, marked, method, words = FAULTS[fault]
    assert old in RIGHT
    text = RIGHT.replace(old, new)
    (tmp_path / "mine.py").write_text(text)
    policy = user_code.load(f"{tmp_path / 'mine.py'}:Mine")()
    if fault in LIVE and not live:
        return
    with pytest.raises((TypeError, ValueError)) as caught:
        policy_check.check(policy, 3) if live else simulate(policy, ENVIRONMENT, runs=1)
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
    one, other = (simulate(policy, ENVIRONMENT, runs=2, compiled=flag, trajectories=True) for flag in (True, False))
    assert np.array_equal(one.arms, other.arms)


@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_differs_between_interpreter_and_machine_code_is_interpreted(tmp_path: Path) -> None:
    """After a thousand rounds the field of whole numbers gets 0.5: no rehearsal sees that, the compiler does."""
    text = RIGHT.replace(ZEROS, "State(np.zeros(n_arms), np.zeros(n_arms, dtype=int), np.zeros(n_arms))")
    text = text.replace("state.sums[arm] += reward", "if t > 1000:\n            state.sums[arm] += 0.5 * reward")
    with pytest.warns(UserWarning, match=r"mine.py, line \d+: `state.sums.*fraction.*whole numbers.*np.zeros"):
        simulate(made(tmp_path, text), ENVIRONMENT, runs=1)


def test_a_compiled_bandit_refuses_as_the_simulator_does(tmp_path: Path) -> None:
    whole = "State(np.zeros(n_arms), np.zeros(n_arms, dtype=int), np.zeros(n_arms))"
    late = RIGHT.replace(ZEROS, whole).replace("+= reward", "+= 0.5 * reward if t > 1000 else 0")
    with pytest.raises(TypeError, match=r"mine.py, line \d+.*fraction.*whole numbers"):
        Bandit(3, made(tmp_path, late), compiled=True)
    with pytest.raises(TypeError, match=r"mine.py, line \d+.*sums"):
        Bandit(3, made(tmp_path, RIGHT.replace(ZEROS, whole)), compiled=True)


def test_bandits_refuse_it_before_they_decide(tmp_path: Path) -> None:
    old, new, *_ = FAULTS["numpy's chance in learn"]
    (tmp_path / "right").mkdir()
    policy, right = made(tmp_path, RIGHT.replace(old, new)), made(tmp_path / "right", RIGHT)
    journal = tmp_path / "a.db"
    with pytest.raises(PolicyError, match="same seed"):
        Bandit(3, policy)
    with pytest.raises(PolicyError, match="same seed"):
        Bandit.open(journal, "b", policy, 3)
    assert not journal.exists()
    with Bandit.open(journal, "b", right, 3) as bandit:
        with pytest.raises(PolicyError, match="same seed"):
            bandit.change(policy=policy)
        assert bandit._fold.changes == 1
        assert bandit.decide().arm in range(3)
    with pytest.raises(PolicyError, match="same seed"):
        Bandit.open(journal, "b", policies={"Mine": type(policy)})


def test_two_classes_with_the_same_fields_are_both_played_before_they_pass(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    policy_check.check(made(tmp_path, RIGHT), 3)
    with pytest.raises(PolicyError, match="choose returned"):
        policy_check.check(made(tmp_path / "other", RIGHT.replace("return best", "return None")), 3)


def test_whole_numbers_in_a_state_give_the_same_bits_compiled_and_interpreted(tmp_path: Path) -> None:
    text = RIGHT.replace(ZEROS, "State(np.zeros(n_arms, dtype=int), np.zeros(n_arms), np.zeros(n_arms))")
    policy = made(tmp_path, text.replace("state.pulls[arm] += 1.0", "state.pulls[arm] += 1"))
    one, other = (simulate(policy, ENVIRONMENT, runs=2, compiled=flag, trajectories=True) for flag in (True, False))
    assert np.array_equal(one.arms, other.arms)
    assert np.array_equal(one.regret, other.regret)


def test_a_policy_inside_a_wrapper_is_looked_at_too(tmp_path: Path) -> None:
    from driftbandit.policies.wrappers import PeriodicRestart

    policy = PeriodicRestart(made(tmp_path, RIGHT.replace("rng.uniform(arm)", "np.random.rand()")), period=50)
    with pytest.raises(TypeError, match=r"mine.py, line \d+: .* same seed"):
        simulate(policy, ENVIRONMENT, runs=1)


def test_a_policy_that_learns_by_chance_passes_and_plays_alike(tmp_path: Path) -> None:
    text = RIGHT.replace("arm, reward):", "arm, reward, rng):").replace("+= reward", "+= reward * rng.uniform(50)")
    policy = made(tmp_path, text)
    one, other = (simulate(policy, ENVIRONMENT, runs=2, compiled=flag, trajectories=True) for flag in (True, False))
    assert np.array_equal(one.arms, other.arms)


@pytest.mark.long
def test_the_packages_policies_pass_the_check_of_users_policies() -> None:
    """Held to what users are held to, with every option: a rehearsal on lists."""
    from test_late_rewards import LIVE, with_every_option

    for name in LIVE:
        for policy in with_every_option(name):
            policy_check._play(policy, 4, Stream(0), 0, False, policy.init(4))
