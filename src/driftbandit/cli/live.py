"""`driftbandit live`: create a bandit, decide, reward, inspect and change it from the command line."""

import argparse
import json
from collections.abc import Iterator
from datetime import datetime
from itertools import islice, product
from typing import Any

from driftbandit.cli import _fleet
from driftbandit.cli._fleet import is_service
from driftbandit.cli._shared import add_bandit, add_example, add_option, print_json, print_table, whole
from driftbandit.core.checks import counted
from driftbandit.spec.half_life import describe_policy

_EXAMPLES = """\
  driftbandit live create shop.db button --policy ds-ts --arms red green blue --half-life "6 h"
  driftbandit live decide shop.db button
      prints the decision's id and its arm
  driftbandit live reward shop.db button ID 1.0
  driftbandit live create shop.db banner --arms red green --features '{"device": ["mobile", "desktop"]}'
      decisions are then made in a context: decide with --context '{"device": "mobile"}'
  driftbandit live show shop.db button
      its configuration, arms, beliefs and last decisions; without a name, all bandits. Also while another process uses
      the file
  driftbandit live fix shop.db button red
      and `release` ends it
  driftbandit live change shop.db button --half-life "3 h" --floor 0.02 --who "Ada, ticket 12"
  driftbandit live change shop.db button --label country=de --label page=home
      labels, by which lists can be filtered: show shop.db --label country=de
  driftbandit live template http://127.0.0.1:8000 banner: --arms red green --wait "1 h"
      the first decision of banner:de makes that bandit; without a name, all templates
  driftbandit live uplift shop.db button --since "7 days"
  driftbandit live prune shop.db --exports old
      drop what is older than each bandit's retention, after writing it to Parquet files

  driftbandit live move postgresql://a/bandits postgresql://b/bandits button "banner:*"
      to another database, while they decide; run it again if it was stopped

  driftbandit live fix http://127.0.0.1:8000 button red --key drb_...
      the same with a service, by a key that allows it; DRIFTBANDIT_KEY in the environment keeps it out of the history

A SQLite journal has one writing process: while a service holds it, give the service's address; only show, changes and
uplift work on the file as well.
"""
_OPTIONS: dict[str, dict[str, Any]] = {  # of `create` and `change`, as argparse describes them
    "policy": {"metavar": "TEXT", "help": 'a policy, as "ds-ts(gamma=0.99)" (a new one: drift-auto)'},
    "features": {"metavar": "JSON", "help": 'names and kinds: \'{"basket": "number"}\'; "none" ends it'},
    "half_life": {"metavar": "TIME", "help": 'forget by the clock: "6 h"; "none" ends it'},
    "floor": {"type": float, "metavar": "P", "help": "share of uniform play (default: 0.005)"},
    "holdback": {"type": float, "metavar": "P", "help": "share that follows the baseline"},
    "baseline": {"metavar": "ARM", "help": 'an arm, or "uniform"'},
    "wait": {"metavar": "TIME", "help": 'a decision without reward gets the default after "1 h"'},
    "default": {"type": float, "metavar": "X", "help": "that reward (default: 0)"},
    "learn": {"choices": ["wait", "arrival"], "help": "when rewards are learned (default: after wait)"},
    "retention": {"metavar": "TIME", "help": 'older decisions and events may be dropped: "90 d"'},
    "label": {"metavar": "NAME=VALUE", "action": "append", "help": 'lists can be filtered by it; "none" ends all'},
}


def add_parser(subparsers: Any) -> None:
    """Describe the command and its verbs to argparse."""
    parser = add_example(subparsers, "live", "create a live bandit, decide, reward, inspect and change", _EXAMPLES)
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", dest="verb", required=True)

    def verb(name: str, text: str, absent: str = "") -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        add_bandit(made, "a SQLite journal, postgresql://..., or http://...", absent)
        made.add_argument("--key", metavar="KEY", help="of a service at http://... (default: $DRIFTBANDIT_KEY)")
        add_option(made, "json")
        return made

    create = verb("create", "create a bandit")
    create.add_argument("--seed", type=whole(0), metavar="S", help="makes decisions with given ids repeatable")
    template = verb("template", "list templates, set one, or remove it; a service makes new bandits like them", "all")
    template.add_argument("--remove", action="store_true", help="make no further bandits like it")
    for made in (create, template):
        made.add_argument("--arms", nargs="+", metavar="ARM", help="the arms' names")
        made.add_argument("--candidates", action="store_true", help="no arms: every decision brings its own")
        made.add_argument("--reward-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help="refuse others")
        made.add_argument("--goal", choices=["maximise", "minimise"], help="of rewards (default: maximise)")
    change = verb("change", "change a bandit; a new policy or half-life learns the whole journal again")
    change.add_argument("--from-now", action="store_true", help="do not learn the journal again")
    change.add_argument("--add-arm", metavar="ARM", help="one more arm")
    change.add_argument("--like", metavar="ARM", help="what is known of this arm is known of the one added")
    change.add_argument("--mean", type=float, metavar="REWARD", help="mean reward of the arm added, as known")
    change.add_argument("--worth", type=float, metavar="N", help="how many observations that is worth")
    change.add_argument("--retire-arm", metavar="ARM", help="never choose this arm again")
    fix, release = verb("fix", "play one arm from now on"), verb("release", "end fix")
    fix.add_argument("arm", metavar="ARM")
    erase = verb("erase", "erase the id of a decision and its context; all else stays")
    erase.add_argument("id", metavar="ID")
    archive = verb("archive", "decide no more; after a day, prune exports and deletes the bandit")
    unarchive = verb("unarchive", "undo archive, within a day")
    clock = verb("clock", "let time advance again after a clock that was far ahead")
    for made in (create, change, fix, release, clock, erase, archive, unarchive):
        made.add_argument("--who", default="command line", metavar="TEXT", help="recorded with the change")
    for made, (name, described) in product((create, change, template), _OPTIONS.items()):
        made.add_argument(f"--{name.replace('_', '-')}", **described)
    prune = verb("prune", "drop what is older than the retention of a bandit; daily counts stay", absent="all")
    prune.add_argument("--exports", metavar="FOLDER", help="write what is dropped to Parquet files there, one per day")
    decide = verb("decide", "choose an arm and record the decision")
    decide.add_argument("--id", help="the decision's id; the same id gives the same decision")
    reward = verb("reward", "report the outcome of a decision")
    reward.add_argument("id", metavar="ID")
    reward.add_argument("value", type=float, metavar="REWARD")
    reward.add_argument("--add", action="store_true", help="add it to what the decision has, until that is `wait` old")
    reward.add_argument("--part", metavar="ID", help="with --add: the same part again counts once")
    greedy = verb("greedy", "show the arm with the best believed mean; nothing is recorded or learned")
    for made in (decide, greedy):
        made.add_argument("--context", metavar="JSON", help="values of the features: '{\"basket\": 42}'")
        made.add_argument("--candidates", metavar="JSON", help='what to choose among: \'{"a": {"price": 9.9}, ...}\'')
        made.add_argument("--available", nargs="+", metavar="ARM", help="choose among these")
    show = verb("show", "show all bandits, or one with its arms and last decisions", absent="all")
    show.add_argument("--search", default="", metavar="TEXT", help="only bandits whose name contains this")
    show.add_argument("--label", action="append", metavar="NAME=VALUE", help="only bandits with this label")
    show.add_argument("--archived", action="store_true", help="those that are archived, not those that decide")
    show.add_argument("--limit", type=whole(1), default=100, metavar="N", help="of bandits listed (default: 100)")
    verb("changes", "list every change of a bandit: when, what and who")
    _fleet.add_move(verbs)
    uplift = verb("uplift", "show the gain of the policy over the baseline")
    uplift.add_argument("--since", metavar="TIME", help='decisions of the last "7 days" only')


def run(args: argparse.Namespace) -> None:
    """Run the verb. Each returns data for --json, and the texts and tables to be printed without it."""
    if args.bandit is None and args.verb == "create":
        raise ValueError("A new bandit needs a name: driftbandit live create JOURNAL BANDIT --arms A B.")
    if args.bandit is None and args.verb not in ("show", "prune", "template"):
        from driftbandit.bandit.opening import only_bandit

        args.bandit = only_bandit(_names(args))
    if args.verb in ("prune", "move"):
        data, *shown = getattr(_fleet, args.verb)(args)
    elif args.verb == "template":
        data, *shown = _fleet.template(args, _options(args))
    elif args.verb in _WRITING:
        with _create(args) if args.verb == "create" else _open(args) as bandit:
            data, *shown = _WRITING[args.verb](args, bandit)
    elif args.bandit is None:
        data, *shown = _show_all(args)
    else:
        with _view(args, args.bandit) as view:
            data, *shown = _READING[args.verb](args, view)
    if args.json:
        print_json(data)
        return
    for part in shown:
        if isinstance(part, tuple):
            print_table(*part)
        else:
            print(part)


# ---- opening ---------------------------------------------------------------------------------------------------------


def _names(args: argparse.Namespace, search: str = "", **which: Any) -> Iterator[str]:
    """The bandits in a journal or a service whose name contains a text."""
    from driftbandit.bandit import Bandit

    is_service(args)
    return Bandit.names(args.journal, search=search, key=args.key, **which)


def _open(args: argparse.Namespace, *made: Any, name: str | None = None, **options: Any) -> Any:
    from driftbandit.bandit import Bandit

    is_service(args)
    who = getattr(args, "who", "")
    return Bandit.open(args.journal, name or args.bandit, *made, key=args.key, who=who, **options)


def _view(args: argparse.Namespace, name: str) -> Any:
    """A bandit to be read, also while another process writes its journal."""
    from driftbandit.bandit.reports import View

    return _open(args, name=name) if is_service(args) else View(args.journal, name)


def _create(args: argparse.Namespace) -> Any:
    from driftbandit.bandit.opening import exists

    options = _options(args)
    if (is_service(args) or exists(args.journal)) and args.bandit in _names(args, args.bandit):
        raise ValueError(f"Bandit {args.bandit!r} already exists in this journal; `live change` changes it.")
    limits = args.reward_range and tuple(args.reward_range)
    policy = options.pop("policy", None)
    options |= {"reward_range": limits, "goal": args.goal, "seed": args.seed, "candidates": args.candidates or None}
    return _open(args, policy, args.arms, **options)


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """The options that were given; "none" removes one."""
    given = {name: getattr(args, name, None) for name in (*_OPTIONS, "add_arm", "retire_arm")}
    out = {name: None if value == "none" else value for name, value in given.items() if value is not None}
    if out.get("features") is not None:
        out["features"] = _read_json(args, "features")
    if "label" in out:
        out["labels"] = _labels(out.pop("label"))
    return out


def _labels(texts: list[str] | None) -> dict[str, str] | None:
    from driftbandit.bandit.inputs import split_labels

    return None if texts == ["none"] else split_labels(texts or (), "=")


def _read_json(args: argparse.Namespace, name: str) -> Any:
    """An option that is given as JSON."""
    text = getattr(args, name)
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise ValueError(f"--{name} is JSON, such as '{{\"basket\": 42}}'; got {text!r:.60} ({error}).") from None


# ---- verbs -----------------------------------------------------------------------------------------------------------


def _created(args: argparse.Namespace, bandit: Any) -> Any:
    return {"bandit": args.bandit, "journal": args.journal}, f"made {_describe(args.bandit, bandit)}"


def _change(args: argparse.Namespace, bandit: Any) -> Any:
    options = _options(args)
    if not options:
        raise ValueError("Give a change: --policy, --features, --half-life, --floor, --holdback, --add-arm, ...")
    past = {name: value for name in ("like", "mean", "worth") if (value := getattr(args, name)) is not None}
    if past and (set(options) != {"add_arm"} or args.from_now):
        raise ValueError("--like, --mean and --worth go with --add-arm, and with no other change.")
    if past:
        bandit.add_arm(options["add_arm"], **past)
    else:
        bandit.change(from_now=args.from_now, **options)
    return {"bandit": args.bandit, "changed": True}, _describe(args.bandit, bandit)


def _decide(args: argparse.Namespace, bandit: Any) -> Any:
    decision = bandit.decide(args.id, **_among(args))
    return decision, f"{decision.id}  {decision.arm}  ({decision.how})"


def _reward(args: argparse.Namespace, bandit: Any) -> Any:
    verdict = bandit.reward(args.id, args.value, add=args.add, part=args.part)
    return {"id": args.id, "verdict": verdict}, verdict


def _fix(args: argparse.Namespace, bandit: Any) -> Any:
    bandit.fix(args.arm)
    return {"fixed": args.arm}, f"{args.bandit} plays {args.arm} until it is released"


def _release(args: argparse.Namespace, bandit: Any) -> Any:
    released = bandit.release()
    text = f"{args.bandit} is released" if released else f"{args.bandit} was not fixed; nothing was written"
    return {"fixed": None, "released": released}, text


def _clock(args: argparse.Namespace, bandit: Any) -> Any:
    ahead = bandit.resume_clock()
    still = "the clock is not behind; nothing was written"
    text = f"{args.bandit}: {f'time advances, {ahead.total_seconds():.0f} s ahead of the clock' if ahead else still}"
    return {"bandit": args.bandit, "ahead": ahead}, text


def _erase(args: argparse.Namespace, bandit: Any) -> Any:
    erased = bandit.erase(args.id)
    return {"erased": erased}, "erased" if erased else "it was erased before; nothing was written"


def _archive(args: argparse.Namespace, bandit: Any) -> Any:
    bandit.archive()
    return {"archived": args.bandit}, f"{args.bandit} decides no more; `live unarchive` undoes it within a day"


def _unarchive(args: argparse.Namespace, bandit: Any) -> Any:
    bandit.unarchive()
    return {"unarchived": args.bandit}, f"{args.bandit} decides again"


def _among(args: argparse.Namespace) -> dict[str, Any]:
    """What a call chooses among."""
    return {name: _read_json(args, name) for name in ("context", "candidates")} | {"available": args.available}


def _greedy(args: argparse.Namespace, view: Any) -> Any:
    from driftbandit.bandit.inputs import to_json_arm

    arm = view.greedy(**_among(args))
    return {"arm": to_json_arm(arm)}, str(arm)


def _uplift(args: argparse.Namespace, view: Any) -> Any:
    found = view.uplift(args.since)
    return found, str(found)


def _changes(args: argparse.Namespace, view: Any) -> Any:
    found = view.changes()
    return found, (["time", "what", "who"], [[_time(row["at"]), row["what"], row["who"] or "-"] for row in found])


def _show(args: argparse.Namespace, view: Any) -> Any:
    from driftbandit.bandit.beliefs import can_explain
    from driftbandit.bandit.inputs import to_json_arm
    from driftbandit.bandit.reporting import describe_options

    health, probabilities, recent, config = view.health(), _probabilities(view), view.recent(10), view.config
    explanation = view.explain() if can_explain(view.policy) else None
    arms = [{"arm": to_json_arm(arm), "probability": value} for arm, value in probabilities.items()]
    means = explanation and [{"arm": to_json_arm(arm), **one._asdict()} for arm, one in explanation.arms.items()]
    described = explanation and {**explanation._asdict(), "arms": means, "text": str(explanation)}
    chosen = {**config._asdict(), "policy": repr(config.policy)}
    data = {"config": chosen, "options": describe_options(config), "health": health, "probabilities": arms,
            "explanation": described, "recent": recent}  # fmt: skip
    counts = (
        f"{counted(health['decisions'], 'decision')}, {counted(health['rewards'], 'reward')}, "
        f"{counted(health['defaults'], 'default')}, {counted(health['late'], 'late reward')}, "
        f"{health['waiting']} waiting; plays {health['plays']}, {counted(health['cut'], 'reward')} cut"
    )
    notes = [str(text) for text in (health["delays"], *health["warnings"], explanation) if text]
    chances = [[str(arm), f"{value:.4f}"] for arm, value in probabilities.items()]
    rows = [[_time(one.decision.at), one.decision.id, str(one.decision.arm), one.decision.how,
             "-" if one.reward is None else f"{one.reward:g} ({one.kind})"] for one in recent]  # fmt: skip
    tables = (["arm", "probability"], chances), (["time", "decision", "arm", "how", "outcome"], rows)
    return data, _describe(args.bandit, view), counts, *notes, *tables


def _probabilities(view: Any) -> dict[Any, float]:
    """Each arm's probability of being chosen now; none, if every request has candidates."""
    return dict(view.probabilities()) if view.arms else {}


def _show_all(args: argparse.Namespace) -> Any:
    from driftbandit.bandit.inputs import to_json_arm

    found: list[dict[str, Any]] = []
    names = _names(args, args.search, labels=_labels(args.label), archived=args.archived)
    for name in islice(names, args.limit):
        with _view(args, name) as view:
            health, probabilities, policy = view.health(), _probabilities(view), view.policy
        leader = max(probabilities, key=lambda arm: probabilities[arm], default=None)
        found.append({"bandit": name, "policy": repr(policy), "decisions": health["decisions"],
                      "rewards": health["rewards"], "leader": to_json_arm(leader),
                      "probability": probabilities.get(leader)})  # fmt: skip
    rows = [
        [f"{cell:.3f}" if isinstance(cell, float) else "-" if cell is None else str(cell) for cell in row.values()]
        for row in found
    ]
    table = ["bandit", "policy", "decisions", "rewards", "leader", "probability"], rows
    more = ["... (--limit N shows more, --search TEXT finds others)"] if next(names, None) is not None else []
    return found, table, *more


def _describe(name: str, bandit: Any) -> str:
    """A bandit's configuration, a line for each part."""
    from driftbandit.bandit.reporting import describe_options

    config = bandit.config
    arms = {} if config.candidates else {"arms": config.arms}
    options = arms | describe_options(config)
    lists = {word: ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
             for word, value in options.items()}  # fmt: skip
    parts = [f"{word}: {value}" for word, value in lists.items()]
    return "\n  ".join([f"{name}: {describe_policy(config.policy, config.half_life)}", *parts])


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")


_WRITING = {"create": _created, "change": _change, "decide": _decide, "reward": _reward, "fix": _fix,
            "release": _release, "clock": _clock, "erase": _erase, "archive": _archive,
            "unarchive": _unarchive}  # fmt: skip
_READING = {"show": _show, "changes": _changes, "uplift": _uplift, "greedy": _greedy}
