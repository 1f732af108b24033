"""What can be changed about a bandit while it runs: each change is an event, with who and when."""

from collections.abc import Callable, Hashable
from typing import Any

from driftbandit.live import settings
from driftbandit.live.errors import Conflict
from driftbandit.live.journal import Configure
from driftbandit.live.opening import policy_classes
from driftbandit.live.records import Change, Config
from driftbandit.live.reports import Reports
from driftbandit.live.writer import Writer


class Changing(Reports):
    """The verbs that change a configuration."""

    who: str
    _writer: Writer

    def add_arm(self, arm: Hashable, *, who: str = "") -> None:
        """One more arm, about which nothing is known yet."""

        def add(config: Config) -> Config:
            names = [name for slot, name in enumerate(settings.names_of(config)) if slot not in config.retired]
            settings.checked_arms([*names, arm])
            return config._replace(arms=[*config.arms, settings.checked_arms([arm])[0]])

        self._change("add_arm", add, who)

    def retire_arm(self, arm: Hashable, *, who: str = "") -> None:
        """Never choose this arm again; rewards still to come are learnt. Its name may be used again for a new arm."""

        def retire(config: Config) -> Config:
            slot = settings.slot_of(config, settings.names_of(config), arm)
            if len(config.active) == 1:
                raise ValueError(f"Arm {arm!r:.60} is the last one; add another before retiring it.")
            if slot == config.fixed:
                raise ValueError(f"Arm {arm!r:.60} is fixed; release() it before retiring it.")
            return config._replace(retired=[*config.retired, slot])

        self._change("retire_arm", retire, who)

    def fix(self, arm: Hashable, *, who: str = "") -> None:
        """Play this arm from now on, whatever the policy thinks, until `release`."""
        self._change(
            "fix", lambda config: config._replace(fixed=settings.slot_of(config, settings.names_of(config), arm)), who
        )

    def release(self, *, who: str = "") -> None:
        """End `fix`."""
        self._change("release", lambda config: config._replace(fixed=None), who)

    def change(self, *, from_now: bool = False, who: str = "", **options: Any) -> None:
        """Change policy, half_life, floor, holdback, baseline, learn_holdback, wait or default; half_life=None and
        wait=None remove them.

        A new policy or half-life learns the whole journal again, as if it had been there from the start; with
        `from_now` a new policy begins with nothing, a new half-life with what is known now."""
        known = ("policy", "half_life", "floor", "holdback", "baseline", "learn_holdback", "wait", "default")
        wrong = [name for name in options if name not in known]
        if wrong or not options:
            raise ValueError(f"change() takes {', '.join(known)}; got {', '.join(wrong) or 'nothing'}.")
        if "policy" in options:
            self._replica.learn_classes(policy_classes(settings.checked_policy(options["policy"])))
        what = "change " + ", ".join(options)
        self._change(what, lambda config: settings.changed(config, self._fold.policy, options), who, from_now)

    def _change(self, what: str, edit: Callable[[Config], Config], who: str, from_now: bool = False) -> None:
        for _ in range(20):  # another process may change the configuration at the same moment: then once more on top
            try:
                self._configure(what, edit(self._fold.config), who, from_now)
                return
            except Conflict:
                self._replica.catch_up()
        raise Conflict("The configuration is being changed elsewhere all the time; try again.")

    def _configure(self, what: str, config: Config, who: str = "", from_now: bool = False) -> None:
        who = who or self.who
        if not isinstance(who, str) or len(who) > 200 or not settings.writable(who):
            raise ValueError(f"who is a text of at most 200 letters; got {who!a:.60}.")
        with self._lock:
            self._replica.open_or_raise()
            ask = Configure(
                self._number, self._fold.changes + 1, self._replica.now(), Change(what, who, from_now, config).text()
            )
            ticket = self._writer.submit([ask])
        answer = ticket.wait()[0]
        if isinstance(answer, BaseException):
            raise answer
        self._replica.catch_up(changes=ask.serial)
