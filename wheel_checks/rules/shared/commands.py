"""The commands by which ``wheelproof verify`` shows what an index has."""

from __future__ import annotations

from wheel_checks.commands import Command, NoCommand, Word, option, requirement, run
from wheel_checks.model import Unavailable
from wheel_checks.targets.target import Target


def look_at_index(name: str, machine: str) -> Command | NoCommand:
    """The command that lists every wheel of a project that the index has for a machine."""
    return run("wheelproof", "verify", requirement(f"{name}>=0"), option("--platform", machine), "--all-files")


def target_options(target: Target | Unavailable | None) -> tuple[Word, ...]:
    """The options that tell ``verify`` what for, such as ``--platform aarch64 --python 3.12``; none when unknown."""
    if target is None or isinstance(target, Unavailable):
        return ()
    return option("--platform", target.machine), option("--python", target.interpreter)
