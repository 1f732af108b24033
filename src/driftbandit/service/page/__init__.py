"""The page: rendered here, brought to life by a small script, with nothing from elsewhere."""
