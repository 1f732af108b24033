"""A small study that the tests of executors and of resuming play, here and in processes of their own."""

import hashlib
import sys
from pathlib import Path

from driftbandit import DiscountedTS
from driftbandit.environments import Abrupt, Smooth
from driftbandit.lab import batch as module
from driftbandit.lab.batch import Batch, Cell


def cells(count=24, horizon=2000):
    """`count` cells of one or two chunks each: DS-TS in an abrupt and in a drifting world, seed by seed."""
    worlds = [Abrupt(n_arms=4, horizon=horizon, phases=4), Smooth(n_arms=4, horizon=horizon, sigma=0.01)]
    return [Cell(DiscountedTS(gamma=0.95), worlds[n % 2], runs=40, seed=n // 2, checkpoints=10) for n in range(count)]


def digest(batch):
    """A hash of every number of every cell."""
    out = hashlib.sha256()
    for cell in batch.cells:
        out.update(batch.result(cell).regret.tobytes())
    return out.hexdigest()


def played(folder, executor=None, workers=None, count=24):
    """The hash after playing the cells in this folder, and how it went."""
    batch = Batch(cells(count), folder)
    tally = batch.run(executor, workers)
    return digest(batch), tally


if __name__ == "__main__":  # a driver to be killed: plays into the folder named, chunk by chunk
    import time

    pause = float(sys.argv[2])
    compute = module.compute

    def slow(chunk, stop=None):
        """Some chunks are finished and some under way at any moment."""
        time.sleep(pause)
        return compute(chunk, stop)

    module.compute = slow
    print(played(Path(sys.argv[1]), workers=2, count=int(sys.argv[3])), flush=True)
