"""Plug-ins: what of a run they left unchecked."""

from __future__ import annotations

from collections.abc import Iterable

from wheel_checks.facts.plugin import PluginFault
from wheel_checks.model import Finding, Fix
from wheel_checks.registry import rule


@rule(
    "PLG001",
    "every plug-in that is installed can be used",
    why="A plug-in that is installed is expected to judge. One that cannot be imported, hangs, or has a rule, format "
    "or probe with a name that is taken would otherwise be left out in silence, and a pass would promise what it did "
    "not check.",
    example="acme-rules 1.0 registers the rule ACME001 and needs a package that is not installed",
    fix="Repair or remove the distribution that is named, or leave all plug-ins out with `--no-plugins`.",
    kind="plug-in",
)
def usable(fault: PluginFault, _: object) -> Iterable[Finding]:
    """The fault is what could not be decided."""
    yield Finding(fault.what, fix=Fix(fault.hint) if fault.hint else None, undecided=True)
