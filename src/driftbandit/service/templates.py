"""Templates in Python: what a service makes new bandits like, set in its journal or in the running service."""

import os
from collections.abc import Hashable, Iterable
from contextlib import closing
from typing import Any
from urllib.parse import quote

from driftbandit.bandit.inputs import checked_arms
from driftbandit.bandit.opening import is_service
from driftbandit.bandit.sending import Sender, write_options

_PATH = "/v1/templates"


def templates(target: str, *, key: str | None = None) -> list[dict[str, Any]]:
    """All templates in a journal, or those that a key of a service may read; `name` is the beginning of the names of
    the bandits that are made like one."""
    return _ask(target, key, None, None)


def set_template(
    target: str, name: str, arms: int | Iterable[Hashable] | None = None, *, key: str | None = None, **options: Any
) -> list[dict[str, Any]]:
    """Make every bandit that does not exist when it is asked for a decision, and whose name begins with `name`. Arms
    and options are those of `Bandit.open`. Returns all templates."""
    given = {} if arms is None else {"arms": checked_arms(arms)}
    return _ask(target, key, name, {"name": name, **given, **write_options(options)})


def remove_template(target: str, name: str, *, key: str | None = None) -> list[dict[str, Any]]:
    """Make no more bandits like this template; those that exist stay. Returns all other templates."""
    return _ask(target, key, name, None)


def _ask(target: str, key: str | None, name: str | None, body: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Set the template of this name, or remove it if there is no message; without a name, only list."""
    if is_service(target):
        with closing(Sender(target, key or os.environ.get("DRIFTBANDIT_KEY"), 10.0, 20.0)) as sender:
            if body is not None:
                sender.send("POST", _PATH, body)
            elif name is not None:
                sender.send("DELETE", f"{_PATH}/{quote(name, safe='')}")
            return list(sender.send("GET", _PATH)["templates"])
    import msgspec

    from driftbandit.service.bandits import Bandits, WatchedBandits
    from driftbandit.service.types import NewBandit

    wanted = None if body is None else msgspec.convert(body, NewBandit)
    if wanted is None:
        WatchedBandits(target).close()  # an error if there is no journal
    bandits: Any = WatchedBandits(target) if name is None else Bandits(target)
    with closing(bandits):
        if wanted is not None:
            bandits.set_template(wanted)
        elif name is not None:
            bandits.remove_template(name)
        return [msgspec.to_builtins(one) for one in bandits.templates()]
