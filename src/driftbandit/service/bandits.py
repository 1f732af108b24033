"""The bandits of one journal, as a service has them: opened by their first request, closed when many others have been
used since; and their audits."""

import asyncio
import contextlib
import logging
import math
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any
from weakref import WeakValueDictionary

import msgspec

from driftbandit.bandit import Bandit
from driftbandit.bandit.asks import SetNote
from driftbandit.bandit.audit import audit_bandit
from driftbandit.bandit.inputs import Options, check_state
from driftbandit.bandit.opening import bandit_number, reading, writing
from driftbandit.bandit.records import check_name
from driftbandit.bandit.reports import View
from driftbandit.bandit.retention import purge
from driftbandit.bandit.settings import checked_policy, differences, first_config
from driftbandit.errors import NotFound, RecordConflict
from driftbandit.service.calls import read_arm, read_arms
from driftbandit.service.problems import HttpProblem, log, log_event
from driftbandit.service.types import AuditInfo, BanditOptions, NewBandit
from driftbandit.spec.half_life import SECOND

_IN_USE = 5.0  # seconds after its last request for which a bandit is not closed
_IDLE = 3600.0  # seconds (after `wait`) without a request, after which a bandit is closed
_AUDITS = 20  # that run or wait
_SECRET, _PROBE = "session secret", "readiness"  # names of texts in the journal
_TEMPLATE = "template "  # and the beginning of the names of its bandits
_TEMPLATES_LAST = 1.0  # seconds for which templates are kept in memory
_SPACE = 8_192  # bytes, written as twice as many characters


def library_policy(text: str, n_arms: int) -> Any:
    """The policy that a text names: one of the library's that can decide live and whose state is not too large."""
    from driftbandit.spec.parse import parse_policy

    policy = checked_policy(parse_policy(text))
    check_state(policy, n_arms)
    return policy


def _new_policy(policy: str | None, arms: list[Any] | None, features: Any) -> Any:
    return checked_policy(None, features=features) if policy is None else library_policy(policy, len(arms or [""]))


def read_options(body: BanditOptions) -> dict[str, Any]:
    """The options that a message gives, as Python has them."""
    names = (*Options.__annotations__, "policy", "add_arm", "retire_arm", "seed")
    given = {name: getattr(body, name) for name in body.__struct_fields__ if name in names}
    out = {name: value for name, value in given.items() if value is not msgspec.UNSET}
    arms = [name for name in ("baseline", "add_arm", "retire_arm") if out.get(name) is not None]
    return out | {name: read_arm(out[name]) for name in arms}


def read_new(body: NewBandit) -> tuple[str | None, list[Any] | None, dict[str, Any]]:
    """Policy, arms and options of a new bandit or of a template."""
    options = read_options(body)
    return options.pop("policy", None), read_arms(body.arms), options


class WatchedBandits:
    """The bandits of a journal that another program writes, for `driftbandit watch`. Nothing is written."""

    read_only = True

    def __init__(self, target: str, max_open: int = 5_000) -> None:
        self.target, self.max_open = target, max_open
        self.journal = reading(target)  # a connection for reading: the page and decisions do not wait for each other
        self._held: OrderedDict[str, Any] = OrderedDict()  # the one used last at the end
        self._opening: WeakValueDictionary[str, Any] = WeakValueDictionary()  # a lock for each name that is opened
        self._templates: tuple[float, list[NewBandit]] = (-math.inf, [])  # when they were read
        self._audits: dict[str, AuditInfo] = {}
        self._auditing = threading.Lock()
        self._lock = threading.Lock()  # of these tables: no bandit is opened or closed while it is held

    def _open(self, name: str) -> Any:
        return View(self.journal, name)

    @property
    def held(self) -> dict[str, Any]:
        """The bandits that are open, by name."""
        with self._lock:
            return dict(self._held)

    @property
    def lag(self) -> float:
        """How many seconds the open bandit that is furthest behind the journal is behind it now."""
        return max((bandit.lag for bandit in self.held.values()), default=0.0)

    def secret(self) -> bytes:
        """What signs the sessions of the page; one for this process only if the journal has none."""
        found = self.journal.note(_SECRET)
        return bytes.fromhex(found) if found else secrets.token_bytes(32)

    def names(
        self, key: Any, search: str = "", after: str = "", limit: int = 1000,
        labels: Mapping[str, str] | None = None, archived: bool = False,
    ) -> tuple[list[str], str | None]:  # fmt: skip
        """A page of the bandits that a key may read, and the name after which the next page begins."""
        among = () if "*" in key.bandits else key.bandits
        found = self.journal.names(search, after, limit + 1, among, labels, archived) if key.bandits else []
        return found[:limit], found[limit - 1] if len(found) > limit else None

    def get(self, name: str) -> Any:
        """The bandit of this name. Opening it reads its journal, so this may take a while."""
        found = self._touch(name)
        if found is not None:
            return found
        with self._lock_of(name):
            found = self._touch(name)
            if found is None:
                if self.journal.number(check_name(name)) is None:
                    raise NotFound(f"There is no bandit {name!r:.60} here; POST /v1/bandits makes one.")
                found = self._hold(name, self._open(name))
        self._close_some()
        return found

    async def find(self, name: str) -> Any:
        return self._touch(name) or await asyncio.to_thread(self.get, name)

    def _touch(self, name: str) -> Any:
        """The bandit of this name if it is open; it is now the one used last."""
        found = self._held.get(name)
        if found is not None:
            found.used = time.monotonic()
            with contextlib.suppress(KeyError):  # it has just been closed: the next call opens it again
                self._held.move_to_end(name)
        return found

    def _lock_of(self, name: str) -> Any:
        """Held while the bandit of this name is opened, so that one that opens slowly delays no other."""
        with self._lock:
            return self._opening.setdefault(name, threading.Lock())

    def _hold(self, name: str, bandit: Any) -> Any:
        """Keep a bandit open. The caller holds its lock, and then closes others."""
        bandit.used = time.monotonic()
        with self._lock:
            self._held[name] = bandit
        return bandit

    def _close_some(self) -> None:
        """Close the bandits that were not used for longest, if there are too many."""
        while len(self._held) > self.max_open:
            with self._lock:
                oldest = next(iter(self._held.values()))
                if time.monotonic() - oldest.used < _IN_USE:
                    return
                del self._held[oldest.name]
            oldest.close()

    def close_idle(self, seconds: float = _IDLE) -> None:
        """Close bandits without a request for so long since their last decision was settled."""
        now = time.monotonic()
        for name, bandit in self.held.items():
            if now - bandit.used > seconds + (bandit.stored.wait or 0) / SECOND:
                self.forget(name)

    @contextlib.contextmanager
    def borrow(self, name: str) -> Iterator[Any]:
        """A bandit for work that is no request: it counts as use of none, and one that was closed is closed again."""
        held = self._held.get(name)
        if held is not None:
            yield held
            return
        with closing(self._open(name)) as bandit:
            yield bandit

    def forget(self, name: str) -> None:
        """Close a bandit, if it is open."""
        with self._lock:
            bandit = self._held.pop(name, None)
        if bandit is not None:
            bandit.close()

    def templates(self) -> list[NewBandit]:
        """What new bandits are made like, as of the last second; the name of a template is the beginning of theirs."""
        read_at, found = self._templates
        if time.monotonic() - read_at > _TEMPLATES_LAST:
            read_at = time.monotonic()
            found = [msgspec.json.decode(text, type=NewBandit) for text in self.journal.notes(_TEMPLATE) if text]
            self._templates = read_at, found
        return found

    def queue(self) -> tuple[int, int]:
        """Nothing is written."""
        return 0, 0

    def last_audit(self, name: str) -> AuditInfo:
        """The last audit of a bandit since the start."""
        return self._audits.get(name, AuditInfo("never"))

    def begin_audit(self, name: str) -> AuditInfo:
        """Audit a bandit in the background, one at a time."""
        with self._lock:
            running = [other for other, found in self._audits.items() if found.state == "running"]
            if name not in running:
                if len(running) >= _AUDITS:
                    raise HttpProblem(429, "busy", f"{_AUDITS} audits are waiting; try again when they are done.")
                self._audits[name] = AuditInfo("running")
                # A daemon: an audit of a large journal does not keep the service from ending.
                threading.Thread(target=self._audit, args=(name,), daemon=True).start()
            return self._audits[name]

    def _audit(self, name: str) -> None:
        now = time.time_ns() // 1000
        try:
            with self._auditing, closing(reading(self.target)) as journal:
                report = audit_bandit(journal, name, bandit_number(journal, name))
            state = "differs" if report.differences else "proved in part" if report.unproved else "proved"
            counts, unproved = (report.decisions, report.events, report.snapshots), list(report.unproved[:20])
            self._audits[name] = AuditInfo(state, now, *counts, report.differences[:20], unproved)
        except Exception as error:
            log.error("the audit of %s failed: %s", name, error)
            self._audits[name] = AuditInfo("failed", now, differences=[str(error)[:500]])

    async def check(self, seconds: float) -> None:
        """Raise unless the journal can be read in time."""
        async with asyncio.timeout(seconds):
            await asyncio.to_thread(self.journal.note, _SECRET)

    def close(self) -> None:
        with self._lock:
            held, self._held = self._held, OrderedDict()
        for bandit in held.values():
            bandit.close()
        self.journal.close()


class Bandits(WatchedBandits):
    """The bandits of a journal that this process writes."""

    read_only = False

    def __init__(self, target: str, max_open: int = 5_000) -> None:
        self._opened = writing(target)
        try:
            super().__init__(target, max_open)
        except BaseException:
            self._opened.release()
            raise

    def _open(self, name: str) -> Any:
        return Bandit.open(self.target, name)

    async def find_or_make(self, name: str, who: str) -> Any:
        """The bandit of this name, which is made if a template allows it."""
        return self._touch(name) or await asyncio.to_thread(self._get_or_make, name, who)

    def _get_or_make(self, name: str, who: str) -> Any:
        try:
            return self.get(name)
        except NotFound:
            found = [template for template in self.templates() if name.startswith(template.name)]
            if not found:
                raise
            template = max(found, key=lambda one: len(one.name))
            by = f"{who}: template {template.name}"[:200]
            policy, arms, options = read_new(template)
            bandit, fresh = self.create(name, policy, arms, by, **options)
            if fresh:
                fields = {"operation": "create", "bandit": name, "key": who, "template": template.name}
                log_event(logging.INFO, "change", **fields)
            return bandit

    def set_template(self, template: NewBandit) -> None:
        """Add or replace a template, which must be one that a bandit can be made from."""
        check_name(template.name)
        policy, arms, options = read_new(template)
        if options.get("seed") is not None:
            raise ValueError("A template has no seed: its bandits would share their random numbers.")
        made = _new_policy(policy, arms, options.get("features"))
        first_config(made, arms, 0, "hash", options)
        self._write_template(template.name, msgspec.json.encode(template).decode())

    def remove_template(self, name: str) -> None:
        """Make no further bandits from a template; those that it made stay."""
        if not self.journal.note(_TEMPLATE + name):
            raise NotFound(f"There is no template {name!r:.60} here.")
        self._write_template(name, "")

    def _write_template(self, name: str, text: str) -> None:
        self.write([SetNote(_TEMPLATE + name, text, first=False)])
        self._templates = -math.inf, []

    def create(
        self, name: str, policy: str | None, arms: list[Any] | None, who: str, **options: Any
    ) -> tuple[Any, bool]:
        """The bandit of this name, and whether it is new. An existing one that differs is a conflict."""
        made = _new_policy(policy, arms, options.get("features"))
        if arms is None and not options.get("candidates"):
            raise ValueError("A bandit needs arms, or features and candidates: true.")
        with self._lock_of(name):
            fresh, bandit = self.journal.number(name) is None, self._touch(name)
            if bandit is None:
                if not fresh:
                    with contextlib.suppress(NotFound):  # another process is making it: the first one decides how
                        bandit = self._open(name)
                bandit = bandit or Bandit.open(self.target, name, made, arms, who=who, **options)
                self._hold(name, bandit)
        self._close_some()
        if not fresh:
            options.pop("seed", None)
            differ = differences(bandit.stored, options, made, arms)
            if differ:
                raise RecordConflict(
                    f"Bandit {name} exists and has {'; '.join(differ)}; PATCH /v1/bandits/{name} changes it."
                )
        return bandit, fresh

    def purge(self, name: str) -> None:
        """Delete the rest of a bandit whose deletion has begun."""
        self.forget(name)
        purge(self.journal, self._opened.writer, name)

    def write(self, asks: list[Any]) -> None:
        """Write into the journal, and wait until it is done."""
        self._opened.writer.submit(asks).wait()

    def secret(self) -> bytes:
        """What signs the sessions of the page. The first process makes it, and the journal keeps it for all others."""
        self.write([SetNote(_SECRET, secrets.token_hex(32), first=True)])
        return super().secret()

    async def check(self, seconds: float) -> None:
        """Raise unless the store writes a text of some length in time: a new one, as SQLite does not write the same."""
        ticket = self._opened.writer.submit([SetNote(_PROBE, os.urandom(_SPACE).hex(), first=False)])
        async with asyncio.timeout(seconds):
            await ticket.arrive()

    def queue(self) -> tuple[int, int]:
        """How many calls wait to be written, and the commits so far."""
        return self._opened.writer.waiting, self._opened.writer.commits

    def close(self) -> None:
        """Write what was requested, and close the journal."""
        super().close()
        self._opened.release()
