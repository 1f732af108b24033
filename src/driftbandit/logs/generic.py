"""Any policy as a follower of a log: its own `learn`, and its chances from its belief, its probabilities or its draws.

The way that fits all: arms that are not always available, beliefs, probabilities a policy keeps, a half-life by the
clock through its own `fade` and `take`, as in a live agent. `families` and `asked` are faster where they fit."""

from typing import Any

import numpy as np

from driftbandit.agent import Agent, clocked
from driftbandit.agent.choice import kept_to
from driftbandit.beliefs import NormalBelief
from driftbandit.draws import Draws, round_key
from driftbandit.half_life import SECOND, checked_half_life
from driftbandit.logs.asked import CALM, DRAWS
from driftbandit.logs.candidates import Candidate
from driftbandit.logs.families import Work
from driftbandit.logs.largest import BETA, NORMAL, chances_into, room
from driftbandit.primitives import draw_from
from driftbandit.state import to_arrays

_FOREVER = 1 << 59  # microseconds


class PolicyPlayer:
    """One policy at work on a log, through the agent's own player; compiled if asked for."""

    size = 1

    def __init__(
        self, candidate: Candidate, n_arms: int, own: bool, key: int, compiled: bool = True, start: float = 0.0
    ) -> None:
        policy = candidate.policy
        if hasattr(policy, "with_world"):
            raise ValueError(f"{candidate.label} looks into the world it plays in, and a log is none; leave it out.")
        self.policy, self.n_arms, self.own, self.key = policy, n_arms, own, np.uint64(key)
        self.by_clock = candidate.half_life is not None
        if candidate.half_life is not None:
            half_life = round(min(candidate.half_life * SECOND, _FOREVER))
            checked_half_life(half_life / SECOND, policy)
            self.agent = Agent(policy, n_arms, seed=0)
            self.player: Any = clocked.playing(
                policy, policy.init(n_arms), 0, half_life, round(start * SECOND), False, n_arms
            )
        else:
            self.agent = Agent(policy, n_arms, seed=0, compiled=compiled)
            self.player = self.agent._player
        self.calm = 0
        self.t = 0  # rewards learnt
        self.asked = 0
        self.chance = np.zeros(n_arms)
        self.everything = list(range(n_arms))
        self._room = room(n_arms)
        self._quadrature: Any = chances_into
        if compiled:
            from driftbandit.logs import machine

            self._quadrature = machine.compiled(chances_into, self._room)
        self.belief = getattr(policy, "belief", None)
        if self.belief is not None and hasattr(self.belief(policy.init(n_arms)), "chance_of_largest"):
            self.belief = None  # a mixture integrates in milliseconds, and an event has microseconds: it is asked
        self.drawn = self.belief is None and not hasattr(self.player.state, "chances")

    def advance(self, work: Work, begin: int, offset: int, accept_rate: float) -> int:
        """Play one piece, as `families.play` does."""
        learnt = 0
        full = len(work.allowed) == 1
        with np.errstate(over="ignore"):
            for e in range(begin, len(work.time)):
                while learnt < len(work.order):
                    w = work.order[learnt]
                    if w >= e or work.known[w] > work.time[e] or work.time[w] >= work.time[e]:
                        break
                    if work.accept[w, 0]:
                        if self.by_clock:
                            decided = round(float(work.time[w]) * SECOND)
                            self.player.learn_at(self.t, int(work.arm[w]), float(work.reward[w]), decided)
                        else:
                            self.player.learn(self.t, int(work.arm[w]), float(work.reward[w]))
                        self.t += 1
                    learnt += 1
                if self.by_clock:
                    self.player.look(round(float(work.time[e]) * SECOND))
                allowed = self.everything if full else np.flatnonzero(work.allowed[e]).tolist()
                chance = self.chances(allowed)
                arm = int(work.arm[e])
                work.at[e, 0] = chance[arm]
                work.guess[e, 0] = chance @ work.q[e]
                if self.own:
                    rng = Draws(round_key(self.key, offset + e - begin))
                    same = draw_from(chance, rng.uniform(0)) == arm
                    work.accept[e, 0] = same and rng.uniform(1) * work.mu[e] < accept_rate
        return learnt

    def chances(self, allowed: list[int]) -> np.ndarray:
        """The chance of each arm now, 0 for those not allowed."""
        out = self.chance
        if len(allowed) == 1:
            out[:] = 0.0
            out[allowed] = 1.0
        elif self.belief is not None:
            state = self.player.state
            if isinstance(state[0], list):
                state = to_arrays(state, self.policy.init(self.n_arms))
            belief = self.belief(state)
            first, second = (np.array(field, np.float64) for field in belief)
            if len(allowed) < self.n_arms:
                closed = np.ones(self.n_arms, bool)
                closed[allowed] = False
                second[closed] = -1.0
            kind = NORMAL if isinstance(belief, NormalBelief) else BETA
            self._quadrature(kind, first, second, self._room, out)
        else:
            self._asked_chances(allowed, out)
        return out

    def _asked_chances(self, allowed: list[int], out: np.ndarray) -> None:
        out[:] = 0.0
        if not self.drawn:
            self.player.choose(self.t, self.asked)
            self.asked += 1
            chances = np.asarray(self.player.state.chances)
            out[allowed] = chances[allowed] / chances[allowed].sum()
            return
        draws = DRAWS if self.calm < CALM else 2
        if len(allowed) == self.n_arms:
            arms = self.player.choose_many(self.t, self.asked, draws)
        else:
            arms = [kept_to(allowed, self.player, self.agent._stream, self.t, self.asked + n) for n in range(draws)]
        self.asked += draws
        for arm in arms:
            out[arm] += 1.0 / draws
        self.calm = self.calm + 1 if out.max() > 1.0 - 1e-9 else 0
