"""The bits of every policy, as a digest next to the number of its arithmetic in `bits.txt`.

Journals record that number (`driftbandit.bandit.opening.arithmetic`). A policy whose bits change gets the next one,
`arithmetic = 2` in its class. Then `python tests/policies/test_bits.py` writes the table again."""

import hashlib
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from driftbandit.bandit.opening import arithmetic
from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.core.primitives import learn_late_reward, learn_reward, uses_probability
from driftbandit.core.state import to_lists
from driftbandit.policies.discounted_ts import DiscountedTS
from harness import abrupt_means, rewards
from live_policies import LIVE, make

TABLE = Path(__file__).with_name("bits.txt")
ROUNDS, ARMS = 300, 4


def digest(policy: Any) -> str:
    """Of the arms chosen and the numbers of the state (not the names of its fields) after some rounds, interpreted,
    with fixed random numbers and rewards."""
    state, stream = to_lists(policy.init(ARMS)), Stream(stream_key(5, 0, POLICY))
    reward = rewards(abrupt_means(ARMS, ROUNDS, 5), "real", 5)
    arms = []
    for t in range(ROUNDS):
        arm = policy.choose(state, t, stream.at(t))
        arms.append(int(arm))
        if uses_probability(policy) and t % 3 == 0:
            chance = policy.arm_probability(state, t, arm, stream.at(t))
            learn_late_reward(policy, state, t, arm, reward(t, arm), stream.at(t), chance)
        else:
            learn_reward(policy, state, t, arm, reward(t, arm), stream.at(t))
        if hasattr(policy, "fade") and t % 50 == 49:
            policy.fade(state, 0.75)
    return hashlib.sha256(repr((arms, numbers(state))).encode()).hexdigest()[:12]


def numbers(state: Any) -> list[Any]:
    return [numbers(field) if isinstance(field, tuple) else np.asarray(field).tolist() for field in state]


def table() -> dict[str, list[str]]:
    """Name: number, digest."""
    return {line.split()[0]: line.split()[1:] for line in TABLE.read_text().splitlines()}


@pytest.mark.parametrize("name", LIVE)
def test_bits_change_together_with_the_number_of_the_arithmetic(name: str) -> None:
    policy = make(name)
    number, bits = str(getattr(type(policy), "arithmetic", 1)), digest(policy)
    assert name in table(), f"{name} is not in {TABLE.name}: run python tests/policies/test_bits.py"
    was_number, was_bits = table()[name]
    if bits != was_bits:
        assert number != was_number, f"{name}: bits changed: raise the number (arithmetic = {int(was_number) + 1})"
    assert (number, bits) == (was_number, was_bits), f"{name}: run python tests/policies/test_bits.py"


def test_the_digest_sees_a_changed_last_bit() -> None:
    policy = make("DiscountedTS")
    nudged = policy._replace(gamma=policy.gamma + 1e-16 * (policy.gamma < 0.5) + 2.3e-16 * (policy.gamma >= 0.5))
    assert nudged.gamma != policy.gamma
    assert digest(nudged) != digest(policy)


def test_wrappers_have_the_numbers_of_what_they_wrap() -> None:
    class Mine(NamedTuple):
        base: Any
        arithmetic = 3

    assert arithmetic(DiscountedTS()) == "DiscountedTS 1"
    assert arithmetic(Mine(DiscountedTS())) == "DiscountedTS 1, Mine 3"


def write() -> None:
    """The table as it is now, unless bits changed and the number did not."""
    known, lines = table(), []
    for name in LIVE:
        number, bits = str(getattr(type(make(name)), "arithmetic", 1)), digest(make(name))
        was = known.get(name, ["", ""])
        if was[0] == number and was[1] != bits:
            raise SystemExit(f"{name}: bits changed: raise the number (arithmetic = {int(number) + 1} in the class).")
        lines.append(f"{name} {number} {bits}\n")
    TABLE.write_text("".join(lines))


if __name__ == "__main__":
    write()
