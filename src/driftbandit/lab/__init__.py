"""Simulation, experiments, figures and theory: everything that needs more than NumPy (`pip install driftbandit[lab]`)."""
