"""Bandits described in a file."""

import pytest

from driftbandit.service.bandits import Bandits
from driftbandit.service.configfile import apply

FIRST = """
[button]
policy = "ds-ts"
arms = ["red", "green"]
half_life = "6 h"

[title]
policy = "ts"
arms = ["short", "long"]
floor = 0.05
"""
SECOND = """
[button]
policy = "ds-ts(gamma=0.9)"
arms = ["green", "blue"]
half_life = "3 h"
"""


@pytest.fixture
def bandits(store):
    found = Bandits(store)
    yield found
    found.close()


def test_bandits_are_made_then_changed_then_left_alone(bandits, tmp_path):
    file = tmp_path / "bandits.toml"
    file.write_text(FIRST)
    assert apply(file, bandits) == ["made button", "made title"]
    assert apply(file, bandits) == []
    file.write_text(SECOND)
    lines = apply(file, bandits)
    assert lines == ["button: added arm 'blue'", "button: retired arm 'red'", "button: changed half_life, policy"]
    assert apply(file, bandits) == []
    bandit = bandits.get("button")
    assert bandit.arms == ["green", "blue"]
    assert bandit.policy.gamma == 0.9
    assert bandit.changes()[-1]["who"] == "configuration file"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[a]\npolicy = 'ts'", "needs a policy and arms"),
        ("[a]\npolicy = 'ts'\narms = ['x']\nhalflife = '6 h'", "halflife"),
        ("[a", "not valid TOML"),
        ("[a]\npolicy = 'evil.py:Evil'\narms = ['x']", "one of the library's"),
    ],
)
def test_a_wrong_file_changes_nothing(tmp_path, text, words):
    bandits = Bandits(str(tmp_path / "journal.db"))
    try:
        file = tmp_path / "bandits.toml"
        file.write_text(text)
        with pytest.raises(ValueError, match=words):
            apply(file, bandits)
        assert bandits.names() == []
    finally:
        bandits.close()


def test_the_service_makes_them_at_its_start(serve, tmp_path):
    (tmp_path / "bandits.toml").write_text(FIRST)
    served = serve("--db", tmp_path / "journal.db", "--config", tmp_path / "bandits.toml")
    assert served.lines[:2] == ["made button\n", "made title\n"]
    assert served.get("/v1/bandits").json() == {"bandits": ["button", "title"]}
