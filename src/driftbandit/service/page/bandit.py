"""The page of one bandit: what the script fills, and what works without it."""

from typing import Any

from driftbandit.agent.explaining import can_explain
from driftbandit.half_life import spelt
from driftbandit.service.page.html import Markup, element

_RANGES = (("5 min", 300), ("15 min", 900), ("1 h", 3600), ("6 h", 21600), ("24 h", 86400), ("7 d", 604800), ("All", 0))

_NUMBERS = ("Shown", "Rewarded", "Rate", "Share", "Chance", "Believed mean", "± sd", "Reward")  # set flush right


def bandit_page(
    bandit: Any, arms: list[Any], admin: bool, held_back: bool, attention: list[str]
) -> list[Markup | None]:
    """Everything below the bar."""
    config = bandit.config
    options = [
        config.policy,
        None if config.half_life is None else f"half-life {spelt(config.half_life)}",
        f"floor {config.floor:g}",
        None if config.holdback == 0 else f"holdback {config.holdback:g}",
        None if config.wait is None else f"wait {spelt(config.wait)}, then {config.default:g}",
    ]
    data = {
        "id": "bandit",
        "data-bandit": bandit.name,
        "data-admin": "yes" if admin else None,
        "data-held-back": "yes" if held_back else None,  # else nobody need read the whole journal for the uplift
        "data-half-life": None if config.half_life is None else spelt(config.half_life),
    }
    return [
        element(
            "div",
            data,
            element("h1", None, bandit.name),
            element("p", {"class": "about", "id": "about"}, " · ".join(text for text in options if text)),
            element("ul", {"class": "attention"}, [element("li", None, text) for text in attention])
            if attention
            else None,
            element("p", {"id": "notice", "role": "status", "aria-live": "polite"}),
        ),
        _ranges(),
        element("fieldset", {"id": "legend"}, element("legend", None, "Arms shown")),
        element(
            "div",
            {"class": "charts"},
            _chart(
                "shares",
                "Share of each arm",
                "Of the decisions in each stretch of time; the floor and the holdback are part of it.",
            ),
            _chart(
                "beliefs",
                "Believed mean reward",
                "Line: what the policy believes. Band: one standard deviation. Dashed: the truth, in a demonstration.",
            ),
            _chart(
                "densities",
                "Beliefs now",
                "Where the next samples would fall: the more they overlap, the more the policy explores.",
            ),
            _chart(
                "weights",
                "Effective number of observations",
                "How much evidence is left after forgetting."
                + (f" It halves every {spelt(config.half_life)}." if config.half_life is not None else ""),
            ),
            _chart(
                "delays",
                "Delay of rewards",
                "Of the last 1,000 decisions; the line is `wait`, the age at which outcomes are learned.",
            ),
            element(
                "section",
                {"class": "chart", "aria-labelledby": "h-uplift"},
                element("h2", {"id": "h-uplift"}, "Uplift against the holdback"),
                element("div", {"id": "uplift"}, element("p", {"class": "note"}, "Not loaded yet.")),
            ),
        ),
        _believes() if can_explain(bandit.policy) else None,
        _arms(),
        _what_if(config),
        _table("recent", "Recent decisions", ["Time", "Arm", "By", "Reward", "Decision", "Why"]),
        _table("marks", "Changes, and alarms of the time shown", ["Time", "What", "Who"]),
        element(
            "section",
            None,
            element("h2", None, "Audit"),
            element("p", {"id": "audit"}, "Not loaded yet."),
            element("button", {"type": "button", "id": "prove"}, "Prove every decision again"),
        ),
        _admin(arms, hasattr(bandit.policy, "fade")) if admin else None,
        element(
            "dialog",
            {"id": "confirm", "aria-labelledby": "confirm-text"},
            element(
                "form",
                {"method": "dialog"},
                element("p", {"id": "confirm-text"}),
                element("button", {"value": "no", "autofocus": True}, "Cancel"),
                " ",
                element("button", {"value": "yes", "class": "do"}, "Do it"),
            ),
        ),
    ]


def _ranges() -> Markup:
    buttons = [
        element("button", {"type": "button", "data-seconds": seconds, "aria-pressed": "false"}, text)
        for text, seconds in _RANGES
    ]
    return element(
        "div",
        {"class": "ranges", "role": "group", "aria-label": "time range"},
        buttons,
        element("button", {"type": "button", "id": "pause", "aria-pressed": "false"}, "Pause"),
        element("span", {"id": "range", "class": "note"}),
    )


def _chart(name: str, title: str, note: str) -> Markup:
    return element(
        "section",
        {"class": "chart", "aria-labelledby": f"h-{name}"},
        element("h2", {"id": f"h-{name}"}, title),
        element("div", {"id": name, "class": "plot"}),
        element("p", {"class": "note"}, note),
    )


def _table(name: str, title: str, head: list[str], note: str = "") -> Markup:
    return element(
        "section",
        None,
        element("h2", None, title),
        element(
            "div",
            {"class": "scroll"},
            element(
                "table",
                {"id": name},
                element(
                    "thead",
                    None,
                    element(
                        "tr",
                        None,
                        [
                            element("th", {"scope": "col", "class": "number" if text in _NUMBERS else None}, text)
                            for text in head
                        ],
                    ),
                ),
                element("tbody"),
            ),
        ),
        element("p", {"class": "note"}, note) if note else None,
    )


def _believes() -> Markup:
    return element(
        "section",
        {"aria-labelledby": "h-explanation"},
        element("h2", {"id": "h-explanation"}, "What the policy believes about the world"),
        element("p", {"id": "explanation"}, "Not loaded yet."),
    )


def _arms() -> Markup:
    head = ["Arm", "Shown", "Rewarded", "Rate", "Share", "Chance", "Believed mean", "± sd", "Effective observations"]
    note = (
        "Shown, rewarded, rate and share count the time range above: decisions, outcomes (defaults included), their "
        "mean reward, and the arm's part of all decisions. With wait, an outcome counts when its decision is that old. "
        "Chance and beliefs are those of this moment."
    )
    return _table("arms", "Arms now", head, note)


def _what_if(config: Any) -> Markup:
    half = None if config.half_life is None else spelt(max(1_000_000, config.half_life // 4))
    return element(
        "section",
        {"id": "whatif"},
        element("h2", None, "What if I forgot faster?"),
        element(
            "p",
            {"class": "note"},
            "The same journal, learnt by another policy or with another half-life. Nothing is changed.",
        ),
        element(
            "form",
            {"id": "whatif-form"},
            element(
                "label",
                None,
                "Policy ",
                element("input", {"name": "policy", "value": config.policy, "size": 44, "maxlength": 500}),
            ),
            " ",
            element(
                "label",
                None,
                "Half-life ",
                element("input", {"name": "half_life", "value": half or "none", "size": 10, "maxlength": 40}),
            ),
            " ",
            element("button", {"type": "submit"}, "Compare"),
        ),
        element("p", {"id": "whatif-state", "role": "status"}),
        element(
            "div",
            {"class": "charts", "id": "whatif-charts", "hidden": True},
            _chart("as-it-is", "As it is", "Believed mean reward with the policy that decides."),
            _chart("instead", "Instead", "Believed mean reward with the other one."),
        ),
    )


def _admin(arms: list[Any], fades: bool) -> Markup:
    def chooser(name: str) -> Markup:
        return element(
            "select",
            {"name": "arm", "aria-label": name},
            [element("option", {"value": place}, str(arm)) for place, arm in enumerate(arms)],
        )

    def form(action: str, label: str, *inside: Any) -> Markup:
        return element(
            "form", {"class": "admin", "data-action": action}, *inside, element("button", {"type": "submit"}, label)
        )

    return element(
        "section",
        {"id": "admin"},
        element("h2", None, "Change it"),
        element("p", {"class": "note"}, "Each of these asks once more, and is a record in the journal."),
        form("fix", "Play this arm only", chooser("arm to fix")),
        form("release", "Let the policy choose again"),
        form(
            "add_arm",
            "Add this arm",
            element("input", {"name": "name", "aria-label": "name of the new arm", "maxlength": 200, "required": True}),
        ),
        form("retire_arm", "Retire this arm", chooser("arm to retire")),
        form(
            "half_life",
            "Set the half-life",
            element(
                "input",
                {
                    "name": "half_life",
                    "aria-label": "half-life",
                    "placeholder": "6 h",
                    "maxlength": 40,
                    "required": True,
                },
            ),
        )
        if fades
        else None,
    )
