"""An agent or a bandit as a notebook shows it."""

import html
from collections.abc import Mapping
from typing import Any

from driftbandit.checks import counted
from driftbandit.half_life import policy_told, spelt

_MOST = 20  # arms shown
_DRAWS = 200  # choices behind the chances of a policy that must be asked: enough for a bar


def table(agent: Any) -> str:
    """Policy, clock and each arm's chance now, as HTML that suits light and dark pages."""
    told = f"{counted(agent.decisions, 'decision')}, {counted(agent.rewards_learnt, 'reward')} learnt"
    told += f", floor {agent.floor:g}" if agent.floor > 0.0 else ""
    told += "" if agent.half_life is None else f", half-life {spelt(agent.half_life)}"
    return chances_table(policy_told(agent.policy, agent.half_life), told, agent.probabilities(draws=_DRAWS))


def chances_table(policy: str, told: str, chances: Mapping[Any, float]) -> str:
    """A policy, a line about it, and a bar for each arm."""
    rows = [
        f"<tr><td>{html.escape(str(arm)[:60])}</td><td style='text-align:right'>{chance:.1%}</td>"
        f"<td style='width:10em'><div style='width:{100.0 * chance:.1f}%;min-width:1px;height:.7em;"
        "background:#0072B2'></div></td></tr>"
        for arm, chance in list(chances.items())[:_MOST]
    ]
    more = f"<tr><td colspan='3'>and {len(chances) - _MOST} more</td></tr>" if len(chances) > _MOST else ""
    return (
        f"<div><code>{html.escape(policy[:200])}</code><br><small>{html.escape(told)}</small>"
        "<table><thead><tr><th>arm</th><th>chance now</th><th></th></tr></thead>"
        f"<tbody>{''.join(rows)}{more}</tbody></table></div>"
    )
