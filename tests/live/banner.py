"""A banner whose best arm depends on the device: what the tests of contexts share."""

from driftbandit import Bandit

ARMS = ["red", "green", "blue"]
FEATURES = {"device": ["mobile", "desktop"], "basket": "number", "member": "flag", "hour": "hour of day"}
HOUR = 3600 * 1_000_000
BEST = {"mobile": "red", "desktop": "green"}


def device(n: int) -> str:
    return ("mobile", "desktop")[n * 7 % 5 % 2]


def context(n: int) -> dict:
    return {"device": device(n), "basket": 10.0 * (n % 7), "member": n % 3 == 0}


def pay(n: int, arm: str) -> float:
    return 20.0 * (arm == BEST[device(n)]) + n % 4


def play(bandit, rounds: int, first: int = 0) -> list[str]:
    arms = []
    for n in range(first, first + rounds):
        decision = bandit.decide(f"d{n}", context=context(n))
        bandit.reward(decision, pay(n, decision.arm))
        arms.append(decision.arm)
        if n % 20 == 19:
            bandit.refresh()
    bandit.refresh()
    return arms


def made(target, **options):
    options = {"arms": ARMS, "features": FEATURES, "seed": 1, **options}
    return Bandit(**options) if target is None else Bandit.open(target, "banner", **options)
