"""What policies would have earned on a log: sums over blocks of time from which every estimate is made.

For a follower, fed every event, the value is the average of

    v_t = sum over arms of pi_t(a) q_t(a)  +  pi_t(a_t) / mu_t * (r_t - q_t(a_t))

with chances pi_t and guesses q_t from earlier events only. The second term is the noise: given the past its mean is
what the guess was wrong by, so v_t is right on average whatever the guess. With own=True the same sum is taken for a
policy that learns only from events it accepts, with probability c 1[its draw = a_t] / mu_t: the history it would have
made itself at c times the traffic."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from driftbandit.draws import POLICY, stream_key
from driftbandit.lab.support.progress import Progress
from driftbandit.logs.asked import AskedFollower, must_be_asked
from driftbandit.logs.candidates import Candidate
from driftbandit.logs.events import Events, half_of
from driftbandit.logs.families import FamilyPlayer, Work, fits
from driftbandit.logs.generic import PolicyPlayer
from driftbandit.logs.log import Log
from driftbandit.logs.model import Model, guess, model
from driftbandit.logs.periods import block_length, period_of, piece_length

STEP = 8192  # events handed to the loops at once


class Followed(NamedTuple):
    """Sums over blocks; a column for each candidate, then the same for each arm played always. The noise, which is
    independent from event to event because the logger drew its arms so, is kept by shorter pieces of blocks: there a
    guess that lags behind a change does not pass for noise."""

    candidates: list[Candidate]
    length: float  # of a block, seconds
    events: Any  # blocks
    value: Any  # blocks × candidates: sum of v
    weight: Any  # of pi / mu
    weight2: Any  # of its square
    weighted: Any  # of pi / mu times reward
    accepted: Any  # of accepted events
    earned: Any  # of their rewards
    reward: Any  # blocks: the logger's rewards
    arm_value: Any  # halves × blocks × arms: as value, for the policy that plays this arm always
    block_of: Any  # pieces: the block a piece lies in
    pieces: Any  # pieces: number of events
    noise: Any  # pieces × candidates: sum of the second term of v
    surprise: Any  # pieces: rewards minus guesses
    arm_noise: Any  # halves × pieces × arms
    share: float  # c, the traffic of an own history


def follow(
    log: Log,
    candidates: Sequence[Candidate],
    *,
    block: Any = None,
    own: bool = False,
    seed: int = 0,
    guesses: Callable[[Events], np.ndarray] | None = None,
    compiled: bool = True,
    workers: int | None = None,
    progress: bool | Callable[[float], None] = False,
) -> Followed:
    """Play all candidates over the log. `guesses` replaces the model's q, for those who know better (a simulation that
    knows the truth)."""
    summary, k = log.summary, log.n_arms
    length = block_length(summary.start, summary.end, summary.dates, block)
    n_blocks = int(period_of(np.array([summary.end]), summary.start, length, summary.dates)[0]) + 1
    players = _players(log, candidates, own, seed, compiled, workers or os.cpu_count() or 1)
    order = [at for _, places in players for at in places]
    fine = piece_length(length, summary.dates)
    n_pieces = int(period_of(np.array([summary.end]), summary.start, fine, summary.dates)[0]) + 1
    columns = len(candidates)
    sums = Followed(
        candidates=list(candidates),
        length=length,
        events=np.zeros(n_blocks),
        value=np.zeros((n_blocks, columns)),
        weight=np.zeros((n_blocks, columns)),
        weight2=np.zeros((n_blocks, columns)),
        weighted=np.zeros((n_blocks, columns)),
        accepted=np.zeros((n_blocks, columns)),
        earned=np.zeros((n_blocks, columns)),
        reward=np.zeros(n_blocks),
        arm_value=np.zeros((2, n_blocks, k)),
        block_of=np.zeros(n_pieces, np.int64),
        pieces=np.zeros(n_pieces),
        noise=np.zeros((n_pieces, columns)),
        surprise=np.zeros(n_pieces),
        arm_noise=np.zeros((2, n_pieces, k)),
        share=summary.least,
    )
    q_model = _Guesses(k, compiled) if guesses is None else None
    waiting: Events | None = None
    accepted: list[Any] = []
    offset = 0
    with ThreadPoolExecutor(max(1, len(players))) as pool, Progress(log.n, progress, "following the log") as bar:
        for events in _steps(log):
            q_now = None if guesses is None else guesses(events)
            begin = 0
            if waiting is not None and waiting.n:
                begin = waiting.n
                events = waiting.joined(events)
            known_order = np.argsort(events.known, kind="stable")
            known_order = known_order[np.isfinite(events.known[known_order])]
            q = np.zeros((events.n, k))
            if q_model is None:
                q[begin:] = q_now
            else:
                q_model.write(events, known_order, begin, q)
            works = [_work(events, known_order, q, k, player.size) for player, _ in players]
            if waiting is not None and begin:
                for work, held in zip(works, accepted, strict=True):
                    work.accept[:begin] = held
            jobs = [
                pool.submit(player.advance, work, begin, offset, summary.least)
                for (player, _), work in zip(players, works, strict=True)
            ]
            learnt = [job.result() for job in jobs]
            at = np.concatenate([work.at for work in works], axis=1)[:, np.argsort(order)]
            model_part = np.concatenate([work.guess for work in works], axis=1)[:, np.argsort(order)]
            accept = np.concatenate([work.accept for work in works], axis=1)[:, np.argsort(order)]
            _add(sums, log, events, begin, q, at, model_part, accept)
            left = np.ones(events.n, bool)
            left[known_order[: learnt[0]]] = False
            left &= np.isfinite(events.known)
            waiting = events.take(left)
            accepted = [work.accept[left] for work in works]
            offset += events.n - begin
            bar.add(events.n - begin)
    return sums


def _steps(log: Log) -> Any:
    for piece in log.pieces():
        for start in range(0, piece.n, STEP):
            yield piece.take(slice(start, start + STEP))


class _Guesses:
    def __init__(self, n_arms: int, compiled: bool) -> None:
        self.model: Model = model(n_arms)
        self._guess: Any = guess
        if compiled:
            from driftbandit.logs import machine

            self._guess = machine.compiled(guess, self.model)

    def write(self, events: Events, order: np.ndarray, begin: int, out: np.ndarray) -> None:
        self._guess(self.model, events.arm, events.reward, events.known, order, events.time, begin, out)


def _work(events: Events, order: np.ndarray, q: np.ndarray, k: int, size: int) -> Work:
    allowed = np.ones((1, k), bool) if events.allowed is None else events.allowed
    n = events.n
    return Work(
        events.time, events.arm, events.reward, events.propensity, events.known, order, q, allowed,
        np.ones((n, size), np.uint8), np.zeros((n, size)), np.zeros((n, size)),
    )  # fmt: skip


def _players(
    log: Log, candidates: Sequence[Candidate], own: bool, seed: int, compiled: bool, workers: int
) -> list[tuple[Any, list[int]]]:
    """Players with the numbers of the candidates they play: families shared out among the workers, others alone."""
    k, start = log.n_arms, log.summary.start
    keys = [stream_key(seed, number, POLICY) for number in range(len(candidates))]
    together = [at for at, candidate in enumerate(candidates) if fits(candidate.policy)]
    players: list[tuple[Any, list[int]]] = []
    for part in range(workers):
        places = together[part::workers]
        if places:
            some = [candidates[at] for at in places]
            players.append((FamilyPlayer(some, k, start, own, [keys[at] for at in places], compiled), places))
    for at, candidate in enumerate(candidates):
        if at in together:
            continue
        if must_be_asked(candidate, k):
            players.append((AskedFollower(candidate, k, own, keys[at], compiled), [at]))
        else:
            players.append((PolicyPlayer(candidate, k, own, keys[at], compiled, start), [at]))
    return players


def _add(
    sums: Followed,
    log: Log,
    events: Events,
    begin: int,
    q: np.ndarray,
    at: np.ndarray,
    guess: np.ndarray,
    accept: np.ndarray,
) -> None:
    """Add the events from `begin` on to their blocks."""
    rows = slice(begin, None)
    time, arm, reward, mu = events.time[rows], events.arm[rows], events.reward[rows], events.propensity[rows]
    q, at, guess, accept = q[rows], at[rows], guess[rows], accept[rows]
    summary = log.summary
    block = period_of(time, summary.start, sums.length, summary.dates)
    n = len(time)
    miss = reward - q[np.arange(n), arm]
    ratio = at / mu[:, None]
    noise = ratio * miss[:, None]
    each = np.zeros((2, *q.shape))
    half = half_of(events.row[rows])
    each[half, np.arange(n), arm] = miss / mu
    known = np.stack([q * (half == side)[:, None] for side in (0, 1)])
    for b, here in _runs(block):
        sums.events[b] += here.stop - here.start
        sums.value[b] += (guess[here] + noise[here]).sum(axis=0)
        sums.weight[b] += ratio[here].sum(axis=0)
        sums.weight2[b] += (ratio[here] ** 2).sum(axis=0)
        sums.weighted[b] += (ratio[here] * reward[here, None]).sum(axis=0)
        sums.accepted[b] += accept[here].sum(axis=0)
        sums.earned[b] += (accept[here] * reward[here, None]).sum(axis=0)
        sums.reward[b] += reward[here].sum()
        sums.arm_value[:, b] += (known[:, here] + each[:, here]).sum(axis=1)
    fine = period_of(time, summary.start, piece_length(sums.length, summary.dates), summary.dates)
    for p, here in _runs(fine):
        sums.block_of[p] = block[here.start]
        sums.pieces[p] += here.stop - here.start
        sums.noise[p] += noise[here].sum(axis=0)
        sums.surprise[p] += miss[here].sum()
        sums.arm_noise[:, p] += each[:, here].sum(axis=1)


def _runs(number: np.ndarray) -> list[tuple[int, slice]]:
    """Stretches of equal numbers in a sequence that does not fall."""
    starts = np.flatnonzero(np.append(True, np.diff(number) != 0))
    ends = np.append(starts[1:], len(number))
    return [(int(number[start]), slice(int(start), int(end))) for start, end in zip(starts, ends, strict=True)]
