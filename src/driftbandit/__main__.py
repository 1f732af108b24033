"""`python -m driftbandit` and the `driftbandit` script: everything slow is imported in here, where Ctrl-C is heard."""

import contextlib
import sys


def main() -> int:
    """Do what the command line says."""
    try:
        from driftbandit.cli import _main as cli
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as error:  # an import that was interrupted may end in an error of its own
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__cause__ or cause.__context__
        if cause is None:
            raise
        return _interrupted()
    return cli.main()


def _interrupted() -> int:
    with contextlib.suppress(OSError, ValueError):
        print("driftbandit: interrupted.", file=sys.stderr, flush=True)
    return 130


if __name__ == "__main__":
    sys.exit(main())
