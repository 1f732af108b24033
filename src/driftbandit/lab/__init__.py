"""Simulation, experiments and figures (`pip install '.[lab]'`).

>>> from driftbandit.lab import Study, run, simulate
"""

from driftbandit.lab.engine.simulate import Simulation, simulate
from driftbandit.lab.plots import plot
from driftbandit.lab.result import Result
from driftbandit.lab.study import Study, Variants, load_study, run

__all__ = ["Result", "Simulation", "Study", "Variants", "load_study", "plot", "run", "simulate"]
