"""Formats of plug-ins: a function ``render(report, stream)`` that writes a report in a child."""

from typing import TextIO

from wheel_checks.formats.secrets import redacted
from wheel_checks.model import Report
from wheelproof.plugins.calling import call, fault_of
from wheelproof.plugins.child import RENDER, Task
from wheelproof.plugins.installed import Plugin


def render(plugin: Plugin, report: Report, stream: TextIO) -> None:
    """Write what the plug-in makes of the report, which has no secrets. Raises PluginFaultError."""
    answers, fault = call(plugin, Task(RENDER, plugin.value, given=(redacted(report),)))
    if fault or not answers:
        raise fault_of(plugin, fault or "wrote nothing", hint="--also json=FILE keeps the report in any case")
    stream.write(str(answers[0]["text"]))
