"""Write the manual page ``docs/wheelproof.1``, which the wheel installs, with argparse-manpage.

``--check`` writes nothing and exits 1 when the page is stale. The date of the page is its last change.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from argparse_manpage.manpage import Manpage

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a script finds only modules in its own folder

from ci.command_line import SHARED, one_parser, read_commands  # noqa: E402  # found by the line above
from wheelproof import __version__  # noqa: E402  # as above

PAGE = ROOT / "docs/wheelproof.1"
SECTIONS = Path(__file__).with_name("manual_sections.man")


def page(date: str) -> str:
    """The page. ``date`` is shown at its foot, as in "November 22, 2026"."""
    os.environ["COLUMNS"] = "10000"  # a folded help could have a line that begins with ".whl", which would be a macro
    commands = read_commands()
    groups: dict[str | None, argparse._ArgumentGroup] = {}
    for command in commands:
        parser = command.parser
        common = ", ".join(title for title in SHARED if title in command.groups)
        parser.description = f"Common options: {common}." if common else None
        groups |= {group.title: group for group in parser._action_groups}  # noqa: SLF001  # shown by no method
        parser._action_groups = [group for group in parser._action_groups if group.title not in SHARED]  # noqa: SLF001
    root = one_parser(commands)
    for title in SHARED:
        groups[title].title = f"common options: {title}"
        root._action_groups.append(groups[title])  # noqa: SLF001  # as above
    data = {"project_name": "wheelproof", "version": __version__, "date": date, "manual_title": "User Commands"}
    data |= {"description": "prove that an accelerator wheel stack (torch, Triton, CUDA) works"}
    text = str(Manpage(root, {**data, "include": str(SECTIONS)}, format="single-commands-section"))
    return re.sub(r"\n{2,}(?=\.)", "\n", text)  # an empty line before a macro would be shown as another one


def main() -> int:
    """Write or check the page; 1 when ``--check`` finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    present = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    date = re.search(r'^\.TH WHEELPROOF "1" "([^"]+)"', present, re.MULTILINE)
    if date and page(date[1]) == present:
        print(f"{PAGE.name} is up to date")
        return 0
    if check:
        sys.stderr.write(f"docs/{PAGE.name} is stale: run `python ci/update_manual.py`\n")
        return 1
    PAGE.write_text(page(f"{datetime.now(UTC):%B %d, %Y}"), encoding="utf-8")
    print(f"{PAGE.name} was written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
