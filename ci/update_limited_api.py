"""Writes wheel_checks/data/limited_api.toml: the symbols of CPython's limited API, by the Python that added each.

usage: uv run --with abi3info python ci/update_limited_api.py

abi3info is CPython's own Misc/stable_abi.toml as a Python package; it is made from CPython's main branch every day.
"""

from __future__ import annotations

import datetime as dt
import importlib
import sys
import textwrap
from collections import defaultdict
from importlib.metadata import version
from pathlib import Path

TABLE = Path(__file__).parent.parent / "wheel_checks" / "data" / "limited_api.toml"


def main() -> int:
    """Write the table, and say how many symbols it has."""
    table = importlib.import_module("abi3info")
    added: dict[tuple[int, int], list[str]] = defaultdict(list)
    for item in (*table.FUNCTIONS.values(), *table.DATAS.values()):
        added[item.added.major, item.added.minor].append(item.symbol.name)
    source = f"CPython, Misc/stable_abi.toml, by abi3info {version('abi3info')} ({dt.datetime.now(dt.UTC).date()})"
    lines = [
        "# The symbols of CPython's limited API (PEP 384, PEP 652): which Python added each. A library that uses no",
        "# others of Python works with that Python and every later one. Written by ci/update_limited_api.py.",
        "",
        f'collected = "{dt.datetime.now(dt.UTC).date()}"',
        f'source = "{source}"',
    ]
    for major, minor in sorted(added):
        names = ", ".join(f'"{name}"' for name in sorted(added[major, minor]))
        lines += ["", "[[added]]", f'python = "{major}.{minor}"', "symbols = ["]
        lines += [*(f"    {line}" for line in textwrap.wrap(names, 110, break_long_words=False)), "]"]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{sum(map(len, added.values()))} symbols")
    return 0


if __name__ == "__main__":
    sys.exit(main())
