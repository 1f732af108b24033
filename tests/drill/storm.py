"""Retry storm: every call is sent one to five times by eight clients in shuffled order; the state is that of sending
once."""

import random
import threading

from driftbandit.bandit import Bandit, NotFound
from driftbandit.bandit.audit import audit
from driftbandit.bandit.opening import reading
from driftbandit.bandit.records import REWARD
from driftbandit.player import Player
from driftbandit.policies.discounted_ts import DiscountedTS
from tests.drill.load import ARMS, reward_of
from tests.drill.site import Finding, Site

_CLIENTS = 8


def retry_storm(site: Site, decisions: int, seed: int = 1) -> list[Finding]:
    """Send everything up to five times, and compare with a policy that learns each reward once, in the order in which
    the storm was accepted."""
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
                    except NotFound:  # its decision is still to come
                        again.append((verb, id))
                part = again

        threads = [threading.Thread(target=client, args=(calls[n::_CLIENTS],)) for n in range(_CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        bandit.refresh()
        state, learned = bandit._fold.player.dump()["state"], bandit._fold.player.learned
        health = bandit.health()
    journal = reading(stormy)
    order = [event for _, event in journal.events(1) if event.kind == REWARD]
    journal.close()
    player = Player(DiscountedTS(), len(ARMS))
    for event in order:
        player.learn(event.slot, event.value)
    same = player.dump()["state"] == state and learned == decisions
    doubled = health["decisions"] - 1 - decisions + health["rewards"] - decisions
    proved = not any(report.differences for report in audit(stormy))
    result = f"{doubled} doubled, state {'as sending once, bit for bit' if same else 'DIFFERS'}"
    tried = f"{len(calls)} calls for {decisions} decisions"
    return [Finding("retry storm", site.kind, tried, result, same and proved and doubled == 0)]
