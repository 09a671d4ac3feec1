"""``python -m kernels_smoke``; see ``suite/cli.py``."""

import sys

from kernels_smoke.suite.cli import main

if __name__ == "__main__":
    sys.exit(main())
