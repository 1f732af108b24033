"""Simulation, experiments, figures and theory: everything that needs more than NumPy
(`pip install 'driftbandit[lab]'`).

Nothing deeper needs to be imported for everyday use:

>>> from driftbandit.lab import Study, compare, simulate
"""

from driftbandit.lab.engine.simulate import Simulation, simulate
from driftbandit.lab.experiments.comparison import Comparison, compare
from driftbandit.lab.experiments.result import Result
from driftbandit.lab.experiments.run import run
from driftbandit.lab.experiments.study import Study, Variants
from driftbandit.lab.experiments.study_file import load
from driftbandit.lab.investigations.advice import Advice, advise
from driftbandit.lab.investigations.price import price_of_forgetting
from driftbandit.lab.investigations.rates import Rates, rates
from driftbandit.lab.jobs.work import Cell
from driftbandit.lab.plots.regret import plot

__all__ = [
    "Advice",
    "Cell",
    "Comparison",
    "Rates",
    "Result",
    "Simulation",
    "Study",
    "Variants",
    "advise",
    "compare",
    "load",
    "plot",
    "price_of_forgetting",
    "rates",
    "run",
    "simulate",
]
