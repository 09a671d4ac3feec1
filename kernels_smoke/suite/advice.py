"""Fixes for findings: sentences, and commands as data. Imports neither torch nor triton.

A command is a mapping with the keys of wheelproof's JSON report: ``argv`` (a vector of arguments), ``commands``
(vectors that read each other's output), ``names`` (variables to remove), ``name`` and ``value`` (one to set),
``program`` and ``options`` (options to add to a command that the reader has). All have a ``note`` in plain words.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any

Advice = str | Mapping[str, Any]


def command(*argv: str, note: str = "") -> Advice:
    """A program with its arguments."""
    return {"argv": list(argv), "note": note}


def pip(*arguments: str, note: str = "") -> Advice:
    """Pip of this interpreter."""
    return command(sys.executable, "-m", "pip", *arguments, note=note)


def doctor(note: str = "") -> Advice:
    """The command that finds a torch, and its Triton, for the driver, the GPU and the installed packages.

    A newer torch or Triton by itself would replace a version that other packages pin.
    """
    return command("wheelproof", "doctor", "--python", sys.executable, note=note)


def pipe(*commands: Sequence[str], note: str = "") -> Advice:
    """Programs that each read the output of the one before."""
    return {"commands": [list(argv) for argv in commands], "note": note}


def unset(name: str, note: str = "") -> Advice:
    """A variable of the shell to remove."""
    return {"names": [name], "note": note}


def export(name: str, value: str | Sequence[str], note: str = "") -> Advice:
    """A variable of the shell to set, to the output of a program if ``value`` is a vector."""
    return {"name": name, "value": value, "note": note}


def docker_run(*options: str, note: str = "in a container") -> Advice:
    """Options to start the container with."""
    return {"program": ["docker", "run"], "options": list(options), "note": note}


def operand(path: object) -> str:
    """A path as an argument that no program takes for an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def shown(advice: Advice) -> str:
    """The advice as one line; every argument is quoted for a POSIX shell as far as it must be."""
    if isinstance(advice, str):
        return advice
    if "argv" in advice:
        text = shlex.join(advice["argv"])
    elif "commands" in advice:
        text = " | ".join(map(shlex.join, advice["commands"]))
    elif "names" in advice:
        text = f"unset {' '.join(advice['names'])}"
    elif "name" in advice:
        value = advice["value"]
        quoted = shlex.quote(value) if isinstance(value, str) else f'"$({shlex.join(value)})"'
        text = f"export {advice['name']}={quoted}"
    else:
        text = f"add to `{shlex.join(advice['program'])}`: {shlex.join(advice['options'])}"
    return f"{text}  # {advice['note']}" if advice["note"] else text
