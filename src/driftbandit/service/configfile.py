"""Bandits described in a file: made at the start if they are missing, changed if they differ.

[button]
policy = "ds-ts"
arms = ["red", "green", "blue"]
half_life = "6 h"
wait = "1 h"
"""

import tomllib
from pathlib import Path
from typing import Any

from driftbandit.live import settings
from driftbandit.live.settings import differences
from driftbandit.service.bandits import library_policy

_OPTIONS = (
    "half_life", "floor", "holdback", "baseline", "learn_holdback", "wait", "default", "learn", "reward_range",
    "outside",
)  # fmt: skip
_FIRST = ("reward_range", "outside")  # only for a new bandit
WHO = "configuration file"


def apply(path: str | Path, bandits: Any) -> list[str]:
    """Make the bandits of the file, or change those that differ; a line for each that was made or changed."""
    try:
        tables = tomllib.loads(Path(path).read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not valid TOML: {error}.") from None
    checked = {name: _checked(name, table) for name, table in tables.items()}
    return [line for name, table in checked.items() for line in _apply_table(bandits, name, table)]


def _checked(name: str, table: Any) -> dict[str, Any]:
    if not isinstance(table, dict) or "policy" not in table or "arms" not in table:
        raise ValueError(f"[{name}] needs a policy and arms.")
    wrong = [word for word in table if word not in ("policy", "arms", *_OPTIONS)]
    if wrong:
        raise ValueError(f"[{name}] has {wrong[0]!r}; allowed are policy, arms, {', '.join(_OPTIONS)}.")
    if "reward_range" in table:
        table["reward_range"] = tuple(table["reward_range"])
    return table


def _apply_table(bandits: Any, name: str, table: dict[str, Any]) -> list[str]:
    given = {word: table[word] for word in _OPTIONS if word in table}
    if bandits.journal.number(name) is None:
        bandits.create(name, table["policy"], table["arms"], WHO, **given)
        return [f"made {name}"]
    bandit = bandits.get(name)
    lines = []
    active = [settings.names_of(bandit.config)[slot] for slot in bandit.config.active]
    for arm in table["arms"]:
        if arm not in active:
            bandit.add_arm(arm, who=WHO)
            lines.append(f"{name}: added arm {arm!r}")
    for arm in active:
        if arm not in table["arms"]:
            bandit.retire_arm(arm, who=WHO)
            lines.append(f"{name}: retired arm {arm!r}")
    policy = library_policy(table["policy"], len(bandit.config.arms))
    changes = {
        word: value
        for word, value in {**given, "policy": policy}.items()
        if differences(
            bandit.config, {} if word == "policy" else {word: value}, value if word == "policy" else None, None
        )
    }
    fixed = [word for word in changes if word in _FIRST]
    if fixed:
        raise ValueError(
            f"{fixed[0]} of {name} cannot be changed, because the journal has its rewards; make a new bandit."
        )
    if changes:
        bandit.change(who=WHO, **changes)
        lines.append(f"{name}: changed {', '.join(changes)}")
    return lines
