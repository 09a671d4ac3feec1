"""Write ``docs/reference``: the commands, the settings, the documents and the tables, from their sources.

``--check`` writes nothing and exits 1 when a page is stale.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a script finds only modules in its own folder

from ci.command_line import read_commands  # noqa: E402  # found by the line above
from ci.reference import commands, kernels, schemas, settings, tables  # noqa: E402  # as above
from ci.reference.markdown import page  # noqa: E402  # as above

FOLDER = ROOT / "docs" / "reference"
INDEX = """\
Made from the parsers, the schemas, the rules and the tables themselves by `ci/update_reference.py` and
`ci/update_rule_pages.py`, so that it says what this version does.

- [Commands](commands/index.md): every option, and the [options that most share](commands/common_options.md)
- [Exit codes](exit-codes.md), and the messages that end a command
- [Configuration](configuration.md): every key, and its environment variable
- [Rules](../rules/README.md): every rule, why it exists, an example, the fix
- [Documents](schemas/index.md): the JSON that is written and read
- [Describing kernels](kernels.md): what a file for `wheelproof smoke --kernels` is made of
- [Tables](tables/index.md): drivers, products, builds and releases, with dates and sources"""


def files() -> dict[str, str]:
    """The text of every file by its path below ``docs/reference``."""
    command_line = read_commands()
    return {
        "index.md": page("Reference", INDEX),
        "exit-codes.md": settings.exit_codes(),
        "configuration.md": settings.configuration(command_line),
        **commands.pages(command_line),
        **schemas.pages(),
        **tables.pages(),
        **kernels.pages(),
    }


def main() -> int:
    """Write or check the files; 1 when ``--check`` finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    wanted = files()
    found = (path for path in FOLDER.rglob("*") if path.is_file())
    present = {path.relative_to(FOLDER).as_posix(): path.read_text(encoding="utf-8") for path in found}
    stale = sorted(name for name in wanted.keys() | present.keys() if wanted.get(name) != present.get(name))
    if check:
        if stale:
            sys.stderr.write(f"docs/reference is stale ({', '.join(stale)}): run `python ci/update_reference.py`\n")
        return bool(stale)
    for name in stale:
        path = FOLDER / name
        if name in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[name], encoding="utf-8")
        else:
            path.unlink()
    print(f"{len(wanted)} files, {len(stale)} written or removed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
