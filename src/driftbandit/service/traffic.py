"""`driftbandit demo`: a service with traffic from environments whose best arm changes at once, or slowly, or depends on
the device and the hour. Time runs fast: a change every half minute."""

import asyncio
import math
import random
import tempfile
import time
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from driftbandit.bandit import Bandit
from driftbandit.environments import Abrupt, Smooth
from driftbandit.errors import StoreError
from driftbandit.policies import DriftLinTS
from driftbandit.service.server import ServerOptions, address, check_options, listen, make_service, run_service

_RATE = 40  # rounds of an environment per second
_HORIZON = 2 * 3600 * _RATE
_PHASE = 30 * _RATE  # rounds between two changes of the abrupt environment
_DAY, _DRIFT = 60 * _RATE, 600 * _RATE  # rounds of a day of the banners, and in which their best hours go round
_PAST = 96  # hours of the banners before the demonstration begins
_DECISIONS = 20  # per second and bandit
_DELAY = 0.4  # seconds, on average
_NEVER = 0.1  # share of decisions without a reward
_OPTIONS: dict[str, Any] = {"wait": "4 s", "default": 0.0, "floor": 0.05, "holdback": 0.1, "baseline": "uniform"}


class DemoBandit(NamedTuple):
    """A bandit of the demonstration: its environment, the names of its arms, its policy and its features."""

    name: str
    environment: Any
    arms: list[str]
    policy: str
    features: dict[str, Any] | None = None


class Banner:
    """Banners of which the best depends on the device, the hour and the daytime, and drifts.

    On mobile, one is best in one half of a day that takes a minute, as everything runs fast here, and another in the
    other half; these halves move. Such a daytime is given with each request. On a desktop, the hour of the real clock
    decides; its last days are played before the demonstration begins."""

    arms = ("bright", "calm", "bold")
    features: ClassVar[dict[str, Any]] = {
        "device": ["mobile", "desktop"],
        "daytime": ["night", "morning", "afternoon", "evening"],
        "basket": "number",
        "hour": "hour of day",
    }

    def context(self, t: int, chance: random.Random) -> dict[str, Any]:
        """The context of a visitor of this round. The basket does not matter."""
        device, basket = chance.choice(self.features["device"]), round(chance.expovariate(1.0 / 40.0), 2)
        return {"device": device, "daytime": self.features["daytime"][t * 4 // _DAY % 4], "basket": basket}

    def mean(self, t: int, arm: int, context: dict[str, Any] | None = None, hour: float = 0.0) -> float:
        """The mean reward of an arm in a context at an hour of the day, or of both devices together."""
        turn = math.cos(2.0 * math.pi * (t / _DAY - t / _DRIFT))
        mobile = (0.4 + 0.25 * turn, 0.4 - 0.25 * turn, 0.25)[arm]
        evening = math.cos(2.0 * math.pi * (hour - 20.0) / 24.0)
        desktop = (0.2, 0.35 + 0.2 * evening, 0.35 - 0.2 * evening)[arm]
        return (mobile + desktop) / 2.0 if context is None else mobile if context["device"] == "mobile" else desktop


def demo_bandits() -> list[DemoBandit]:
    """The bandits: the default policy first, then one that never forgets, another environment, and one with context."""
    abrupt: Any = Abrupt(n_arms=4, horizon=_HORIZON, phases=_HORIZON // _PHASE, instance="11")
    smooth = Smooth(n_arms=5, horizon=_HORIZON, sigma=2.0 * math.pi / (120 * _RATE))
    colours = ["red", "green", "blue", "gold"]
    return [
        DemoBandit("abrupt", abrupt.realise(0), colours, "drift-auto"),
        DemoBandit("abrupt-never-forgets", abrupt.realise(0), colours, "ts"),
        DemoBandit("smooth", smooth, [f"place {n}" for n in range(1, 6)], "drift-auto"),
        DemoBandit("banner", Banner(), list(Banner.arms), "drift-lin-ts", Banner.features),
    ]


class Traffic:
    """Traffic for some bandits: decides all the time, and rewards a moment later, or never."""

    def __init__(self, bandits: list[DemoBandit], seed: int) -> None:
        self._bandits = {one.name: one for one in bandits}
        self._began = time.time()
        self._random = random.Random(seed)

    def _round(self, seconds: float) -> int:
        return min(_HORIZON - 1, max(0, int((seconds - self._began) * _RATE)))

    def _means(self, one: DemoBandit, seconds: float) -> list[float]:
        t = self._round(seconds)
        more = () if one.features is None else (None, _hour(seconds))
        return [float(one.environment.mean(t, arm, *more)) for arm in range(len(one.arms))]

    def true_means(self, name: str, times: list[int]) -> list[list[float]] | None:
        """The means of a bandit's arms at these times (microseconds)."""
        one = self._bandits.get(name)
        return None if one is None else [self._means(one, at / 1e6) for at in times]

    async def start(self, service: Any) -> "asyncio.Future[Any]":
        """Begin; cancelling the returned future ends it."""
        for one in self._bandits.values():
            make = service.bandits.create
            options = {**_OPTIONS, "features": one.features}
            await asyncio.to_thread(make, one.name, one.policy, one.arms, "demo", **options)
        self._began = time.time()
        return asyncio.gather(*(self._play(service, one) for one in self._bandits.values()))

    async def _play(self, service: Any, one: DemoBandit) -> None:
        bandit = service.bandits.get(one.name)
        pending: list[tuple[float, str, float]] = []  # when a reward is due, of which decision, and its value
        while True:
            await asyncio.sleep(self._random.expovariate(_DECISIONS))
            now = time.time()
            t, context = self._round(now), None
            if one.features is not None:
                context = one.environment.context(t, self._random)
            due, pending = [r for r in pending if r[0] <= now], [r for r in pending if r[0] > now]
            try:
                for _, id, value in due:
                    service.metrics.rewards[one.name, await bandit.areward(id, value)] += 1
                decision = await bandit.adecide(context=context)
            except StoreError:  # the demonstration ends
                return
            service.metrics.decisions[one.name] += 1
            if self._random.random() >= _NEVER:
                more = () if context is None else (context, _hour(now))
                mean = one.environment.mean(t, one.arms.index(decision.arm), *more)
                value = 1.0 if self._random.random() < mean else 0.0
                pending.append((now + self._random.expovariate(1.0 / _DELAY), decision.id, value))


def _hour(seconds: float) -> float:
    return seconds % 86_400.0 / 3600.0


def play_banners_past(path: str, seed: int) -> None:
    """Let the last days of the banners have happened, with eight decisions every hour."""
    environment, chance, arms = Banner(), random.Random(seed), list(Banner.arms)
    now = [int(time.time() - _PAST * 3600.0) * 1_000_000]
    options = {**_OPTIONS, "features": Banner.features, "policy": DriftLinTS(), "who": "demo"}
    with Bandit.open(path, "banner", arms=arms, clock=lambda: now[0], **options) as bandit:
        for n in range(_PAST):
            now[0] += 3_600_000_000
            contexts: list[Any] = [environment.context(37 * _RATE * (8 * n + k), chance) for k in range(8)]
            rewards = []
            for decision, context in zip(bandit.decide_many(8, context=contexts), contexts, strict=True):
                mean = environment.mean(0, arms.index(decision.arm), context, _hour(now[0] / 1e6))
                rewards.append((decision, float(chance.random() < mean)))
            bandit.reward_many(rewards)


def demo(host: str, port: int, seed: int) -> None:
    """Run the demonstration until Ctrl-C; its journal is deleted."""
    with tempfile.TemporaryDirectory(prefix="driftbandit-demo-") as folder:
        options = ServerOptions(str(Path(folder) / "demo.db"), host, port)
        check_options(options)
        sock = listen(host, port)
        play_banners_past(options.journal, seed)
        traffic = Traffic(demo_bandits(), seed)
        service = make_service(options, traffic.true_means)
        print(f"the demonstration is at {address(sock)}  (dashed lines are the true means; Ctrl-C ends it)", flush=True)
        run_service(service, sock, options, traffic.start)
