"""Find the interpreter under diagnosis, and read its facts when started as by its user."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from wheel_checks.errors import WheelproofError
from wheel_checks.facts.elf.file import read_elf_file
from wheel_checks.facts.host.probes import ChildEnd
from wheel_checks.facts.host.software import DANGLING, NOT_EXECUTABLE, TOO_OLD, Interpreter
from wheel_checks.formats.elf.file import ElfFacts, Part
from wheel_checks.model import Unavailable
from wheel_checks.process.child import find_program
from wheel_checks.sources.environment import Environment, find_environment
from wheel_checks.sources.file_tree import FileTree
from wheel_checks.targets.target import OLDEST_GLIBC, OLDEST_PYTHON, Target
from wheelproof.doctor.child_output import INSIDE, ChildOutput
from wheelproof.doctor.children import NOT_STARTED, Budget, run_child

SECONDS = 10.0  # one with an endless .pth file is killed then
PROGRAM = "interpreter.py"
MOST_TAGS = 40
MOST_ENTRIES = 10_000  # of the working directory that are inspected
_LARGEST_CONFIG = 64 * 1024  # bytes of pyvenv.cfg

_ANY_X = stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH
_NO_ANNOTATIONS = "future feature annotations"  # the error of an older Python about our program

_VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX")  # which name the active environment, in this order
_NAMES = ("python3", "python")


def read_interpreter(
    root: str = "/", python: str = "", environ: Mapping[str, str] | None = None, budget: Budget | None = None
) -> Interpreter | Unavailable:
    """The interpreter ``python`` (one, its environment's folder, or a name on PATH), else the active environment's,
    else the first on PATH; started with the variables ``environ``.

    One that does not run, or is below another ``root``, is described by its files.
    """
    environ = os.environ if environ is None else environ
    try:
        if root != "/":
            return _of_files(find_environment(python, variables=environ, root=root))
        choice = _choose(python, environ)
        if isinstance(choice, Unavailable):
            return choice
        program, why = choice
        command = [program, "-B", str(INSIDE / PROGRAM)]
        answer = ChildOutput(
            *run_child(command, deadline=(budget or Budget(SECONDS)).step(SECONDS), environment=environ)
        )
        if "search_path" in answer.values:
            return _of_answer(program, why, answer.values)
    except WheelproofError as error:
        return Unavailable(error.what, error.hint or error.expected)
    fault, start_fault = _how_it_ended(answer.end), _start_fault(program, answer.end)
    try:
        return _of_files(find_environment(program, variables=environ), found=why, fault=fault, obstacle=start_fault)
    except WheelproofError:
        return Unavailable(f"{program} is not a working Python: {fault}", "name an interpreter: --python PATH")


def _choose(python: str, environ: Mapping[str, str]) -> tuple[str, str] | Unavailable:
    """The program to start, and why."""
    if python:
        on_path = "" if "/" in python or os.path.exists(python) else find_program(python, environ)
        return _program(on_path or python, environ), "asked for"
    for name in _VARIABLES:
        if environ.get(name, "").startswith("/"):  # a relative one means another environment in every folder
            try:
                return _program(environ[name], environ), f"{name} names it"
            except WheelproofError as error:
                return Unavailable(f"{name} names {environ[name]}: {error.what}", f"unset {name}, or --python PATH")
    for name in _NAMES:
        if path := find_program(name, environ):
            return path, f"the first {name} on PATH"
    return Unavailable("no active environment, and no python3 on PATH", "name an interpreter: --python PATH")


def _program(path: str, environ: Mapping[str, str]) -> str:
    """The interpreter at ``path``, which may be its environment's folder. Raises NotFoundError."""
    absolute = os.path.abspath(path)  # noqa: PTH100  # links stay: a virtual environment's leads out of it
    if os.path.isfile(absolute):
        return absolute
    inside = (f"{absolute}/bin/{name}" for name in _NAMES)
    found = next((name for name in inside if os.access(name, os.X_OK)), "")
    return found or find_environment(absolute, variables=environ).interpreter or absolute


def _of_answer(program: str, why: str, answer: Mapping[str, Any]) -> Interpreter:
    """The facts that the program reported; the machine is read from the binary."""
    path = answer["executable"] or program
    tree = FileTree()
    machine, loader = _binary(tree, path)
    started = _binary(tree, program)[0]  # a version manager's script has no machine
    name, _, version = answer["libc"].partition(" ")
    libc = (name, version) if version else ("musl", "") if "ld-musl" in loader else ("", "")
    return Interpreter(
        path=path,
        found=why if started else f"{why}: {program} starts it",
        version=answer["version"],
        implementation=answer["implementation"],
        prefix=answer["prefix"],
        base_prefix=answer["base_prefix"],
        purelib=answer["purelib"],
        platlib=answer["platlib"],
        search_path=tuple(answer["search_path"]),
        working_directory=_working_directory(),
        include=answer["include"],
        python_h=answer["python_h"],
        machine=machine,
        libc=libc,
        tags=_tags(answer["implementation"], answer["version"], machine, libc, free_threaded=answer["free_threaded"]),
        free_threaded=answer["free_threaded"],
        user_site=answer["user_site"],
        externally_managed=answer["externally_managed"],
        has_pip=answer["has_pip"],
        local_modules=_local_modules() if "" in answer["search_path"] else (),
    )


def _local_modules() -> tuple[str, ...]:
    """Modules in the working directory with names of the standard library."""
    found = []
    try:
        with os.scandir() as entries:
            for entry in islice(entries, MOST_ENTRIES):
                name, _, suffix = entry.name.partition(".")
                is_module = suffix == "py" or (not suffix and os.path.isfile(f"{entry.name}/__init__.py"))
                if is_module and name in sys.stdlib_module_names:
                    found.append(entry.name)
    except OSError:
        return ()
    return tuple(sorted(found))


def _working_directory() -> str:
    """The current folder, "" when it has been removed."""
    try:
        return os.getcwd()  # noqa: PTH109  # a text, as all paths of an interpreter
    except OSError:
        return ""


def _of_files(
    environment: Environment, found: str = "", fault: str = "", obstacle: str = ""
) -> Interpreter | Unavailable:
    """The facts in an environment's files, if its interpreter cannot be run."""
    tree, entries = environment.tree, environment.entries
    if not environment.interpreter:
        environment, gone = _with_dangling_link(environment)
        fault, obstacle = gone or fault, DANGLING if gone else obstacle
    if not environment.interpreter or environment.python is None:
        return Unavailable(f"there is no interpreter in {environment.path}", "--python PATH names one")
    own = [entry for entry in entries if entry.origin == "site-packages"] or list(entries)
    _, loader = _binary(tree, environment.interpreter)
    base = _base_prefix(environment)
    version = f"{environment.python[0]}.{environment.python[1]}"
    library = f"python{version}{'t' * environment.free_threaded}"
    include = f"{base}/include/{library}"
    return Interpreter(
        path=environment.interpreter,
        found=found or environment.found,
        version=f"{version}.{environment.patch}" if environment.patch is not None else version,
        implementation="cpython",
        prefix=environment.path,
        base_prefix=base,
        purelib=own[0].path,
        platlib=own[-1].path,
        search_path=tuple(entry.path for entry in entries),
        working_directory="",
        include=include,
        python_h=tree.is_file(f"{include}/Python.h"),
        machine=environment.machine,
        libc=("musl", "") if "ld-musl" in loader else ("", ""),
        free_threaded=environment.free_threaded,
        user_site=next((entry.path for entry in entries if entry.origin == "the user's site-packages"), ""),
        externally_managed=tree.is_file(f"{base}/lib/python{version}/EXTERNALLY-MANAGED"),
        has_pip=any("pip" in entry.names for entry in entries),
        fault=fault,
        obstacle=obstacle,
    )


def _with_dangling_link(environment: Environment) -> tuple[Environment, str]:
    """The environment with the link that should lead to its interpreter, and where that leads: to nothing.

    The same environment and "" if there is no such link.
    """
    for name in _NAMES:
        link = Path(environment.tree.root, f"{environment.path}/bin/{name}".lstrip("/"))
        if link.is_symlink() and not link.exists():
            gone = f"it is a link to {os.readlink(link)}, which does not exist"  # noqa: PTH115  # a text
            return replace(environment, interpreter=f"{environment.path}/bin/{name}"), gone
    return environment, ""


def _start_fault(program: str, end: ChildEnd) -> str:
    """Why it could not be started, if the reason is known; else ""."""
    if _NO_ANNOTATIONS in end.output:
        return TOO_OLD
    try:
        mode = os.stat(program).st_mode  # noqa: PTH116  # a text, as all paths of an interpreter
    except OSError:
        return ""
    return NOT_EXECUTABLE if end.exit_code == NOT_STARTED and not mode & _ANY_X else ""


def _base_prefix(environment: Environment) -> str:
    """The prefix of the installation that a virtual environment was made from, by ``home`` of pyvenv.cfg."""
    content = environment.tree.read(f"{environment.path}/pyvenv.cfg", _LARGEST_CONFIG) or b""
    home = re.search(r"^home\s*=\s*(/.*?)/?\s*$", content.decode("utf-8", "replace"), re.MULTILINE)
    return os.path.dirname(home[1]) or "/" if home else environment.path  # noqa: PTH120  # a path of the tree


def _binary(tree: FileTree, path: str) -> tuple[str, str]:
    """The machine of a program and its loader (PT_INTERP); "" if it is no ELF file."""
    elf, _ = read_elf_file(tree, path, {Part.INTERPRETER})
    if not isinstance(elf, ElfFacts):
        return "", ""
    return elf.header.machine, elf.interpreter if isinstance(elf.interpreter, str) else ""


def _tags(
    implementation: str, version: str, machine: str, libc: tuple[str, str], *, free_threaded: bool
) -> tuple[str, ...]:
    """The wheel tags that CPython takes on a machine with glibc, best first; none elsewhere."""
    python, glibc = (re.match(r"(\d+)\.(\d+)", text) for text in (version, libc[1]))
    if implementation != "cpython" or libc[0] != "glibc" or machine not in OLDEST_GLIBC or not (python and glibc):
        return ()
    numbers = int(python[1]), int(python[2])
    if numbers < OLDEST_PYTHON:
        return ()
    target = Target(numbers, machine, (int(glibc[1]), int(glibc[2])), free_threaded)
    return tuple(map(str, islice(target.supported_tags(), MOST_TAGS)))


def _how_it_ended(end: ChildEnd) -> str:
    lines = end.output.splitlines()
    telling = [line for line in lines if "rror" in line or "not found" in line] or lines
    ending = f": {telling[-1].strip()}" if telling else ""
    if end.hang:
        return f"it did not answer within {end.seconds:.0f} s{ending}"
    if end.signal:
        return f"it was killed by {end.signal}{ending}"
    if _NO_ANNOTATIONS in ending:
        return TOO_OLD
    return f"it exited with code {end.exit_code}{ending}"
