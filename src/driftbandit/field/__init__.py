"""How a policy compares: a suite of environments, the best tuned policy for each, and every policy's ratio to it."""
