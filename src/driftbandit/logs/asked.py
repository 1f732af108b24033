"""Any policy as a follower whose chances are read off its own choices: one loop over the events, compiled or not.

An estimate is linear in the chances, so averages over a few draws leave it unbiased; for policies whose choice is fixed
by what they know (all the upper confidence bounds) they are the exact chances but for ties. Where all draws have agreed
for a while two are enough: how many are taken depends on earlier events only, and the estimate stays unbiased."""

from typing import Any, NamedTuple

import numpy as np

from driftbandit.agent import Agent
from driftbandit.agent.choice import FAR, REDRAWS
from driftbandit.draws import Draws, round_key
from driftbandit.logs.candidates import Candidate
from driftbandit.logs.families import EMPTY, Work
from driftbandit.primitives import TIES, compilable, draw_from, index, teach

DRAWS = 16  # choices averaged where the chances are not known
CALM = 256  # events in a row at which all draws agreed, after which two are enough


class Place(NamedTuple):
    """How far a follower has come, and its scratch."""

    count: Any  # rewards learnt, choices asked for, events in a row without disagreement
    chance: Any  # of each arm
    scores: Any  # the policy's own, where the largest is chosen; else none


def place(state: Any, n_arms: int) -> Place:
    """At the beginning."""
    return Place(np.zeros(3, np.int64), np.zeros(n_arms), getattr(state, "scores", np.zeros(0)))


@compilable
def redrawn(policy: Any, state: Any, t: int, key: Any, decision: int, arm: int, scores: Any, allowed: Any) -> int:
    """The choice kept to the allowed arms, by the law of `agent.choice.kept_to`: the largest score among them where the
    choice was the largest of all; else the policy is asked again with other draws; else one of them drawn evenly."""
    n_arms = len(allowed)
    largest = len(scores) > 0
    for i in range(len(scores)):
        if scores[i] > scores[arm]:
            largest = False
    count = 0
    if largest:
        top = -1e300
        for i in range(n_arms):
            if allowed[i] and scores[i] > top:
                top = scores[i]
        for i in range(n_arms):
            if allowed[i] and scores[i] == top:
                count += 1
    else:
        top = 0.0
        for n in range(REDRAWS):
            again = policy.choose(state, t, Draws(round_key(key, FAR + FAR * (n + 1) + decision)))
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


def ask(
    policy: Any,
    state: Any,
    place: Any,
    work: Any,
    key: Any,
    own: int,
    own_key: Any,
    begin: int,
    offset: int,
    rate: float,
) -> int:
    """Follow the events from `begin` on, as `families.play` does; `key` is of the policy's draws, `own_key` of those
    that decide whether its own history holds an event."""
    learnt = 0
    n_arms = len(place.chance)
    for e in range(begin, len(work.time)):
        now = work.time[e]
        while learnt < len(work.order):
            w = work.order[learnt]
            if w >= e or work.known[w] > now or work.time[w] >= now:
                break
            if work.accept[w, 0] != 0:
                t = int(place.count[0])
                teach(policy, state, t, index(work.arm[w]), work.reward[w], Draws(round_key(key, t)))
                place.count[0] = t + 1
            learnt += 1
        draws = DRAWS if place.count[2] < CALM else 2
        for i in range(n_arms):
            place.chance[i] = 0.0
        allowed = work.allowed[min(e, len(work.allowed) - 1)]
        only = -1
        for i in range(n_arms):
            if allowed[i]:
                only = i if only == -1 else -2
        if only >= 0:
            place.chance[only] = 1.0
        else:
            for j in range(draws):
                t, decision = int(place.count[0]), int(place.count[1]) + j
                arm = policy.choose(state, t, Draws(round_key(key, decision)))
                if not allowed[arm]:
                    arm = redrawn(policy, state, t, key, decision, arm, place.scores, allowed)
                place.chance[arm] += 1.0 / draws
            place.count[1] += draws
        guess = 0.0
        most = 0.0
        for i in range(n_arms):
            guess += place.chance[i] * work.q[e, i]
            most = max(most, place.chance[i])
        if only < 0:
            place.count[2] = place.count[2] + 1 if most > 1.0 - 1e-9 else 0
        work.guess[e, 0] = guess
        work.at[e, 0] = place.chance[work.arm[e]]
        if own != 0:
            rng = Draws(round_key(own_key, offset + e - begin))
            drawn = draw_from(place.chance, rng.uniform(0))
            accepted = drawn == work.arm[e] and rng.uniform(1) * work.mu[e] < rate
            work.accept[e, 0] = 1 if accepted else 0
    return learnt


def must_be_asked(candidate: Candidate, n_arms: int) -> bool:
    """Does a policy count rewards and say neither what it believes nor its chances? Then only its choices tell."""
    policy = candidate.policy
    if candidate.half_life is not None or hasattr(policy, "with_world"):
        return False
    state, belief = policy.init(n_arms), getattr(policy, "belief", None)
    # A mixture integrates in milliseconds, and an event has microseconds: it is asked.
    told = belief is not None and not hasattr(belief(state), "chance_of_largest")
    return not told and not hasattr(state, "chances")


class AskedFollower:
    """One such policy at work on a log, as `generic.PolicyPlayer` would play it, in one loop."""

    size = 1

    def __init__(self, candidate: Candidate, n_arms: int, own: bool, key: int, compiled: bool = True) -> None:
        self.policy, self.state = candidate.policy, candidate.policy.init(n_arms)
        self.place = place(self.state, n_arms)
        self.own, self.own_key = int(own), np.uint64(key)
        self.key = np.uint64(Agent(self.policy, n_arms, seed=0)._stream.key)
        self._ask: Any = ask
        if compiled:
            from driftbandit.logs import machine

            self._ask = machine.compiled_policy(ask, self.policy, self.state, self.place, EMPTY, n_arms=n_arms)

    def advance(self, work: Work, begin: int, offset: int, accept_rate: float) -> int:
        """Play one piece, as `families.play` does."""
        with np.errstate(over="ignore"):
            return int(
                self._ask(
                    self.policy,
                    self.state,
                    self.place,
                    work,
                    self.key,
                    self.own,
                    self.own_key,
                    begin,
                    offset,
                    accept_rate,
                )
            )
