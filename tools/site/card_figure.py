"""The figure of a card: one column per small environment, each in a separate file, so that a narrow page can put them
below each other."""

from pathlib import Path
from typing import Any

import numpy as np

from driftbandit.lab.plots import thousands
from driftbandit.lab.summaries import t_interval
from tools.site import colours
from tools.site.behaviour import Behaviour, Seen
from tools.site.environments import ARMS, SmallEnvironment

WIDTH, ROW = 2.62, 1.0  # inches
_SMALL = 7.5


def save(
    short: str, mine: Behaviour, ts: Behaviour, environments: tuple[SmallEnvironment, ...], into: Path
) -> list[str]:
    """Draw one column per environment; the names of the files."""
    out = []
    shown = rows(mine)
    highest = max(seen.regret.mean(axis=0).max() for who in (mine, ts) for seen in who.seen)
    for environment, seen, beside in zip(environments, mine.seen, ts.seen, strict=True):

        def draw(
            figure: Any, environment: SmallEnvironment = environment, seen: Seen = seen, beside: Seen = beside
        ) -> None:
            axes = figure.subplots(len(shown), 1, sharex=True)
            figure.subplots_adjust(left=0.185, right=0.945, top=1 - 0.3 / _height(shown), bottom=0.42 / _height(shown),
                                   hspace=0.38)  # fmt: skip
            panels = {"means": _means, "shares": _shares, "belief": _belief, "alarms": _alarms}
            for panel, row in zip(axes, shown, strict=True):
                if row == "regret":
                    _regret(panel, short, seen, beside, highest)
                else:
                    panels[row](panel, environment, seen)
                panel.tick_params(labelsize=_SMALL, length=2)
                panel.set_xlim(0, environment.environment.horizon)
            figure.suptitle(
                f"{environment.name}: {environment.about}", fontsize=9, x=0.02, y=0.995, ha="left", va="top"
            )
            axes[-1].set_xlabel("round", fontsize=8, labelpad=1)
            axes[-1].set_xticks(np.linspace(0, environment.environment.horizon, 3))
            axes[-1].xaxis.set_major_formatter(thousands)

        out += colours.save(colours.drawn((WIDTH, _height(shown)), draw), into, f"{short}-{environment.name}")
    return out


def _height(shown: list[str]) -> float:
    return ROW * len(shown) + 0.55


def rows(mine: Behaviour) -> list[str]:
    """Belief where it has one, alarms where it gives some."""
    more = ["belief"] if len(mine.seen[0].mean) else ["alarms"] if any(len(seen.alarms) for seen in mine.seen) else []
    return ["means", "shares", *more, "regret"]


def _named(panel: Any, what: str) -> None:
    panel.set_title(what, fontsize=8, loc="left", pad=2)


def _means(panel: Any, environment: SmallEnvironment, seen: Seen) -> None:
    realised, horizon = environment.environment.realise(0), environment.environment.horizon
    starts = getattr(realised, "breakpoints", None)
    at = np.arange(0, horizon, max(horizon // 100, 1)) if starts is None else np.asarray(starts)
    table = realised.means(0, horizon)[np.append(at, horizon - 1)]
    at = np.append(at, horizon)
    _named(panel, "true means of the arms")
    for arm, colour in enumerate(colours.ARMS):
        panel.plot(at, table[:, arm], color=colour, linewidth=1.4,
                   drawstyle="default" if starts is None else "steps-post")  # fmt: skip
        panel.text(0.72 + 0.075 * arm, 1.03, ARMS[arm], color=colour, fontsize=8, fontweight="bold",
                   transform=panel.transAxes)  # fmt: skip
    panel.set_ylim(0, 1)
    panel.set_yticks([0, 0.5, 1])


def _shares(panel: Any, environment: SmallEnvironment, seen: Seen) -> None:
    _named(panel, "share of the plays")
    starts = np.append(0, seen.rounds)
    heights = np.vstack([seen.shares, seen.shares[-1]])
    below = np.zeros(len(starts))
    for arm, colour in enumerate(colours.ARMS):
        panel.fill_between(starts, below, below + heights[:, arm], step="post", color=colour, linewidth=0)
        below = below + heights[:, arm]
    panel.set_ylim(0, 1)
    panel.set_yticks([0, 0.5, 1])
    panel.grid(False)


def _belief(panel: Any, environment: SmallEnvironment, seen: Seen) -> None:
    _named(panel, "belief in one run, ± one sd")
    for arm, colour in enumerate(colours.ARMS):
        mean, sd = seen.mean[:, arm], seen.sd[:, arm]
        panel.fill_between(seen.at, mean - sd, mean + sd, color=colour, alpha=0.22, linewidth=0)
        panel.plot(seen.at, mean, color=colour, linewidth=1.0)
    panel.set_ylim(-0.15, 1.15)
    panel.set_yticks([0, 0.5, 1])


def _alarms(panel: Any, environment: SmallEnvironment, seen: Seen) -> None:
    _named(panel, f"alarms in {len(seen.regret)} runs")
    panel.scatter(seen.alarms[:, 1], seen.alarms[:, 0], s=5, color=colours.INK, marker="|", linewidth=1.2)
    panel.set_ylim(len(seen.regret), -1)
    panel.set_yticks([])


def _regret(panel: Any, short: str, seen: Seen, ts: Seen, highest: float) -> None:
    _named(panel, "regret")
    styles = {short: colours.look(short), "ts": colours.look("ts"), "oracle": colours.look("oracle")}
    curves = {short: seen.regret, "ts": ts.regret, "oracle": np.zeros_like(ts.regret)}
    for name, regret in curves.items():
        style = {"color": styles[name]["color"], "linestyle": styles[name]["linestyle"]}
        mean = regret.mean(axis=0)
        panel.plot(seen.rounds, mean, label=name, linewidth=2.0 if name == short else 1.2, **style)
        if len(regret) > 1 and mean.any():
            low, high = t_interval(regret)
            panel.fill_between(seen.rounds, low, high, color=style["color"], alpha=0.15, linewidth=0)
    panel.set_ylim(-0.03 * highest, 1.08 * highest if highest > 0 else 1)
    panel.legend(fontsize=_SMALL, loc="upper left", handlelength=2.2, borderpad=0.1, labelspacing=0.25)
