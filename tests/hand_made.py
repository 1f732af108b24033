"""Results written down by hand, for tests."""

import numpy as np

from driftbandit.lab.result import Result
from driftbandit.lab.work import Cell, Part


def made(rounds, curves, texts=None, environment="Abrupt()", **notes):
    """A result in one environment from a mapping of labels to regret, runs × rounds."""
    texts = texts or {}
    parts = [
        Part(Cell(texts.get(label, label), environment, policy_name=label, environment_name=environment),
             np.asarray(rounds), np.asarray(regret))
        for label, regret in curves.items()
    ]  # fmt: skip
    return Result(parts, notes)
