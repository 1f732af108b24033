"""ADSWITCH in small: who is evicted when, who is played again, and what starts an episode.

Nothing here is random: every stream has a fixed seed, so a test that passes keeps passing.
"""

from . import TWINS
from .draws import Draws


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
