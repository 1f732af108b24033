"""Statistics of simulated numbers: intervals, the choice of the best, drift metrics."""
