"""``python -m wheelproof`` is the same command as ``wheelproof``."""

import sys

from wheelproof.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
