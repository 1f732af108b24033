"""Bandits are moved to another database with all they have learned; `tests.drill` kills the mover."""

import threading
import time

import pytest

from driftbandit.bandit import Bandit
from driftbandit.bandit.audit import audit
from driftbandit.bandit.moving import _Mover, move
from driftbandit.bandit.opening import reading, writing
from driftbandit.errors import Moved, NotFound, RecordConflict, StoreError
from driftbandit.policies.discounted_ts import DiscountedTS
from tests.drill.load import ARMS, CONTEXTUAL, context_of, reward_of
from tests.drill.prunes import drop, known, live_a_day


@pytest.fixture
def target(another_postgres):
    return another_postgres


def state(place, name="button"):
    with Bandit.open(place, name) as bandit:
        bandit.refresh()
        return bandit.fingerprint()


def differences(place):
    return [text for report in audit(place) for text in report.differences]


def live(place, first, last, **options):
    with Bandit.open(place, "button", arms=ARMS, seed=3, **options) as bandit:
        for n in range(first, last):
            context = context_of(str(n)) if "features" in options else None
            bandit.decide(str(n), context=context)
            if n % 3:
                bandit.reward(str(n), reward_of(str(n)))


@pytest.mark.parametrize("kind", ["context", "waiting", "half-life"])
def test_state_and_later_decisions_are_the_same(store, target, tmp_path, kind):
    options = {
        "context": CONTEXTUAL,
        "waiting": {"policy": DiscountedTS(), "wait": "1 h"},
        "half-life": {"policy": DiscountedTS(), "half_life": "2 h", "retention": "9 d", "floor": 0.1},
    }[kind]
    live(store, 0, 200, **options)
    before = state(store)
    with Bandit.open(store, "button") as bandit:
        old = [bandit.outcome(str(n)) for n in range(200)]
    (moved,) = move(store, target, ["button"])
    assert (moved.decisions, moved.moved) == (200, True)
    assert state(target) == before
    with Bandit.open(target, "button") as bandit:
        assert [bandit.outcome(str(n)) for n in range(200)] == old
        assert bandit.reward("3", 0.5) == ("waiting" if kind == "waiting" else "learned")
        assert bandit.reward("1", reward_of("1")) == "again"
    live(target, 200, 240, **options)
    assert differences(target) == []
    with pytest.raises(Moved, match="was moved to postgresql:"):
        Bandit.open(store, "button")
    assert reading(store).names() == []
    assert [one.moved for one in move(store, target, ["but*"])] == [False]


@pytest.mark.filterwarnings("ignore:The clock was set back")
def test_dropped_rows_and_their_counts_come_along(store, target, tmp_path):
    twin = str(tmp_path / "twin.db")
    for place in (store, twin):
        for day in range(5):
            live_a_day(place, day)
    drop(store, 4, str(tmp_path / "old"), str(tmp_path / "notes"))
    assert reading(store).base(reading(store).number("drill")) is not None
    list(move(store, target, ["drill"]))
    assert known(target, 4) == known(twin, 4)
    assert live_a_day(target, 5) == live_a_day(twin, 5)
    drop(target, 6, str(tmp_path / "old"), str(tmp_path / "notes"))
    assert known(target, 6) == known(twin, 6)
    assert differences(target) == []


def test_erased_ids_stay_erased_also_those_of_the_time_of_the_move(store, target):
    live(store, 0, 50, **CONTEXTUAL)
    with Bandit.open(store, "button") as bandit:
        bandit.erase("4")
        bandit.erase("6")
    list(move(store, target, ["button"]))
    assert differences(target) == []
    with Bandit.open(target, "button") as bandit:
        assert not bandit.erase("4")
        assert bandit.reward("4", reward_of("4")) == "again"
        assert bandit.reward("6", 0.5) == "learned"
        bandit.erase("7")
        bandit.erase("9")
    assert differences(target) == []


@pytest.mark.parametrize("killed", [True, False])
def test_an_id_that_is_erased_after_its_decision_was_copied_is_erased_in_the_target(postgres, target, killed):
    live(postgres, 0, 50, **CONTEXTUAL)
    here, there = writing(postgres), writing(target)
    mover = _Mover(here, there, "button", "elsewhere", None)
    mine = here.journal.find("button")
    mover._number = mine.number
    mover._arrive(mine, None)
    assert mover._copy_rows() > 50
    with Bandit.open(postgres, "button") as bandit:
        bandit.erase("7")
    if killed:
        list(move(postgres, target, ["button"]))
    else:
        mover._move(mine, there.journal.find("button"))
    assert there.journal._rows("SELECT count(*) FROM @decision WHERE id = '7'") == [(0,)]
    assert there.journal._rows("SELECT count(*) FROM @event WHERE decision = '7'") == [(0,)]
    here.release()
    there.release()
    assert differences(target) == []


def test_a_bandit_that_is_moved_decides_all_the_time_and_comes_back(postgres, target):
    homes, answers, failed = [postgres, target], [], []
    live(postgres, 0, 20)
    ended = threading.Event()

    def decide(home=0, n=0):
        bandit = Bandit.open(postgres, "button")
        while not ended.is_set():
            n += 1
            while True:
                try:
                    bandit = bandit or Bandit.open(homes[home], "button")
                    answers.append((f"x{n}", bandit.decide(f"x{n}").arm))
                    bandit.reward(f"x{n}", 1.0)
                    break
                except Moved:
                    home, bandit = 1 - home, None if bandit is None else bandit.close()
                except StoreError:
                    time.sleep(0.01)
                except Exception as error:
                    failed.append(error)
                    return
        bandit.close()

    thread = threading.Thread(target=decide)
    thread.start()
    seconds = []
    for places in ((postgres, target), (target, postgres)):
        seconds += [one.seconds for one in move(*places, ["button"])]
        time.sleep(0.2)
    ended.set()
    thread.join()
    assert failed == []
    with Bandit.open(postgres, "button") as bandit:
        assert {id: bandit.outcome(id).decision.arm for id, _ in answers} == dict(answers)
        assert all(bandit.outcome(id).reward == 1.0 for id, _ in answers[:-1])
    assert differences(postgres) == []
    assert reading(target).names() == []
    assert max(seconds) < 5.0


def test_a_large_bandit_is_proved_before_it_is_handed_over(postgres, target):
    with Bandit.open(postgres, "button", arms=ARMS) as bandit:
        for _ in range(2):
            made = bandit.decide_many(1000)
            bandit.reward_many([(one.id, reward_of(one.id)) for one in made])
    (moved,) = move(postgres, target, ["button"])
    assert (moved.decisions, moved.events) == (2000, 2001)
    assert differences(target) == []
    assert state(target) == state_of_copy(postgres)


def state_of_copy(place):
    """The state of the copy that the source keeps."""
    from driftbandit.bandit.opening import latest, policy_maker

    journal = reading(place)
    number = journal.find("button").number
    fold, cursor = latest(journal, number, policy_maker())
    fold.apply(event for _, event in journal.events(number, cursor))
    return fold.dump()


def test_what_cannot_be_moved_is_one_sentence_and_changes_nothing(postgres, target, tmp_path):
    live(postgres, 0, 9)
    live(target, 0, 5)
    for what, error, text in [
        ((postgres, target, ["button"]), RecordConflict, "already has a bandit button"),
        ((postgres, postgres, ["button"]), ValueError, "same database"),
        ((postgres, target, ["banner"]), NotFound, "no bandit 'banner'"),
        ((postgres, target, ["x" * 10_000]), ValueError, "1 to 128"),
        ((postgres, target, ["ban*"]), NotFound, "no bandit 'ban\\*'"),
        ((postgres, target, []), ValueError, "names of bandits"),
        ((postgres, "postgresql://127.0.0.1:1/away", ["button"]), StoreError, "PostgreSQL: connection"),
        ((postgres, str(tmp_path / "a.db"), ["button"]), ValueError, "PostgreSQL"),
        ((str(tmp_path / "b.db"), target, ["button"]), NotFound, "no journal"),
    ]:
        with pytest.raises(error, match=text):
            list(move(*what))
    assert [reading(place).names() for place in (postgres, target)] == [["button"], ["button"]]
    assert not (tmp_path / "b.db").exists()
    with Bandit.open(postgres, "button") as bandit:
        bandit.decide()


def test_a_bandit_on_its_way_belongs_to_the_source(postgres, target):
    """As a mover leaves it that was killed before it handed the bandit over."""
    live(postgres, 0, 9)
    opened = writing(target)
    epoch = reading(postgres)._rows("SELECT max(epoch) FROM @version")[0][0]
    number = reading(postgres).number("button")
    opened.journal._rows("INSERT INTO @bandit (name, created) VALUES ('button', 1) RETURNING number")
    there = opened.journal._rows("SELECT number FROM @bandit")[0][0]
    sql = "INSERT INTO @moved VALUES (?, NULL, ?) RETURNING bandit"
    opened.journal._rows(sql, there, f"{epoch} {number} 0 0")
    assert opened.journal.names() == []
    with pytest.raises(StoreError, match="being moved to this database"):
        Bandit.open(target, "button", arms=ARMS)
    live(postgres, 9, 20)
    assert [one.decisions for one in move(postgres, target, ["button"])] == [20]
    opened.release()
    assert differences(target) == []


def test_a_damaged_bandit_stays_where_it_is(postgres, target):
    live(postgres, 0, 30)
    opened = writing(postgres)
    opened.journal._rows("UPDATE @decision SET slot = 1 - slot WHERE id = '7' RETURNING id")
    opened.release()
    with pytest.raises(ValueError, match="altered"):
        list(move(postgres, target, ["button"]))
    assert reading(target).find("button") is None
    with Bandit.open(postgres, "button") as bandit:
        bandit.decide()


class Steady(DiscountedTS):
    """A policy of the user's."""


def test_a_policy_of_the_users_is_needed_to_prove_its_decisions(postgres, target):
    live(postgres, 0, 20, policy=Steady())
    with pytest.raises(ValueError, match="policies="):
        list(move(postgres, target, ["button"]))
    assert reading(postgres).find("button").target is None
    list(move(postgres, target, ["button"], policies={"Steady": Steady}))
    with Bandit.open(target, "button", policies={"Steady": Steady}) as bandit:
        assert bandit.decide("7").id == "7"
