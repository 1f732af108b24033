"""Simulation, experiments, figures and theory: all that needs more than NumPy (`pip install 'driftbandit[lab]'`)."""
