"""Writes wheel_checks/data/guard_program.toml: the digests of the program that an installed guard consists of.

The options of pip and uv that the program needs are written to its module options.py, from the table install_commands.

usage: python ci/update_guard_program.py [--check]

The row of the version in tools/wheelproof/pins/guard/inside/layout.py is written from the modules there; rows of
earlier versions stay, so that the guards of earlier releases are recognised. With --check nothing is written, and the
exit code is 1 if the table or the options are stale.
"""

from __future__ import annotations

import hashlib
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

from wheel_checks.sources.installers.options import options_of, valued, with_effect
from wheelproof.pins.guard.inside import layout

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "wheel_checks" / "data" / "guard_program.toml"
PROGRAM = ROOT / "tools" / "wheelproof" / "pins" / "guard" / "inside"
OPTIONS = PROGRAM / "options.py"
OPTIONS_HEAD = '''\
"""Options of pip and uv, written by ci/update_guard_program.py from wheel_checks/data/install_commands.toml."""
'''
HEAD = """\
# The program that `wheelproof pins guard --install` puts into an environment, by version: the digests of its modules,
# and the text of a front program. Written by ci/update_guard_program.py from tools/wheelproof/pins/guard/inside.
"""


def options_text() -> str:
    """The text of the module with the options."""
    run, sync = options_of("uv run"), options_of("uv sync")
    shared = with_effect("uv remove", "index", "search", "folder", "python", "network", "builds", "none")
    sets = {
        "PIP_VALUED": valued("pip"),
        "PIP_PLACES": with_effect("pip install", "target", "prefix"),
        "UV_VALUED": valued("uv"),
        "UV_PLACES": with_effect("uv pip install", "target", "prefix"),
        "UV_VENV_VALUED": valued("uv venv"),
        "UV_RUN_VALUED": valued("uv run"),
        "UV_RUN_ONLY": {name for name in run if name not in sync or sync[name].takes_value != run[name].takes_value},
        "UV_SHARED": shared - valued("uv remove"),
        "UV_SHARED_VALUED": shared & valued("uv remove"),
    }
    lines = [OPTIONS_HEAD]
    for name, options in sets.items():
        text = textwrap.fill(" ".join(sorted(options)), 116, break_on_hyphens=False)
        lines.append(f'{name} = frozenset(\n    """\n{textwrap.indent(text, "    ")}\n    """.split()\n)')
    return "\n".join(lines) + "\n"


def current() -> dict[str, Any]:
    """The row of the program as it is here."""
    modules = {path.name: digest(path.read_bytes()) for path in sorted(PROGRAM.glob("*.py"))}
    row = {"version": layout.VERSION, "main": digest(layout.MAIN_TEXT.encode()), "front": layout.FRONT}
    return {**row, "modules": modules}


def digest(data: bytes) -> str:
    """The sha256 of ``data``."""
    return hashlib.sha256(data).hexdigest()


def text_of(rows: list[dict[str, Any]]) -> str:
    """The table with these rows."""
    lines = [HEAD]
    for row in rows:
        lines += ["[[program]]", f"version = {row['version']}", f'main = "{row["main"]}"']
        lines += [f"front = '''\n{row['front']}'''", "[program.modules]"]
        lines += [*(f'"{name}" = "{found}"' for name, found in row["modules"].items()), ""]
    return "\n".join(lines)


def main() -> int:
    """Write or check the options and the table."""
    fits = OPTIONS.exists() and OPTIONS.read_text(encoding="utf-8") == options_text()
    if "--check" not in sys.argv[1:]:
        OPTIONS.write_text(options_text(), encoding="utf-8")
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))["program"] if TABLE.exists() else []
    text = text_of([*(row for row in rows if row["version"] != layout.VERSION), current()])
    if "--check" in sys.argv[1:]:
        fits = fits and TABLE.exists() and TABLE.read_text(encoding="utf-8") == text
        print("the table fits" if fits else "run python ci/update_guard_program.py")
        return 0 if fits else 1
    TABLE.write_text(text, encoding="utf-8")
    print(f"version {layout.VERSION}: {len(current()['modules'])} modules")
    return 0


if __name__ == "__main__":
    sys.exit(main())
