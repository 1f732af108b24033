"""Where a policy stands: a suite of worlds, the best tuned policy of each, and everybody's ratio to it."""
