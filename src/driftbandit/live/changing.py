"""What can be changed about a bandit while it runs: each change is an event, with who and when."""

from collections.abc import Callable, Hashable
from typing import Any

from driftbandit.half_life import SECOND
from driftbandit.live import settings
from driftbandit.live.errors import Conflict
from driftbandit.live.journal import Configure
from driftbandit.live.opening import policy_classes
from driftbandit.live.records import Change, Config
from driftbandit.live.reports import Reports
from driftbandit.live.tables import log
from driftbandit.live.writer import Writer


class Changing(Reports):
    """The verbs that change a configuration."""

    who: str
    _writer: Writer

    def add_arm(self, arm: Hashable, *, who: str = "") -> None:
        """One more arm, about which nothing is known yet."""
        self._change("add_arm", lambda config: settings.with_arm(config, arm), who)

    def retire_arm(self, arm: Hashable, *, who: str = "") -> None:
        """Never choose this arm again; rewards still to come are learnt. Its name may be used again for a new arm."""
        self._change("retire_arm", lambda config: settings.without_arm(config, arm), who)

    def fix(self, arm: Hashable, *, who: str = "") -> None:
        """Play this arm from now on, whatever the policy thinks, until `release`."""
        self._change(
            "fix", lambda config: config._replace(fixed=settings.slot_of(config, settings.names_of(config), arm)), who
        )

    def release(self, *, who: str = "") -> bool:
        """End `fix`. Whether there was an arm to release: if not, nothing is written."""
        self._replica.catch_up()  # another process may have fixed one
        if self._fold.config.fixed is None:
            return False
        self._change("release", lambda config: config._replace(fixed=None), who)
        return True

    def change(self, *, from_now: bool = False, who: str = "", **options: Any) -> None:
        """Change policy, half_life, floor, holdback, baseline, learn_holdback, wait, default or learn; half_life=None
        and wait=None remove them. With add_arm and retire_arm among the options, all of it is one change: it is made
        whole or, if any part is refused, not at all.

        A new policy or half-life learns the whole journal again, as if it had been there from the start; with
        `from_now` a new policy begins with nothing, a new half-life with what is known now."""
        known = (
            "policy", "half_life", "floor", "holdback", "baseline", "learn_holdback", "wait", "default", "learn",
            "add_arm", "retire_arm",
        )  # fmt: skip
        wrong = [name for name in options if name not in known]
        if wrong or not options:
            raise ValueError(f"change() takes {', '.join(known)}; got {', '.join(wrong) or 'nothing'}.")
        if "policy" in options:
            self._replica.learn_classes(policy_classes(settings.checked_policy(options["policy"])))

        def edit(config: Config) -> Config:
            rest = dict(options)
            if "add_arm" in options:
                config = settings.with_arm(config, rest.pop("add_arm"))
            rest.pop("retire_arm", None)
            config = settings.changed(config, self._fold.player.policy, rest)
            return settings.without_arm(config, options["retire_arm"]) if "retire_arm" in options else config

        self._change("change " + ", ".join(options), edit, who, from_now)

    def resume_clock(self, *, who: str = "") -> float:
        """Let time go on after a clock that was far ahead for a moment: from the latest time in the journal, instead of
        standing still until the clock gets there. From then on the bandit's times are ahead of the clock by the seconds
        that this returns; 0.0 if the clock is not behind, and then nothing is written."""
        self._replica.catch_up()
        clock = self._replica.clock
        if clock.behind() <= clock.REPORTED:
            return 0.0
        self._change("clock", lambda config: config._replace(ahead=config.ahead + clock.behind()), who)
        return float(self._fold.config.ahead / SECOND)

    def _mark_arithmetic(self) -> None:
        """Write down that this version computes other bits than the one that wrote the journal so far. Everything is
        learned again with the present arithmetic, so a snapshot of the former is of no use."""
        replica = self._replica
        while self._fold.config.arithmetic != replica.arithmetic():
            was, now = self._fold.config.arithmetic, replica.arithmetic()
            try:
                self._configure(f"arithmetic {was} -> {now}", self._fold.config)
            except Conflict:
                replica.catch_up()
                continue
            replica.note = (
                f"Events up to {self._fold.n - 1} of this journal were written with other arithmetic ({was}); from "
                f"event {self._fold.n} on, {now} decides, and the audit cannot prove earlier decisions."
            )
            log.warning("Bandit %s: %s", self.name, replica.note)
        replica.settled = True

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
            config = config._replace(arithmetic=self._replica.arithmetic(config.policy))
            ask = Configure(
                self._number, self._fold.changes + 1, self._replica.now(), Change(what, who, from_now, config).text()
            )
            ticket = self._writer.submit([ask])
        answer = ticket.wait()[0]
        if isinstance(answer, BaseException):
            raise answer
        self._replica.catch_up(changes=ask.serial)
