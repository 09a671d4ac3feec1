"""Imports packages for real and reports which native files were loaded; run by ci/real_import.py in a child process.

usage: python -I ci/import_probe.py TARGET DISTRIBUTION FIRST MODULES     (FIRST and MODULES: comma separated)

TARGET is the site-packages of the environment that runs it.

FIRST is imported before MODULES (torch, for an extension of it). Each native file of DISTRIBUTION is opened by dlopen
in a fork, once after FIRST and once after MODULES, so that one file cannot help or break the next. The answer is one
JSON object on the last line of standard output. Standard library only, for Python 3.10 and later.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.metadata
import json
import os
import re
import select
import signal
import sys
from pathlib import Path

NATIVE = re.compile(r"\.(?:so|pyd)(?:\.[0-9.]+)?$")
SECONDS = 60  # for the dlopen of one file


def main() -> None:
    """Import, open, and print the result."""
    target, distribution, first, modules = sys.argv[1:5]
    tried: list[str] = []
    sys.addaudithook(lambda event, arguments: _note(event, arguments, tried))
    answer: dict[str, object] = {"first": [_imported(name) for name in first.split(",") if name]}
    natives = _natives(target, distribution)
    answer["after_first"] = {name: _opened(f"{target}/{name}") for name in natives}
    del tried[:]
    answer["modules"] = [_imported(name) for name in modules.split(",") if name]
    answer["tried"] = list(dict.fromkeys(os.path.relpath(path, target) for path in tried if path.startswith(target)))
    answer["tried_by_name"] = list(dict.fromkeys(path for path in tried if not path.startswith("/")))
    answer["after_modules"] = {name: _opened(f"{target}/{name}") for name in natives}
    answer["mapped"] = _mapped(target)
    answer["owners"] = _owners(target)
    answer["version"] = importlib.metadata.Distribution.at(_dist_info(target, distribution)).version
    print("\n" + json.dumps(answer).replace(target + "/", ""))


def _note(event: str, arguments: tuple[object, ...], tried: list[str]) -> None:
    """Keeps the native files that the interpreter and ctypes are about to open."""
    path = arguments[0] if event == "ctypes.dlopen" else arguments[1] if event == "import" else None
    if isinstance(path, str) and path and NATIVE.search(path):
        tried.append(path)


def _imported(name: str) -> dict[str, str]:
    try:
        module, _, function = name.partition(":")
        imported = importlib.import_module(module)
        if function:
            getattr(imported, function)()
    except BaseException as error:  # noqa: BLE001 - any exception of an import is the answer
        return {"module": name, "error": f"{type(error).__name__}: {_chain(error)}"[:4000]}
    return {"module": name, "error": ""}


def _chain(error: BaseException) -> str:
    """The messages of an exception and its causes."""
    seen: list[str] = []
    step: BaseException | None = error
    while step is not None and len(seen) < 6:
        seen.append(str(step))
        step = step.__cause__ or step.__context__
    return " <- ".join(seen)


def _natives(target: str, distribution: str) -> list[str]:
    files = importlib.metadata.Distribution.at(_dist_info(target, distribution)).files or []
    return sorted(str(file) for file in files if NATIVE.search(file.name) and Path(target, file).is_file())


def _dist_info(target: str, distribution: str) -> str:
    wanted = re.sub(r"[-_.]+", "_", distribution).lower()
    for folder in sorted(Path(target).glob("*.dist-info")):
        if re.sub(r"[-_.]+", "_", folder.name.split("-")[0]).lower() == wanted:
            return str(folder)
    raise SystemExit(f"{target} has no {distribution}")


def _opened(path: str) -> str:
    """Empty when dlopen loads the file, otherwise the linker's message."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ctypes.CDLL(path, mode=os.RTLD_NOW)
            os.write(writing, b"+")
        except OSError as error:
            os.write(writing, str(error).encode()[:2000])
        finally:
            os._exit(0)
    os.close(writing)
    text = b""
    if select.select([reading], [], [], SECONDS)[0]:
        text = os.read(reading, 4000)
    else:
        os.kill(child, signal.SIGKILL)
        text = b"dlopen did not end"
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if text == b"+":
        return ""
    return text.decode(errors="replace") or f"dlopen ended the process (status {status})"


def _mapped(target: str) -> list[str]:
    """The native files of the process: with relative paths in the target, others in full."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    paths = {line.split(maxsplit=5)[-1] for line in maps if " /" in line}
    return sorted(
        os.path.relpath(path, target) if path.startswith(target + "/") else path
        for path in paths
        if NATIVE.search(path) and "/lib-dynload/" not in path
    )


def _owners(target: str) -> dict[str, str]:
    """Which distribution brought each native file of the target."""
    owners = {}
    for distribution in importlib.metadata.distributions(path=[target]):
        for file in distribution.files or []:
            if NATIVE.search(file.name):
                owners[str(file)] = f"{distribution.metadata['Name']} {distribution.version}"
    return owners


if __name__ == "__main__":
    main()
