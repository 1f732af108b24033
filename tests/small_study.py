"""A small study that the tests of executors and of resuming play, here and in separate processes."""

import hashlib
import os
import sys
import tempfile
import time
from pathlib import Path

from driftbandit import DiscountedTS
from driftbandit.environments import Abrupt, Smooth
from driftbandit.lab import work as module
from driftbandit.lab.work import Cell, Store


def cells(count=24, horizon=2000):
    """`count` cells of one or two chunks each: DS-TS in an abrupt and in a drifting environment, seed by seed."""
    environments = [Abrupt(n_arms=4, horizon=horizon, phases=4), Smooth(n_arms=4, horizon=horizon, sigma=0.01)]
    return [
        Cell(DiscountedTS(gamma=0.95), environments[n % 2], runs=40, seed=n // 2, checkpoints=10) for n in range(count)
    ]


def digest(store, played):
    """A hash of every number of every cell."""
    out = hashlib.sha256()
    for cell in played:
        out.update(store.result(cell).regret.tobytes())
    return out.hexdigest()


def played(folder, executor=None, workers=None, count=24):
    """The hash after playing the cells in this folder, and how it went."""
    store = Store(folder)
    tally = store.play(cells(count), executor, workers)
    return digest(store, cells(count)), tally


def slowed(pause):
    """Make every chunk take a while, so that at any moment some are finished and some under way."""
    compute = module.compute

    def slow(*given):
        time.sleep(pause)
        return compute(*given)

    module.compute = slow


def nursery(folder, count):
    """Start a driver for every line that comes in, and say its number: forked from here, where everything is loaded, a
    driver is at work within milliseconds."""
    with tempfile.TemporaryDirectory() as spare:
        played(spare, workers=2, count=2)
    for _ in sys.stdin:
        driver = os.fork()
        if driver == 0:
            played(folder, workers=2, count=count)
            os._exit(0)
        print(driver, flush=True)
        os.waitpid(driver, 0)


if __name__ == "__main__":
    slowed(float(sys.argv[2]))
    if sys.argv[4:] == ["nursery"]:
        nursery(Path(sys.argv[1]), int(sys.argv[3]))
    else:
        print(played(Path(sys.argv[1]), workers=2, count=int(sys.argv[3])), flush=True)
