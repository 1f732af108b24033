"""A policy that decides for real: named arms, its own random stream and clock, snapshots."""

from driftbandit.agent.agent import Agent
from driftbandit.player import Probabilities

__all__ = ["Agent", "Probabilities"]
