"""Figures, drawn from results alone."""
