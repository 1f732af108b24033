"""A policy that decides for real: named arms, its own random stream and clock, snapshots."""

from driftbandit.agent.agent import Agent
from driftbandit.agent.choice import Chances

__all__ = ["Agent", "Chances"]
