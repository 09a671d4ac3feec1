"""Import modules in the place of a cell, and print the result as a JSON object.

Its argument is a JSON object: "modules" are names; "projects" are distributions with all of their top-level modules.
Runs under the interpreter of the cell, from CPython 3.8 on, with the standard library and installed packages. A module
that crashes the process is the last one on standard error.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
import traceback
from typing import Any

SCHEMA = "wheelproof.import-modules/1"
LAST_LINES = 12
SUFFIXES = ("py", "so", "pyd")
NO_MODULES = ("bin", "etc", "include", "lib", "setup", "share", "test", "tests")  # at the top: data, or of its sources


def modules_of(project: str) -> list[str]:
    """The top-level modules of a distribution, by its files: packages, and modules outside of them; None if missing."""
    try:
        files = [file.parts for file in importlib.metadata.files(project) or ()]
    except importlib.metadata.PackageNotFoundError:  # its marker does not match here
        return []
    packages = {parts[:-1] for parts in files if len(parts) > 1 and parts[-1].partition(".")[0] == "__init__"}
    found = set()
    for *folders, name in files:
        stem, _, suffix = name.partition(".")
        if suffix.rpartition(".")[2] not in SUFFIXES:
            continue
        prefixes = (tuple(folders[:length]) for length in range(1, len(folders) + 1))
        module = next((prefix for prefix in prefixes if prefix in packages), (*folders, stem))
        if all(part.isidentifier() for part in module) and module[0] not in NO_MODULES and module[-1] != "__main__":
            found.add(".".join(module))
    return sorted(found)


def try_all(modules: list[str], projects: list[str]) -> dict[str, Any]:
    """The modules, and the end of the traceback of the first that cannot be imported."""
    names, error = list(modules), ""
    for project in projects:
        names += modules_of(project)
    for name in names:
        if error:
            break
        sys.stderr.write(f"importing {name}\n")
        sys.stderr.flush()
        try:
            importlib.import_module(name)
        except BaseException as raised:  # noqa: BLE001  # a module may raise anything, SystemExit too
            traceback.print_exc()
            lines = "".join(traceback.format_exception(type(raised), raised, raised.__traceback__)).splitlines()
            error = "\n".join([f"{name}: {type(raised).__name__}: {raised}", *lines[-LAST_LINES:]])
    return {"schema": SCHEMA, "what": names, "error": error}


def main() -> None:
    """Write the answer, and nothing that a module prints, to standard output."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    json.dump(try_all(**json.loads(sys.argv[1])), answer)
    answer.write("\n")
    answer.close()


if __name__ == "__main__":
    main()
