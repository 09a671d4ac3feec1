#!/usr/bin/env python3
"""Write the verdicts of `twine check` on each METADATA into ``tests/data/twine.json``: "" if valid.

twine is no dependency of ours: `uv run --with twine` gets it from the index that you have configured.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "tests" / "data" / "twine.json"
TWINE = (sys.executable, "-m", "uv", "run", "--no-project", "--quiet", "--with", "twine", "twine", "--no-color")


def verdict(metadata: str, folder: Path) -> str:
    """The answer of `twine check` in one line, "" when the wheel passes."""
    wheel = folder / "demo-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("demo-1.0.dist-info/METADATA", metadata)
        archive.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\n")
    done = subprocess.run([*TWINE, "check", str(wheel)], capture_output=True, text=True, check=False)
    answer = " ".join(done.stdout.replace(f"{folder}/", "").split()).removeprefix(f"Checking {wheel.name}: ")
    return answer if done.returncode else ""


def main() -> None:
    """Ask twine again about every METADATA of the file."""
    texts = json.loads(FILE.read_text(encoding="utf-8"))["verdicts"]
    version = subprocess.run([*TWINE, "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
    with tempfile.TemporaryDirectory() as name:
        found = {text: verdict(text, Path(name)) for text in texts}
    FILE.write_text(json.dumps({"twine": version, "verdicts": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
