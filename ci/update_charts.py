"""Draw the charts of the documentation, ``docs/images/NAME.svg``, each by the module of its name in ``ci/charts``.

usage: python ci/update_charts.py [--record] [NAME ...]

A chart is drawn from data of the project without a network, and CI compares it with its module's output. --record first
queries the package index again, for charts of real wheels.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # "ci", "tests" and "benchmarks" are not installed
NAMES = sorted({path.stem for path in (ROOT / "ci/charts").glob("*.py")} - {"asking", "drawing"})


def main() -> int:
    """Draw the charts that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--record", action="store_true", help="ask the package index again where a chart rests on it")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(NAMES):
        parser.error(f"there is no chart {', '.join(sorted(unknown))}; expected one of {', '.join(NAMES)}")
    for name in arguments.names or NAMES:
        module = importlib.import_module(f"ci.charts.{name}")
        if arguments.record and hasattr(module, "record"):
            module.record()
        (ROOT / f"docs/images/{name}.svg").write_text(module.draw(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
