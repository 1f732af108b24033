"""`driftbandit live`: make a bandit, ask it, pay it and look at it, from the command line."""

import argparse
import json
from datetime import UTC, datetime
from typing import Any

from driftbandit.checks import counted
from driftbandit.commands._output import print_json, print_table
from driftbandit.commands._shared import add_bandit, add_example, need_extra, whole
from driftbandit.half_life import policy_told

_EXAMPLES = """\
  driftbandit live create shop.db button --policy ds-ts --arms red green blue --half-life "6 h"
  driftbandit live decide shop.db button
      prints the decision's id and its arm
  driftbandit live reward shop.db button ID 1.0
  driftbandit live show shop.db button
      its configuration, arms, beliefs and last decisions; without a name, all bandits. Also while another process uses
      the file
  driftbandit live changes shop.db button
      every change of it: when, what and who
  driftbandit live fix shop.db button red
      and `release` ends it
  driftbandit live change shop.db button --half-life "3 h" --floor 0.02 --who "Ada, ticket 12"
  driftbandit live clock shop.db button
      after a clock that was far ahead: time goes on from the latest one in the journal
  driftbandit live uplift shop.db button --since "7 days"

  driftbandit live fix http://127.0.0.1:8000 button red --key drb_...
      the same of a service, by a key that allows it; DRIFTBANDIT_KEY in the environment keeps it out of the history

A SQLite journal has one writing process: while a service holds it, give the service's address; only show, changes and
uplift work on the file as well.
"""


def add_parser(subparsers: Any) -> None:
    """Describe the command and its verbs to argparse."""
    parser = add_example(subparsers, "live", "make a live bandit, decide, reward, look and change", _EXAMPLES)
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", dest="verb", required=True)

    def verb(name: str, text: str, absent: str = "") -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        add_bandit(made, "a SQLite journal, postgresql://..., or http://...", absent)
        made.add_argument("--key", metavar="KEY", help="of a service at http://... (default: $DRIFTBANDIT_KEY)")
        made.add_argument("--json", action="store_true", help="print JSON")
        return made

    create = verb("create", "make a bandit")
    create.add_argument("--policy", metavar="TEXT", help='a policy\'s text, "ds-ts(gamma=0.99)" (default: drift-ts)')
    create.add_argument("--arms", required=True, nargs="+", metavar="ARM", help="the arms' names")
    create.add_argument("--seed", type=whole(0), metavar="S", help="decisions with given ids are then repeatable")
    create.add_argument("--reward-range", nargs=2, type=float, metavar=("LOW", "HIGH"), help="(default: 0 1)")
    create.add_argument("--outside", choices=["refuse", "clip", "allow"], help="rewards outside the range")
    change = verb("change", "change a bandit; a new policy or half-life learns the whole journal again")
    change.add_argument("--policy", metavar="TEXT", help="a policy's text")
    change.add_argument("--from-now", action="store_true", help="do not learn the journal again")
    change.add_argument("--add-arm", metavar="ARM", help="one more arm")
    change.add_argument("--retire-arm", metavar="ARM", help="never choose this arm again")
    fix, release = verb("fix", "play one arm from now on"), verb("release", "end fix")
    fix.add_argument("arm", metavar="ARM")
    clock = verb("clock", "let time go on after a clock that was far ahead")
    for made in (create, change, fix, release, clock):
        made.add_argument("--who", default="command line", metavar="TEXT", help="who does it, for the record")
    for made in (create, change):
        made.add_argument("--half-life", metavar="TIME", help='forget by the clock: "6 h"; "none" ends it')
        made.add_argument("--floor", type=float, metavar="P", help="share of even play (default: 0.01)")
        made.add_argument("--holdback", type=float, metavar="P", help="share that follows the baseline")
        made.add_argument("--baseline", metavar="ARM", help='an arm, or "uniform"')
        made.add_argument("--wait", metavar="TIME", help='a decision without reward gets the default after "1 h"')
        made.add_argument("--default", type=float, metavar="X", help="that reward (default: 0)")
        made.add_argument("--learn", choices=["wait", "arrival"], help="when rewards are learned (default: after wait)")
    decide = verb("decide", "choose an arm, and write the decision down")
    decide.add_argument("--id", help="the decision's id; the same id is the same decision")
    decide.add_argument("--available", nargs="+", metavar="ARM", help="choose among these")
    reward = verb("reward", "report the outcome of a decision")
    reward.add_argument("id", metavar="ID")
    reward.add_argument("value", type=float, metavar="REWARD")
    verb("show", "show all bandits, or one with its arms and last decisions", absent="all")
    verb("changes", "every change of a bandit: when, what and who")
    uplift = verb("uplift", "what the policy brings over the baseline")
    uplift.add_argument("--since", metavar="TIME", help='decisions of the last "7 days" only')


def run(args: argparse.Namespace) -> None:
    """Do the verb."""
    if args.bandit is None and args.verb == "create":
        raise ValueError("A new bandit needs a name: driftbandit live create JOURNAL BANDIT --arms A B.")
    if args.bandit is None and args.verb != "show":
        from driftbandit.live.opening import only_bandit

        args.bandit = only_bandit(_names(args, made=True))
    _VERBS[args.verb](args)


def _options(args: argparse.Namespace) -> dict[str, Any]:
    names = ("half_life", "floor", "holdback", "baseline", "wait", "default", "learn")
    given = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    return {name: None if value == "none" else value for name, value in given.items()}


def _create(args: argparse.Namespace) -> None:
    from driftbandit.text.parse import parse_policy

    policy = None if args.policy is None else parse_policy(args.policy)
    if args.bandit in _names(args):
        raise ValueError(f"There is a bandit {args.bandit!r} in this journal already; `live change` changes it.")
    options = {**_options(args), "reward_range": args.reward_range and tuple(args.reward_range)}
    options |= {"outside": args.outside, "seed": args.seed}
    with _opened(args, policy, args.arms, **options) as bandit:
        config, policy = _config(bandit), bandit.policy
    if args.json:
        print_json({"bandit": args.bandit, "journal": args.journal})
    else:
        _print_config(f"made {args.bandit}", config, policy)


def _is_service(args: argparse.Namespace) -> bool:
    """Whether an address was given; then the client must be there."""
    if not args.journal.startswith(("http://", "https://")):
        if args.key is not None:
            raise ValueError("--key is for a service at http://...; a journal needs none.")
        return False
    need_extra("client", "httpx")
    return True


def _names(args: argparse.Namespace, made: bool = False) -> list[str]:
    """The bandits in a journal or a service; none if there is no journal yet, which is an error with `made`."""
    from driftbandit.live.errors import Unknown
    from driftbandit.live.opening import reading

    if _is_service(args):
        from driftbandit.client.sending import bandit_names

        return bandit_names(args.journal, args.key)
    try:
        found = reading(args.journal)
    except Unknown:
        if made:
            raise
        return []
    try:
        return list(found.bandits())
    finally:
        found.close()


def _opened(args: argparse.Namespace, *made: Any, **options: Any) -> Any:
    """The bandit, to be used."""
    who = getattr(args, "who", "")
    if _is_service(args):
        from driftbandit.client import Bandit as Served

        return Served.open(args.journal, args.bandit, *made, key=args.key, who=who, **options)
    from driftbandit.live import Bandit

    return Bandit.open(args.journal, args.bandit, *made, who=who, **options)


def _viewed(args: argparse.Namespace, name: str) -> Any:
    """The bandit, to be looked at."""
    from driftbandit.live.view import View

    return (
        _opened(argparse.Namespace(**{**vars(args), "bandit": name})) if _is_service(args) else View(args.journal, name)
    )


def _config(bandit: Any) -> Any:
    """The configuration, from a service too, which sends names and texts for slots and times."""
    from driftbandit.half_life import duration
    from driftbandit.live.records import Config

    found = bandit.config
    if isinstance(found, Config):
        return found
    arms = [*found["arms"], *found["retired"]]
    slots = {name: arms.index(found[name]) if found[name] in arms else None for name in ("baseline", "fixed")}
    times = {name: found[name] and duration(found[name], name) for name in ("half_life", "wait")}
    retired = list(range(len(found["arms"]), len(arms)))
    return Config(**{**{name: found.get(name) for name in Config._fields}, **slots, **times, "arms": arms,
                     "retired": retired, "reward_range": tuple(found["reward_range"])})  # fmt: skip


def _decide(args: argparse.Namespace) -> None:
    with _opened(args) as bandit:
        decision = bandit.decide(args.id, available=args.available)
    print_json(decision) if args.json else print(f"{decision.id}  {decision.arm}  ({decision.how})")


def _reward(args: argparse.Namespace) -> None:
    with _opened(args) as bandit:
        verdict = bandit.reward(args.id, args.value)
    print(json.dumps({"id": args.id, "verdict": verdict}) if args.json else verdict)


def _fix(args: argparse.Namespace) -> None:
    with _opened(args) as bandit:
        bandit.fix(args.arm)
    print(json.dumps({"fixed": args.arm}) if args.json else f"{args.bandit} plays {args.arm} until it is released")


def _release(args: argparse.Namespace) -> None:
    with _opened(args) as bandit:
        released = bandit.release()
    text = f"{args.bandit} was not fixed; nothing was written" if released is False else f"{args.bandit} is released"
    print(json.dumps({"fixed": None, "released": released is not False}) if args.json else text)


def _clock(args: argparse.Namespace) -> None:
    with _opened(args) as bandit:
        ahead = bandit.resume_clock()
    if args.json:
        print_json({"bandit": args.bandit, "ahead_s": ahead})
    elif ahead:
        print(f"{args.bandit}: time goes on, {ahead:.0f} s ahead of the clock")
    else:
        print(f"{args.bandit}: the clock is not behind; nothing was written")


def _change(args: argparse.Namespace) -> None:
    from driftbandit.text.parse import parse_policy

    options = _options(args)
    if args.policy:
        options["policy"] = parse_policy(args.policy)
    options |= {name: getattr(args, name) for name in ("add_arm", "retire_arm") if getattr(args, name) is not None}
    if not options:
        raise ValueError("Say what to change: --policy, --half-life, --floor, --holdback, --add-arm, ...")
    with _opened(args) as bandit:
        bandit.change(from_now=args.from_now, **options)
        config, policy = _config(bandit), bandit.policy
    if args.json:
        print_json({"bandit": args.bandit, "changed": True})
    else:
        _print_config(args.bandit, config, policy)


def _uplift(args: argparse.Namespace) -> None:
    with _viewed(args, args.bandit) as view:
        uplift = view.uplift(args.since)
    print_json(uplift) if args.json else print(uplift)


def _show(args: argparse.Namespace) -> None:
    from driftbandit.agent.explaining import can_explain
    from driftbandit.agent.inputs import to_json_arm
    from driftbandit.live.words import options_told

    if args.bandit is None:
        found: list[dict[str, Any]] = []
        for name in _names(args, made=True):
            with _viewed(args, name) as view:
                health, chances, policy, config = view.health(), view.probabilities(), view.policy, _config(view)
            leader = max(chances, key=lambda arm: chances[arm])
            found.append({"bandit": name, "policy": policy_told(policy, config.half_life),
                         "decisions": health["decisions"], "rewards": health["rewards"],
                         "leader": to_json_arm(leader), "chance": chances[leader]})  # fmt: skip
        if args.json:
            print_json(found)
        else:
            head = ["bandit", "policy", "decisions", "rewards", "leader", "chance"]
            print_table(head, [[f"{x:.3f}" if isinstance(x, float) else str(x) for x in row.values()] for row in found])
        return
    with _viewed(args, args.bandit) as view:
        health, chances, recent, config = view.health(), view.probabilities(), view.recent(10), _config(view)
        policy = view.policy
        believed = view.explain() if can_explain(policy) else None
    if args.json:
        arms = [{"arm": to_json_arm(arm), "chance": chance} for arm, chance in chances.items()]
        told = None if believed is None else _explained(believed)
        print_json({"config": config, "options": options_told(config), "health": health, "chances": arms,
                    "explanation": told, "recent": recent})  # fmt: skip
        return
    _print_config(args.bandit, config, policy)
    count = health["decisions"]
    print(f"{counted(count, 'decision')}, {counted(health['rewards'], 'reward')}, "
          f"{counted(health['defaults'], 'default')}, {counted(health['late'], 'late reward')}, "
          f"{health['waiting']} waiting, {health['clipped']} clipped")  # fmt: skip
    for sentence in [health["delays"], *health["warnings"]]:
        if sentence:
            print(sentence)
    if believed is not None:
        print(believed)
    print_table(["arm", "chance"], [[str(arm), f"{chance:.4f}"] for arm, chance in chances.items()])
    rows = [[_moment(o.decision.at), o.decision.id, str(o.decision.arm), o.decision.how,
             "-" if o.reward is None else f"{o.reward:g} ({o.kind})"] for o in recent]  # fmt: skip
    print_table(["time", "decision", "arm", "how", "outcome"], rows)


def _explained(believed: Any) -> dict[str, Any]:
    """What a policy believes, as JSON holds it."""
    from driftbandit.agent.inputs import to_json_arm

    told = dict(believed._asdict()) if hasattr(believed, "_asdict") else {}
    if "arms" in told:
        told["arms"] = [{"arm": to_json_arm(arm), **expected._asdict()} for arm, expected in told["arms"].items()]
    return {**told, "text": str(believed)}


def _print_config(title: str, config: Any, policy: Any) -> None:
    """A bandit's configuration, a line for each part."""
    from driftbandit.live.settings import names_of
    from driftbandit.live.words import sentences

    print(f"{title}: {policy_told(policy, config.half_life)}")
    names = names_of(config)
    print(f"  arms: {', '.join(str(names[slot]) for slot in config.active)}")
    for sentence in sentences(config):
        print(f"  {sentence}")


def _changes(args: argparse.Namespace) -> None:
    with _viewed(args, args.bandit) as view:
        found = view.changes()
    if args.json:
        print_json(found)
        return
    print_table(["time", "what", "who"], [[_moment(row["at"]), row["what"], row["who"] or "-"] for row in found])


def _moment(at: int) -> str:
    return datetime.fromtimestamp(at / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")


_VERBS = {
    "create": _create, "decide": _decide, "reward": _reward, "show": _show, "fix": _fix, "release": _release,
    "change": _change, "changes": _changes, "clock": _clock, "uplift": _uplift,
}  # fmt: skip
