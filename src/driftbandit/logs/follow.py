"""Policies that follow a log: each event is met in order, with the rewards that were known by then.

The value of a policy is the average of v_t = sum over arms of pi_t(a) q_t(a) + pi_t(a_t) / mu_t (r_t - q_t(a_t)), with
probabilities pi_t and guesses q_t from earlier events only, and is unbiased for any guesses. Probabilities that a
policy does not keep are the shares of up to 16 choices; how many are drawn depends on earlier events only. With
own=True a policy learns only from events that it accepts, with probability c 1[its choice = a_t] / mu_t."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from driftbandit.core.draws import POLICY, Draws, round_key, stream_key
from driftbandit.core.primitives import compilable, draw_from, index, learns_with_random_numbers
from driftbandit.core.state import to_arrays
from driftbandit.lab.engine.loop import learn_one
from driftbandit.lab.progress import Progress
from driftbandit.logs.context import ContextGuesses, contexts
from driftbandit.logs.estimates import block_length, period_of
from driftbandit.logs.log import Log
from driftbandit.logs.rows import Events
from driftbandit.player import Player, choose_among
from driftbandit.spec import policy_check
from driftbandit.spec.half_life import SECOND, half_to_the

STEP = 8192  # events per call of the compiled loop
DRAWS = 16  # choices drawn where the probabilities are not known
CALM = 256  # events in a row at which all choices agreed, after which two are drawn
MEMORIES = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0, np.inf)  # of the guesses: plays of an arm, mean age


class Candidate(NamedTuple):
    """A policy with a label and, if it forgets by the clock, a half-life in seconds."""

    label: str
    policy: Any
    half_life: float | None = None


def schedule(events: Events) -> tuple[np.ndarray, np.ndarray]:
    """Which rewards are known at which event, in the order in which they became known: `order[j]` is learned at event
    `first[j]`, before the choice there. A reward is known to events that are decided later than its own and not before
    it arrived."""
    order = np.argsort(events.known, kind="stable")
    order = order[: np.searchsorted(events.known[order], events.time[-1], side="right")]
    came = np.searchsorted(events.time, events.known[order], side="left")
    later = np.searchsorted(events.time, events.time[order], side="right")
    return order, np.maximum.accumulate(np.maximum(came, later)) if len(order) else order


class LogArrays(NamedTuple):
    """The log as the compiled loops read it."""

    time: Any
    arm: Any
    reward: Any
    mu: Any
    order: Any  # see `schedule`
    first: Any
    menu: Any
    allowed: Any  # menus × arms: the arms of each menu, before the others
    sizes: Any  # their number
    context: Any  # events × columns of the features


class Model(NamedTuple):
    """The guesses q_t(a): each arm's average, with the memory that has guessed best so far."""

    keep: Any  # 1 - 1 / memory
    total: Any  # memories × arms: weight
    mean: Any
    error: Any  # squared error of each memory so far
    learned: Any


def new_model(n_arms: int) -> Model:
    """Before the first event every guess is 0.5, with the weight of one play."""
    keep = np.array([1.0 - 1.0 / memory for memory in MEMORIES])
    shape = (len(keep), n_arms)
    return Model(keep, np.ones(shape), np.full(shape, 0.5), np.zeros(len(keep)), np.zeros(1, np.int64))


def guess(model: Any, log: Any, begin: int, out: Any) -> None:
    """Write the guesses for all arms at the events from `begin` on."""
    for e in range(begin, begin + len(out)):
        while model.learned[0] < len(log.order) and log.first[model.learned[0]] <= e:
            w = log.order[model.learned[0]]
            a = log.arm[w]
            for m in range(len(model.keep)):
                miss = log.reward[w] - model.mean[m, a]
                model.error[m] += miss * miss
                model.total[m, a] = model.total[m, a] * model.keep[m] + 1.0
                model.mean[m, a] += miss / model.total[m, a]
            model.learned[0] += 1
        best = 0
        for m in range(1, len(model.keep)):
            if model.error[m] <= model.error[best]:
                best = m
        for i in range(out.shape[1]):
            out[e - begin, i] = model.mean[best, i]


class Place(NamedTuple):
    """How far a follower is, and its scratch."""

    count: Any  # rewards seen, rewards learned, choices drawn, events in a row without disagreement, time
    probability: Any  # of each arm
    scores: Any  # the policy's own, where it plays the largest; otherwise empty
    kept: Any  # the policy's own probabilities, where it keeps them; otherwise empty
    accept: Any  # is the event learned from?
    features: Any  # those of the event that is learned or decided, for a contextual policy; otherwise empty


class WithFeatures(NamedTuple):
    """A contextual policy in the loop: it chooses and learns with the features that stand in `features`."""

    base: Any
    features: Any

    def choose(self, state: Any, t: int, rng: Any) -> Any:
        return self.base.choose_in(state, t, rng, self.features)

    def learn(self, state: Any, t: int, arm: Any, reward: Any) -> None:
        self.base.learn_in(state, t, arm, reward, self.features)

    def take(self, state: Any, arm: Any, reward: Any, weight: float) -> None:
        self.base.take_in(state, arm, reward, weight, self.features)

    def fade(self, state: Any, factor: float) -> None:
        self.base.fade(state, factor)


@compilable
def probabilities(policy: Any, state: Any, place: Any, key: Any, allowed: Any) -> None:
    """Write each arm's probability at this event, at which these arms are allowed, into `place.probability`."""
    found, t = place.probability, int(place.count[1])
    for i in range(len(found)):
        found[i] = 0.0
    if len(allowed) == 1:
        found[allowed[0]] = 1.0
        return
    kept = len(place.kept) > 0
    draws = 1 if kept else DRAWS if place.count[3] < CALM else 2
    most = 0.0
    for j in range(draws):
        rng = Draws(round_key(key, int(place.count[2]) + j))
        arm = policy.choose(state, t, rng)
        if not kept:
            arm = choose_among(policy, state, t, rng, arm, place.scores, allowed)
        found[arm] += 1.0 / draws
        most = max(most, found[arm])
    place.count[2] += draws
    place.count[3] = place.count[3] + 1 if most > 1.0 - 1e-9 else 0
    if kept:  # the policy has just written down its probabilities
        total = 0.0
        found[arm] = 0.0
        for i in allowed:
            found[i] = place.kept[i]
            total += found[i]
        for i in allowed:
            found[i] /= total


def play(
    policy: Any, state: Any, place: Any, log: Any, keys: Any, q: Any, at: Any, value: Any, begin: int,
    rate: float, half_life: Any, coins: Any,
) -> None:  # fmt: skip
    """Follow the events from `begin` on: write the probability of the arm that was played into `at`, and the sum of
    probabilities times guesses into `value`. `half_life` is in microseconds, or None; `coins` is not None if learning
    is random; `rate` is above 0 for an own history."""
    for e in range(begin, begin + len(q)):
        while place.count[0] < len(log.order) and log.first[place.count[0]] <= e:
            w = log.order[place.count[0]]
            place.count[0] += 1
            if place.accept[w] != 0:
                for j in range(len(place.features)):
                    place.features[j] = log.context[w, j]
                so_far = int(place.count[1]), keys[0], place.count[4], half_life, coins
                row = index(log.arm[w]), log.reward[w], int(log.time[w] * SECOND), None, None
                place.count[4] = learn_one(policy, state, *so_far, *row)
                place.count[1] += 1
        if half_life is not None:
            now = int(log.time[e] * SECOND)
            if now > place.count[4]:
                policy.fade(state, half_to_the((now - place.count[4]) / half_life))
                place.count[4] = now
        for j in range(len(place.features)):
            place.features[j] = log.context[e, j]
        allowed = log.allowed[log.menu[e]]
        probabilities(policy, state, place, keys[0], allowed[: log.sizes[log.menu[e]]])
        total = 0.0
        for i in range(q.shape[1]):
            total += place.probability[i] * q[e - begin, i]
        value[e - begin] = total
        at[e - begin] = place.probability[log.arm[e]]
        if rate > 0.0:
            rng = Draws(round_key(keys[1], e))
            same = draw_from(place.probability, rng.uniform(0)) == log.arm[e]
            place.accept[e] = 1 if same and rng.uniform(1) * log.mu[e] < rate else 0


class LogFollower(Player):
    """A player that follows a log. Its state is a tuple of arrays, and `play` advances it by many events at a time."""

    def __init__(
        self, candidate: Candidate, log: Log, arrays: LogArrays, rate: float, seed: int, compiled: bool
    ) -> None:
        half_life = None if candidate.half_life is None else round(candidate.half_life * SECOND)
        start = int(log.summary.start * SECOND)
        self.keys = np.array([stream_key(seed, number, POLICY) for number in (0, 1)], np.uint64)
        n_features = arrays.context.shape[1] if hasattr(candidate.policy, "choose_in") else 0
        super().__init__(candidate.policy, log.n_arms, int(self.keys[0]), half_life, start, n_features=n_features)
        scores, kept = (getattr(self.state, name, np.zeros(0)) for name in ("scores", "probabilities"))
        count = np.array([0, 0, 0, 0, start], np.int64)
        features = np.zeros(n_features)
        self.place = Place(count, np.zeros(log.n_arms), scores, kept, np.ones(log.n, np.uint8), features)
        self.rule = WithFeatures(self.policy, features) if n_features else self.policy
        self.log, self.rate = arrays, rate
        self.coins = 1 if learns_with_random_numbers(type(self.policy)) else None
        if compiled:
            policy_check.check(self.policy, log.n_arms, n_features=n_features)
        self._play = _compile(play, self.rule, self.state, self.place, arrays) if compiled else play

    def _hold(self, state: Any) -> None:
        super()._hold(to_arrays(state, self.first_state()))

    def advance(self, begin: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Play the events from `begin` on, one for each row of guesses."""
        at, value = np.zeros(len(q)), np.zeros(len(q))
        with np.errstate(over="ignore"):
            self._play(
                self.rule, self.state, self.place, self.log, self.keys, q, at, value, begin, self.rate,
                self.half_life, self.coins,
            )  # fmt: skip
        self.learned, self.time = int(self.place.count[1]), int(self.place.count[4])
        return at, value


def _compile(function: Any, policy: Any, *tuples: Any) -> Any:
    """The function as machine code for this policy, which may be None, and these tuples."""
    from driftbandit.lab.engine import code_cache

    made = code_cache.compiled(function, *(() if policy is None else (policy,)), *tuples)

    def call(*args: Any) -> Any:
        if made.signatures:
            return made(*args)
        with code_cache.compiling(policy):
            return made(*args)

    return call


class Followed(NamedTuple):
    """Sums over blocks of time, with a column for each candidate."""

    candidates: list[Candidate]
    length: float  # of a block, seconds
    events: Any  # blocks
    reward: Any  # blocks: the logger's rewards
    value: Any  # blocks × candidates: sum of v
    truth: Any  # blocks × candidates: sum of pi q
    weight: Any  # of pi / mu
    weight2: Any  # of its square
    paid: Any  # of pi / mu times the reward
    arm_value: Any  # blocks × arms: as value, for the policy that always plays this arm


def follow(
    log: Log,
    tried: Sequence[Candidate],
    *,
    block: Any = None,
    own: bool = False,
    seed: int = 0,
    guesses: Callable[[Events], np.ndarray] | None = None,
    compiled: bool = True,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = False,
) -> Followed:
    """Play all candidates over the log. `guesses` replaces the model's q, for a simulation with known means. All
    candidates draw the same random numbers, which makes their differences more precise than their values."""
    summary, k, events = log.summary, log.n_arms, log.whole()
    length = block_length(summary.start, summary.end, summary.dates, block)
    block_of = period_of(events.time, summary.start, length, summary.dates)
    arm = events.arm.astype(np.int64)
    order, first = schedule(events)
    allowed, sizes = np.argsort(~log.menus, axis=1, kind="stable"), log.menus.sum(axis=1)
    context = contexts(log) if log.features else np.zeros((log.n, 0))
    arrays = LogArrays(
        events.time, arm, events.reward, events.propensity, order, first, events.menu, allowed, sizes, context
    )
    rate = summary.least if own else 0.0
    followers = [LogFollower(candidate, log, arrays, rate, seed, compiled) for candidate in tried]
    model = new_model(k)
    learn_guess: Any = _compile(guess, None, model, arrays) if compiled else guess
    size = int(block_of[-1]) + 1
    shapes = [size, size, *[(size, len(tried))] * 5, (size, k)]
    sums = Followed(list(tried), length, *(np.zeros(shape) for shape in shapes))
    np.add.at(sums.events, block_of, 1.0)
    np.add.at(sums.reward, block_of, events.reward)
    in_context = ContextGuesses(log, context) if log.features else None
    step = min(STEP, max(256, log.n // 64)) if log.features else STEP  # the regression is renewed with each
    bar = Progress(log.n, progress, "following the log")
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool, bar:
        for begin in range(0, log.n, step):
            here = slice(begin, min(begin + step, log.n))
            q = np.zeros((here.stop - begin, k))
            if guesses is None:
                learn_guess(model, arrays, begin, q)
                if in_context is not None:
                    known = np.searchsorted(first, [begin - step, begin], side="right")
                    in_context.learn(order[slice(*known)])
                    q = np.clip(q + in_context.guess(here), 0.0, 1.0)
            else:
                q[:] = guesses(events.take(here))
            jobs = [pool.submit(follower.advance, begin, q) for follower in followers]
            found = [job.result() for job in jobs]
            at, value = (np.stack(columns, axis=1) for columns in zip(*found, strict=True))
            _add(sums, block_of[here], q, events.take(here), at, value)
            bar.add(here.stop - begin)
    return sums


def _add(sums: Followed, block: Any, q: np.ndarray, events: Events, at: np.ndarray, value: np.ndarray) -> None:
    """Add events to the sums of their blocks."""
    rows = np.arange(events.n)
    miss = events.reward - q[rows, events.arm]
    ratio = at / events.propensity[:, None]
    arms = q.copy()
    arms[rows, events.arm] += miss / events.propensity
    starts = np.flatnonzero(np.append(True, np.diff(block) != 0))
    each = (
        (sums.value, value + ratio * miss[:, None]),
        (sums.truth, value),
        (sums.weight, ratio),
        (sums.weight2, ratio**2),
        (sums.paid, ratio * events.reward[:, None]),
        (sums.arm_value, arms),
    )
    for total, part in each:
        total[block[starts]] += np.add.reduceat(part, starts, axis=0)
