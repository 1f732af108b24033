"""Experiments as data: what to play, and what came out."""
