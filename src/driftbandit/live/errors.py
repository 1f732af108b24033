"""What can go wrong with a live bandit, by what the caller should do about it."""


class Unknown(ValueError):
    """There is no such decision or no such bandit in the journal."""


class Conflict(ValueError):
    """The same id was used before for something else; what was written first stands."""


class StoreError(OSError):
    """The store did not take or give the records. Nothing acknowledged is lost; send the call again with the same
    id."""


class Locked(StoreError):
    """Another process writes this file."""


class Damaged(ValueError):
    """This is not a journal, or not one that this version can read, or it was altered."""
