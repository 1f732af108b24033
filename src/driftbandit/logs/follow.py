"""Any policy as a follower of a log: one loop over the events, compiled or not.

At each event the follower has learned the rewards that were known by then (`Schedule`). Its probabilities are read off
where the policy keeps them (EXP3), else they are the shares of up to 16 choices. The estimate is linear in the
probabilities, which leaves it unbiased. Where all choices have agreed for a while two are drawn: how many depends on
earlier events only. The value of a policy is the average of

    v_t = sum over arms of pi_t(a) q_t(a)  +  pi_t(a_t) / mu_t * (r_t - q_t(a_t))

with probabilities pi_t and guesses q_t from earlier events only. It is unbiased whatever the guesses are. With own=True
a policy learns only from events it accepts, with probability c 1[its choice = a_t] / mu_t: the history it would have
made itself at c times the traffic."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from driftbandit.draws import AGAIN, POLICY, Draws, round_key, stream_key
from driftbandit.half_life import SECOND, half_to_the, learn_by_time
from driftbandit.lab.jobs.batch import compute_elsewhere
from driftbandit.lab.support.progress import Progress
from driftbandit.logs.blocks import block_length, period_of
from driftbandit.logs.log import Log
from driftbandit.logs.rows import Events
from driftbandit.player import REDRAWS
from driftbandit.primitives import TIES, compilable, draw_from, index, learns_by_chance, teach

STEP = 8192  # events handed to the loops at once
DRAWS = 16  # choices drawn where the probabilities are not known
CALM = 256  # events in a row at which all choices agreed, after which two are drawn
MEMORIES = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0, np.inf)  # of the guesses: plays of an arm, mean age


class Candidate(NamedTuple):
    """A policy under a label. With a half-life, in seconds, it forgets by the clock."""

    label: str
    policy: Any
    half_life: float | None = None


# ---- what is known by when -------------------------------------------------------------------------------------------


class Schedule(NamedTuple):
    """Which rewards are known at which event: `order[j]` is learned at event `first[j]`, before the choice there. A
    reward is known to events that are decided later than its own and not before it came."""

    order: Any
    first: Any


def schedule(events: Events) -> Schedule:
    """When each reward is learned, in the order in which they became known."""
    order = np.argsort(events.known, kind="stable")
    order = order[: np.searchsorted(events.known[order], events.time[-1], side="right")]
    came = np.searchsorted(events.time, events.known[order], side="left")
    later = np.searchsorted(events.time, events.time[order], side="right")
    return Schedule(order, np.maximum.accumulate(np.maximum(came, later)) if len(order) else order)


class Work(NamedTuple):
    """The log as the loops need it."""

    time: Any
    arm: Any
    reward: Any
    mu: Any
    order: Any  # see Schedule
    first: Any
    menu: Any
    menus: Any


class Model(NamedTuple):
    """The guesses q_t(a): each arm's average, with the memory that has guessed best so far."""

    keep: Any  # 1 - 1 / memory
    total: Any  # memories × arms: weight
    mean: Any
    error: Any  # squared error of each memory so far
    learned: Any


def new_model(n_arms: int) -> Model:
    """Before the first event every guess is the middle, with the weight of one play."""
    keep = np.array([1.0 - 1.0 / memory for memory in MEMORIES])
    shape = (len(keep), n_arms)
    return Model(keep, np.ones(shape), np.full(shape, 0.5), np.zeros(len(keep)), np.zeros(1, np.int64))


def guess(model: Any, work: Any, begin: int, out: Any) -> None:
    """Write the guesses for all arms at the events from `begin` on."""
    for e in range(begin, begin + len(out)):
        while model.learned[0] < len(work.order) and work.first[model.learned[0]] <= e:
            w = work.order[model.learned[0]]
            a = work.arm[w]
            for m in range(len(model.keep)):
                miss = work.reward[w] - model.mean[m, a]
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


# ---- the follower ----------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """How far a follower has come, and its scratch."""

    count: Any  # rewards learned, of them accepted, choices drawn, events in a row without disagreement, time
    chance: Any  # of each arm
    scores: Any  # the policy's own, where the largest is chosen; else empty
    chances: Any  # the policy's own probabilities, where it keeps them; else empty
    accept: Any  # is the event learned from?


@compilable
def choose_again(policy: Any, state: Any, t: int, key: Any, decision: int, arm: int, scores: Any, allowed: Any) -> int:
    """The choice kept to the allowed arms, by the law of `Player`: the largest score among them where the choice
    was the largest of all; else the policy draws again; else one of them is drawn uniformly."""
    n_arms = len(allowed)
    largest = len(scores) > 0
    for i in range(len(scores)):
        if scores[i] > scores[arm]:
            largest = False
    count = 0
    top = -1e300
    if largest:
        for i in range(n_arms):
            if allowed[i] and scores[i] > top:
                top = scores[i]
        for i in range(n_arms):
            if allowed[i] and scores[i] == top:
                count += 1
    else:
        for n in range(REDRAWS):
            again = policy.choose(state, t, Draws(round_key(round_key(key, decision), AGAIN + n - 1)))
            if allowed[again]:
                return int(again)
        for i in range(n_arms):
            if allowed[i]:
                count += 1
    left = int(Draws(round_key(key, decision)).uniform(TIES) * count)
    for i in range(n_arms):
        if allowed[i] and (not largest or scores[i] == top):
            if left == 0:
                return i
            left -= 1
    return arm


@compilable
def probabilities(policy: Any, state: Any, place: Any, key: Any, allowed: Any) -> None:
    """Write each arm's probability now into `place.chance`."""
    n_arms, t = len(allowed), int(place.count[1])
    for i in range(n_arms):
        place.chance[i] = 0.0
    only = -1
    for i in range(n_arms):
        if allowed[i]:
            only = i if only == -1 else -2
    if only >= 0:
        place.chance[only] = 1.0
        return
    kept = len(place.chances) > 0
    draws = 1 if kept else DRAWS if place.count[3] < CALM else 2
    most = 0.0
    for j in range(draws):
        decision = int(place.count[2]) + j
        arm = policy.choose(state, t, Draws(round_key(key, decision)))
        if not kept and not allowed[arm]:
            arm = choose_again(policy, state, t, key, decision, arm, place.scores, allowed)
        place.chance[arm] += 1.0 / draws
        most = max(most, place.chance[arm])
    place.count[2] += draws
    place.count[3] = place.count[3] + 1 if most > 1.0 - 1e-9 else 0
    if kept:  # the policy has just written down its probabilities
        total = 0.0
        for i in range(n_arms):
            place.chance[i] = place.chances[i] if allowed[i] else 0.0
            total += place.chance[i]
        for i in range(n_arms):
            place.chance[i] /= total


def play(
    policy: Any, state: Any, place: Any, work: Any, keys: Any, q: Any, at: Any, value: Any, begin: int,
    rate: float, half_life: Any, coins: Any,
) -> None:  # fmt: skip
    """Follow the events from `begin` on: write the probability of the arm that was played into `at`, and the sum of
    probabilities times guesses into `value`. `half_life` is in microseconds, or None; `coins` is not None if the policy
    learns by chance; `rate` is above 0 for an own history."""
    for e in range(begin, begin + len(q)):
        while place.count[0] < len(work.order) and work.first[place.count[0]] <= e:
            w = work.order[place.count[0]]
            place.count[0] += 1
            if place.accept[w] != 0:
                t, reward = int(place.count[1]), work.reward[w]
                if half_life is None:
                    teach(policy, state, t, index(work.arm[w]), reward, Draws(round_key(keys[0], t)))
                else:
                    if coins is not None:
                        reward = policy.seen(reward, Draws(round_key(keys[0], t)))
                    decided = int(work.time[w] * SECOND)
                    place.count[4] = learn_by_time(
                        policy, state, place.count[4], half_life, index(work.arm[w]), reward, decided
                    )
                place.count[1] += 1
        if half_life is not None:
            now = int(work.time[e] * SECOND)
            if now > place.count[4]:
                policy.fade(state, half_to_the((now - place.count[4]) / half_life))
                place.count[4] = now
        probabilities(policy, state, place, keys[0], work.menus[work.menu[e]])
        total = 0.0
        for i in range(q.shape[1]):
            total += place.chance[i] * q[e - begin, i]
        value[e - begin] = total
        at[e - begin] = place.chance[work.arm[e]]
        if rate > 0.0:
            rng = Draws(round_key(keys[1], e))
            accepted = draw_from(place.chance, rng.uniform(0)) == work.arm[e] and rng.uniform(1) * work.mu[e] < rate
            place.accept[e] = 1 if accepted else 0


class PolicyFollower:
    """One policy at work on a log, from its first event to its last."""

    def __init__(self, candidate: Candidate, log: Log, work: Work, rate: float, seed: int, compiled: bool) -> None:
        self.policy, k = candidate.policy, log.n_arms
        self.state = self.policy.init(k)
        self.half_life = None if candidate.half_life is None else round(candidate.half_life * SECOND)
        self.coins = 1 if learns_by_chance(type(self.policy)) else None
        count = np.zeros(5, np.int64)
        count[4] = int(log.summary.start * SECOND)
        empty = np.zeros(0)
        scores, chances = (getattr(self.state, name, empty) for name in ("scores", "chances"))
        self.place = Place(count, np.zeros(k), scores, chances, np.ones(log.n, np.uint8))
        self.work, self.rate = work, rate
        self.keys = np.array([stream_key(seed, number, POLICY) for number in (0, 1)], np.uint64)
        self._play = _compiled(play, k, self.policy, self.state, self.place, work) if compiled else play

    def advance(self, begin: int, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Play the events from `begin` on, one for each row of guesses."""
        at, value = np.zeros(len(q)), np.zeros(len(q))
        with np.errstate(over="ignore"):
            self._play(
                self.policy, self.state, self.place, self.work, self.keys, q, at, value, begin, self.rate,
                self.half_life, self.coins,
            )  # fmt: skip
        return at, value


def _compiled(function: Any, n_arms: int, policy: Any, *tuples: Any) -> Any:
    """The function as machine code for these tuples' classes. The policy may be the user's: what cannot be compiled is
    explained, and no fraction is cut off on its way into an array of whole numbers."""
    from numba.core.errors import NumbaError

    from driftbandit.lab.engine import code_cache, numba_methods
    from driftbandit.text import policy_check

    given = tuples if policy is None else (policy, *tuples)
    if policy is not None:
        policy_check.check(policy, n_arms)
    with code_cache.LOCK:
        for value in given:
            numba_methods.prepare(value)
    made = code_cache.compiled(function, *given)

    def call(*args: Any) -> Any:
        try:
            if made.signatures:
                return made(*args)
            with code_cache.LOCK, numba_methods.whole_stores():
                return made(*args)
        except NumbaError as error:
            raise TypeError(numba_methods.explain(error, policy)) from error

    return call


# ---- sums over blocks ------------------------------------------------------------------------------------------------


class Followed(NamedTuple):
    """Sums over blocks of time; a column for each candidate."""

    candidates: list[Candidate]
    length: float  # of a block, seconds
    events: Any  # blocks
    reward: Any  # blocks: the logger's rewards
    value: Any  # blocks × candidates: sum of v
    truth: Any  # blocks × candidates: sum of pi q
    weight: Any  # of pi / mu
    weight2: Any  # of its square
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
    executor: Any = None,
    progress: bool | Callable[[float], None] = False,
) -> Followed:
    """Play all candidates over the log. `guesses` replaces the model's q, for a simulation that knows the truth. All
    candidates draw the same random numbers, so that their differences are sharper than their values. With `executor`
    (`driftbandit.lab.jobs.executors`) the log is sent to its workers once for each candidate."""
    if executor is not None:
        given = {"block": block, "own": own, "seed": seed, "guesses": guesses, "compiled": compiled, "workers": 1}
        return _joined(compute_elsewhere([FollowTask(log, one, given) for one in tried], executor, workers))
    summary, k, events = log.summary, log.n_arms, log.whole()
    length = block_length(summary.start, summary.end, summary.dates, block)
    block_of = period_of(events.time, summary.start, length, summary.dates)
    known = schedule(events)
    arm = events.arm.astype(np.int64)
    work = Work(events.time, arm, events.reward, events.propensity, *known, events.menu, log.menus)
    rate = summary.least if own else 0.0
    players = [PolicyFollower(candidate, log, work, rate, seed, compiled) for candidate in tried]
    model = new_model(k)
    learn_guess: Any = _compiled(guess, k, None, model, work) if compiled else guess
    size = int(block_of[-1]) + 1
    shapes = [size, size, *[(size, len(tried))] * 4, (size, k)]
    sums = Followed(list(tried), length, *(np.zeros(shape) for shape in shapes))
    np.add.at(sums.events, block_of, 1.0)
    np.add.at(sums.reward, block_of, events.reward)
    bar = Progress(log.n, progress, "following the log")
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool, bar:
        for begin in range(0, log.n, STEP):
            here = slice(begin, min(begin + STEP, log.n))
            q = np.zeros((here.stop - begin, k))
            if guesses is None:
                learn_guess(model, work, begin, q)
            else:
                q[:] = guesses(events.take(here))
            jobs = [pool.submit(player.advance, begin, q) for player in players]
            found = [job.result() for job in jobs]
            at, value = (np.stack(columns, axis=1) for columns in zip(*found, strict=True))
            _add(sums, block_of[here], q, events.take(here), at, value)
            bar.add(here.stop - begin)
    return sums


class FollowTask(NamedTuple):
    """One policy's way through a log, to be computed elsewhere."""

    log: Log
    candidate: Candidate
    options: dict[str, Any]

    def compute(self) -> Followed:
        """Follow the log."""
        return follow(self.log, [self.candidate], **self.options)


def _joined(parts: list[Followed]) -> Followed:
    """The columns of several candidates side by side."""
    names = ("value", "truth", "weight", "weight2")
    columns: dict[str, Any] = {name: np.hstack([getattr(part, name) for part in parts]) for name in names}
    return parts[0]._replace(candidates=[part.candidates[0] for part in parts], **columns)


def _add(sums: Followed, block: Any, q: np.ndarray, events: Events, at: np.ndarray, value: np.ndarray) -> None:
    """Add these events to their blocks."""
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
        (sums.arm_value, arms),
    )
    for total, part in each:
        total[block[starts]] += np.add.reduceat(part, starts, axis=0)
