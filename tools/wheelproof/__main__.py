"""``python -m wheelproof`` is the same command as ``wheelproof``."""

import importlib.util
import sys

if not all(importlib.util.find_spec(name) for name in ("wheel_checks", "packaging")):  # as in the folder tools
    sys.stderr.write(
        "wheelproof is not installed for this Python: in the root of a checkout, run "
        "`python3 ci/develop.py verify ...`, or `python3 -m venv .venv && .venv/bin/pip install .`\n"
    )
    sys.exit(2)

from wheelproof.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
