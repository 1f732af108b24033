"""A live bandit: what it promises to those who call it, on both stores where the store matters."""

import asyncio
import json
import math
import multiprocessing
import os
import sqlite3
import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest

from driftbandit import DiscountedTS
from driftbandit.live import Bandit, Conflict, Damaged, StoreError, Unknown
from driftbandit.live.audit import audit
from driftbandit.policies import BetaTS, DiscountedBetaTS, SlidingTS

ARMS = ["red", "green", "blue"]
HOUR = 3600 * 1_000_000


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self, now: int = 1_700_000_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def opened(store, name="button", **options) -> Bandit:
    options = {"policy": DiscountedTS(), "arms": ARMS, "seed": 1, **options}
    return Bandit.open(store, name, options.pop("policy"), options.pop("arms"), **options)


def play(bandit: Bandit, rounds: int, first: int = 0) -> None:
    for n in range(first, first + rounds):
        decision = bandit.decide(f"d{n}")
        bandit.reward(decision.id, float((n * 7) % 5 < 2 + ARMS.index(decision.arm)))
    bandit.refresh()


def assert_proved(store) -> None:
    for report in audit(store):
        assert report.differences == []


def test_a_bandit_opened_again_goes_on_where_it_stopped(store) -> None:
    with opened(store, half_life="6 h", snapshot_every=7) as bandit:
        play(bandit, 30)
        before, arm = bandit.fingerprint(), bandit.decide("next").arm
    with Bandit.open(store, "button") as again:
        assert again.fingerprint() == before
        assert again.decide("next").arm == arm
        play(again, 10, 100)
        after = again.fingerprint()
    with opened(store, half_life="6 h") as bandit:
        assert bandit.fingerprint() == after
    assert_proved(store)


def test_a_damaged_snapshot_is_no_loss(tmp_path) -> None:
    store = tmp_path / "j.db"
    with opened(store, snapshot_every=5) as bandit:
        play(bandit, 23)
        before = bandit.fingerprint()
    connection = sqlite3.connect(store)
    assert connection.execute("UPDATE snapshot SET body = substr(body, 1, 40)").rowcount == 3
    connection.commit()
    connection.close()
    with Bandit.open(store, "button") as again:
        assert again.fingerprint() == before


def test_the_same_id_is_the_same_decision_and_a_reward_counts_once(store) -> None:
    with opened(store) as bandit:
        first = bandit.decide("a")
        assert bandit.decide("a") == first
        with pytest.raises(Conflict, match="other available arms"):
            bandit.decide("a", available=["red"])
        assert bandit.reward("a", 1.0) == "learnt"
        bandit.refresh()
        once = bandit.fingerprint()
        assert bandit.reward("a", 1.0) == "again"
        with pytest.raises(Conflict, match=r"has the reward 1\.0 already"):
            bandit.reward("a", 0.0)
        with pytest.raises(Unknown, match="no decision 'b'"):
            bandit.reward("b", 1.0)
        assert bandit.reward_many([("a", 1.0), ("a", 0.5), ("zz", 1.0), ("a", 7.0)])[0] == "again"
        bandit.refresh()
        assert bandit.fingerprint() == once
        outcome = bandit.outcome("a")
        assert (outcome.decision, outcome.kind, outcome.reward) == (first, "reward", 1.0)


def test_many_at_once_are_as_many_one_by_one(store) -> None:
    with opened(store) as bandit:
        decisions = bandit.decide_many(100)
        assert len({decision.id for decision in decisions}) == 100
        assert bandit.reward_many({decision.id: 0.5 for decision in decisions}) == ["learnt"] * 100
        named = bandit.decide_many([f"n{n}" for n in range(50)])
        assert [decision.id for decision in named] == [f"n{n}" for n in range(50)]
        bandit.refresh()
        assert [bandit.decide(f"n{n}") for n in range(50)] == named
        verdicts = bandit.reward_many([("n0", 1.0), ("nobody", 1.0), ("n1", math.nan), ("n2", 3.0), ("n3", 0.0)])
        assert [type(verdict).__name__ for verdict in verdicts] == ["str", "Unknown", "ValueError", "ValueError", "str"]
    assert_proved(store)


def test_without_a_reward_in_time_the_default_is_learnt_and_a_late_reward_is_kept(store) -> None:
    clock = Clock()
    with opened(store, wait="1 h", default=0.25, clock=clock) as bandit:
        one, two, three = (bandit.decide(name) for name in ("one", "two", "three"))
        clock.now += HOUR
        assert bandit.reward(one.id, 1.0) == "learnt"
        clock.now += 1
        assert bandit.reward(two.id, 1.0) == "late"
        assert bandit.settle() <= 1  # the call before may have been quicker
        assert bandit.settle() == 0
        bandit.refresh()
        assert bandit.reward(two.id, 1.0) == "again"
        assert [(o.kind, o.reward, o.late) for o in map(bandit.outcome, ("one", "two", "three"))] == [
            ("reward", 1.0, None),
            ("default", 0.25, 1.0),
            ("default", 0.25, None),
        ]
        assert bandit.health()["lates"] == 1
        assert sum(bandit.state.pulls > 0) >= 1
        with_defaults = bandit._fold.learnt
        assert with_defaults == 3
        assert three.arm in ARMS
    assert_proved(store)


def test_a_default_of_minus_zero_is_zero_and_can_be_proved(tmp_path) -> None:
    clock = Clock()
    with opened(tmp_path / "j.db", wait="1 s", default=-0.0, clock=clock) as bandit:
        bandit.decide("a")
        clock.now += HOUR
        assert bandit.settle() == 1
    assert_proved(tmp_path / "j.db")


def test_defaults_are_written_by_themselves_when_decisions_come_in(tmp_path) -> None:
    clock = Clock()
    with opened(tmp_path / "j.db", wait="10 s", clock=clock) as bandit:
        for n in range(50):
            bandit.decide(f"d{n}")
            clock.now += 1_000_000
        for n in range(50, 55):
            bandit.decide(f"d{n}")
            clock.now += 1_000_000
        assert bandit.health()["defaults"] >= 40


def test_what_is_held_back_follows_the_baseline_and_is_not_learnt(store) -> None:
    with opened(store, holdback=0.3, baseline="blue", arms=ARMS) as bandit:
        decisions = bandit.decide_many([f"d{n}" for n in range(400)])
        held = [decision for decision in decisions if decision.how == "holdback"]
        assert {decision.arm for decision in held} == {"blue"}
        assert abs(len(held) - 120) < 5 * math.sqrt(400 * 0.3 * 0.7)
        bandit.reward_many([(decision.id, 1.0) for decision in held])
        bandit.refresh()
        assert bandit._fold.learnt == 0
        bandit.reward_many([(d.id, float(d.arm == "blue")) for d in decisions if d.how != "holdback"])
        uplift = bandit.uplift()
        assert uplift.baseline == 1.0
        assert uplift.n_baseline == len(held)
        assert uplift.low < uplift.difference < uplift.high <= 0.0
        assert "held back" in str(uplift)
    assert_proved(store)


def test_arms_are_drawn_with_the_probabilities_that_are_told(tmp_path) -> None:
    """Chi-square with 3 degrees of freedom below 16.3: by chance above it once in a thousand, and the ids are fixed."""
    with opened(tmp_path / "j.db", arms=[*ARMS, "pink"], floor=0.1, holdback=0.1, baseline="green") as bandit:
        for n, arm in enumerate(["red"] * 30 + ["blue"] * 20 + ["green"] * 10 + ["pink"] * 3):
            bandit.decide(f"s{n}", available=[arm])
            bandit.reward(f"s{n}", float(n % 4 < 2))
        chances = bandit.probabilities()
        assert abs(sum(chances.values()) - 1.0) < 1e-12
        assert min(chances.values()) >= 0.9 * 0.1 / 4
        counts = dict.fromkeys(chances, 0)
        for first in range(0, 20_000, 1000):
            for decision in bandit.decide_many([f"d{n}" for n in range(first, first + 1000)]):
                counts[decision.arm] += 1
        chi = sum((counts[arm] - 20_000 * p) ** 2 / (20_000 * p) for arm, p in chances.items())
        assert chi < 16.3
        decision = bandit.decide(probability=True)
        assert decision.probability == pytest.approx(chances[decision.arm])


def test_arms_come_and_go_and_can_be_fixed(store) -> None:
    with opened(store) as bandit:
        play(bandit, 10)
        bandit.add_arm("pink", who="ann")
        bandit.fix("pink")
        assert {bandit.decide().arm for _ in range(5)} == {"pink"}
        decision = bandit.decide(available=["red", "blue"])
        assert decision.arm != "pink"
        with pytest.raises(ValueError, match="is fixed"):
            bandit.retire_arm("pink")
        bandit.release()
        bandit.retire_arm("red")
        assert bandit.arms == ["green", "blue", "pink"]
        assert "red" not in {decision.arm for decision in bandit.decide_many(200)}
        with pytest.raises(ValueError, match="was retired"):
            bandit.decide(available=["red"])
        bandit.add_arm("red")
        assert bandit.arms == ["green", "blue", "pink", "red"]
        assert [change["what"] for change in bandit.changes()] == [
            "create", "add_arm", "fix", "release", "retire_arm", "add_arm",
        ]  # fmt: skip
        assert bandit.changes()[1]["who"] == "ann"
        assert sum(bandit.history(points=10).decisions[0]) >= 0
        assert sum(map(sum, bandit.history(points=10).decisions)) == 216
    assert_proved(store)


def test_another_policy_learns_the_whole_journal_anew(store) -> None:
    clock = Clock()
    with opened(store, clock=clock) as bandit:
        play(bandit, 20)
        clock.now += 30 * HOUR
        bandit.add_arm("pink")
        play(bandit, 10, 50)
        bandit.change(policy=DiscountedBetaTS(0.9), half_life="1 d")
        with opened(store, name="other", policy=DiscountedBetaTS(0.9), half_life="1 d") as other:
            naive = naive_wins(bandit, "1 d")
            assert np.allclose(bandit.state.wins, naive, rtol=1e-9)
            bandit.change(policy=SlidingTS(window=5), half_life=None, from_now=True)
            assert bandit.state.pulls.sum() == 0.0
            assert other.state.wins.sum() == 0.0
        play(bandit, 3, 90)
        assert bandit.state.pulls.sum() == 3.0
        with pytest.raises(ValueError, match=r"sw-ts cannot; these can: d-gts, d-klucb, d-ucb, ds-ts, ds-ts-many, dts"):
            bandit.change(half_life="2 h")
    assert_proved(store)


def naive_wins(bandit: Bandit, half_life: str) -> list[float]:
    """The discounted wins by their definition, each reward weighed by the age of its decision."""
    now = bandit._replica.now()
    wins = [0.0] * len(bandit.config.arms)
    for _, event in bandit._journal.events(bandit._number):
        if event.kind == 1:
            wins[event.slot] += event.value * 2.0 ** (-(now - event.decided) / (24 * HOUR))
    return wins


def test_a_half_life_weighs_by_age_whatever_the_order_of_arrival(tmp_path) -> None:
    states = []
    for way in range(3):
        clock = Clock()
        with opened(tmp_path / f"{way}.db", policy=DiscountedBetaTS(), half_life="1 h", clock=clock) as bandit:
            made = []
            for n in range(60):
                made.append((bandit.decide(f"d{n}", available=[ARMS[n % 3]]).id, float(n % 4 < 2)))
                if way == 0:
                    bandit.reward(*made[-1])
                clock.now += HOUR // 10
            order = np.random.default_rng(way).permutation(60) if way == 2 else range(60)
            if way > 0:
                for n in order:
                    bandit.reward(*made[n])
            states.append(bandit.state)
            exact = [sum(r * 2.0 ** -((60 - n) / 10) for n, (_, r) in enumerate(made) if n % 3 == k) for k in range(3)]
            assert np.allclose(bandit.state.wins, exact, rtol=1e-12)
            before = bandit.fingerprint()
            clock.now += 10 * HOUR
            assert np.allclose(bandit.state.wins, np.array(exact) / 1024, rtol=1e-12)
            assert bandit.fingerprint() == before
    for state in states[1:]:
        assert np.allclose(state.wins, states[0].wins, rtol=1e-12)
        assert np.allclose(state.losses, states[0].losses, rtol=1e-12)


def test_threads_share_a_bandit_and_every_call_counts(store) -> None:
    with opened(store, half_life="1 h", snapshot_every=50) as bandit:

        def work(number: int) -> None:
            for n in range(40):
                decision = bandit.decide(f"t{number}-{n}")
                bandit.reward(decision.id, float(n % 2))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bandit.refresh()
        assert bandit.health()["rewards"] == 320
        assert bandit._writer.commits < 640
    assert_proved(store)


def test_coroutines_share_a_bandit(store) -> None:
    async def main(bandit: Bandit) -> list[str]:
        async def one(n: int) -> str:
            decision = await bandit.adecide(f"d{n}")
            return await bandit.areward(decision.id, 1.0)

        several = await bandit.adecide_many(5)
        assert await bandit.areward_many({d.id: 0.0 for d in several}) == ["learnt"] * 5
        return await asyncio.gather(*(one(n) for n in range(50)))

    with opened(store) as bandit:
        assert asyncio.run(main(bandit)) == ["learnt"] * 50
        assert bandit._writer.commits < 60
        with pytest.raises(Unknown):
            asyncio.run(bandit.areward("nobody", 1.0))


def test_several_bandits_share_one_journal(store) -> None:
    with opened(store, name="one") as one, opened(store, name="two", policy=BetaTS(), arms=2) as two:
        play(one, 5)
        decision = two.decide("d0")
        assert two.reward(decision.id, 1.0) == "learnt"
        two.refresh()
        assert (one._fold.learnt, two._fold.learnt) == (5, 1)
    assert {report.bandit for report in audit(store)} == {"one", "two"}


def test_without_waiting_for_the_disk_everything_is_there_after_closing(tmp_path) -> None:
    store = tmp_path / "j.db"
    with opened(store, durability="none") as bandit:
        ids = {bandit.decide().id for _ in range(2000)}
    connection = sqlite3.connect(store)
    assert ids == {row[0] for row in connection.execute("SELECT id FROM decision")}
    connection.close()


def test_a_second_writing_process_is_refused_and_readers_are_not(tmp_path) -> None:
    store = str(tmp_path / "j.db")
    code = (
        "import sys\nfrom driftbandit import DiscountedTS\nfrom driftbandit.live import Bandit\n"
        "from driftbandit.live.audit import audit\nprint(audit(sys.argv[1])[0].differences)\n"
        "Bandit.open(sys.argv[1], 'button')"
    )
    with opened(store) as bandit:
        play(bandit, 3)
        done = subprocess.run([sys.executable, "-c", code, store], capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n"
    last = done.stderr.strip().splitlines()[-1]
    assert "another process" in last
    assert "PostgreSQL" in last
    assert f"process {os.getpid()}" in last
    with opened(store) as bandit:
        assert bandit.health()["rewards"] == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_told_to_open_its_own(store) -> None:
    def child(bandit: Bandit, answers) -> None:
        try:
            bandit.decide()
        except StoreError as error:
            answers.put(str(error))

    context = multiprocessing.get_context("fork")
    with opened(store) as bandit:
        answers = context.Queue()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            process = context.Process(target=child, args=(bandit, answers))
            process.start()
        assert "forked" in answers.get(timeout=30)
        process.join(timeout=30)
        play(bandit, 3)


def test_a_clock_set_back_is_reported_and_not_used(tmp_path) -> None:
    clock = Clock()
    with opened(tmp_path / "j.db", half_life="1 h", clock=clock) as bandit:
        first = bandit.decide("a")
        clock.now -= 2 * HOUR
        with pytest.warns(RuntimeWarning, match=r"set back by 7200\.0 s"):
            second = bandit.decide("b")
        assert second.at == first.at
        assert bandit.health()["clock_set_back_s"] == 7200.0
        clock.now += 3 * HOUR
        assert bandit.decide("c").at == clock.now
    clock.now -= 10 * HOUR
    with (
        Bandit.open(tmp_path / "j.db", "button", clock=clock) as bandit,
        pytest.warns(RuntimeWarning, match="set back"),
    ):
        assert bandit.decide("d").at > clock.now
    assert_proved(tmp_path / "j.db")


def test_the_journal_stands_against_the_program_and_says_so(tmp_path) -> None:
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
    (lambda b: b.reward("d0", 0.123), Conflict, "already"),
    (lambda b: b.reward("unknown", 1.0), Unknown, "no decision"),
    (lambda b: b.reward("a\nb", 1.0), ValueError, "id is a text"),
    (lambda b: b.reward_many(7), ValueError, "pairs"),
    (lambda b: b.reward_many([1, 2]), ValueError, "pairs"),
    (lambda b: b.reward_many([("a", 1.0)] * 1001), ValueError, "At most 1000"),
    (lambda b: b.add_arm("red"), ValueError, "distinct"),
    (lambda b: b.add_arm(object()), ValueError, "JSON can hold"),
    (lambda b: b.retire_arm("grey"), ValueError, "is unknown"),
    (lambda b: b.fix("grey"), ValueError, "is unknown"),
    (lambda b: b.change(), ValueError, "takes policy, half_life"),
    (lambda b: b.change(gamma=3), ValueError, "takes policy, half_life"),
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
    (lambda b: b.change(policy="ds-ts"), TypeError, "needs a policy"),
    (lambda b: b.change(policy=BetaTS(), half_life="1 h"), ValueError, "ts cannot"),
    (lambda b: b.probabilities(draws=0), ValueError, "draws"),
    (lambda b: b.outcome("unknown"), Unknown, "no decision"),
    (lambda b: b.history(points=0), ValueError, "points"),
    (lambda b: b.uplift(confidence=1.0), ValueError, "confidence"),
    (lambda b: b.fix("red", who="x" * 201), ValueError, "who"),
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
        with pytest.raises(Damaged, match="not a journal"):
            opened(path)
        assert path.read_bytes() == before
    with pytest.raises((Damaged, StoreError)):
        go_on(cut)
    with pytest.raises(Unknown, match="give arms="):
        Bandit.open(tmp_path / "new.db", "nobody")
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
    with pytest.raises(ValueError, match=r"policies="):
        Bandit.open(store, "button")
    assert not (tmp_path / "made").exists()
