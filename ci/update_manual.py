"""Write the manual page ``docs/wheelproof.1``, which the wheel installs.

``--check`` writes nothing and exits 1 when the page is stale. The date of the page is that of its last change.
"""

from __future__ import annotations

import argparse
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from wheelproof.cli.manual import read_manual
from wheelproof.manual import man

PAGE = Path(__file__).resolve().parents[1] / "docs" / "wheelproof.1"


def main() -> int:
    """Write or check the page; 1 when ``--check`` finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    present = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    date = re.search(r"^\.TH WHEELPROOF 1 \"([0-9-]+)\"", present, re.MULTILINE)
    manual = read_manual()
    if date and man.render(manual, date[1]) == present:
        print(f"{PAGE.name} is up to date")
        return 0
    if check:
        sys.stderr.write(f"docs/{PAGE.name} is stale: run `python ci/update_manual.py`\n")
        return 1
    PAGE.write_text(man.render(manual, datetime.now(UTC).date().isoformat()), encoding="utf-8")
    print(f"{PAGE.name} was written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
