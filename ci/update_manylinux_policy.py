"""Writes wheel_checks/data/manylinux.toml from the policy file of an installed auditwheel.

usage: python ci/update_manylinux_policy.py     (with auditwheel installed next to it; it is not one of our
dependencies)
"""

from __future__ import annotations

import datetime as dt
import importlib.metadata
import json
import re
import sys
from pathlib import Path

TABLE = Path(__file__).parent.parent / "wheel_checks" / "data" / "manylinux.toml"
MACHINES = ("x86_64", "aarch64")
PREFIXES = ("GLIBC", "GLIBCXX", "CXXABI")


def newest(versions: list[str]) -> str:
    """The highest of the versions that are plain numbers ("TM_1" and "ABI_DT_RELR" are not)."""
    numbers = [version for version in versions if re.fullmatch(r"[\d.]+", version)]
    return max(numbers, key=lambda version: [int(part) for part in version.split(".")], default="")


def main() -> int:
    """Read, write, and say how many rows there are."""
    files = importlib.metadata.files("auditwheel") or []
    policy = next(file for file in files if file.name == "manylinux-policy.json")
    version, today = importlib.metadata.version("auditwheel"), dt.datetime.now(dt.UTC).date()
    lines = [
        "# The latest symbol versions that a manylinux platform tag promises to be there (PEP 600), by machine.",
        f"# Source: manylinux-policy.json of auditwheel {version}, read on {today} by ci/update_manylinux_policy.py.",
    ]
    rows = 0
    for entry in json.loads(Path(str(policy.locate())).read_text(encoding="utf-8")):
        for machine in MACHINES:
            if match := re.fullmatch(r"manylinux_2_(\d+)", entry["name"]):
                symbols = entry["symbol_versions"].get(machine)
                if symbols:
                    lines += ["", "[[policy]]", f"glibc_minor = {match[1]}", f'machine = "{machine}"']
                    lines += [f'{prefix} = "{newest(symbols.get(prefix, []))}"' for prefix in PREFIXES]
                    rows += 1
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{rows} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
