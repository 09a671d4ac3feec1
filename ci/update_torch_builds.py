"""Writes the [[build]] rows of wheel_checks/data/torch_builds.toml from the wheels themselves.

usage: python ci/update_torch_builds.py [SPECIFIER]     (default: >=2.6)

Reads one wheel per release and machine from the configured index (about 1.3 MB each) and keeps the [[backend]] rows,
which nothing on the index can say, as they are.
"""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
from pathlib import Path

from packaging.version import Version

TABLE = Path(__file__).parent.parent / "wheel_checks" / "data" / "torch_builds.toml"
MARK = "# [[build]]"
PYTHON = "3.12"  # every release from 2.2 on has wheels for it


def main() -> int:
    """Read, rewrite the rows after the mark, and print how many there are."""
    specifier = sys.argv[1] if len(sys.argv) > 1 else ">=2.6"
    command = [
        *(sys.executable, "-m", "wheelproof", "verify", f"torch{specifier}", "--all-files"),
        *("--platform", "all", "--python", PYTHON, "--format", "json", "--fail-on", "never"),
    ]
    answer = subprocess.run(command, check=False, stdout=subprocess.PIPE)
    if answer.returncode:
        print(f"wheelproof ended with {answer.returncode}; the table is unchanged", file=sys.stderr)
        return answer.returncode
    rows: dict[tuple[Version, str], dict[str, str]] = {}
    for subject in json.loads(answer.stdout)["subjects"]:
        facts = subject["facts"]
        if facts.get("python") == f"cp{PYTHON.replace('.', '')}":
            # A later build tag replaces the earlier file of the same release.
            rows[Version(facts["version"]), facts["machine"]] = facts
    kept = TABLE.read_text(encoding="utf-8").partition(MARK)[0].rstrip()
    today = dt.datetime.now(dt.UTC).date()
    lines = [
        kept,
        "",
        f"{MARK}: what the wheels on the package index are built for (CPython {PYTHON}), read from the wheels",
        f"# themselves by ci/update_torch_builds.py on {today}.",
    ]
    for (version, machine), facts in sorted(rows.items()):
        lines += ["", "[[build]]", f'version = "{version}"', f'machine = "{machine}"']
        lines += [f'accelerator = "{facts["accelerator"]}"', f'cuda = "{facts.get("cuda", "")}"']
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(rows)} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
