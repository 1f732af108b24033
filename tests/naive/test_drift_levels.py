"""Where the slow DriftTS keeps its runs: carrying from level to level against the bits of the clock, and by hand.

The specification numbers slots and finds them by the bits of M = 1 + t / 16; the twin carries as one does when counting
on one's fingers. Both must put every run into the same place. Its sentence "level l holds 1 + (bit l of M) runs" is
true before the start of round t; after it, it is true of M + 1.
"""

import math

import pytest

from .draws import Draws
from .drift_ts import EVERY, Bank, Count, NaiveDriftTS, Run, add_run, merged, runs_of
from .plays import reward


def run_of(weight: float, changes: float = 0.0, arms: int = 1) -> Run:
    counts = range(arms)
    return Run(weight, changes, [Count() for _ in counts], [Count() for _ in counts], [1.0] * arms)


def levels_by_the_text(starts: int) -> dict[int, list[int]]:
    """Slot -> the starts merged in it, after so many starts, by the bits of M as the specification puts it."""
    slots: dict[int, list[int]] = {1: [0]}  # the root
    for start in range(1, starts + 1):
        m = 1 + start  # 1 + t / EVERY
        top = m.bit_length() - 1
        for level in range(top):  # what is said to be there before the start
            assert [slot in slots for slot in (1 + 2 * level, 2 + 2 * level)] == [True, bool(m >> level & 1)]
        j = 0
        while j < top and m >> j & 1:
            j += 1
        for level in range(j - 1, -1, -1):
            older, newer = slots.pop(1 + 2 * level), slots.pop(2 + 2 * level)
            second = level + 1 == j and j < top
            destination = 2 * (level + 1) + (2 if second else 1)
            assert destination not in slots
            slots[destination] = older + newer
        destination = 2 if j == 0 else 1
        assert destination not in slots
        slots[destination] = [start]
    return slots


def levels_of_the_twin(starts: int) -> Bank:
    """As many runs of weight 1 whose `changes` is the number of the start: so weights count starts, and the average
    tells which."""
    bank: Bank = [[run_of(1.0, 0.0)]]
    other: Bank = [[run_of(1.0, 0.0)]]
    for start in range(1, starts + 1):
        add_run(bank, other, (run_of(1.0, float(start)), run_of(1.0, float(start))))
    assert other == bank  # the banks merge together
    return bank


@pytest.mark.parametrize("starts", [*range(26), 62, 63, 64, 1000, 12_500])
def test_carrying_and_the_bits_of_the_clock_put_every_run_into_the_same_slot(starts: int):
    bank, slots = levels_of_the_twin(starts), levels_by_the_text(starts)
    found = {1 + 2 * level + i: run for level, runs in enumerate(bank) for i, run in enumerate(runs)}
    assert sorted(found) == sorted(slots)
    for slot, run in found.items():
        assert (run.weight, run.changes) == (len(slots[slot]), sum(slots[slot]) / len(slots[slot]))


@pytest.mark.parametrize("starts", [*range(26), 62, 63, 64, 1000, 12_500])
def test_every_start_is_in_one_run_and_higher_levels_are_older(starts: int):
    bank, slots = levels_of_the_twin(starts), levels_by_the_text(starts)
    in_order = [slot for level in range(len(bank) - 1, -1, -1) for slot in (1 + 2 * level, 2 + 2 * level)]
    oldest_first = [slots[slot] for slot in in_order if slot in slots]
    assert [start for run in oldest_first for start in run] == list(range(starts + 1))
    assert [{run.weight for run in level} for level in bank] == [{2.0**level} for level in range(len(bank))]
    after = starts + 2  # M of the next start says what is there now
    assert [len(level) for level in bank] == [1 + (after >> level & 1) for level in range(after.bit_length() - 1)]
    assert len(runs_of(bank)) <= 2 * math.log2(starts + 2)


# After so many starts: the starts in each run, from slot 1 upwards; levels are separated by "|".
EXAMPLES = {
    1: "0,1",
    2: "2|0-1",
    3: "2,3|0-1",
    4: "4|0-1,2-3",
    5: "4,5|0-1,2-3",
    6: "6|4-5|0-3",
    7: "6,7|4-5|0-3",
    8: "8|4-5,6-7|0-3",
    9: "8,9|4-5,6-7|0-3",
    10: "10|8-9|0-3,4-7",
    13: "12,13|8-9,10-11|0-3,4-7",
    14: "14|12-13|8-11|0-7",
    25: "24,25|20-21,22-23|16-19|0-7,8-15",
}


@pytest.mark.parametrize("starts", EXAMPLES)
def test_levels_worked_out_by_hand(starts: int):
    def named(run: Run) -> str:
        first = run.changes - (run.weight - 1) / 2
        return f"{first:.0f}" if run.weight == 1.0 else f"{first:.0f}-{first + run.weight - 1:.0f}"

    bank = levels_of_the_twin(starts)
    assert "|".join(",".join(named(run) for run in level) for level in bank) == EXAMPLES[starts]


def test_the_twin_itself_keeps_its_runs_on_these_levels():
    twin = NaiveDriftTS(5)
    for t in range(1, 401):
        arm = twin.choose(t - 1, Draws(3, t))
        twin.learn(t - 1, arm, reward(t, arm))
        slots = levels_by_the_text(t // EVERY)
        for bank in (twin.together, twin.one_by_one):
            found = {1 + 2 * level + i: run for level, runs in enumerate(bank) for i, run in enumerate(runs)}
            assert sorted(found) == sorted(slots)
            for slot, run in found.items():
                newest = t - sum(count.pulls for count in run.since)
                assert newest / EVERY in slots[slot]  # it is one of those merged there


def test_merging_adds_weights_averages_changes_and_keeps_the_memory_of_the_heavier_run():
    older, newer = (run_of(0.1, 2.0), run_of(0.2, 4.0)), (run_of(0.3, 6.0), run_of(0.05, 9.0))
    for run, since, longer, changed in ((older[1], 9.0, 20.0, 0.2), (newer[1], 5.0, 15.0, 0.7)):
        run.since, run.longer, run.changed = [Count(since, 4.0)], [Count(longer, 8.0)], [changed]
    both = merged(older, newer)
    assert [(run.weight, run.changes) for run in both] == [pytest.approx((0.4, 5.0)), pytest.approx((0.25, 5.0))]
    # Newer in both banks, though the older run of S is the heavier there.
    assert both[0].since is newer[0].since
    assert (both[1].since, both[1].longer, both[1].changed) == ([Count(5.0, 4.0)], [Count(15.0, 8.0)], [0.7])
    newer[0].weight = 0.25
    assert merged(older, newer)[1].since == [Count(9.0, 4.0)]  # the older, if they weigh the same
    for run in (*older, *newer):
        run.weight = 0.0
    assert [(run.weight, run.changes) for run in merged(older, newer)] == [(0.0, 2.0), (0.0, 4.0)]
