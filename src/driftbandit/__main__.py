"""`python -m driftbandit` does what `driftbandit` does."""

import sys

from driftbandit.cli import main

if __name__ == "__main__":
    sys.exit(main())
