"""The journal of a live bandit is a log, without an export in between: a SQLite file or a PostgreSQL address."""

import sqlite3

import numpy as np
import pytest

from driftbandit import DiscountedTS, DriftTS
from driftbandit.cli import main
from driftbandit.live import Bandit, Unknown, rules
from driftbandit.live.audit import Walk
from driftbandit.live.export import export
from driftbandit.live.opening import reading
from driftbandit.live.propensity import with_chances
from driftbandit.logs import Log

MINUTE = 60 * 1_000_000


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now


def played(store, rounds: int, name: str = "button", paid_after: int = 3) -> None:
    """Decisions every minute, paid three minutes later; the last few are still open."""
    rng, clock, due = np.random.default_rng(0), Clock(), []
    with Bandit.open(store, name, DiscountedTS(gamma=0.98), ["a", "b"], floor=0.2, seed=1, clock=clock) as bandit:
        for n in range(rounds):
            clock.now += MINUTE
            if len(due) >= paid_after:
                bandit.reward(*due.pop(0))
            decision = bandit.decide(f"d{n}")
            due.append((decision.id, float(rng.random() < (0.3 if decision.arm == "a" else 0.6))))


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_a_journal_is_the_same_log_as_its_export(store, tmp_path, ending) -> None:
    played(store, 60)
    log = Log(store)
    export(store, tmp_path / f"log.{ending}")
    other = Log(str(tmp_path / f"log.{ending}"))
    assert log.arms == ["a", "b"]
    assert (log.n, log.summary.left_out) == (other.n, other.summary.left_out) == (57, 3)
    assert log.summary.dates
    assert other.summary.dates
    assert log.summary.delay == 180.0
    for mine, yours in zip(log.whole(), other.whole(), strict=True):
        assert (mine is None and yours is None) or np.allclose(mine, yours)
    assert log.summary.span == pytest.approx(other.summary.span) == 56 * 60.0
    assert log.summary.least >= 0.1


def test_the_commands_read_a_journal(tmp_path, capsys) -> None:
    shop = str(tmp_path / "shop.db")
    played(shop, 500)
    assert main(["drift", shop]) == 0
    out = capsys.readouterr().out
    assert "shop.db: 497 events, 2 arms, 8.27 h" in out
    played(shop, 3, name="other")
    assert main(["drift", shop]) == 2
    assert "Say which bandit: button, other" in capsys.readouterr().err
    assert main(["tune", shop, "--bandit", "button"]) == 0
    assert "arms=['a', 'b']" in capsys.readouterr().out
    with pytest.raises(Unknown, match="There is no bandit 'nobody'"):
        Log(shop, bandit="nobody")


def test_a_file_that_is_no_journal_is_refused_and_not_changed(tmp_path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (x)")
    before = path.read_bytes()
    with pytest.raises(ValueError, match="journal"):
        Log(str(path))
    assert path.read_bytes() == before
    path.write_text("time,arm\n")
    with pytest.raises(ValueError, match="does not say what it is"):
        Log(str(path))
    with pytest.raises(ValueError, match="This log is not a journal"):
        Log({"time": [1, 2], "arm": ["a", "b"], "reward": [0, 1]}, propensity="uniform", bandit="button")


def test_decisions_from_one_view_are_integrated_once_and_get_what_each_alone_would(tmp_path, monkeypatch) -> None:
    path, asked = tmp_path / "a.db", []
    with Bandit.open(path, "x", arms=["a", "b", "c"], seed=1, holdback=0.1, baseline="a") as bandit:
        for n in range(6):
            made = bandit.decide_many([f"{n}-{k}" for k in range(20)])
            some = bandit.decide_many([f"{n}-some-{k}" for k in range(20)], available=["b", "c"])
            bandit.reward_many([(one.id, float(one.arm == "b")) for one in (made + some)[::7]])
    journal = reading(path)
    alone = {
        made.row.id: rules.chances(made.fold.config, made.fold.policy, made.view, made.fold.learnt, made.allowed)
        for made in Walk(journal, 1).decisions()
    }
    before = DriftTS.belief
    monkeypatch.setattr(DriftTS, "belief", lambda self, state: asked.append(1) or before(self, state))
    found = list(with_chances(Walk(journal, 1).decisions()))
    journal.close()
    assert len(found) == len(alone) == 240
    assert len(asked) == 12
    for one in found:
        values, error = alone[one.row.id]
        assert one.values == pytest.approx(values, abs=1e-8)
        assert one.error == pytest.approx(error, abs=1e-8)
