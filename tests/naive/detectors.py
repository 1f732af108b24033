"""UCB with an alarm: a detector watches each arm, and an alarm throws away what was learned before it.

The rules of `ucb.py` hold (n counts rewards, +inf without evidence, sum / count, `argmax_fair`). Every reward is first
added to its arm, then tested; an alarm empties the arm (or all), the alarming reward included.
"""

import math
from collections.abc import Sequence

from .draws import Round, argmax_fair, pick, total
from .ucb import padded


def cusum(rewards: Sequence[float], samples: int, drift: float) -> tuple[float, float]:
    """(g+, g-) of the rewards since the restart: u0 = mean (sum / count) of the first `samples`, then for each later y
    g+ = max(0, g+ + y - u0 - drift) and g- = max(0, g- + u0 - y - drift), terms added from left to right."""
    up = down = 0.0
    if len(rewards) <= samples:
        return up, down
    reference = total(rewards[:samples]) / samples
    for y in rewards[samples:]:
        up = max(0.0, up + y - reference - drift)
        down = max(0.0, down + reference - y - drift)
    return up, down


class _PerArmAlarm:
    """Selection and restart shared by CUSUM-UCB and PHT-UCB."""

    def __init__(self, n_arms: int, threshold: float, explore: float, xi: float, warmup: bool, samples: int) -> None:
        self.n_arms, self.threshold, self.explore, self.xi = n_arms, threshold, explore, xi
        self.warmup, self.samples = warmup, samples
        self.rewards: list[list[float]] = [[] for _ in range(n_arms)]  # since the arm's last alarm
        self.alarms = 0

    def statistic(self, rewards: Sequence[float]) -> float:
        raise NotImplementedError

    def choose(self, t: int, rng: Round) -> int:
        if self.warmup:
            short = [arm for arm in range(self.n_arms) if len(self.rewards[arm]) < self.samples]
            if short:
                return pick(short, rng.uniform(1))
        if rng.uniform(0) < self.explore:
            return int(rng.uniform(1) * self.n_arms)
        n = sum(len(rewards) for rewards in self.rewards)
        return argmax_fair([padded(rewards, self.xi, n) for rewards in self.rewards], rng)

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.rewards[arm].append(reward)
        if self.statistic(self.rewards[arm]) >= self.threshold:
            self.rewards[arm] = []
            self.alarms += 1


class NaiveCusumUCB(_PerArmAlarm):
    """CUSUM-UCB. k_i, Sum_i since arm i's last alarm, n = sum of all k_i.

    With `warmup`, while some arm has k_i < samples: uniform among those arms. Otherwise with probability `explore`
    uniform among all arms, else Sum_i / k_i + sqrt(xi ln n / k_i). Alarm if max(g+, g-) >= threshold (see `cusum`);
    it empties the played arm only.

    Draws: uniform(1) picks the arm of a warm-up (candidates in index order) and of an exploration; uniform(0) < explore
    is the coin; TIES."""

    tried = {"samples": 10, "drift": 0.05, "threshold": 4.0, "explore": 0.1, "xi": 0.5, "warmup": True}

    def __init__(
        self,
        n_arms: int,
        samples: int,
        drift: float,
        threshold: float,
        explore: float,
        xi: float,
        warmup: bool,
    ) -> None:
        super().__init__(n_arms, threshold, explore, xi, warmup, samples)
        self.drift = drift

    def statistic(self, rewards: Sequence[float]) -> float:
        return max(cusum(rewards, self.samples, self.drift))


class NaiveMonitoredUCB:
    """M-UCB. s = the number of rewards learned when the last alarm was over (0 at the start).

    A = (t + 1 - s) mod floor(K / explore): if 1 <= A <= K play arm A - 1. Else Sum_i / k_i + sqrt(2 ln(t - s) / k_i)
    with k_i, Sum_i since the alarm. explore = 0: nothing is forced. After a play of arm a with k_a >= window: alarm if
    |sum of the newer half - sum of the older half| of a's last `window` rewards > threshold (strictly). An alarm in
    round t empties all arms and sets s = t + 1.

    Draws: TIES."""

    tried = {"window": 20, "threshold": 5.0, "explore": 0.2}

    def __init__(self, n_arms: int, window: int, threshold: float, explore: float) -> None:
        self.n_arms, self.window, self.threshold, self.explore = n_arms, window, threshold, explore
        self.rewards: list[list[float]] = [[] for _ in range(n_arms)]
        self.start = 0
        self.alarms = 0

    def choose(self, t: int, rng: Round) -> int:
        forced = forced_arm(t + 1 - self.start, self.n_arms, self.explore)
        if forced >= 0:
            return forced
        return argmax_fair([padded(rewards, 2.0, t - self.start) for rewards in self.rewards], rng)

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.rewards[arm].append(reward)
        if len(self.rewards[arm]) < self.window:
            return
        last, half = self.rewards[arm][-self.window :], self.window // 2
        if abs(total(last[half:]) - total(last[:half])) > self.threshold:
            self.rewards = [[] for _ in range(self.n_arms)]
            self.start = t + 1
            self.alarms += 1


def forced_arm(clock: int, n_arms: int, explore: float) -> int:
    """The arm that the schedule of forced exploration demands at clock = 1, 2, ...; -1 if none."""
    if explore <= 0.0:
        return -1
    position = clock % math.floor(n_arms / explore)
    return position - 1 if 1 <= position <= n_arms else -1
