"""The verbs of `driftbandit live` about several bandits: prune, move and template."""

import argparse
from typing import Any

from driftbandit.cli._shared import SERVE, need


def is_service(args: argparse.Namespace) -> bool:
    """Whether a service is meant and not a journal, which needs no key."""
    from driftbandit.bandit import opening

    if not opening.is_service(args.journal):
        if args.key is not None:
            raise ValueError("--key is for a service at http://...; a journal needs none.")
        return False
    need("httpx")
    return True


def prune(args: argparse.Namespace) -> Any:
    """Drop what is older than the retention of bandits."""
    if is_service(args):
        raise ValueError("A service drops what is older by itself: serve --exports FOLDER keeps it as Parquet files.")
    from driftbandit.bandit import Bandit
    from driftbandit.bandit.asks import PURGE
    from driftbandit.bandit.opening import writing
    from driftbandit.bandit.records import as_datetime
    from driftbandit.bandit.retention import purge, to_prune

    opened, found = writing(args.journal), {}
    try:
        for name in opened.journal.notes(PURGE):  # what was not finished
            purge(opened.journal, opened.writer, name)
        for name in [args.bandit] if args.bandit else to_prune(opened.journal):
            with Bandit.open(args.journal, name) as bandit:
                found[name] = bandit.prune(args.exports)
    finally:
        opened.release()
    rows = []
    for name, one in found.items():
        begins = "-" if one.until is None else f"{as_datetime(one.until):%Y-%m-%d}"
        rows.append([name, str(one.decisions), str(one.events), begins, one.note or "-"])
    return found, (["bandit", "decisions dropped", "events dropped", "begins with", "why not more"], rows)


def move(args: argparse.Namespace) -> Any:
    """Move bandits to another database, and note for nginx where each of them is."""
    from driftbandit.bandit.moving import Move, write_map
    from driftbandit.bandit.moving import move as move_all

    if (args.nginx_map is None) != (args.nginx_upstream is None):
        raise ValueError("--nginx-map FILE and --nginx-upstream NAME belong together.")
    found: list[Move] = []
    for one in move_all(args.journal, args.target, args.bandits, address=args.address):
        found.append(one)
        if args.nginx_map is not None:
            write_map(args.nginx_map, one.bandit, args.nginx_upstream)
    rows = [[one.bandit, str(one.decisions), str(one.events), f"{one.seconds:.3f} s" if one.moved else "moved before"]
            for one in found]  # fmt: skip
    return found, (["bandit", "decisions", "events", "undecided for"], rows)


def template(args: argparse.Namespace, options: dict[str, Any]) -> Any:
    """Set or remove a template, if one is named, and list all of them."""
    options = {word: value for word, value in options.items() if value is not None}
    if (options and (args.remove or args.bandit is None)) or (args.remove and args.bandit is None):
        raise ValueError("Expected a name with --arms and options, a name with --remove, or neither, for a list.")
    if not is_service(args):
        need(*SERVE)
    from driftbandit.service.templates import remove_template, set_template, templates

    if args.bandit is None:
        found = templates(args.journal, key=args.key)
    elif args.remove:
        found = remove_template(args.journal, args.bandit, key=args.key)
    else:
        found = set_template(args.journal, args.bandit, key=args.key, **options)
    rows = [[one["name"], ", ".join(map(str, one.get("arms") or ["candidates"])),
             ", ".join(f"{word} {value}" for word, value in one.items() if word not in ("name", "arms", "candidates"))]
            for one in found]  # fmt: skip
    return found, (["names that begin with", "arms", "options"], rows)
