"""Retry storm: every call is sent one to five times by eight clients in shuffled order; the state is that of sending
once."""

import os
import random
import threading

from driftbandit.live import Bandit, Unknown
from driftbandit.live.audit import audit
from driftbandit.live.drill.load import ARMS, reward_of
from driftbandit.live.drill.site import Finding, Site
from driftbandit.live.opening import reading
from driftbandit.live.records import REWARD
from driftbandit.policies.discounted_ts import DiscountedTS

_CLIENTS = 8


def retry_storm(site: Site, decisions: int, seed: int = 1) -> list[Finding]:
    """Send everything up to five times, then once, in the order in which the storm was accepted, and compare."""
    chance = random.Random(seed)
    ids = [f"s{n}" for n in range(decisions)]
    calls = [call for id in ids for verb in ("decide", "reward") for call in [(verb, id)] * chance.randint(1, 5)]
    chance.shuffle(calls)
    stormy = site.journal()
    with Bandit.open(stormy, "drill", DiscountedTS(), ARMS, seed=5, snapshot_every=500) as bandit:
        bandit.decide_many(["warm"])

        def client(part: list[tuple[str, str]]) -> None:
            while part:
                again = []
                for verb, id in part:
                    try:
                        bandit.decide(id) if verb == "decide" else bandit.reward(id, reward_of(id))
                    except Unknown:  # its decision is still to come
                        again.append((verb, id))
                part = again

        crew = [threading.Thread(target=client, args=(calls[n::_CLIENTS],)) for n in range(_CLIENTS)]
        for thread in crew:
            thread.start()
        for thread in crew:
            thread.join()
        bandit.refresh()
        state, learnt = bandit._fold.player.dump()["state"], bandit._fold.player.learned
        health = bandit.health()
    journal = reading(stormy)
    order = [event for _, event in journal.events(1) if event.kind == REWARD]
    journal.close()
    calm = os.path.join(site.folder, "calm.db")  # always a file: both stores lead to the same state
    with Bandit.open(calm, "drill", DiscountedTS(), ARMS, seed=5, floor=0.0) as once:
        for first in range(0, len(order), 1000):
            part = order[first : first + 1000]
            for slot, arm in enumerate(ARMS):  # the arms as the storm had them
                ids = [event.decision for event in part if event.slot == slot]
                if ids:
                    once.decide_many(ids, available=[arm])
            once.reward_many([(event.decision, event.value) for event in part])
        same = once._fold.player.dump()["state"] == state and learnt == decisions
    doubled = health["decisions"] - 1 - decisions + health["rewards"] - decisions
    proved = not any(report.differences for report in audit(stormy))
    result = f"{doubled} doubled, state {'as sending once, bit for bit' if same else 'DIFFERS'}"
    tried = f"{len(calls)} calls for {decisions} decisions"
    return [Finding("retry storm", site.kind, tried, result, same and proved and doubled == 0)]
