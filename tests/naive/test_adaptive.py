"""ADSWITCH and META in small: who is evicted when, who is played again, and what starts an episode.

Nothing here is random: every stream has a fixed seed, so a test that passes keeps passing.
"""

from . import TWINS
from .draws import Draws
from .plays import reward


def test_adswitch_evicts_the_worse_arm_and_records_its_gap():
    twin = TWINS["AdSwitch"](2, horizon=100, c1=1.0, every=10)
    for t in range(20):
        arm = twin.choose(t, Draws(0, t))
        assert arm == t % 2
        twin.learn(t, arm, float(arm))
    # 10 pulls each: gap 1 > sqrt(ln 100 / 9) = 0.715; after 5 pulls each sqrt(ln 100 / 4) = 1.07 was too wide.
    assert (twin.good, twin.frozen) == ([1], {0: (0.0, 1.0)})


def test_adswitch_starts_a_new_episode_when_a_good_arm_changes():
    twin = TWINS["AdSwitch"](1, horizon=100, every=10)
    for t in range(120):
        twin.learn(t, 0, float(t >= 40))
        if twin.episode == 2:
            break
    # 40 ones after 40 zeros: 1 > 2 sqrt(2 ln 100 / 40) = 0.96. A suffix of 20 ones is too short: 0.48 + 0.68 > 1.
    assert (t, twin.start) == (79, 80)


def test_meta_eliminates_the_worse_arm_and_starts_anew_when_none_is_left():
    twin = TWINS["Meta"](2, horizon=100, c0=0.5, replays=0.0)
    for t in range(16):
        twin.learn(t, t % 2, float(t % 2))
    # The last 16 rounds pay 2 * 8 = 16 > 0.5 ln 100 sqrt(2 * 15) = 12.6; the last 8 pay 8 < 0.5 ln 100 sqrt(14) = 8.6.
    assert twin.stack[0].arms == [1]
    for t in range(16, 60):
        twin.learn(t, 0, 1.0)
        if twin.episode == 2:
            break
    assert twin.episode == 2
    assert (twin.start, twin.stack[0].arms) == (t + 1, [0, 1])


def test_the_master_set_of_meta_is_part_of_every_active_set():
    twin = TWINS["Meta"](5, horizon=400, c0=0.4)
    depth, smallest = 0, 5
    for t in range(400):
        arm = twin.choose(t, Draws(2, t))
        twin.learn(t, arm, reward(t, arm))
        depth, smallest = max(depth, len(twin.stack)), min(smallest, len(twin.stack[0].arms))
        assert twin.stack[0].arms
        for outer, inner in zip(twin.stack, twin.stack[1:], strict=False):
            assert set(outer.arms) <= set(inner.arms)
    assert depth > 2  # so the property was put to the test
    assert smallest < 4


def test_an_arm_active_in_a_procedure_was_active_in_all_its_rounds():
    twin = TWINS["Meta"](5, horizon=400, c0=0.4)
    active: list[set[int]] = []
    for t in range(400):
        arm = twin.choose(t, Draws(2, t))
        active.append(set(range(5)) if twin.replay else set(twin.running(t)[-1].arms))
        twin.learn(t, arm, reward(t, arm))
        for procedure in twin.stack:
            for s in range(procedure.start, t + 1):
                assert set(procedure.arms) <= active[s]


def test_a_bad_arm_of_adswitch_is_played_until_its_debt_is_paid():
    class Indebted(Draws):
        def uniform(self, slot: int) -> float:
            return 0.0 if self.t == 20 and slot == 1000 + 64 * 0 + 1 else 0.999

    twin = TWINS["AdSwitch"](2, horizon=100, c1=1.0, every=10)
    arms = []
    for t in range(80):
        arms.append(twin.choose(t, Indebted(0, t)))
        twin.learn(t, arms[-1], float(arms[-1]))
    # Evicted after round 19; from round 20 arm 0 owes floor(8 ln 100) = 36 pulls, of which rounds 20 to 79 see 30.
    assert arms[20:] == [0, 1] * 30
    assert len(twin.owed[0]) == 1
    for t in range(80, 100):
        arms.append(twin.choose(t, Indebted(0, t)))
        twin.learn(t, arms[-1], float(arms[-1]))
    assert arms[80:] == [0, 1] * 5 + [0] + [1] * 9
    assert twin.owed[0] == []
