"""What a bandit refuses, in one sentence and with nothing written."""

import json
import math
import os
import sqlite3
import warnings

import pytest

from driftbandit.bandit import Bandit, DamagedJournal, NotFound, RecordConflict, StoreError
from driftbandit.bandit.audit import audit
from driftbandit.policies import BetaTS
from live.button import opened, play


def test_the_stored_settings_are_used_and_a_difference_is_reported(tmp_path) -> None:
    store = tmp_path / "j.db"
    opened(store, half_life="6 h").close()
    with pytest.warns(RuntimeWarning, match=r"half_life 6 h.*change\(\)"):
        opened(store, half_life="3 h").close()
    with pytest.warns(RuntimeWarning, match="arms"):
        opened(store, arms=["red", "yellow"], half_life="6 h").close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        opened(store, half_life="360 min").close()
        opened(store).close()


BAD = [
    (lambda b: b.decide("no spaces"), ValueError, "id is a text"),
    (lambda b: b.decide(""), ValueError, "id is a text"),
    (lambda b: b.decide("x" * 129), ValueError, "id is a text"),
    (lambda b: b.decide(3), ValueError, "id is a text"),
    (lambda b: b.decide(available=[]), ValueError, "at least one arm"),
    (lambda b: b.decide(available="red"), ValueError, "list of arms"),
    (lambda b: b.decide(available=["grey"]), ValueError, "'grey' is unknown"),
    (lambda b: b.decide_many(0), ValueError, "1 to 1000"),
    (lambda b: b.decide_many(1001), ValueError, "1 to 1000"),
    (lambda b: b.decide_many("abc"), ValueError, "list of ids"),
    (lambda b: b.decide_many(["a", "b c"]), ValueError, "id is a text"),
    (lambda b: b.reward("d0", 2.0), ValueError, "outside reward_range"),
    (lambda b: b.reward("d0", math.nan), ValueError, "finite number"),
    (lambda b: b.reward("d0", math.inf), ValueError, "finite number"),
    (lambda b: b.reward("d0", "1"), ValueError, "A reward is a number"),
    (lambda b: b.reward("d0", None), ValueError, "A reward is a number"),
    (lambda b: b.reward("d0", 0.123), RecordConflict, "already"),
    (lambda b: b.reward("unknown", 1.0), NotFound, "no decision"),
    (lambda b: b.reward("a\nb", 1.0), ValueError, "id is a text"),
    (lambda b: b.reward_many(7), ValueError, "pairs"),
    (lambda b: b.reward_many([1, 2]), ValueError, "pairs"),
    (lambda b: b.reward_many([("a", 1.0)] * 1001), ValueError, "At most 1000"),
    (lambda b: b.add_arm("red"), ValueError, "distinct"),
    (lambda b: b.add_arm(object()), ValueError, "a text, a finite number"),
    (lambda b: b.add_arm("\ud800"), ValueError, "half a character"),
    (lambda b: b.retire_arm("grey"), ValueError, "is unknown"),
    (lambda b: b.fix("grey"), ValueError, "is unknown"),
    (lambda b: b.change(), ValueError, "at least one option"),
    (lambda b: b.change(gamma=3), TypeError, "Unknown option"),
    (lambda b: b.change(half_life=0), ValueError, "positive time"),
    (lambda b: b.change(half_life="0 h"), ValueError, "positive time"),
    (lambda b: b.change(half_life="six hours"), ValueError, "positive time"),
    (lambda b: b.change(half_life=-3), ValueError, "positive time"),
    (lambda b: b.change(half_life=math.nan), ValueError, "positive time"),
    (lambda b: b.change(wait="-1 h"), ValueError, "positive time"),
    (lambda b: b.change(floor=1.0), ValueError, r"in \[0, 1\)"),
    (lambda b: b.change(floor="x"), ValueError, r"in \[0, 1\)"),
    (lambda b: b.change(holdback=0.1), ValueError, "needs a baseline"),
    (lambda b: b.change(holdback=0.1, baseline="grey"), ValueError, "is unknown"),
    (lambda b: b.change(default=3.0), ValueError, "default is a reward"),
    (lambda b: b.change(policy=7), TypeError, "needs a policy"),
    (lambda b: b.change(policy=BetaTS(), half_life="1 h"), ValueError, r"ts\) cannot"),
    (lambda b: b.probabilities(draws=0), ValueError, "draws"),
    (lambda b: b.outcome("unknown"), NotFound, "no decision"),
    (lambda b: b.history(points=0), ValueError, "points"),
    (lambda b: b.uplift(confidence=1.0), ValueError, "confidence"),
    (lambda b: b.fix("red", who="x" * 201), ValueError, "who"),
    (lambda b: b.fix("red", who="\ud800"), ValueError, "who"),
]


def test_bad_input_gets_one_sentence_and_nothing_is_written(store) -> None:
    with opened(store) as bandit:
        play(bandit, 5)

        def written():
            return bandit.fingerprint(), list(bandit._journal.events(1)), list(bandit._journal.decisions(1))

        before = written()
        for call, kind, words in BAD:
            with pytest.raises(kind, match=words) as caught:
                call(bandit)
            assert "\n" not in str(caught.value)
            assert str(caught.value).endswith(".")
            assert written() == before, words
    with pytest.raises(StoreError, match="closed"):
        bandit.decide()
    with pytest.raises(StoreError, match="closed"):
        bandit.reward("d0", 1.0)


@pytest.mark.parametrize("name", ["", "a b", "x" * 129, "../etc", "é", "a;drop table", "-x", 3, None])
def test_odd_names_are_refused(name, tmp_path) -> None:
    with pytest.raises(ValueError, match="bandit's name"):
        opened(tmp_path / "j.db", name=name)
    assert not (tmp_path / "j.db").exists()


def go_on(path) -> None:
    with opened(path) as bandit:
        play(bandit, 5, 1000)
        audit(path)


def test_what_is_not_a_journal_is_refused_and_left_alone(tmp_path) -> None:
    text, other, cut = tmp_path / "text.db", tmp_path / "other.db", tmp_path / "cut.db"
    text.write_text("not a database, and longer than a header of SQLite is" * 10)
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()
    with opened(cut) as bandit:
        play(bandit, 200)
    cut.write_bytes(cut.read_bytes()[: os.path.getsize(cut) // 2])
    for path in (text, other):
        before = path.read_bytes()
        with pytest.raises(DamagedJournal, match="not a journal"):
            opened(path)
        assert path.read_bytes() == before
    with pytest.raises((DamagedJournal, StoreError)):
        go_on(cut)
    with pytest.raises(NotFound, match="give arms="):
        Bandit.open(tmp_path / "new.db", "missing")
    for target in ("mysql://x/y", 7, "", tmp_path, tmp_path / "no" / "where.db"):
        with pytest.raises((ValueError, StoreError)):
            opened(target)


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_one_sentence(tmp_path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="cannot be written"):
        opened(tmp_path / "j.db")


def test_a_policys_text_in_the_journal_loads_nothing(tmp_path) -> None:
    store = tmp_path / "j.db"
    opened(store).close()
    connection = sqlite3.connect(store)
    body = json.loads(connection.execute("SELECT body FROM event").fetchone()[0])
    body["config"]["policy"] = f"os:system('touch {tmp_path}/made')"
    connection.execute("UPDATE event SET body = ?", (json.dumps(body),))
    connection.commit()
    connection.close()
    with pytest.raises(ValueError, match=r"event 1 of bandit 1 was altered"):
        Bandit.open(store, "button")
    assert not (tmp_path / "made").exists()


def test_an_address_of_another_kind_is_named_by_its_scheme_without_its_password() -> None:
    with pytest.raises(ValueError, match=r"got 'mysql://\.\.\.'") as caught:
        Bandit.open("mysql://me:secret@127.0.0.1:1/db", "x", arms=2)
    assert "secret" not in str(caught.value)
