"""A bandit of three buttons for the tests, a clock that is set by hand, and the audit as an assertion."""

from driftbandit import DiscountedTS
from driftbandit.bandit import Bandit
from driftbandit.bandit.audit import audit

ARMS = ["red", "green", "blue"]
HOUR = 3600 * 1_000_000


class Clock:
    """A clock that is set by hand."""

    def __init__(self, now: int = 1_700_000_000_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def opened(store, name="button", **options) -> Bandit:
    options = {"policy": DiscountedTS(), "arms": ARMS, "seed": 1, "reward_range": (0, 1), **options}
    return Bandit.open(store, name, options.pop("policy"), options.pop("arms"), **options)


def play(bandit: Bandit, rounds: int, first: int = 0) -> None:
    for n in range(first, first + rounds):
        decision = bandit.decide(f"d{n}")
        bandit.reward(decision.id, float((n * 7) % 5 < 2 + (ARMS.index(decision.arm) if decision.arm in ARMS else 0)))
    bandit.refresh()


def assert_proved(store) -> None:
    for report in audit(store):
        assert report.differences == []
