"""The page of a card, as MyST Markdown."""

import math
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from driftbandit.field.contest import number, ratio
from driftbandit.lab.summaries import interval
from tools.site import facts, standing
from tools.site.behaviour import Behaviour
from tools.site.colours import image
from tools.site.environments import ARMS, SmallEnvironment, brief

SECTIONS = (
    "What it assumes",
    "Parameters",
    "The rule",
    "State and cost",
    "How it behaves",
    "Late rewards",
    "In the field",
    "Source",
)
_MOST = 3  # kinds of environment named as strong or weak


def page(
    cls: Any, policy: Any, mine: Behaviour, ts: Behaviour, environments: Sequence[SmallEnvironment], into: Path
) -> str:
    """The whole card of a policy; `policy` is the one its theory makes for the first environment."""
    title, *rest = facts.paragraphs(cls) or [""]
    bodies = (
        _assumes(rest),
        _parameters(cls),
        _rule(cls),
        _state(cls, policy),
        _behaves(cls, mine, ts, environments),
        _late(mine, ts),
        _field(cls),
        _source(cls, into),
    )
    parts = [f"# {facts.find_short_name(cls)}", prose(title), _facts(cls, policy, rest)]
    for name, body in zip(SECTIONS, bodies, strict=True):
        parts += [f"## {name}", body]
    return "\n\n".join(part for part in parts if part) + "\n"


def prose(text: str) -> str:
    """A paragraph of a docstring as Markdown: what stands in backticks stays, and nothing else is taken for markup."""
    words = re.split(r"(`[^`]*`)", " ".join(text.split()))
    return "".join(part if part.startswith("`") else re.sub(r"([\\*_<>$\[\]|])", r"\\\1", part) for part in words)


def code(text: str) -> str:
    """A text as it is typed, also inside a table."""
    return "`" + text.replace("|", "\\|") + "`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [list(head), ["---"] * len(head), *map(list, rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _facts(cls: Any, policy: Any, rest: Sequence[str]) -> str:
    said = {
        "Class": code(f"{cls.__module__}.{cls.__name__}"),
        "Also known as": ", ".join(code(alias) for alias in getattr(cls, "aliases", {})),
        "How it forgets": prose(getattr(cls, "forgets", "")),
        "What it must be given": prose(getattr(cls, "knows", "")),
        "Rewards": rewards(cls),
        "Cost per round": prose(getattr(cls, "cost", "")),
        "Forgets by the clock": "yes, with `half_life`" if by_the_clock(cls) else "no, it counts rewards",
        "Propensities": "exact, from its belief" if hasattr(cls, "belief") else "",
        "Reference": prose(_reference(rest) or getattr(cls, "reference", "")),
    }
    rows = table(["", ""], ([f"**{name}**", value] for name, value in said.items() if value))
    return f"````{{container}} card-facts\n{rows}\n````"


def rewards(cls: Any) -> str:
    """Which rewards a policy can bear, in words."""
    said = getattr(cls, "rewards", "")
    return {"any": "any numbers", "": "as the wrapped policy" if _wraps(cls) else "not stated"}.get(said, f"in {said}")


def _wraps(cls: Any) -> bool:
    return "base" in getattr(cls, "_fields", ())


def by_the_clock(cls: Any) -> bool:
    """Can a live bandit make it forget by time?"""
    return hasattr(cls, "fade") and hasattr(cls, "take")


def _reference(rest: Sequence[str]) -> str:
    return next((part.removeprefix("Reference: ") for part in rest if part.startswith("Reference:")), "")


def _assumes(rest: Sequence[str]) -> str:
    out = []
    for part in rest:
        if part.startswith("Reference:"):
            continue
        shown = f"```pycon\n{part.strip()}\n```" if part.lstrip().startswith(">>>") else prose(part)
        out.append(shown)
    return "\n\n".join(out) or "Its class says no more about it."


def _parameters(cls: Any) -> str:
    given, makers = facts.given(cls), facts.makers(cls)
    rows = [[code(one.name), one.kind, code(one.default), prose(one.domain), prose(one.about)] for one in given]
    parts = [table(["parameter", "type", "default", "domain", "what it is"], rows) if rows else "It has none."]
    if makers:
        parts += ["Named constructors:", table(["text", "what it computes"], [[code(t), prose(a)] for t, a in makers])]
    return "\n\n".join(parts)


def _rule(cls: Any) -> str:
    lines = facts.formula(cls)
    if not lines:
        return "Its class states no formula."
    shown = " \\\\\n".join(lines)
    key = (
        "*i* and *j* are arms, *a* is the arm played in round *t*, *x* its reward, *K* the number of arms, *T* the "
        "horizon. An arrow is what learning does. Parameters stand under their names or their Greek letters."
    )
    return f"```{{math}}\n{shown}\n```\n\n{key}"


def _state(cls: Any, policy: Any) -> str:
    if hasattr(policy, "with_environment"):
        return "It plays in simulations only; its state cannot be saved."
    fields = facts.fields(policy)
    per_arm, fixed = sum(one.per_arm for one in fields), sum(one.fixed for one in fields)
    size = facts.bytes_of(policy.init(facts.FEW))
    rows = [[code(one.name), _count(one.per_arm), _count(one.fixed), prose(one.about)] for one in fields]
    parts = [
        f"{_count(per_arm)} numbers for each arm and {_count(fixed)} besides; {size:,} bytes with {facts.FEW} arms, as "
        f"{code(brief(policy))}.",
        table(["field", "numbers per arm", "besides", "what it holds"], rows),
    ]
    speed = facts.speed(facts.find_short_name(cls))
    arms = sorted(speed.alone | speed.lockstep)
    if arms:
        rows = [
            [name, *(f"{ns[k]:,.0f} ns" if k in ns else "-" for k in arms)]
            for name, ns in (("one run", speed.alone), ("in lockstep", speed.lockstep))
            if ns
        ]
        parts.append(
            f"One round in the simulator, choosing and learning, as `make bench` measured it on {facts.measured_on()}:"
        )
        parts.append(table(["arms", *map(str, arms)], rows))
    return "\n\n".join(parts)


def _count(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def _behaves(cls: Any, mine: Behaviour, ts: Behaviour, environments: Sequence[SmallEnvironment]) -> str:
    short, runs = facts.find_short_name(cls), len(mine.seen[0].regret)
    horizon = environments[0].environment.horizon
    images = []
    for environment in environments:
        alt = f"{short} in {environment.name}: true means, shares of the arms, and regret next to ts and the oracle"
        images.append(image(f"{short}-{environment.name}", alt))
    rows = []
    for environment, seen, beside in zip(environments, mine.seen, ts.seen, strict=True):
        own, other = (regret_of(one.regret) for one in (seen, beside))
        rows.append([environment.name, own, other, code(seen.policy)])
    return "\n\n".join(
        [
            f"Three environments of {len(ARMS)} arms and {horizon:,} rounds with rewards of 0 and 1, {runs} "
            f"runs each, the "
            "policy as its theory sets it for the horizon, changes and arms.",
            "````{container} card-environments\n" + "\n\n".join(images) + "\n````",
            table(["environment", "regret", "of ts", "set as"], rows),
            "Regret at the end, mean and half the width of its 95 % interval; the oracle's is 0.",
        ]
    )


def regret_of(values: Any) -> str:
    """A mean regret and half the width of its interval."""
    found = interval(values[:, -1] if values.ndim == 2 else values)
    half = (found.high - found.low) / 2
    return number(found.mean) + (f"\u00a0±\u00a0{number(half)}" if not math.isnan(half) else "")


def _late(mine: Behaviour, ts: Behaviour) -> str:
    if not mine.delays:
        return "It is not wrapped in `delayed`: it looks into the environment, or is `delayed` itself."
    rows = [["at once", regret_of(mine.seen[0].regret), regret_of(ts.seen[0].regret)]]
    for rounds, late, other in zip(mine.delays, mine.late, ts.late, strict=True):
        rows.append([f"{rounds} rounds late", regret_of(late), regret_of(other)])
    note = (
        "The same policy in the abrupt environment, which learns each reward later: the wrapper [delayed](delayed.md)."
    )
    return f"{note}\n\n{table(['rewards come', 'regret', 'of ts'], rows)}"


def _field(cls: Any) -> str:
    short = facts.find_short_name(cls)
    kinds = standing.kinds(short)
    if not kinds:
        return standing.absent(short)
    strong = [f"{one.kind} ({ratio(one.ratio)})" for one in kinds[:_MOST]]
    weak = [f"{one.kind} ({ratio(one.ratio)})" for one in reversed(kinds[-_MOST:])]
    rows = [[one.kind, str(one.environments), ratio(one.ratio), ratio(one.theory), code(one.setting)] for one in kinds]
    return "\n\n".join(
        [
            "Regret divided by that of the best policy tuned for the same environment with hindsight: 1 is as good. "
            "Geometric means over the environments of a kind, the policy at its best setting for each environment.",
            f"Strongest: {', '.join(strong)}. Weakest: {', '.join(weak)}.",
            table(["kind of environment", "environments", "best setting", "as theory says", "most often best"], rows),
        ]
    )


def _source(cls: Any, into: Path) -> str:
    own, twin, tests = facts.source(cls), facts.twin(cls), facts.tests(cls)
    parts = []
    if own is not None:
        parts.append(_listing("The policy", own, into))
    if twin is not None:
        parts.append(_listing("Its slow twin, which it is held against draw for draw", twin, into))
    else:
        parts.append("It has no slow twin.")
    if tests:
        parts.append("Tests: " + ", ".join(_link(path, into) for path in tests) + ".")
    return "\n\n".join(parts)


def _link(path: Path, into: Path) -> str:
    return f"[{path.name}]({_relative(path, into)})"


def _relative(path: Path, into: Path) -> str:
    return Path(os.path.relpath(path.resolve(), into.resolve())).as_posix()


def _listing(what: str, place: facts.Place, into: Path) -> str:
    """A link to a file, and the class folded up on the page itself."""
    return "\n\n".join(
        [
            f"{what}: `{place.name}` in {_link(place.path, into)}.",
            f"<details><summary>{place.name}</summary>",
            f"```{{literalinclude}} {_relative(place.path, into)}\n:language: python\n:pyobject: {place.name}\n```",
            "</details>",
        ]
    )
