"""`python -m driftbandit` and the `driftbandit` script: slow imports are inside, where Ctrl-C is handled."""

import contextlib
import os
import sys
import threading

_INTERRUPTED = 130  # the exit code after Ctrl-C


def main() -> int:
    """Run the command."""
    try:
        from driftbandit.cli import _main as cli
    except KeyboardInterrupt:
        return _report_interrupt()
    except Exception as error:  # an interrupted import may end in another error
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        return _report_interrupt()
    code = cli.main()
    if code == _INTERRUPTED and threading.active_count() > 1:
        os._exit(code)  # Python would wait for threads that are compiling
    return code


def _report_interrupt() -> int:
    with contextlib.suppress(OSError, ValueError):
        print("driftbandit: interrupted.", file=sys.stderr, flush=True)
    return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
