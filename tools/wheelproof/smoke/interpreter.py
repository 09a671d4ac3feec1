"""Which Python runs the kernels: the one that was requested, else the first available one that has torch."""

import importlib.util
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.commands import in_words, path, run
from wheel_checks.errors import NotFoundError, SourceError
from wheel_checks.process import find_program
from wheel_checks.sources.environment import Environment, find_environment


@dataclass(frozen=True, slots=True)
class Interpreter:
    """``path`` of a Python interpreter, and why it was chosen."""

    path: str
    why: str


def find_interpreter(asked: str, variables: Mapping[str, str]) -> Interpreter:
    """The interpreter ``asked`` for: a path, a name on PATH (python3.12), or the folder of an environment.

    Without one that of this process, else that of the active environment (VIRTUAL_ENV, CONDA_PREFIX, the python3 on
    PATH): the first that has torch. Nothing is run to find out. Raises NotFoundError if none exists.
    """
    if asked:
        return Interpreter(_asked(asked, variables), "asked for")
    if importlib.util.find_spec("torch") is not None:  # of a top-level module this looks for files, and imports nothing
        return Interpreter(sys.executable, "it runs wheelproof and has torch")
    environment = _active(variables)
    if environment is None or not environment.interpreter or _same(environment.interpreter, sys.executable):
        raise _no_torch(sys.executable)
    if not any("torch" in entry.names for entry in environment.entries):
        raise _no_torch(sys.executable, f"{environment.interpreter} ({environment.found})")
    return Interpreter(environment.interpreter, environment.found)


def _asked(asked: str, variables: Mapping[str, str]) -> str:
    path = Path(asked)
    if path.is_dir():
        environment = find_environment(asked, variables=variables)
        if not environment.interpreter:
            raise NotFoundError(
                f"{environment.path} has no interpreter", expected="an environment with a working interpreter"
            )
        return environment.interpreter
    found = find_program(asked, variables)
    if found is None and path.exists():
        raise SourceError(f"{asked} cannot be run", expected="a Python interpreter")
    if found is None:
        raise NotFoundError(f"there is no {asked}", expected="an interpreter, or an environment folder")
    return os.path.abspath(found)  # noqa: PTH100  # a link stays a link: it is what makes an interpreter that of a venv


def _active(variables: Mapping[str, str]) -> Environment | None:
    try:
        return find_environment(variables=variables)
    except NotFoundError:
        return None


def _same(one: str, other: str) -> bool:
    """True for two names of one interpreter, which are the same folder of a bin and one file after them."""
    return os.path.realpath(one) == os.path.realpath(other) and Path(one).parent.samefile(Path(other).parent)


def _no_torch(*looked_at: str) -> NotFoundError:
    doctor = run("wheelproof", "doctor", "--python", path(looked_at[0]))
    return NotFoundError(
        f"torch is missing: {' and '.join(looked_at)} {'has' if len(looked_at) == 1 else 'have'} none",
        expected="an interpreter with torch and triton",
        hint=f"name one with --python PATH, or find out which build fits this host: {in_words(doctor)}",
    )
