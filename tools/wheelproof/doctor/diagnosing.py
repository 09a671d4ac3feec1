"""``wheelproof.doctor.diagnose``: what the command finds out, for a program."""

import os
from pathlib import Path

from wheel_checks.errors import UsageError
from wheel_checks.facts.gpu.expected import parse_host_expectation
from wheel_checks.interrupts import left_alone
from wheelproof.doctor.diagnosis import Diagnosis
from wheelproof.doctor.facts_file import load_facts
from wheelproof.doctor.reading import Request, read_host
from wheelproof.doctor.report import Examination, examine


def diagnose(
    *,
    python: str | os.PathLike[str] = "",
    expect: str = "",
    root: str | os.PathLike[str] = "/",
    timeout: float = 60.0,
    facts: str | os.PathLike[str] | None = None,
) -> Diagnosis:
    """Why torch does not see the GPU here, as ``wheelproof doctor`` finds it out; nothing is changed.

    ``python`` is the interpreter or environment that is inspected, ``expect`` what the host should have ("4 x GB200"),
    ``timeout`` in seconds. ``facts`` is a file of ``wheelproof doctor --save-facts``, which is judged instead.

    Raises UsageError for an argument that means nothing, and WheelproofError for a file that cannot be read.
    """
    return examination(python=python, expect=expect, root=root, timeout=timeout, facts=facts).diagnosis


def examination(
    *,
    python: str | os.PathLike[str] = "",
    expect: str = "",
    root: str | os.PathLike[str] = "/",
    timeout: float = 60.0,
    facts: str | os.PathLike[str] | None = None,
) -> Examination:
    """:func:`diagnose`, with what the diagnosis follows from."""
    expected = parse_host_expectation(expect) if expect else None
    if facts is not None:
        return examine(load_facts(os.fspath(facts)), expected)
    if not timeout > 0:
        raise UsageError(f"the timeout of {timeout:g} s is too short", expected="a number above 0")
    if not Path(root).is_dir():
        raise UsageError(f"{root} is not a folder", expected="a folder with etc, proc, usr, ... in it")
    with left_alone():
        return examine(read_host(Request(os.fspath(python), os.fspath(root), timeout), os.environ), expected)
