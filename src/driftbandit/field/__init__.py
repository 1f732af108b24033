"""How a policy compares: a suite of worlds, the best tuned policy for each, and every policy's ratio to it."""
