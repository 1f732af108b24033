"""What a bandit in memory costs beyond its policy: `decide` and `reward` of a `Bandit`, compared with `choose` and
`learn` of a bare `Player` of the same policy.

    python benchmarks/in_memory.py [--rounds 20000] [--repeats 7]

The two are measured in turns, by the process's CPU time, and the best of each is taken. The bandit also counts its
decisions, keeps the last 100,000 with their outcomes, reads the clock, draws the floor and first tries, and may be
shared by threads; a player does none of it. The last lines are in a context: 10 arms and 10 columns."""

import argparse
import time

from driftbandit import Bandit, DiscountedTS, DriftTS
from driftbandit.bandit.features import Features
from driftbandit.bandit.fold import make_player
from driftbandit.core.draws import POLICY, Stream, stream_key
from driftbandit.policies import DriftLinTS, LinTS

ARMS = ["a", "b", "c", "d", "e"]


def play_bandit(bandit, rounds):
    """Rounds of a bandit in memory; arm n pays n % 2."""
    pays = {arm: n % 2 * 1.0 for n, arm in enumerate(ARMS)}
    for _ in range(rounds):
        decision = bandit.decide()
        bandit.reward(decision.id, pays[decision.arm])


def play_player(player, stream, rounds):
    """Rounds of a bare player; arm n pays n % 2."""
    for t in range(player.learned, player.learned + rounds):
        slot = player.choose(stream.at(t))
        player.learn(slot, slot % 2 * 1.0)


def contexts():
    """Features that become 10 columns, and some contexts."""
    features = {f"x{n}": "number" for n in range(7)} | {"device": ["mobile", "desktop", "tablet"]}
    values = [{f"x{n}": (t * (n + 3) % 17) / 4.0 for n in range(7)} for t in range(97)]
    return features, [one | {"device": features["device"][t % 3]} for t, one in enumerate(values)]


def play_in_context(bandit, given, rounds):
    """Rounds of a bandit in memory with features; arm n pays n % 2, and something for each context."""
    for t in range(rounds):
        decision = bandit.decide(context=given[t % len(given)])
        bandit.reward(decision.id, decision.arm % 2 * 1.0 + given[t % len(given)]["x0"])


def play_features(player, encoded, stream, rounds):
    """The same of a bare player."""
    for t in range(player.learned, player.learned + rounds):
        x = encoded[t % len(encoded)]
        slot = player.choose(stream.at(t), features=x)
        player.learn(slot, slot % 2 * 1.0 + x[0], features=x)


def seconds(call):
    """CPU seconds of a call."""
    began = time.process_time()
    call()
    return time.process_time() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--interpreted", action="store_true", help="leave out machine code, which needs the lab extra")
    options = parser.parse_args()
    key = stream_key(1, 0, POLICY)
    print(f"{'policy':16} {'':12} {'Player, us':>11} {'Bandit, us':>11} {'more, us':>9} {'ratio':>6}")
    for policy in (DiscountedTS(), DriftTS()):
        for compiled in (False,) if options.interpreted else (False, True):
            rounds = options.rounds if compiled or not isinstance(policy, DriftTS) else options.rounds // 10
            bandit = Bandit(ARMS, policy, reward_range=(0, 1), seed=1, compiled=compiled)
            player, stream = make_player(policy, len(ARMS), key, compiled=compiled), Stream(key)
            play_bandit(bandit, 1000)
            play_player(player, stream, 1000)
            pairs = [
                (seconds(lambda: play_player(player, stream, rounds)), seconds(lambda: play_bandit(bandit, rounds)))  # noqa: B023
                for _ in range(options.repeats)
            ]
            bare, whole = (1e6 * min(side) / rounds for side in zip(*pairs, strict=True))
            name, kind = type(policy).__name__, "compiled" if compiled else "interpreted"
            print(f"{name:16} {kind:12} {bare:11.2f} {whole:11.2f} {whole - bare:9.2f} {whole / bare:6.2f}", flush=True)
    features, given = contexts()
    encoded = [Features.declare(features).encode(one, 0) for one in given]
    for policy in (LinTS(), DriftLinTS()):
        for compiled in (False,) if options.interpreted else (False, True):
            rounds = options.rounds // (10 if compiled else 50)
            bandit = Bandit(10, policy, features=features, seed=1, compiled=compiled)
            player, stream = make_player(policy, 10, key, compiled=compiled, columns=10), Stream(key)
            play_in_context(bandit, given, 100)
            play_features(player, encoded, stream, 100)
            pairs = [
                (
                    seconds(lambda: play_features(player, encoded, stream, rounds)),  # noqa: B023
                    seconds(lambda: play_in_context(bandit, given, rounds)),  # noqa: B023
                )
                for _ in range(options.repeats)
            ]
            bare, whole = (1e6 * min(side) / rounds for side in zip(*pairs, strict=True))
            name, kind = type(policy).__name__, "compiled" if compiled else "interpreted"
            print(f"{name:16} {kind:12} {bare:11.2f} {whole:11.2f} {whole - bare:9.2f} {whole / bare:6.2f}", flush=True)


if __name__ == "__main__":
    main()
