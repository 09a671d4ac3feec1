"""Draw ``docs/images/verify.svg``, the picture of the README: what a terminal of 100 columns shows of a real run.

usage: python ci/update_picture.py

It asks the package index, as the command in the picture does. The picture loads no font and nothing else.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/images/verify.svg"
COLUMNS = 100
LINES = 13  # of the output: the answer, the first finding, its evidence and its fix
QUESTION = ("verify", "torch==2.10.0", "--platform", "aarch64", "--python", "3.12", "--expect", "cuda")


def main() -> int:
    """Run the command, and draw what it shows."""
    command = [sys.executable, "-m", "wheelproof", *QUESTION, "--color"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 1:
        sys.stderr.write(f"the run was to find one error, and ended with {done.returncode}:\n{done.stderr}")
        return 1
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text(f"$ wheelproof {' '.join(QUESTION)}", style="bold"))
    console.print(Text.from_ansi("\n".join(done.stdout.split("\n")[:LINES])))
    console.print("...")
    svg = console.export_svg(title="wheelproof", theme=MONOKAI, unique_id="verify")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # its fonts would come from the network
    PICTURE.write_text("".join(f"{line.rstrip()}\n" for line in svg.splitlines()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
