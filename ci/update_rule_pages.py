"""Write ``docs/rules``: one page per rule, and the index.

``--check`` writes nothing and exits 1 when a page is stale.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a script finds only modules in its own folder

from ci.reference.rules import pages  # noqa: E402  # found by the line above
from wheel_checks.catalogue import all_rules  # noqa: E402  # as above

FOLDER = ROOT / "docs" / "rules"


def main() -> int:
    """Write or check the pages; 1 when ``--check`` finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    wanted = pages(all_rules())
    present = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    stale = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    if check:
        if stale:
            sys.stderr.write(f"docs/rules is stale ({', '.join(stale)}): run `python ci/update_rule_pages.py`\n")
        return bool(stale)
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in stale:
        if name in wanted:
            (FOLDER / name).write_text(wanted[name], encoding="utf-8")
        else:
            (FOLDER / name).unlink()
    print(f"{len(wanted)} pages, {len(stale)} written or removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
