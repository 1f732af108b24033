"""Fault drills: what is promised of a live bandit, tried for real against SQLite and PostgreSQL, as a table of zeros.

Each module is one drill with a function that takes a `Site` and a size, and returns `Finding`s. A kill leaves the
operating system's page cache alive; `power` takes that away too, from SQLite journals."""
