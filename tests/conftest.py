"""Settings for all tests: properties are checked on the same examples every time, and compiled loops are kept for the
session only, where several workers find them."""

import os
import shutil
import tempfile

from hypothesis import settings

# The same examples in every run, and no limit on the time of one: the first may have to compile.
settings.register_profile("driftbandit", derandomize=True, deadline=None, max_examples=50, database=None)
settings.load_profile("driftbandit")

_made: list[str] = []


def pytest_configure(config):
    # Workers started later inherit the variable, so that each compiled loop is made once a session.
    if not os.environ.get("DRIFTBANDIT_CACHE"):
        _made.append(tempfile.mkdtemp(prefix="driftbandit-tests-"))
        os.environ["DRIFTBANDIT_CACHE"] = _made[0]


def pytest_unconfigure(config):
    for directory in _made:
        shutil.rmtree(directory, ignore_errors=True)
        os.environ.pop("DRIFTBANDIT_CACHE", None)
    _made.clear()
