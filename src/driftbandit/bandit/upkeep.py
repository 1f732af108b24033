"""What an owner does about the records of a bandit: drop old ones, erase an id, archive all of them."""

from typing import Any

from driftbandit.bandit.asks import EraseId, hide_id
from driftbandit.bandit.ids import check_id
from driftbandit.bandit.records import DAY, Decision
from driftbandit.bandit.retention import Pruned, prune
from driftbandit.bandit.verbs import Verbs
from driftbandit.errors import Archived, NotFound


class Upkeep(Verbs):
    """Dropping, erasing and archiving; `Bandit` adds how one is made, opened and closed."""

    def prune(self, exports: Any = None) -> Pruned:
        """Drop decisions and events older than `retention`, after proving them and, if `exports` is a folder, writing
        them to one Parquet file per day in it. Daily counts stay, and so does all that was learned. Without the option
        `retention`, nothing is dropped. A bandit that was archived more than a day ago is deleted, if `exports` is
        given, and all of it is written to a file there before."""
        self._need_journal("prune")
        return prune(self._replica, self.name, exports)

    def erase(self, id: str | Decision, *, who: str = "") -> bool:
        self._need_journal("erase")
        id = check_id(id)
        hidden = hide_id(self._fold.config, id)
        found = self._journal.standing(self._number, [id, hidden])
        if hidden in found:
            return False
        if id not in found:
            raise NotFound(f"There is no decision {id!r:.140} to erase.")
        self._change("erase", lambda config: config._replace(erased=(config.erased or 0) + 1), who)
        with self._lock:
            self._recent.pop(id, None)
            call = self._writer.submit([EraseId(self._number, id, hidden)])
        return bool(call.wait()[0])

    def archive(self, *, who: str = "") -> None:
        self._need_journal("archive")
        if self._fold.config.archived is None:
            self._change(
                "archive", lambda config: config._replace(archived=config.archived or self._replica.now()), who
            )

    def unarchive(self, *, who: str = "") -> None:
        self._need_journal("unarchive")
        self._replica.catch_up()
        at = self._fold.config.archived
        if at is not None and self._replica.now() - at >= DAY:
            raise Archived(f"Bandit {self.name} was archived more than a day ago, and is being deleted.")
        if at is not None:
            self._change("unarchive", lambda config: config._replace(archived=None), who)

    def _need_journal(self, verb: str) -> None:
        if self._memory is not None:
            raise ValueError(f"{verb}() is for a bandit with a journal; this one is in memory.")
        self._replica.open_or_raise()
