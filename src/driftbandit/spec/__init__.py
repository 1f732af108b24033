"""Text to objects and back: policies, environments, durations; loading of the user's own code."""
