"""DriftTS: four kinds of hypotheses about how the environment changes, weighed by how well they predicted the rewards.

No parameters. Runs say "the arms changed when I started, and nothing has changed since"; drifts say "every mean
wanders at my rate"; common drifts say "all means wander together at my rate". Every run here keeps its own counts, so
that nothing is ever subtracted from totals, and a bank of runs is a list of levels, each a list of one or two runs, the
older first: read from level 0 upwards, that is the order of the slots.

Settled here, where the specification could be read in two ways: the clock is the number of rewards learned, so an arm
played in the last round has rested for 0 rounds when choosing and for 1 when learning. Level l holds 1 + (bit l of M)
runs, M = 1 + t / 16, before the start of round t and hence 1 + (bit l of M + 1) after it. Weights are compared and
averaged in merges after they have been thinned by the starts, but for the question "who is the heaviest?" before. Runs
of A and S that are newest together stay together: when two starts merge, both banks keep the record of the same one.
"""

from dataclasses import dataclass

from .draws import Round, total

RATE, GROW = 1 / 16, 1 / 4  # how many starts: at first, and for each change believed in
SHARE = 1 / 4  # the part of the weight that flows to drifts and common_drifts at a start, times t / EVERY
RHO = 1 / 2  # how likely a single arm is to change where arms change one by one
EVERY = 16  # rounds between starts
SURE = 2  # how often runs and common_drifts count what they know, to choose
HASTE = 4  # how much less exploring is worth where an arm drifts
TIDE = 1 / 4  # the common_drifts' part of what drifts and common_drifts have at the start and are given
V0 = 1 / 4  # prior variance of a common's level and offsets, in units of the noise of one reward
RATES = [8.0 ** -(g + 2) for g in range(8)]
NOTHING = 1e-200  # runs below this weight have weight 0


@dataclass
class Count:
    """What is remembered of one arm: `pulls` rewards of sum `wins`; both may be fractions."""

    pulls: float = 0.0
    wins: float = 0.0

    def copy(self) -> "Count":
        return Count(self.pulls, self.wins)

    def add(self, reward: float) -> None:
        self.pulls += 1.0
        self.wins += reward

    def mean(self) -> float:
        return (1.0 + self.wins) / (2.0 + self.pulls)

    def clipped(self) -> "Count":
        return Count(self.pulls, min(max(self.wins, 0.0), self.pulls))


@dataclass
class Run:
    """The environment changed at the start of this run. `changes` is how many changes it believes in, all in all;
    `since` has each arm's count from the start on. Where arms change one by one, arm k did change with probability
    `changed[k]`, and otherwise `longer[k]` is the count that is still true of it. In bank A `changed` is 1
    throughout."""

    weight: float
    changes: float
    since: list[Count]
    longer: list[Count]
    changed: list[float]

    def learn(self, arm: int, y: float) -> None:
        if_changed = self.changed[arm] * likelihood(self.since[arm].mean(), y)
        if_not = (1.0 - self.changed[arm]) * likelihood(self.longer[arm].mean(), y)
        self.weight *= if_changed + if_not
        self.changed[arm] = if_changed / (if_changed + if_not)
        self.since[arm].add(y)
        self.longer[arm].add(y)


@dataclass
class IndependentDrift:
    """Every mean wanders: the count of an arm that has rested for d rounds fades to n / (1 + q d n)."""

    g: int
    weight: float
    changes: float
    pulls: list[float]
    means: list[float]

    def faded(self, arm: int, rested: int) -> Count:
        n = self.pulls[arm] / (1.0 + RATES[self.g] * rested * self.pulls[arm])
        return Count(n, n * self.means[arm])

    def learn(self, arm: int, y: float, rested: int) -> None:
        count = self.faded(arm, rested)
        self.weight *= likelihood(count.mean(), y)
        self.pulls[arm] = count.pulls + 1.0
        self.means[arm] += (y - self.means[arm]) / (count.pulls + 1.0)


@dataclass
class CommonDrift:
    """All means are a common level that wanders plus an offset of each arm that stays: a Kalman filter that forgets the
    covariances. `level_variance` and `variances` are in units of the noise of one reward."""

    g: int
    weight: float
    changes: float
    level: float
    level_variance: float
    offsets: list[float]
    variances: list[float]

    def count(self, arm: int) -> Count:
        n = max(1.0 / self.variances[arm] - 1.0 / V0, 0.0)
        return Count(n, n * clip(self.level + self.offsets[arm]))

    def learn(self, arm: int, y: float) -> None:
        u = self.level_variance + RATES[self.g]
        r = self.variances[arm]
        mean = self.level + self.offsets[arm]
        n = max(1.0 / (u + r) - 2.0, 0.0)
        self.weight *= likelihood((1.0 + n * clip(mean)) / (2.0 + n), y)
        surprise = (y - mean) / (1.0 + u + r)
        self.level += u * surprise
        self.offsets[arm] += r * surprise
        self.level_variance = min(u - u * u / (1.0 + u + r), 1.0)
        self.variances[arm] = r - r * r / (1.0 + u + r)


Hypothesis = Run | IndependentDrift | CommonDrift
Bank = list[list[Run]]  # levels; each holds one or two runs, the older first
Pair = tuple[Run, Run]  # the runs of A and of S that were newest together


def likelihood(p: float, y: float) -> float:
    return p**y * (1.0 - p) ** (1.0 - y)


def clip(mean: float) -> float:
    return min(max(mean, 0.0), 1.0)


def runs_of(bank: Bank) -> list[Run]:
    return [run for level in bank for run in level]


def aged(bank: Bank) -> list[Hypothesis]:
    """The runs of a bank from the oldest to the newest."""
    return [run for level in reversed(bank) for run in level]


def merged(older: Pair, newer: Pair) -> Pair:
    """One start in the place of two: in each bank the weights add and `changes` is averaged by weight; all else is the
    heavier start's, its two runs together (the older's if they weigh the same)."""
    heavier = newer if newer[0].weight + newer[1].weight > older[0].weight + older[1].weight else older
    first, second = (one_of(older[bank], newer[bank], heavier[bank]) for bank in range(2))
    return first, second


def one_of(older: Run, newer: Run, heavier: Run) -> Run:
    weight = older.weight + newer.weight
    if weight > 0.0:
        changes = (older.weight * older.changes + newer.weight * newer.changes) / weight
    else:
        changes = older.changes
    return Run(weight, changes, heavier.since, heavier.longer, heavier.changed)


def add_run(together: Bank, one_by_one: Bank, start: Pair, level: int = 0) -> None:
    """Put runs that are newer than all others of their level there; two starts that are in the way merge and move up
    first."""
    if level == len(together):
        together.append([start[0]])
        one_by_one.append([start[1]])
    elif len(together[level]) == 1:
        together[level].append(start[0])
        one_by_one[level].append(start[1])
    else:
        older, newer = zip(together[level], one_by_one[level], strict=True)
        add_run(together, one_by_one, merged(older, newer), level + 1)
        together[level], one_by_one[level] = [start[0]], [start[1]]


class NaiveDriftTS:
    """DriftTS, in the words of its specification (the constants are above).

    Choose: a hypothesis by its weight; a count (n, x) of each arm there; a = 1 + x, b = 1 + n - x, both times 2, or for
    drifts times 1 + 4 sqrt(K q) (a + b); score = max(Beta(a, b) draw, a / (a + b)). The largest score is played,
    among equals the one with the larger draw, then the first arm. Learn: every hypothesis is multiplied by the
    likelihood of the reward and learns it; weights are normalised; in every 16th round a little flows to drifts and
    common_drifts, and each bank adds a run.

    Draws: uniform(0) against the cumulative weights of A's runs, S's runs and all drifts, in units of their sum.
    In which order is a convention that only says which number draws whom: runs are numbered from the oldest, drifts
    of both kinds together, and each of the three lists is read as 0, 4, 8, ..., 1, 5, ..., 2, 6, ..., 3, 7, ...;
    uniform(1 + k) < changed[k] says that arm k did change, where a run of S was drawn; betas(a, b)[k] for arm k."""

    def __init__(self, n_arms: int) -> None:
        self.n_arms = n_arms
        self.t = 0
        self.last = [0] * n_arms
        self.together: Bank = [[self.new(1 / 18, 0.0, 1.0)]]  # bank A
        self.one_by_one: Bank = [[self.new(1 / 18, 0.0, 1.0)]]  # bank S
        rates = range(len(RATES))
        self.drifts = [IndependentDrift(g, (1 - TIDE) / 9, 0.0, [0.0] * n_arms, [0.5] * n_arms) for g in rates]
        self.common_drifts = [CommonDrift(g, TIDE / 9, 0.0, 0.5, V0, [0.0] * n_arms, [V0] * n_arms) for g in rates]

    def new(self, weight: float, changes: float, changed: float) -> Run:
        arms = range(self.n_arms)
        return Run(weight, changes, [Count() for _ in arms], [Count() for _ in arms], [changed for _ in arms])

    def hypotheses(self) -> list[Hypothesis]:
        return [*runs_of(self.together), *runs_of(self.one_by_one), *self.drifts, *self.common_drifts]

    def choose(self, t: int, rng: Round) -> int:
        a, b = self.parameters(self.drawn(rng.uniform(0)), rng)
        draws = rng.betas(a, b)
        scores = [max(draws[k], a[k] / (a[k] + b[k])) for k in range(self.n_arms)]
        best = 0
        for k in range(1, self.n_arms):
            if (scores[k], draws[k]) > (scores[best], draws[best]):
                best = k
        return best

    def drawn(self, u: float) -> Hypothesis:
        lists = (aged(self.together), aged(self.one_by_one), [*self.drifts, *self.common_drifts])
        order = [hypothesis for those in lists for first in range(4) for hypothesis in those[first::4]]
        possible = [hypothesis for hypothesis in order if hypothesis.weight > 0.0]
        whole = total(hypothesis.weight for hypothesis in possible)
        cumulative = 0.0
        for hypothesis in possible:
            cumulative += hypothesis.weight
            if cumulative > u * whole:
                return hypothesis
        return possible[-1]

    def parameters(self, hypothesis: Hypothesis, rng: Round) -> tuple[list[float], list[float]]:
        """Of each arm's Beta distribution, if this hypothesis holds."""
        a, b = [], []
        for k in range(self.n_arms):
            count = self.count(hypothesis, k, rng)
            factor = float(SURE)
            if isinstance(hypothesis, IndependentDrift):
                factor = 1.0 + HASTE * (self.n_arms * RATES[hypothesis.g]) ** 0.5 * (2.0 + count.pulls)
            a.append((1.0 + count.wins) * factor)
            b.append((1.0 + count.pulls - count.wins) * factor)
        return a, b

    def count(self, hypothesis: Hypothesis, k: int, rng: Round) -> Count:
        if isinstance(hypothesis, IndependentDrift):
            return hypothesis.faded(k, self.t - self.last[k])
        if isinstance(hypothesis, CommonDrift):
            return hypothesis.count(k)
        did_change = rng.uniform(1 + k) < hypothesis.changed[k]  # always, for a run of A
        return (hypothesis.since[k] if did_change else hypothesis.longer[k]).clipped()

    def learn(self, t: int, arm: int, reward: float) -> None:
        self.t += 1
        for hypothesis in self.hypotheses():
            if isinstance(hypothesis, IndependentDrift):
                hypothesis.learn(arm, reward, self.t - self.last[arm])
            else:
                hypothesis.learn(arm, reward)
        self.last[arm] = self.t

        everything = self.hypotheses()
        s = total(hypothesis.weight for hypothesis in everything)
        mean_changes = total(hypothesis.weight * hypothesis.changes for hypothesis in everything) / s
        birthday = self.t % EVERY == 0
        alpha = EVERY * SHARE / (EVERY * SHARE + self.t) if birthday else 0.0
        z = (1.0 - alpha) / s
        h = EVERY / (1.0 + self.t) if birthday else 0.0

        new_together = self.start(self.together, z * h) if birthday else None
        new_one_by_one = self.start(self.one_by_one, z * h) if birthday else None
        if new_one_by_one is not None:
            new_one_by_one.changed = [RHO] * self.n_arms
            new_one_by_one.longer = self.inherited()

        for hypothesis in everything:
            hypothesis.weight *= z * (1.0 - h * (RATE + GROW * hypothesis.changes))
            if isinstance(hypothesis, Run):
                if hypothesis.weight < NOTHING:
                    hypothesis.weight = 0.0
            else:
                share = 1.0 - TIDE if isinstance(hypothesis, IndependentDrift) else TIDE
                share = alpha * share / len(RATES)
                hypothesis.weight += share
                hypothesis.changes += share / hypothesis.weight * (mean_changes - hypothesis.changes)

        if new_together is not None and new_one_by_one is not None:
            add_run(self.together, self.one_by_one, (new_together, new_one_by_one))

    def start(self, bank: Bank, zh: float) -> Run:
        """The run that a bank gives start to: its parents are the runs of the bank, and with half their weight the
        drifts and common_drifts; a parent that believes in more changes has more children."""
        parents = [(run.weight, run.changes) for run in runs_of(bank)]
        parents += [(other.weight / 2.0, other.changes) for other in [*self.drifts, *self.common_drifts]]
        b0 = total(w for w, _ in parents)
        b1 = total(w * c for w, c in parents)
        b2 = total(w * c * c for w, c in parents)
        children = RATE * b0 + GROW * b1
        changes = min(self.t / EVERY, 1.0 + (RATE * b1 + GROW * b2) / children)
        return self.new(zh * children, changes, 1.0)

    def inherited(self) -> list[Count]:
        """What is known of each arm if it has not changed: the counts of the heaviest among S and the drifts (the
        first of them in the order of drawing, if several weigh the same)."""
        candidates: list[Run | IndependentDrift] = [*runs_of(self.one_by_one), *self.drifts]
        heaviest = candidates[0]
        for candidate in candidates:
            if candidate.weight > heaviest.weight:
                heaviest = candidate
        if isinstance(heaviest, IndependentDrift):
            return [heaviest.faded(k, self.t - self.last[k]) for k in range(self.n_arms)]
        return [
            (heaviest.since[k] if heaviest.changed[k] >= 0.5 else heaviest.longer[k]).copy() for k in range(self.n_arms)
        ]
