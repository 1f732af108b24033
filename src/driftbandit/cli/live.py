"""`driftbandit live`: create a bandit, decide, reward, inspect and change it from the command line.

A verb has its arguments in `_VERBS`, and a function that returns data for --json and the texts and tables that are
printed without it."""

import argparse
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from typing import Any, NamedTuple

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
      configuration, arms, beliefs and last decisions; without a name, all bandits. Also while the file is in use
  driftbandit live fix shop.db button red
      and `release` ends it
  driftbandit live change shop.db button --half-life "3 h" --floor 0.02 --label country=de --who "Ada, ticket 12"
      labels are for lists: show shop.db --label country=de
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
_CONFIG = "--policy --features --half-life --floor --holdback --baseline --wait --default --learn --retention --label"
_NEW = f"--arms --candidates --reward-range --goal {_CONFIG}"
_AMONG = "--context --candidates=JSON --available"
_ARGUMENTS: dict[str, dict[str, Any]] = {  # as argparse describes them
    "arm": {"metavar": "ARM"},
    "id": {"metavar": "ID"},
    "reward": {"type": float, "metavar": "REWARD"},
    "target": {"metavar": "TARGET", "help": "postgresql://..."},
    "bandits": {"metavar": "BANDIT", "nargs": "+", "help": 'names; "button:*" for all that begin with "button:"'},
    "--policy": {"metavar": "TEXT", "help": 'a policy, as "ds-ts(gamma=0.99)" (a new one: drift-auto)'},
    "--features": {"metavar": "JSON", "help": 'names and kinds: \'{"basket": "number"}\'; "none" ends it'},
    "--half-life": {"metavar": "TIME", "help": 'forget by the clock: "6 h"; "none" ends it'},
    "--floor": {"type": float, "metavar": "P", "help": "share of uniform play (default: 0.005)"},
    "--holdback": {"type": float, "metavar": "P", "help": "share that follows the baseline"},
    "--baseline": {"metavar": "ARM", "help": 'an arm, or "uniform"'},
    "--wait": {"metavar": "TIME", "help": 'a decision without reward gets the default after "1 h"'},
    "--default": {"type": float, "metavar": "X", "help": "that reward (default: 0)"},
    "--learn": {"choices": ["wait", "arrival"], "help": "when rewards are learned (default: after wait)"},
    "--retention": {"metavar": "TIME", "help": 'older decisions and events may be dropped: "90 d"'},
    "--label": {"metavar": "NAME=VALUE", "action": "append", "help": 'lists are filtered by it; "none" ends all'},
    "--arms": {"nargs": "+", "metavar": "ARM", "help": "the arms' names"},
    "--candidates": {"action": "store_true", "help": "no arms: every decision brings its own"},
    "--reward-range": {"nargs": 2, "type": float, "metavar": ("LOW", "HIGH"), "help": "refuse others"},
    "--goal": {"choices": ["maximise", "minimise"], "help": "of rewards (default: maximise)"},
    "--seed": {"type": whole(0), "metavar": "S", "help": "makes decisions with given ids repeatable"},
    "--who": {"default": "command line", "metavar": "TEXT", "help": "recorded with the change"},
    "--from-now": {"action": "store_true", "help": "do not learn the journal again"},
    "--add-arm": {"metavar": "ARM", "help": "one more arm"},
    "--like": {"metavar": "ARM", "help": "what is known of this arm is known of the one added"},
    "--mean": {"type": float, "metavar": "REWARD", "help": "mean reward of the arm added, as known"},
    "--worth": {"type": float, "metavar": "N", "help": "how many observations that is worth"},
    "--retire-arm": {"metavar": "ARM", "help": "never choose this arm again"},
    "--id": {"metavar": "ID", "help": "the decision's id; the same id gives the same decision"},
    "--context": {"metavar": "JSON", "help": "values of the features: '{\"basket\": 42}'"},
    "--candidates=JSON": {"metavar": "JSON", "help": 'what to choose among: \'{"a": {"price": 9.9}, ...}\''},
    "--available": {"nargs": "+", "metavar": "ARM", "help": "choose among these"},
    "--add": {"action": "store_true", "help": "add it to what the decision has, until that is `wait` old"},
    "--part": {"metavar": "ID", "help": "with --add: the same part again counts once"},
    "--search": {"default": "", "metavar": "TEXT", "help": "only bandits whose name contains this"},
    "--archived": {"action": "store_true", "help": "those that are archived, not those that decide"},
    "--limit": {"type": whole(1), "default": 100, "metavar": "N", "help": "of bandits listed (default: 100)"},
    "--since": {"metavar": "TIME", "help": 'decisions of the last "7 days" only'},
    "--remove": {"action": "store_true", "help": "make no further bandits like it"},
    "--exports": {"metavar": "FOLDER", "help": "write what is dropped to Parquet files there, one per day"},
    "--address": {"default": "", "metavar": "URL", "help": "what callers of the source are told"},
    "--nginx-map": {"metavar": "FILE", "help": "write there which upstream serves each moved bandit"},
    "--nginx-upstream": {"metavar": "NAME", "help": "the upstream of the target, for --nginx-map"},
}


class _Verb(NamedTuple):
    text: str
    run: Callable[..., Any]  # of the arguments, and of the bandit if it opens one
    opens: str  # "write", "read" or "nothing"
    arguments: str = ""  # keys of `_ARGUMENTS`
    absent: str = ""  # which bandits are meant if none is named; if this is empty, the only one


def add_parser(subparsers: Any) -> None:
    """Describe the command and its verbs to argparse."""
    parser = add_example(subparsers, "live", "create a live bandit, decide, reward, inspect and change", _EXAMPLES)
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", dest="verb", required=True)
    for name, verb in _VERBS.items():
        made = verbs.add_parser(name, help=verb.text, description=verb.text[0].upper() + verb.text[1:] + ".")
        if name == "move":
            made.add_argument("journal", metavar="SOURCE", help="postgresql://..., or a SQLite journal not in use")
        else:
            add_bandit(made, "a SQLite journal, postgresql://..., or http://...", verb.absent)
            made.add_argument("--key", metavar="KEY", help="of a service at http://... (default: $DRIFTBANDIT_KEY)")
        for word in verb.arguments.split():
            made.add_argument(word.partition("=")[0], **_ARGUMENTS[word])
        add_option(made, "json")


def run(args: argparse.Namespace) -> None:
    """Run the verb."""
    verb = _VERBS[args.verb]
    if args.verb == "create" and args.bandit is None:
        raise ValueError("A new bandit needs a name: driftbandit live create JOURNAL BANDIT --arms A B.")
    if verb.opens != "nothing" and args.bandit is None and not verb.absent:
        from driftbandit.bandit.opening import only_bandit

        args.bandit = only_bandit(_names(args))
    if verb.opens == "nothing" or args.bandit is None:
        data, *shown = (verb.run if verb.opens == "nothing" else _show_all)(args)
    else:
        opened = _create(args) if args.verb == "create" else (_view if verb.opens == "read" else _open)(args)
        with opened as bandit:
            data, *shown = verb.run(args, bandit)
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


def _open(args: argparse.Namespace, name: str | None = None, **options: Any) -> Any:
    from driftbandit.bandit import Bandit

    is_service(args)
    who = getattr(args, "who", "")
    return Bandit.open(args.journal, name or args.bandit, key=args.key, who=who, **options)


def _view(args: argparse.Namespace, name: str | None = None) -> Any:
    """A bandit to be read, also while another process writes its journal."""
    from driftbandit.bandit.reports import View

    return _open(args, name=name) if is_service(args) else View(args.journal, name or args.bandit)


def _create(args: argparse.Namespace) -> Any:
    from driftbandit.bandit.opening import exists

    if (is_service(args) or exists(args.journal)) and args.bandit in _names(args, args.bandit):
        raise ValueError(f"Bandit {args.bandit!r} already exists in this journal; `live change` changes it.")
    return _open(args, **_options(args))


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """The options that were given; "none" removes one."""
    words = f"{_NEW} --seed --add-arm --retire-arm".split()
    given = {name: getattr(args, name, None) for name in (word[2:].replace("-", "_") for word in words)}
    given = {name: value for name, value in given.items() if value is not None and value is not False}
    out: dict[str, Any] = {name: None if value == "none" else value for name, value in given.items()}
    if out.get("features") is not None:
        out["features"] = _read_json(args, "features")
    if "reward_range" in out:
        out["reward_range"] = tuple(out["reward_range"])
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


# ---- verbs that write ------------------------------------------------------------------------------------------------


def _call(method: str, done: str, not_done: str = "") -> Callable[..., Any]:
    """The function of a verb that calls this method, and prints one of two sentences by what it returns."""

    def run(args: argparse.Namespace, bandit: Any) -> Any:
        given = {name: getattr(args, name) for name in ("arm", "id") if name in args}
        answer = getattr(bandit, method)(**given)
        sentence = done if answer or answer is None else not_done
        data = {"bandit": args.bandit, **given, args.verb: True if answer is None else answer}
        return data, sentence.format(**vars(args), answer=answer)

    return run


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


def _among(args: argparse.Namespace) -> dict[str, Any]:
    """What a call chooses among."""
    return {name: _read_json(args, name) for name in ("context", "candidates")} | {"available": args.available}


def _reward(args: argparse.Namespace, bandit: Any) -> Any:
    verdict = bandit.reward(args.id, args.reward, add=args.add, part=args.part)
    return {"id": args.id, "verdict": verdict}, verdict


# ---- verbs that read -------------------------------------------------------------------------------------------------


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
    options = {**({} if config.candidates else {"arms": config.arms}), **describe_options(config)}
    texts = {word: ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
             for word, value in options.items()}  # fmt: skip
    first = f"{name}: {describe_policy(config.policy, config.half_life)}"
    return "\n  ".join([first, *(f"{word}: {text}" for word, text in texts.items())])


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")


# ---- the table ------------------------------------------------------------------------------------------------------

_VERBS = {
    "create": _Verb("create a bandit", _created, "write", f"{_NEW} --seed --who"),
    "change": _Verb("change a bandit; a new policy or half-life learns the whole journal again", _change, "write",
                    f"{_CONFIG} --from-now --add-arm --like --mean --worth --retire-arm --who"),
    "decide": _Verb("choose an arm and record the decision", _decide, "write", f"--id {_AMONG}"),
    "reward": _Verb("report the outcome of a decision", _reward, "write", "id reward --add --part"),
    "fix": _Verb("play one arm from now on", _call("fix", "{bandit} plays {arm} until it is released"),
                 "write", "arm --who"),
    "release": _Verb("end fix", _call("release", "{bandit} is released",
                                      "{bandit} was not fixed; nothing was written"), "write", "--who"),
    "erase": _Verb("erase the id of a decision and its context; all else stays",
                   _call("erase", "erased", "it was erased before; nothing was written"), "write", "id --who"),
    "archive": _Verb("decide no more; after a day, prune exports and deletes the bandit",
                     _call("archive", "{bandit} decides no more; `live unarchive` undoes it within a day"),
                     "write", "--who"),
    "unarchive": _Verb("undo archive, within a day", _call("unarchive", "{bandit} decides again"), "write", "--who"),
    "clock": _Verb("let time advance again after a clock that was far ahead",
                   _call("resume_clock", "{bandit}: time advances, {answer} ahead of the clock",
                         "{bandit}: the clock is not behind; nothing was written"), "write", "--who"),
    "greedy": _Verb("show the arm with the best believed mean; nothing is recorded or learned", _greedy, "read",
                    _AMONG),
    "show": _Verb("show all bandits, or one with its arms and last decisions", _show, "read",
                  "--search --label --archived --limit", absent="all"),
    "changes": _Verb("list every change of a bandit: when, what and who", _changes, "read"),
    "uplift": _Verb("show the gain of the policy over the baseline", _uplift, "read", "--since"),
    "template": _Verb("list templates, set one, or remove it; a service makes new bandits like them",
                      lambda args: _fleet.template(args, _options(args)), "nothing", f"{_NEW} --remove", absent="all"),
    "prune": _Verb("drop what is older than the retention of a bandit; daily counts stay", _fleet.prune,
                   "nothing", "--exports", absent="all"),
    "move": _Verb("move bandits to another database while they decide; their decisions are proved there", _fleet.move,
                  "nothing", "target bandits --address --nginx-map --nginx-upstream"),
}  # fmt: skip
