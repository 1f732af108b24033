"""Settings for all tests: properties are checked on the same examples every time, and compiled loops are kept in
`build/test-kernels`, where several workers find them and the next call of `make test` too: their place is named by a
digest of every source they are made from, so an edit never finds old code."""

import os
import signal
from pathlib import Path

from hypothesis import settings

# The same examples in every run, and no limit on the time of one: the first may have to compile.
settings.register_profile("driftbandit", derandomize=True, deadline=None, max_examples=50, database=None)
settings.load_profile("driftbandit")


def pytest_configure(config):
    # Workers started later inherit the variable, so that each compiled loop is made once.
    os.environ.setdefault("DRIFTBANDIT_CACHE", str(Path(__file__).parents[1] / "build" / "test-kernels"))
    # `nohup` and background jobs of a shell ignore Ctrl-C, and child processes would inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
