#!/usr/bin/env python3
"""Build the images of cells with Debian's Python 3.11: ``wheelproof matrix image`` of this checkout.

python3 docker/debian/build.py                # for this host's architecture
python3 docker/debian/build.py amd64 arm64    # for both
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / ".venv/bin/python"
MACHINES = {"amd64": "x86_64", "arm64": "aarch64"}


def main() -> None:
    """Become the command; its exit code is ours."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("architectures", nargs="*", choices=(*MACHINES, []), metavar="amd64|arm64")
    parser.add_argument("--force", action="store_true", help="rebuild existing images, from the current packages")
    options = parser.parse_args()
    machines = [MACHINES[name] for name in options.architectures] or [platform.machine()]
    python = str(PYTHON) if PYTHON.exists() else sys.executable
    command = [
        python,
        "-P",
        "-m",
        "wheelproof",
        "matrix",
        "image",
        "--platform",
        ",".join(machines),
        "--python",
        "3.11",
    ]
    os.execv(python, [*command, *(["--force"] if options.force else [])])  # noqa: S606  # no shell, and our own


if __name__ == "__main__":
    main()
