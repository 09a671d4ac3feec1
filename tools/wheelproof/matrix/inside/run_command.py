"""Runs a command of the shell in place of a cell and says on standard output, as one JSON object, how it ended.

Its arguments are the command, the folder of the project, which replaces ``{project}``, and the pattern of the JUnit
reports that it writes in its folder ("" without any): their bytes are part of the answer. ``python`` is the interpreter
of the cell, and scripts of installed packages (``pytest``) can be called by name. Runs under that interpreter, from
CPython 3.8 on, with the standard library alone. The command's output goes to standard error.
"""

from __future__ import annotations

import base64
import importlib.metadata
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SCHEMA = "wheelproof.command/1"
LAST_LINES = 15
MOST_REPORTS = 64
LARGEST_REPORT, LARGEST_REPORTS = 8 << 20, 32 << 20  # bytes of one, and of all
KEPT = 16_000  # bytes of the end of the output
_SCRIPT = "import sys; from {module} import {first}; sys.argv[0] = {name!r}; sys.exit({attribute}())"


def write_programs(folder: Path) -> None:
    """``python``, ``python3`` and each console script of installed packages, as programs in ``folder``."""
    python = shlex.quote(sys.executable)
    programs = {"python": f'exec {python} "$@"', "python3": f'exec {python} "$@"'}
    for distribution in importlib.metadata.distributions():
        for entry in distribution.entry_points:
            module, _, attribute = entry.value.partition("[")[0].strip().partition(":")
            safe = all(part.isidentifier() for part in f"{module}.{attribute}".split("."))
            if entry.group == "console_scripts" and safe and "/" not in entry.name:
                first = attribute.partition(".")[0]
                code = _SCRIPT.format(module=module, first=first, name=entry.name, attribute=attribute)
                programs.setdefault(entry.name, f'exec {python} -c {shlex.quote(code)} "$@"')
    for name, line in programs.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        path.chmod(0o755)


def reports_in(folder: Path, pattern: str) -> list[dict[str, Any]]:
    """The files in ``folder`` that match a pattern: their names and their bytes, or why these are not there."""
    found, total = [], 0
    paths = sorted(folder.glob(pattern)) if pattern else []
    for path in paths[:MOST_REPORTS]:
        name = str(path.relative_to(folder))
        if path.is_symlink() or not path.is_file():
            found.append({"file": name, "fault": "it is not a regular file"})
        elif path.stat().st_size > LARGEST_REPORT:
            found.append({"file": name, "fault": f"it is larger than {LARGEST_REPORT >> 20} MiB"})
        elif total + path.stat().st_size > LARGEST_REPORTS:
            found.append({"file": name, "fault": f"the reports have more than {LARGEST_REPORTS >> 20} MiB together"})
        else:
            data = path.read_bytes()
            total += len(data)
            found.append({"file": name, "bytes": base64.b64encode(data).decode("ascii")})
    if len(paths) > MOST_REPORTS:
        found.append({"file": pattern, "fault": f"{len(paths)} files match, and {MOST_REPORTS} are read"})
    return found


def run(command: str, project: str, pattern: str) -> dict[str, Any]:
    """The reports of the command, and as "error" why it failed, with the end of its output; "" after status 0."""
    with tempfile.TemporaryDirectory() as name:
        programs, work = Path(name, "bin"), Path(name, "work")
        programs.mkdir()
        work.mkdir()
        write_programs(programs)
        search = os.pathsep.join([str(programs), os.environ.get("PATH", os.defpath)])
        shell = ["/bin/sh", "-c", command.replace("{project}", shlex.quote(project))]
        with subprocess.Popen(
            shell,
            cwd=str(work),
            env={**os.environ, "PATH": search},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        ) as child:
            assert child.stdout is not None  # noqa: S101  # PIPE was requested
            end = b""
            for piece in iter(lambda: os.read(child.stdout.fileno(), 1 << 16), b""):  # type: ignore[union-attr]  # as above
                os.write(2, piece)
                end = (end + piece)[-KEPT:]
        reports = reports_in(work, pattern)
    status = child.returncode
    how = f"exited with status {status}" if status > 0 else f"was killed by signal {-status}"
    error = "\n".join([f"it {how}", *end.decode(errors="replace").splitlines()[-LAST_LINES:]])
    return {"reports": reports, "error": error if child.returncode else ""}


def main() -> None:
    """Write the answer, and nothing that the command prints, to standard output."""
    answer = os.fdopen(os.dup(1), "w")
    os.set_inheritable(answer.fileno(), False)  # positional only
    command, project, pattern = sys.argv[1:]
    json.dump({"schema": SCHEMA, "what": [command], **run(command, project, pattern)}, answer)
    answer.write("\n")
    answer.close()


if __name__ == "__main__":
    main()
