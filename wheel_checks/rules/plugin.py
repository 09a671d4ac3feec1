"""Plug-ins: what of a run they left unchecked."""

from collections.abc import Iterable

from wheel_checks.facts.plugin import PluginFault
from wheel_checks.model import Finding, Fix
from wheel_checks.registry import rule


@rule(
    "PLG001",
    "every installed plug-in can be used",
    why="An installed plug-in is expected to run. One that cannot be imported, hangs, or registers a rule, format or "
    "probe under a name already in use would otherwise be skipped silently, and a pass would claim checks that were "
    "not made.",
    example="acme-rules 1.0 registers the rule ACME001 but needs a package that is not installed",
    fix="Repair or remove the distribution that the finding names, or disable all plug-ins with `--no-plugins`.",
    kind="plug-in",
)
def usable(fault: PluginFault, _: object) -> Iterable[Finding]:
    """The fault is what could not be decided."""
    yield Finding(fault.what, fix=Fix(fault.hint) if fault.hint else None, undecided=True)
