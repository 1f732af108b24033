"""The page on which the reproduction is shown."""
