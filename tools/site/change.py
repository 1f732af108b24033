"""DS-TS around a change: the run that the static figure and the page with sliders both show.

Two arms; halfway the good one becomes the worse one. Every number comes from the library: the simulator plays the run,
and the policy's own `learn` and `belief` say what it believed after each round."""

import itertools
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftbandit.environments import PhaseTable
from driftbandit.lab.engine.simulate import simulate
from driftbandit.policies import DiscountedTS
from tools.site import colours
from tools.site.behaviour import SEED, followed

HORIZON, CHANGE = 400, 200
ENVIRONMENT = PhaseTable(((0.8, 0.3), (0.2, 0.8)), (0, CHANGE), HORIZON)
RUN = 113  # of the first 300 one in which all that is to be seen happens, and soon
NAMES = "AB"
COLOURS = colours.ARMS[:2]
SHOWN = DiscountedTS(gamma=0.98, tau_max=0.2)  # of the static figure, and where the sliders begin


class Run(NamedTuple):
    """A run: who was played, what it paid, and the belief before each round and after the last."""

    arms: np.ndarray
    rewards: np.ndarray
    mean: np.ndarray  # (rounds + 1) × arms
    sd: np.ndarray


@cache
def path(policy: Any = SHOWN) -> Run:
    """The run of one policy in the environment above."""
    played = simulate(policy, ENVIRONMENT, 1, SEED, first_run=RUN, trajectories=True, compiled=False, progress=False)
    assert played.arms is not None
    assert played.rewards is not None
    arms, rewards = played.arms[0], played.rewards[0]
    _, mean, sd = followed(policy, ENVIRONMENT, arms, rewards, HORIZON, RUN)
    return Run(arms, rewards, mean, sd)


class Silence(NamedTuple):
    """A stretch of rounds in which an arm was not played, and the round in which it was tried again."""

    arm: int
    start: int
    end: int


def silences(arms: np.ndarray, arm: int) -> list[Silence]:
    """All of an arm's, between two plays."""
    plays = np.flatnonzero(arms == arm)
    return [Silence(arm, int(one) + 1, int(other)) for one, other in itertools.pairwise(plays) if other > one + 1]


def telling(run: Run) -> Silence:
    """The silence in which the spread grew most."""
    found = [silence for arm in range(len(NAMES)) for silence in silences(run.arms, arm)]
    return max(found, key=lambda one: run.sd[one.end, one.arm] - run.sd[one.start, one.arm])


def save(into: Path) -> list[str]:
    """Write the static figure."""
    return colours.save(colours.drawn((5.2, 5.0), _draw), into, "change")


def _draw(figure: Any) -> None:
    run = path()
    top, spread, plays = figure.subplots(3, 1, sharex=True, height_ratios=(3.4, 1.5, 0.5))
    figure.subplots_adjust(left=0.1, right=0.975, top=0.93, bottom=0.085, hspace=0.28)
    rounds, table = np.arange(HORIZON + 1), ENVIRONMENT.realise(0).means(0, HORIZON)
    for arm, colour in enumerate(COLOURS):
        mean, sd = run.mean[:, arm], run.sd[:, arm]
        top.fill_between(rounds, mean - sd, mean + sd, color=colour, alpha=0.22, linewidth=0)
        top.plot(rounds, mean, color=colour, linewidth=1.8, label=f"{NAMES[arm]}: discounted mean ± spread")
        top.plot(np.append(np.arange(HORIZON), HORIZON), np.append(table[:, arm], table[-1, arm]), color=colour,
                 linewidth=1.1, linestyle=(0, (4, 2)), label=f"{NAMES[arm]}: true mean")  # fmt: skip
        spread.plot(rounds, sd, color=colour, linewidth=1.6)
        here = np.flatnonzero(run.arms == arm)
        plays.vlines(here, arm - 0.38, arm + 0.38, color=colour, linewidth=1.0)
    for panel in (top, spread, plays):
        panel.axvline(CHANGE, color=colours.FAINT, linewidth=1.0, linestyle=(0, (2, 2)))
    _annotate(top, spread, run)
    top.set_title(f"DS-TS, gamma = {SHOWN.gamma}, tau_max = {SHOWN.tau_max}", loc="left", fontsize=10.5)
    top.set_ylim(-0.22, 1.45)
    top.set_yticks([0, 0.5, 1])
    top.legend(loc="upper center", ncols=2, fontsize=8, handlelength=2.4, columnspacing=1.4, borderpad=0.1)
    spread.set_title("spread of the samples", loc="left", fontsize=9, pad=3)
    spread.set_ylim(0, SHOWN.tau_max * 1.3)
    spread.set_yticks([0, 0.1, 0.2])
    plays.set_title("arm played", loc="left", fontsize=9, pad=3)
    plays.set_yticks([0, 1], list(NAMES))
    plays.set_ylim(1.6, -0.6)
    plays.grid(False)
    plays.set_xlabel("round", labelpad=1)
    plays.set_xlim(0, HORIZON)


def _annotate(top: Any, spread: Any, run: Run) -> None:
    """Words where things happen; the places come from the run."""
    arrow = {"arrowstyle": "-|>", "color": colours.INK, "linewidth": 0.9, "shrinkB": 2}
    top.text(CHANGE - 4, -0.15, "the environment changes", fontsize=8.5, ha="right")
    spread.axhline(SHOWN.tau_max, color=colours.FAINT, linewidth=0.9)
    spread.text(3, SHOWN.tau_max * 1.04, "tau_max", fontsize=8.5)
    arm, start, end = telling(run)
    name, middle = NAMES[arm], (start + end) // 2
    top.annotate(f"{name} is idle: its mean stays", (middle, run.mean[middle, arm]), (CHANGE + 5, -0.15), fontsize=8.5,
                 arrowprops=arrow)  # fmt: skip
    top.annotate(f"{name} is tried again", (end, run.mean[end, arm]), (end + 22, 0.03), fontsize=8.5,
                 arrowprops=arrow)  # fmt: skip
    spread.annotate(f"{name} is idle: its spread grows", (middle, run.sd[middle, arm]), (middle - 45, 0.04),
                    fontsize=8.5, arrowprops=arrow)  # fmt: skip
    other = 1 - arm
    first = int(np.flatnonzero(run.arms[CHANGE:] == other)[0]) + CHANGE
    top.annotate(f"{NAMES[other]} is tried, and pays", (first, run.mean[first, other]), (first - 112, 0.42),
                 fontsize=8.5, arrowprops=arrow)  # fmt: skip
