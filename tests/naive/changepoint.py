"""Thompson sampling that believes in changes: a distribution over "how long ago was the last change".

Rewards are always binarised: y = 1 if coin < x else 0, coin = uniform(2) of the reward's time step,
kept from `choose`, which must come just before.
A run is a hypothesis "the last change was then", with the wins and losses seen since; runs are listed from the oldest
to the newest. h = hazard.
"""

from .draws import Round, argmax, draw_from, total
from .thompson import binarised

NEGLIGIBLE = 1e-12  # runs less likely than this are forgotten


def pruned(weights: list[float], max_runs: int) -> list[tuple[int, float]]:
    """(index, weight) of the runs that stay. In this order: divide by the sum; drop every weight < NEGLIGIBLE; while
    more than `max_runs` remain, drop the smallest (the oldest among equals; the newest run has no privilege); divide
    by the sum of what is left. Sums from the oldest to the newest."""
    whole = total(weights)
    kept = [(i, w / whole) for i, w in enumerate(weights) if w / whole >= NEGLIGIBLE]
    while len(kept) > max_runs:
        kept.remove(min(kept, key=lambda run: run[1]))
    whole = total(w for _, w in kept)
    return [(i, w / whole) for i, w in kept]


class NaiveGlobalCTS:
    """Global-CTS: one run-length distribution for all arms; it starts with a single run of weight 1 without evidence.

    Choose: a run with its probability, then a Beta(prior_wins + wins_i, prior_losses + losses_i) draw for each arm from
    that run's counts; first maximum. Learn (arm a, y): the likelihood of a run is a_r / (a_r + b_r) if y = 1 and
    b_r / (a_r + b_r) if y = 0, a_r and b_r its Beta parameters of arm a before y. Each old weight becomes
    (1 - h) * likelihood * weight and the run counts y for arm a; a new run without evidence (y is not counted) is
    appended with weight h * (sum of likelihood * weight). Then `pruned`.

    Draws: uniform(0) against the cumulative weights, oldest run first; betas(a, b)[i] for arm i; coin uniform(2)."""

    tried = {"hazard": 0.01, "max_runs": 50}

    def __init__(
        self,
        n_arms: int,
        hazard: float,
        max_runs: int = 1000,
        prior_wins: float = 1.0,
        prior_losses: float = 1.0,
    ) -> None:
        self.n_arms, self.hazard, self.max_runs = n_arms, hazard, max_runs
        self.prior_wins, self.prior_losses = prior_wins, prior_losses
        self.weights = [1.0]
        self.wins = [[0] * n_arms]
        self.losses = [[0] * n_arms]
        self.coin = 0.5

    def choose(self, t: int, rng: Round) -> int:
        self.coin = rng.uniform(2)
        run = draw_from(self.weights, rng.uniform(0))
        a = [self.prior_wins + wins for wins in self.wins[run]]
        b = [self.prior_losses + losses for losses in self.losses[run]]
        return argmax(rng.betas(a, b))

    def learn(self, t: int, arm: int, reward: float) -> None:
        y = binarised(reward, self.coin)
        joint = []
        for run, weight in enumerate(self.weights):
            a = self.prior_wins + self.wins[run][arm]
            b = self.prior_losses + self.losses[run][arm]
            joint.append((a if y == 1.0 else b) / (a + b) * weight)
            if y == 1.0:
                self.wins[run][arm] += 1
            else:
                self.losses[run][arm] += 1
        self.wins.append([0] * self.n_arms)
        self.losses.append([0] * self.n_arms)
        weights = [(1.0 - self.hazard) * w for w in joint] + [self.hazard * total(joint)]
        kept = pruned(weights, self.max_runs)
        self.weights = [w for _, w in kept]
        self.wins = [self.wins[i] for i, _ in kept]
        self.losses = [self.losses[i] for i, _ in kept]


class NaivePerArmCTS:
    """PA-CTS: a run-length distribution for each arm, each starting with one run of weight 1 without evidence.

    Runs of an arm with equal counts are one run (their weights add); so an arm has at most one run without evidence.
    Choose: for each arm a run with its probability, then a Beta draw from its counts; first maximum. Learn (arm a, y):
    arm a as Global-CTS, with `pruned`. Every other arm: all weights *= 1 - h, and the run without evidence gains h
    (appended as the newest if there is none and h > 0); nothing is pruned or normalised. So an arm left alone for
    d rounds holds (1 - h)^d of each old weight and the rest on the run without evidence.

    Draws: uniform(100 + i) against arm i's cumulative weights, oldest run first; betas(a, b)[i]; coin uniform(2)."""

    tried = {"hazard": 0.01, "max_runs": 50}

    def __init__(
        self,
        n_arms: int,
        hazard: float,
        max_runs: int = 1000,
        prior_wins: float = 1.0,
        prior_losses: float = 1.0,
    ) -> None:
        self.n_arms, self.hazard, self.max_runs = n_arms, hazard, max_runs
        self.prior_wins, self.prior_losses = prior_wins, prior_losses
        self.runs: list[list[tuple[int, int, float]]] = [[(0, 0, 1.0)] for _ in range(n_arms)]  # (wins, losses, weight)
        self.coin = 0.5

    def choose(self, t: int, rng: Round) -> int:
        self.coin = rng.uniform(2)
        a, b = [], []
        for arm, runs in enumerate(self.runs):
            wins, losses, _ = runs[draw_from([weight for _, _, weight in runs], rng.uniform(100 + arm))]
            a.append(self.prior_wins + wins)
            b.append(self.prior_losses + losses)
        return argmax(rng.betas(a, b))

    def learn(self, t: int, arm: int, reward: float) -> None:
        y = int(binarised(reward, self.coin))
        for i in range(self.n_arms):
            self.runs[i] = self.after_play(self.runs[i], y) if i == arm else self.after_rest(self.runs[i])

    def after_play(self, runs: list[tuple[int, int, float]], y: int) -> list[tuple[int, int, float]]:
        joint = []
        for wins, losses, weight in runs:
            a, b = self.prior_wins + wins, self.prior_losses + losses
            joint.append((a if y == 1 else b) / (a + b) * weight)
        counts = [(wins + y, losses + 1 - y) for wins, losses, _ in runs] + [(0, 0)]
        weights = [(1.0 - self.hazard) * w for w in joint] + [self.hazard * total(joint)]
        return [(*counts[i], w) for i, w in pruned(weights, self.max_runs)]

    def after_rest(self, runs: list[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
        rested = [(wins, losses, (1.0 - self.hazard) * weight) for wins, losses, weight in runs]
        if rested and rested[-1][:2] == (0, 0):
            rested[-1] = (0, 0, rested[-1][2] + self.hazard)
        elif self.hazard > 0.0:
            rested.append((0, 0, self.hazard))
        return rested
