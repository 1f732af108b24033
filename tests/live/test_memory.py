"""A bandit in memory: exploration, snapshots, copies, forks, threads, and what it keeps."""

import copy
import json
import multiprocessing
import os
import pickle
import threading
import time
from typing import Any

import numpy as np
import pytest

from driftbandit import Bandit, DiscountedTS
from driftbandit.bandit import NotFound, RecordConflict, StoreError, memory
from driftbandit.bandit.opening import FORMAT
from driftbandit.spec.half_life import SECOND
from small_policies import OWN, POLICIES, Lottery, chosen, play_arm, played

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")


class Time:
    """Microseconds that a test sets."""

    def __init__(self) -> None:
        self.now = 10**15

    def __call__(self) -> int:
        return self.now


# ---- decisions and rewards


def test_decisions_are_numbered_and_rewards_count_once():
    bandit = Bandit(["a", "b"], seed=1)
    first, second = bandit.decide(), bandit.decide()
    assert (first.id, second.id) == ("0", "1")
    assert bandit.reward(first, 1.0) == "learned"
    assert bandit.reward(first.id, 1.0) == "again"
    with pytest.raises(RecordConflict):
        bandit.reward(first, 0.0)
    with pytest.raises(NotFound):
        bandit.reward("17", 1.0)
    for bad in ("x", None, float("nan"), float("inf"), [1.0]):
        with pytest.raises(ValueError, match=r"reward|Reward"):
            bandit.reward(second, bad)
    assert bandit.outcome(second).kind is None
    assert bandit.health()["rewards"] == 1


def test_an_id_of_the_caller_is_never_made_again():
    bandit = Bandit(["a", "b"], seed=1)
    given = bandit.decide("1")
    assert [bandit.decide().id for _ in range(3)] == ["0", "2", "3"]
    assert bandit.decide("1") == given
    with pytest.raises(RecordConflict):
        bandit.decide("1", available=["a"])


def test_batches_and_given_ids_decide_as_single_decisions_do():
    one, many, named = (Bandit(4, DiscountedTS(), seed=9, floor=0.3) for _ in range(3))
    arms = chosen(one, 200)
    assert [decision.arm for decision in many.decide_many(200)] == arms
    assert [named.decide(str(n)).arm for n in range(200)] == arms


def test_rewards_of_one_call_are_learned_in_the_order_of_their_decisions():
    one, other = (Bandit(3, "sw-ts(window=4)", reward_range=(0, 1), seed=2, clock=Time()) for _ in range(2))
    for bandit, step in ((one, 1), (other, -1)):
        made = bandit.decide_many(12)
        assert bandit.reward_many([(d, float(int(d.id) % 2)) for d in made[::step]]) == ["learned"] * 12
    assert repr(one.state) == repr(other.state)


def test_with_wait_outcomes_are_learned_when_their_decision_is_old_enough():
    clock = Time()
    bandit = Bandit(["a", "b"], DiscountedTS(gamma=0.9), seed=1, wait="1 min", default=0.0, clock=clock)
    made = [bandit.decide() for _ in range(6)]
    assert bandit.reward(made[0], 1.0) == "waiting"
    assert bandit.state.pulls.sum() == 0.0
    clock.now += 61 * SECOND
    bandit.decide()
    assert bandit.health()["defaults"] == 5
    assert bandit.state.pulls.sum() > 0.0
    assert bandit.reward(made[1], 1.0) == "late"
    assert bandit.outcome(made[1])[1:4] == ("default", 0.0, 1.0)


def test_a_new_policy_starts_now_since_no_history_is_kept():
    bandit = Bandit(["a", "b"], reward_range=(0, 1), seed=1)
    played(bandit, 20)
    for options in ({"policy": "ts"}, {"half_life": "1 h", "policy": "ds-ts"}):
        with pytest.raises(ValueError, match="keeps no history"):
            bandit.change(**options)
    bandit.change(policy="ts", from_now=True)
    assert type(bandit.policy).__name__ == "BetaTS"
    assert bandit.state.wins.sum() == 0.0
    played(bandit, 20)


def test_the_oldest_decisions_are_dropped(monkeypatch):
    monkeypatch.setattr(memory, "KEPT", 50)
    bandit = Bandit(2, "ds-ts", seed=1)
    made = bandit.decide_many(500)
    assert 50 <= len(bandit.recent(1000)) <= 100
    assert bandit.reward(made[-1], 1.0) == "learned"
    with pytest.raises(NotFound, match="too old"):
        bandit.reward(made[0], 1.0)
    clock = Time()
    waits = Bandit(2, "ds-ts", seed=1, wait="1 min", default=0.0, clock=clock)
    waits.decide_many(500)
    clock.now += 61 * SECOND
    assert waits.settle() == 500  # none was forgotten before its time
    waits.decide_many(200)
    assert len(waits.recent(1000)) <= 300


def test_a_closed_bandit_and_wrong_options_are_refused_in_a_sentence():
    with pytest.raises(TypeError, match=r"Unknown option 'flor'; did you mean floor"):
        Bandit(2, flor=0.1)
    for options in ({"floor": 1.5}, {"first": 1}, {"seed": -1}, {"reward_range": (1, 0)}, {"arms": []}, {"learn": "x"}):
        with pytest.raises(ValueError, match=r"^[A-Z a-z_]+.*\.$"):
            Bandit(**{"arms": 2, **options})
    with pytest.raises(TypeError, match="needs a policy"):
        Bandit(2, DiscountedTS)
    bandit = Bandit(2)
    bandit.close()
    with pytest.raises(StoreError, match="closed"):
        bandit.decide()


# ---- exploration


def test_every_arm_is_tried_first_and_probabilities_follow():
    orders = set()
    for seed in range(30):
        bandit, arms = Bandit(list("abc"), DiscountedTS(), seed=seed), []
        for _ in range(3):
            left = [arm for arm in "abc" if arm not in arms]
            assert bandit.probabilities() == {arm: 1 / len(left) if arm in left else 0.0 for arm in "abc"}
            decision = bandit.decide()
            assert decision.how == "first"
            arms.append(decision.arm)
            bandit.reward(decision, 1.0)
        assert sorted(arms) == ["a", "b", "c"]
        orders.add(tuple(arms))
        assert bandit.decide().how in ("policy", "floor")
    assert len(orders) == 6  # all are seen but for a probability of 6 * (5/6)**30 = 0.025; the seeds are fixed


def test_first_tries_end_even_if_the_outcomes_of_an_arm_are_never_reported():
    bandit = Bandit(list("abcd"), DiscountedTS(), seed=1, floor=0.0)
    play_arm(bandit, "a", 1.0)
    assert bandit.probabilities()["b"] == pytest.approx(1 / 3)
    assert sorted({bandit.decide(available=["b", "c"]).arm for _ in range(30)}) == ["b", "c"]
    for _ in range(7):
        play_arm(bandit, "a", 1.0)
    assert bandit.decide().how == "policy"  # 8 outcomes, twice as many as arms
    bandit.add_arm("e")
    assert bandit.probabilities()["e"] == 1.0
    bandit.retire_arm("e")
    assert bandit.decide().how == "policy"
    assert Bandit(2, first=False, floor=0.0).decide().how == "policy"


def test_an_arm_that_becomes_best_while_it_is_not_played_is_found():
    """A at 0.85, B rising from 0.1 to 0.98: without first and floor, B had under 1% of the next 5000 rounds in 18 of 20
    runs."""
    for seed in range(5):
        bandit, rng, late = Bandit(2, DiscountedTS.half_life(200), seed=seed), np.random.default_rng(seed), 0
        for t in range(5000):
            decision = bandit.decide()
            late += decision.arm == 1 and t >= 2000
            bandit.reward(decision, float(rng.random() < (0.85, 0.1 if t < 2000 else 0.98)[decision.arm]))
        assert late > 600


# ---- snapshots


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
@pytest.mark.parametrize("after", [0, 1, 7, 300])
def test_a_restored_bandit_continues_exactly(policy, after):
    arms = ["a", ("b", 2), 3, None, 1.5, False]
    bandit = Bandit(arms, policy, seed=12, reward_range=(-1, 2), holdback=0.1, baseline=3)
    played(bandit, after)
    bandit.add_arm("late")
    bandit.retire_arm("a")
    out = bandit.decide()  # its reward comes later
    text = bandit.snapshot()
    twin = Bandit.restore(text, policies=OWN)
    assert twin.snapshot() == text
    assert [(type(arm), arm) for arm in twin.arms] == [(type(arm), arm) for arm in bandit.arms]
    assert twin.reward(out, 1.7) == bandit.reward(out, 1.7) == "learned"
    # The times differ, and so do delays; everything else is the same.
    assert played(twin, 120, seed=5) == played(bandit, 120, seed=5)
    assert twin.probabilities() == bandit.probabilities()
    assert repr(twin.state) == repr(bandit.state)
    assert twin.config == bandit.config


def snapshot() -> dict[str, Any]:
    bandit = Bandit(["a", "b"], DiscountedTS(), seed=1)
    played(bandit, 5)
    bandit.decide()
    data = json.loads(bandit.snapshot())
    del data["check"]  # or it would be compared first
    return data


def edits() -> list[tuple[tuple[Any, ...], Any]]:
    config = [("policy", "Nonsense()"), ("policy", "DiscountedTS(gamma=7.0)"), ("policy", 3), ("arms", ["a"]),
              ("arms", ["a", "a"]), ("arms", []), ("arms", None), ("retired", [7]), ("retired", [0, 1]), ("retired", 3),
              ("reward_range", [1, 0]), ("reward_range", "01"), ("goal", "perhaps"), ("floor", 2.0), ("floor", "x"),
              ("first", 1), ("wait", -1), ("key", "abc"), ("key", str(1 << 64)), ("key", None), ("fixed", 5),
              ("baseline", 5), ("rounds", "x"), ("default", 1e200), ("half_life", -5),
              ("archived", 0.5), ("archived", 1), ("erased", 1), ("adds", 1), ("arithmetic", [])]  # fmt: skip
    config += [("ahead", value) for value in (0.5, None, "", [], True, 1 << 62, -1)]
    out: list[tuple[tuple[Any, ...], Any]] = [(("fold", "config", name), value) for name, value in config]
    out += [(("fold", name), value) for name, value in
            (("untried", [[7, 1]]), ("n", "x"), ("last_at", 1e300), ("last_at", -1), ("settled", 0.5), ("changes", 1.0),
             ("waiting", "x"), ("reported", [])) ]  # fmt: skip
    state = ([1.0], [1.0, None], [1.0, "many"], [1.0, True], [-5.0, 0.0])
    out += [(("fold", "player", "state", "pulls"), value) for value in state]
    out += [(("fold", "player", "learned"), 2.5), (("fold", "player", "state"), [])]
    store = ("next", -1), ("next", 10**30), ("events", -1), ("changes", []), ("open", [["5"]]), ("open", 3)
    store += ("unsettled", [0.5]), ("unsettled", None), ("next_look", "x")
    out += [(("memory", name), value) for name, value in store]
    row = ["5", 10**15, 0, 0, 1, None, None]
    out += [(("memory", "open"), [[*row[:at], bad, *row[at + 1 :]]]) for at, bad in
            ((0, "no id!"), (1, -1), (2, 9), (3, 77), (4, 10**9), (5, "9"), (6, 3.0))]  # fmt: skip
    return [*out, (("format",), FORMAT + 1), (("format",), True), (("seeded",), 3)]


@pytest.mark.parametrize(("path", "value"), edits(), ids=str)
def test_a_damaged_snapshot_is_refused_in_one_sentence(path, value):
    data = snapshot()
    Bandit.restore(json.dumps(data))
    inner: Any = data
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    with pytest.raises(ValueError, match=r"^This (snapshot|is not a snapshot)") as error:
        Bandit.restore(json.dumps(data))
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 400


@pytest.mark.parametrize("call", [pickle.dumps, copy.copy, copy.deepcopy, Bandit.snapshot])
def test_a_bandit_with_a_journal_is_not_copied(tmp_path, call):
    with (
        Bandit.open(tmp_path / "j.db", "b", arms=2) as bandit,
        pytest.raises(ValueError, match="has a journal, which holds everything"),
    ):
        call(bandit)


def test_a_snapshot_that_was_cut_or_altered_is_refused():
    bandit = Bandit(["a", "b"], DiscountedTS(), seed=1)
    played(bandit, 5)
    text = bandit.snapshot()
    for part in [text[:length] for length in range(0, len(text), 7)] + ["null", "3", "[" * 100_000, "\x00", None]:
        with pytest.raises(ValueError, match=r"^This (is not a snapshot|snapshot)"):
            Bandit.restore(part)
    data = json.loads(text)
    data["fold"]["player"]["state"]["pulls"][0] = 0.5
    with pytest.raises(ValueError, match="checksum"):
        Bandit.restore(json.dumps(data))


# ---- copies, processes and threads


def in_children(n: int, work: Any, seconds: float = 30.0) -> list[Any]:
    """What `work()` gives in n forked processes; one that hangs gives "hangs"."""
    context = multiprocessing.get_context("fork")
    pipes, children = [], []
    for _ in range(n):
        receive, send = context.Pipe(duplex=False)
        child = context.Process(target=lambda send=send: send.send(work()))
        child.start()
        pipes.append(receive)
        children.append(child)
    answers = [pipe.recv() if pipe.poll(seconds) else "hangs" for pipe in pipes]
    for child in children:
        child.kill() if "hangs" in answers else None
        child.join()
    return answers


@needs_fork
def test_workers_without_a_seed_explore_apart_and_with_one_alike():
    free = Bandit(5, DiscountedTS())
    assert len({tuple(arms) for arms in in_children(3, lambda: chosen(free, 40))}) == 3  # equal: one in 5**40
    seeded = Bandit(5, DiscountedTS(), seed=3)
    assert len({tuple(arms) for arms in in_children(3, lambda: chosen(seeded, 40))}) == 1


@needs_fork
def test_a_process_forked_while_threads_use_the_bandit_does_not_hang():
    bandit, stop = Bandit(50, DiscountedTS(), seed=1), threading.Event()

    def work() -> None:
        while not stop.is_set():
            bandit.reward(bandit.decide(), 1.0)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            time.sleep(0.01)
            (answer,) = in_children(1, lambda: (bandit.decide().arm in bandit.arms, bandit.health()))
            assert answer != "hangs"
            assert 0 <= answer[1]["decisions"] - answer[1]["rewards"] <= 4  # a fork waits for the call under way
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda bandit: pickle.loads(pickle.dumps(bandit))])
def test_a_copy_is_independent_and_goes_on_alike(make):
    bandit = Bandit(["a", "b", "c"], Lottery(), seed=4)
    played(bandit, 60)
    twin = make(bandit)
    text = bandit.snapshot()
    assert twin.snapshot() == text
    arms = played(twin, 40)
    assert bandit.snapshot() == text
    assert played(bandit, 40) == arms
    free = Bandit(5, DiscountedTS())
    assert chosen(make(free), 40) != chosen(free, 40)  # equal: one in 5**40


def test_restores_explore_alike_unless_they_are_fresh():
    for seed in (None, 5):
        text = Bandit(5, DiscountedTS(), seed=seed).snapshot()
        assert len({tuple(chosen(Bandit.restore(text), 40)) for _ in range(4)}) == 1
        assert len({tuple(chosen(Bandit.restore(text, fresh=True), 40)) for _ in range(4)}) == 4


def test_threads_do_not_lose_updates():
    bandit, each = Bandit(3, DiscountedTS(gamma=1.0), seed=1), 400

    def work() -> None:
        for _ in range(each):
            bandit.reward(bandit.decide(), 1.0)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        Bandit.restore(bandit.snapshot())
    for thread in threads:
        thread.join()
    assert bandit.state.pulls.sum() == 2 * each == bandit.health()["rewards"]


def test_a_half_life_fades_by_the_clock():
    clock = Time()
    bandit = Bandit(["a"], DiscountedTS(), seed=1, half_life="1 h", clock=clock)
    bandit.reward(bandit.decide(), 1.0)
    clock.now += 3600 * SECOND
    assert bandit.state.pulls.tolist() == pytest.approx([0.5])
