"""Every exception that is raised on purpose, by what the caller should do about it.

Wrong arguments are plain ValueErrors and TypeErrors, with a sentence about the allowed values."""

import contextlib
from collections.abc import Iterator


class DriftbanditError(Exception):
    """The base of all of them."""


class NotFound(DriftbanditError, ValueError):
    """There is no such decision, bandit or journal."""


class Archived(NotFound):
    """The bandit was archived: it decides no more, and is deleted after a day unless that is undone."""


class Moved(DriftbanditError, ValueError):
    """The bandit was moved to another database, and decides there."""

    def __init__(self, name: str, target: str = "") -> None:
        super().__init__(f"Bandit {name} was moved to {target}; send this call there." if target else name)


class ContextError(DriftbanditError, ValueError):
    """A context or candidates that cannot be used. `public` is the sentence without what the caller gave, for logs."""

    def __init__(self, public: str, got: str = "", sentence: str = "") -> None:
        super().__init__(sentence or f"{public}{got}.")
        self.public = public


class RecordConflict(DriftbanditError, ValueError):
    """Something else is already stored under this id; it is kept."""


class DamagedJournal(DriftbanditError, ValueError):
    """This is not a journal, or not one that this version can read, or it was altered."""


class StoreError(DriftbanditError, OSError):
    """The store did not accept or return the records. Nothing acknowledged is lost; send the call again with the same
    id."""


class JournalLocked(StoreError):
    """Another process writes this file."""


class JournalReplaced(StoreError):
    """The database behind this address is not the one that was opened."""


class StoreBusy(StoreError):
    """More requests wait than the store can take; try again in a moment."""


class AccessDenied(DriftbanditError, PermissionError):
    """A service was given no valid key (status 401), or one that does not allow this (status 403)."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class SpecError(DriftbanditError, ValueError):
    """A text that does not describe a policy, environment or reward law."""


class StudyError(SpecError):
    """A mistake in a study file; the message names the file and the place in it."""


class PolicyError(DriftbanditError, TypeError):
    """A user's policy is wrong; the message has the place and the remedy."""


class NotCompiled(DriftbanditError, TypeError):
    """A user's policy or environment that can only be interpreted; the message has the line and the reason."""


class WorkerError(DriftbanditError, OSError):
    """The library of the workers is missing, they have other code, or their cluster failed."""


class ResultError(DriftbanditError, ValueError):
    """A file that does not hold a complete result."""


class LogError(DriftbanditError, ValueError):
    """A log that cannot be used; the message has the reason, the row and the remedy."""


class NotComputed(DriftbanditError):
    """A claim needs a number that this run did not compute."""


class MissingPackage(DriftbanditError):
    """A package of an extra is needed and not installed."""


@contextlib.contextmanager
def report_damage() -> Iterator[None]:
    """While a journal is read: report a row that cannot be right, such as one with the 200th of three arms, as a
    DamagedJournal."""
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError, OverflowError, UnicodeDecodeError) as error:
        text = " ".join(str(error).split())
        raise DamagedJournal(
            f"The journal is damaged: a row holds an impossible value ({type(error).__name__}: {text:.80}); "
            "`driftbandit audit` names the place."
        ) from error
