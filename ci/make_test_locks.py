#!/usr/bin/env python3
"""Makes the locks in tests/data/locks with the uv that is installed, from the small projects below.

    python ci/make_test_locks.py

Addresses of indexes become https://index.example/simple, addresses of files https://files.example/.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "tests" / "data" / "locks"

HEAD = '[project]\nname = "{}"\nversion = "1.0"\nrequires-python = "{}"\n'

PROJECTS = {  # the name of the lock, and the files of its project
    "conflict": {
        "pyproject.toml": HEAD.format("mine", ">=3.11,<3.14")
        + 'dependencies = ["six"]\n[project.optional-dependencies]\nnew = ["idna==3.10"]\nold = ["idna==3.4"]\n'
        '[dependency-groups]\ndev = ["iniconfig"]\n'
        '[tool.uv]\nconflicts = [[{ extra = "new" }, { extra = "old" }]]\n'
    },
    "workspace": {
        "pyproject.toml": HEAD.format("root", ">=3.11")
        + 'dependencies = ["six"]\n[dependency-groups]\nnew = ["markupsafe==3.0.2"]\nold = ["markupsafe==2.1.5"]\n'
        '[tool.uv]\nconflicts = [[{ group = "new" }, { group = "old" }]]\n'
        '[tool.uv.workspace]\nmembers = ["packages/*"]\n',
        "packages/part/pyproject.toml": HEAD.format("part", ">=3.11") + 'dependencies = ["idna"]\n',
    },
    "virtual": {
        "pyproject.toml": '[tool.uv.workspace]\nmembers = ["packages/*"]\n[dependency-groups]\ntest = ["iniconfig"]\n',
        "packages/a/pyproject.toml": HEAD.format("a", ">=3.11") + 'dependencies = ["six"]\n',
        "packages/b/pyproject.toml": HEAD.format("b", ">=3.11")
        + 'dependencies = ["idna"]\n[project.optional-dependencies]\nfast = ["markupsafe==3.0.2"]\n',
    },
    "pythons": {
        "pyproject.toml": HEAD.format("mine", ">=3.10")
        + "dependencies = [\"markupsafe==3.0.3; python_version >= '3.13'\", "
        "\"markupsafe==3.0.2; python_version == '3.12'\", \"markupsafe==2.1.5; python_version < '3.12'\"]\n"
    },
    "environments": {
        "pyproject.toml": HEAD.format("mine", ">=3.11")
        + 'dependencies = ["markupsafe==3.0.2", "colorama; sys_platform == \'win32\'"]\n'
        "[tool.uv]\nenvironments = [\"sys_platform == 'linux' and platform_machine == 'x86_64'\"]\n"
    },
    "sdist": {
        "pyproject.toml": HEAD.format("mine", ">=3.11")
        + 'dependencies = ["antlr4-python3-runtime==4.9.3", "docopt==0.6.2"]\n'
    },
}
EXPORTED = ("conflict", "pythons")  # also as pylock.toml
_INDEX = re.compile(r'((?:registry|index) = ")https?://[^"]*')
_FILES = re.compile(r'(url = ")https?://[^/"]+/')


def main() -> int:
    """Write every lock again."""
    for name, files in PROJECTS.items():
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                place = Path(folder, path)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text)
            subprocess.run(["uv", "lock", "-q"], cwd=folder, check=True)
            _write(f"{name}.uv.lock", Path(folder, "uv.lock").read_text())
            if name in EXPORTED:
                export = ["uv", "export", "-q", "--format", "pylock.toml", "--no-dev", "-o", "pylock.toml"]
                subprocess.run([*export, *(["--extra", "new"] * (name == "conflict"))], cwd=folder, check=True)
                _write(f"pylock.{name}.toml", Path(folder, "pylock.toml").read_text())
    return 0


def _write(name: str, text: str) -> None:
    text = _FILES.sub(r"\1https://files.example/", _INDEX.sub(r"\1https://index.example/simple", text))
    (FOLDER / name).write_text(text)


if __name__ == "__main__":
    sys.exit(main())
