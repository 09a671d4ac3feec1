"""Draw ``docs/images/verify.svg``, the picture of the README and of the site, from the kept screen of ``verify``.

usage: python ci/update_picture.py [--check]

``ci/update_screens.py verify`` runs the command again. The picture loads no font and nothing else. ``--check`` writes
nothing and exits 1 when the picture is stale.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a script finds only modules in its own folder

from ci.reference.screens import COLUMNS, screens  # noqa: E402  # found by the line above

PICTURE = ROOT / "docs/images/verify.svg"


def main() -> int:
    """Write or check the picture; 1 when ``--check`` finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    wanted = draw()
    if not check:
        PICTURE.write_text(wanted, encoding="utf-8")
    elif PICTURE.read_text(encoding="utf-8") != wanted:
        sys.stderr.write("docs/images/verify.svg is stale: run `python ci/update_picture.py`\n")
        return 1
    return 0


def draw() -> str:
    """The picture as SVG."""
    screen = screens()["verify"]
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ {screen.typed}", style="bold"))
    console.print(Text.from_ansi(screen.kept.read_text(encoding="utf-8")))
    svg = console.export_svg(title="wheelproof", theme=MONOKAI, unique_id="verify")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # its fonts would come from the network
    return "".join(f"{line.rstrip()}\n" for line in svg.splitlines())


if __name__ == "__main__":
    sys.exit(main())
