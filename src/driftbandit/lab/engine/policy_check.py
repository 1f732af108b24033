"""The check of users' policies under the name by which the engine knows it; an agent runs it too, so it lives below."""

from driftbandit.text.policy_check import PolicyError, check, read

__all__ = ["PolicyError", "check", "read"]
