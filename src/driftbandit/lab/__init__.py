"""Simulation, experiments and figures: everything that needs more than NumPy
(`pip install 'driftbandit[lab]'`).

Nothing deeper needs to be imported for everyday use:

>>> from driftbandit.lab import Study, run, simulate
"""

from driftbandit.lab.engine.simulate import Simulation, simulate
from driftbandit.lab.experiments.result import Result
from driftbandit.lab.experiments.run import run
from driftbandit.lab.experiments.study import Study, Variants
from driftbandit.lab.experiments.study_file import load_study
from driftbandit.lab.plots.regret import plot

__all__ = ["Result", "Simulation", "Study", "Variants", "load_study", "plot", "run", "simulate"]
