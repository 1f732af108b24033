"""What can go wrong with a live bandit, by what the caller should do about it."""

import contextlib
from collections.abc import Iterator


class Unknown(ValueError):
    """There is no such decision or no such bandit in the journal."""


class Conflict(ValueError):
    """The same id was used before for something else; what was written first is kept."""


class StoreError(OSError):
    """The store did not accept or return the records. Nothing acknowledged is lost; send the call again with the same
    id."""


class Locked(StoreError):
    """Another process writes this file."""


class Damaged(ValueError):
    """This is not a journal, or not one that this version can read, or it was altered."""


@contextlib.contextmanager
def damage_told() -> Iterator[None]:
    """While a journal's own rows are read: anything impossible, such as the 200th of three arms, is damage, and is
    reported as such in one sentence."""
    try:
        yield
    except (KeyError, IndexError, TypeError, AttributeError, OverflowError, UnicodeDecodeError) as error:
        text = " ".join(str(error).split())
        raise Damaged(
            f"The journal is damaged: a row holds what cannot be ({type(error).__name__}: {text:.80}); "
            "`driftbandit audit` names the place."
        ) from error
