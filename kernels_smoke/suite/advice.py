"""What to do about a finding: sentences, and commands as data. Imports neither torch nor triton.

A command is a mapping whose keys say what it is, as in the JSON report of wheelproof: ``argv`` (a vector of arguments),
``commands`` (vectors that read each other's output), ``names`` (variables to remove), ``name`` and ``value`` (one to
set), ``program`` and ``options`` (options to add to a command that the reader has). All have a ``note``: plain words.
"""

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
    """What finds the torch, and the Triton that belongs to it, which fit the driver, the GPU and all that is installed.

    A newer torch or Triton by itself would replace what other packages pin.
    """
    return command("wheelproof", "doctor", "--python", sys.executable, note=note)


def pipe(*commands: Sequence[str], note: str = "") -> Advice:
    """Programs of which each reads what the one before it prints."""
    return {"commands": [list(argv) for argv in commands], "note": note}


def unset(name: str, note: str = "") -> Advice:
    """A variable of the shell to remove."""
    return {"names": [name], "note": note}


def export(name: str, value: str | Sequence[str], note: str = "") -> Advice:
    """A variable of the shell to set, to what a program prints when ``value`` is a vector."""
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
