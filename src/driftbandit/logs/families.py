"""Thompson samplers that discount, many at once: the follower of a whole grid of half-lives in one loop over the log.

dTS (with TS as its infinite half-life) and DS-TS keep two numbers per arm. A candidate forgets by rounds, each reward
multiplying what is known by `gamma`; or by the clock, at `rate` = ln 2 / half-life per second, in which case a late
reward gets the weight that its age leaves it. The state of a candidate at an event is what `learn` (or fading by the
clock) makes of all earlier rewards that were known by then; the test holds it to the policies' own `learn`."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.draws import Draws, round_key
from driftbandit.logs.candidates import Candidate
from driftbandit.logs.largest import BETA, NORMAL, Room, chances_into, room
from driftbandit.policies.beta_ts import BetaTS, DiscountedBetaTS
from driftbandit.policies.discounted_ts import DiscountedTS
from driftbandit.primitives import compilable, draw_from


class CandidateGroup(NamedTuple):
    """Candidates and what they know, flat: number g of arm i at g * n_arms + i."""

    kind: Any  # NORMAL for DS-TS, BETA for TS and dTS
    gamma: Any  # discount per reward
    rate: Any  # forgetting per second, 0 if not by the clock
    tau_max: Any
    weight: Any
    prior_a: Any
    prior_b: Any
    own: Any  # 1: learns only what it accepts, 0: learns the whole log
    key: Any  # of its draws
    first: Any  # discounted pulls, or wins
    second: Any  # mean, or losses
    clock: Any  # the time a candidate's numbers are faded to
    p: Any  # scratch: belief
    q: Any
    chance: Any


def fits(policy: Any) -> bool:
    """Can this policy be a member of a family?"""
    if isinstance(policy, DiscountedTS):
        return policy.forget_below == 0.0
    if isinstance(policy, DiscountedBetaTS):
        return not policy.optimistic and not policy.binarize
    return isinstance(policy, BetaTS) and not policy.binarize


def family(
    candidates: Sequence[Candidate], n_arms: int, start: float, own: bool, keys: Sequence[int]
) -> CandidateGroup:
    """The candidates before the first event."""
    g = len(candidates)
    columns = np.zeros((6, g))
    kind = np.zeros(g, np.int64)
    for at, candidate in enumerate(candidates):
        policy = candidate.policy
        kind[at] = NORMAL if isinstance(policy, DiscountedTS) else BETA
        by_clock = candidate.half_life is not None
        forgetting = math.log(2.0) / candidate.half_life if candidate.half_life else 0.0
        columns[:, at] = (
            1.0 if by_clock else getattr(policy, "gamma", 1.0),
            forgetting,
            getattr(policy, "tau_max", 1.0),
            getattr(policy, "weight", 1.0),
            getattr(policy, "prior_wins", 1.0),
            getattr(policy, "prior_losses", 1.0),
        )
    gamma, rate, tau_max, weight, prior_a, prior_b = (column.copy() for column in columns)
    size = g * n_arms
    return CandidateGroup(
        kind,
        gamma,
        rate,
        tau_max,
        weight,
        prior_a,
        prior_b,
        np.full(g, int(own), np.int64),
        np.array(keys, np.uint64),
        np.zeros(size),
        np.zeros(size),
        np.full(g, float(start)),
        np.zeros(n_arms),
        np.zeros(n_arms),
        np.zeros(n_arms),
    )


class Work(NamedTuple):
    """One piece of a log as the loop needs it: events still to be learnt from the piece before come first."""

    time: Any
    arm: Any
    reward: Any
    mu: Any
    known: Any
    order: Any  # events in the order in which their rewards become known
    q: Any  # events × arms: the model's guesses
    allowed: Any  # events × arms, or one row of True for all
    accept: Any  # events × candidates: is the event learnt from?
    at: Any  # out, events × candidates: the chance of the arm that was played
    guess: Any  # out: sum of chance times guess


def play(members: Any, work: Any, room: Any, begin: int, offset: int, accept_rate: float) -> int:
    """Follow the events from `begin` on (those before are only waiting to be learnt); returns how many of `order` were
    learnt. `offset` is the number of the event `begin` in the whole log."""
    n_arms = len(members.chance)
    learnt = 0
    for e in range(begin, len(work.time)):
        now = work.time[e]
        while learnt < len(work.order):
            w = work.order[learnt]
            if w >= e or work.known[w] > now or work.time[w] >= now:  # nor do rows of equal time tell each other
                break
            for g in range(len(members.kind)):
                if work.accept[w, g] != 0:
                    take(members, g, n_arms, work.time[w], work.arm[w], work.reward[w])
            learnt += 1
        for g in range(len(members.kind)):
            believe(members, g, n_arms, now)
            row = min(e, len(work.allowed) - 1)
            for i in range(n_arms):
                if not work.allowed[row, i]:
                    members.q[i] = -1.0
            chances_into(members.kind[g], members.p, members.q, room, members.chance)
            guess = 0.0
            for i in range(n_arms):
                guess += members.chance[i] * work.q[e, i]
            work.guess[e, g] = guess
            work.at[e, g] = members.chance[work.arm[e]]
            if members.own[g] != 0:
                rng = Draws(round_key(members.key[g], offset + e - begin))
                drawn = draw_from(members.chance, rng.uniform(0))
                accepted = drawn == work.arm[e] and rng.uniform(1) * work.mu[e] < accept_rate
                work.accept[e, g] = 1 if accepted else 0
    return learnt


@compilable
def fade(members: Any, g: int, n_arms: int, factor: float) -> None:
    """Multiply what a candidate knows; means stay."""
    base = g * n_arms
    for i in range(n_arms):
        members.first[base + i] *= factor
    if members.kind[g] == 1:
        for i in range(n_arms):
            members.second[base + i] *= factor


@compilable
def take(members: Any, g: int, n_arms: int, time: float, arm: int, reward: float) -> None:
    """Let a candidate learn one reward: fade, then take."""
    rate = members.rate[g]
    weight = 1.0
    if rate > 0.0:
        now = max(members.clock[g], time)
        fade(members, g, n_arms, math.exp(-rate * (now - members.clock[g])))
        weight = math.exp(-rate * (now - time))
        members.clock[g] = now
    elif members.gamma[g] < 1.0:
        fade(members, g, n_arms, members.gamma[g])
    place = g * n_arms + arm
    if members.kind[g] == 1:
        members.first[place] += weight * reward
        members.second[place] += weight * (1.0 - reward)
    else:
        members.first[place] += weight
        if members.first[place] > 0.0:
            members.second[place] += weight * (reward - members.second[place]) / members.first[place]


@compilable
def believe(members: Any, g: int, n_arms: int, now: float) -> None:
    """Write into `p` and `q` what a candidate's samples at this time are drawn from."""
    rate = members.rate[g]
    if rate > 0.0 and now > members.clock[g]:
        fade(members, g, n_arms, math.exp(-rate * (now - members.clock[g])))
        members.clock[g] = now
    base = g * n_arms
    for i in range(n_arms):
        if members.kind[g] == 1:
            members.p[i] = members.prior_a[g] + members.first[base + i]
            members.q[i] = members.prior_b[g] + members.second[base + i]
        else:
            pulls = members.weight[g] * members.first[base + i]
            spread = members.tau_max[g]
            if pulls * spread * spread > 1.0:
                spread = 1.0 / math.sqrt(pulls)
            members.p[i] = members.second[base + i]
            members.q[i] = spread


class FamilyPlayer:
    """A family at work on a log, piece by piece, compiled if Numba is there."""

    def __init__(
        self,
        candidates: Sequence[Candidate],
        n_arms: int,
        start: float,
        own: bool,
        keys: Sequence[int],
        compiled: bool = True,
    ) -> None:
        self.size = len(candidates)
        self.members = family(candidates, n_arms, start, own, keys)
        self.room: Room = room(n_arms)
        self._play: Any = play
        if compiled:
            from driftbandit.logs import machine

            self._play = machine.compiled(play, self.members, self.room, EMPTY)

    def advance(self, work: Work, begin: int, offset: int, accept_rate: float) -> int:
        """Play one piece; the number of events learnt from, in the order of `work.order`."""
        return int(self._play(self.members, work, self.room, begin, offset, accept_rate))


EMPTY = Work(*(np.zeros(0) for _ in Work._fields))
