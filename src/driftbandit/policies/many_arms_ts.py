"""DS-TS for hundreds or thousands of arms: the same distribution of choices, without sampling every arm."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np

from driftbandit.beliefs import NormalBelief
from driftbandit.forgetting import DISCOUNT, Forgetting
from driftbandit.parameters import checked, described, within
from driftbandit.primitives import compilable
from driftbandit.validity import COUNTS, REALS, fits, need

_JUMPS, _TAILS = 1000, 1_000_000  # first slots of the numbers that decide jumps and that draw from a normal's tail


class ManyArmsState(NamedTuple):
    """What is known of each arm, and the arms in two groups: a few sharp ones, and all the others in order of their
    means."""

    pulls: Any  # discounted number of pulls: now for sharp arms, at round `touched` for the others
    touched: Any  # when `pulls` of an arm that is not sharp was right
    mean: Any  # discounted average reward
    sharp: Any  # the arms whose spread is below tau_max, in the first n_sharp entries
    order: Any  # the other arms by falling mean, in the first K - n_sharp entries
    place: Any  # where an arm stands in its group
    n_sharp: Any  # length 1


@compilable
def upper_tail(z: float) -> float:
    """The probability that a standard normal exceeds z."""
    return 0.5 * math.erfc(z * 0.7071067811865476)


@compilable
def normal_above(floor: float, rng: Any, first: int) -> Any:
    """A standard normal known to exceed `floor`: drawn until it does where that is likely, else by Robert's exponential
    proposal (1995)."""
    if floor < 0.4:
        for attempt in range(1000):
            z = rng.normal(first + attempt)
            if z > floor:
                return z
        return floor
    rate = 0.5 * (floor + math.sqrt(floor * floor + 4.0))
    z = floor
    for attempt in range(1000):
        z = floor - math.log(1.0 - rng.uniform(first + 2 * attempt)) / rate
        if rng.uniform(first + 2 * attempt + 1) <= math.exp(-0.5 * (z - rate) * (z - rate)):
            return z
    return z


@compilable
def stand(order: Any, place: Any, mean: Any, arm: int, count: int) -> None:
    """Move an arm that stands somewhere among the first `count` of `order` to where its mean belongs."""
    i = place[arm]
    while i > 0 and mean[order[i - 1]] < mean[arm]:
        order[i] = order[i - 1]
        place[order[i]] = i
        i -= 1
    while i < count - 1 and mean[order[i + 1]] > mean[arm]:
        order[i] = order[i + 1]
        place[order[i]] = i
        i += 1
    order[i] = arm
    place[arm] = i


@described(
    short="ds-ts-many",
    family="discounts",
    scratch=(),
    forgets="discounts every past reward by gamma per round; an idle arm keeps its mean, its spread grows to tau_max",
    knows="how often the world changes, to set gamma; the largest mean, to set tau_max",
    rewards="any",
    cost="about O(log K) draws; O(K) moves at worst",
    formula=r"""
        \theta_i \sim \mathcal{N}\bigl(\hat\mu_i,\ \tau_i^2\bigr)
        \tau_i = \min\bigl(N_i^{-1/2},\ \tau_{\max}\bigr)
        a = \operatorname{argmax}_i \theta_i
        N_j \leftarrow \gamma N_j \ \text{ for all } j, \quad N_a \leftarrow N_a + 1
        \hat\mu_a \leftarrow \hat\mu_a + (x - \hat\mu_a) / N_a
    """,
    reference="Qi, Wang, Zhu 2023; skipping: this project",
)
@checked
class ManyArmsTS(NamedTuple):
    """DS-TS with the same distribution of choices as `DiscountedTS`, at a cost that hardly grows with the number of
    arms.

    Nearly all arms have the largest spread, tau_max, so only their means differ. If arms are kept in order of their
    means, the chance of beating the best sample so far falls along the line. Instead of sampling arm after arm, we
    jump: the next arm that *might* win is a geometric number of places on, and it does win with the exact ratio of the
    two tail probabilities. Its sample is then drawn from the normal's tail, and the search goes on with that as the
    mark to beat. The arms with a smaller spread are at most tau_max**2 / (1 - gamma) in number and are sampled one by
    one.

    Use it from about 50 arms on. It draws other random numbers than `DiscountedTS`, so single runs differ; the
    distribution is the same (`tests/policies/test_many_arms_ts.py`). `tuned` and `half_life` are as there.

    Reference: Qi, Wang and Zhu 2023, Algorithm 1; the skipping is this project's."""

    gamma: Annotated[float, DISCOUNT] = 0.99  # discount per round
    tau_max: Annotated[float, within("> 0")] = 0.2  # largest standard deviation of a sample

    def init(self, n_arms: int) -> ManyArmsState:
        """Nothing known: all arms in line with mean 0."""
        line = np.arange(n_arms)
        return ManyArmsState(
            np.zeros(n_arms),
            np.zeros(n_arms, np.int64),
            np.zeros(n_arms),
            np.zeros(n_arms, np.int64),
            line.copy(),
            line.copy(),
            np.zeros(1, np.int64),
        )

    def choose(self, state: ManyArmsState, t: int, rng: Any) -> int:
        """Sample the sharp arms, then jump along the line of the others."""
        best = -math.inf
        winner = -1
        n_sharp = state.n_sharp[0]
        for i in range(n_sharp):
            arm = state.sharp[i]
            value = state.mean[arm] + rng.normal(i) / math.sqrt(state.pulls[arm])
            if value > best:
                best = value
                winner = arm
        count = len(state.mean) - n_sharp
        i = 0
        step = 0
        while i < count:
            bound = upper_tail(
                (best - state.mean[state.order[i]]) / self.tau_max
            )  # no arm further on has a larger chance
            if bound < 1e-300:
                break
            if bound < 1.0:
                jump = math.log(1.0 - rng.uniform(_JUMPS + 2 * step)) / math.log1p(-bound)
                if jump >= count - i:
                    break
                i += int(jump)
            arm = state.order[i]
            floor = (best - state.mean[arm]) / self.tau_max
            if rng.uniform(_JUMPS + 2 * step + 1) * bound < upper_tail(floor):
                best = state.mean[arm] + self.tau_max * normal_above(floor, rng, _TAILS + 2000 * step)
                winner = arm
            i += 1
            step += 1
        return winner

    def learn(self, state: ManyArmsState, t: int, arm: int, reward: float) -> None:
        """Discount the sharp arms, add the reward, and move whoever became sharp or stopped being so."""
        pulls, mean, sharp = state.pulls, state.mean, state.sharp
        least = 1.0 / (self.tau_max * self.tau_max)  # an arm with more pulls than this is sharp
        i = state.n_sharp[0] - 1
        was_sharp = False
        while i >= 0:
            other = sharp[i]
            pulls[other] *= self.gamma
            if other == arm:
                was_sharp = True
            elif pulls[other] <= least:
                self.blunt(state, other, t)
            i -= 1
        if not was_sharp:
            pulls[arm] *= self.gamma ** (t - state.touched[arm])
        pulls[arm] += 1.0
        mean[arm] += (reward - mean[arm]) / pulls[arm]
        self.regroup(state, arm, was_sharp, t)

    def fade(self, state: ManyArmsState, factor: float) -> None:
        """Multiply the weight of all evidence by `factor`, as forgetting by the clock asks: `touched` is not looked at,
        and every arm's count is right at any time. (`learn` spares itself the arms that are not sharp.)"""
        pulls, sharp = state.pulls, state.sharp
        least = 1.0 / (self.tau_max * self.tau_max)
        for arm in range(len(pulls)):
            pulls[arm] *= factor
        i = state.n_sharp[0] - 1
        while i >= 0:
            if pulls[sharp[i]] <= least:
                self.blunt(state, sharp[i], state.touched[sharp[i]])
            i -= 1

    def take(self, state: ManyArmsState, arm: int, reward: float, weight: float) -> None:
        """Add one reward of this weight."""
        was_sharp = state.place[arm] < state.n_sharp[0] and state.sharp[state.place[arm]] == arm
        state.pulls[arm] += weight
        state.mean[arm] += weight * (reward - state.mean[arm]) / state.pulls[arm]
        self.regroup(state, arm, was_sharp, state.touched[arm])

    def settle(self, state: ManyArmsState, t: int, gamma: float) -> None:
        """Bring every arm's count to round t, those left alone at gamma a round: before the clock takes over from the
        rounds (gamma as it was), or the rounds from the clock (gamma 1)."""
        for i in range(len(state.mean) - int(state.n_sharp[0])):
            arm = state.order[i]
            state.pulls[arm] *= gamma ** (t - state.touched[arm])
            state.touched[arm] = t

    def regroup(self, state: ManyArmsState, arm: int, was_sharp: bool, t: int) -> None:
        """Move an arm whose count and mean are new to where it belongs."""
        sharp, place = state.sharp, state.place
        n_arms = len(state.mean)
        if state.pulls[arm] > 1.0 / (self.tau_max * self.tau_max):
            if not was_sharp:
                # Out of the line: everybody behind moves up one place.
                count = n_arms - state.n_sharp[0]
                for j in range(place[arm], count - 1):
                    state.order[j] = state.order[j + 1]
                    place[state.order[j]] = j
                place[arm] = state.n_sharp[0]
                sharp[place[arm]] = arm
                state.n_sharp[0] += 1
        elif was_sharp:
            self.blunt(state, arm, t)
        else:
            state.touched[arm] = t
            stand(state.order, place, state.mean, arm, n_arms - state.n_sharp[0])

    def blunt(self, state: ManyArmsState, arm: int, t: int) -> None:
        """Move an arm from the sharp ones to its place in the line."""
        last = state.sharp[state.n_sharp[0] - 1]
        state.sharp[state.place[arm]] = last
        state.place[last] = state.place[arm]
        state.n_sharp[0] -= 1
        count = len(state.mean) - state.n_sharp[0]
        state.order[count - 1] = arm
        state.place[arm] = count - 1
        state.touched[arm] = t
        stand(state.order, state.place, state.mean, arm, count)

    def belief(self, state: ManyArmsState) -> NormalBelief:
        """The distributions the next samples come from."""
        spread = np.full(len(state.mean), self.tau_max)
        for i in range(int(state.n_sharp[0])):
            arm = int(state.sharp[i])
            spread[arm] = 1.0 / math.sqrt(state.pulls[arm])
        return NormalBelief(np.array(state.mean, np.float64), spread)

    def validate_state(self, state: Any, t: int, like: Any) -> None:
        """What a snapshot may hold."""
        n_arms, sharp = len(state.mean), int(state.n_sharp[0])
        fits(state, pulls=COUNTS, mean=REALS, touched=within(f"[0, {t}]"), n_sharp=within(f"[0, {n_arms}]"))
        both = np.concatenate([state.sharp[:sharp], state.order[: n_arms - sharp]])
        need(np.array_equal(np.sort(both), np.arange(n_arms)), "each arm stands in one of the two groups once")
        places = np.concatenate([np.arange(sharp), np.arange(n_arms - sharp)])
        need(np.array_equal(state.place[both], places), "place says where an arm stands")
        need((state.pulls[state.sharp[:sharp]] > 1e-9).all(), "a sharp arm has been played")
        need((np.diff(state.mean[state.order[: n_arms - sharp]]) <= 0.0).all(), "the line is in order of means")

    def grow(self, state: ManyArmsState, after: ManyArmsState, t: int) -> ManyArmsState:
        """The new arm joins the line where its mean of 0 belongs."""
        arm, count = len(state.mean), len(after.mean) - int(after.n_sharp[0])
        after.order[count - 1] = arm
        after.place[arm] = count - 1
        after.touched[arm] = t
        stand(after.order, after.place, after.mean, arm, count)
        return after

    @classmethod
    def half_life(cls, rounds: float, tau_max: float = 0.2) -> "ManyArmsTS":
        """Evidence loses half its weight every `rounds` rounds: gamma = 2**(-1/rounds)."""
        return cls(Forgetting.half_life(rounds).gamma, tau_max)

    @classmethod
    def tuned(cls, horizon: int, phases: int, n_arms: int = 0, tau_max: float = 0.2) -> "ManyArmsTS":
        """Corollary 1, for abrupt changes: gamma = 1 - sqrt(phases / horizon)."""
        return cls(Forgetting.tuned(horizon, phases).gamma, tau_max)
