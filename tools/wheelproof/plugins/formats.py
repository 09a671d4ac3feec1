"""Formats of plug-ins: a function ``render(report, stream)`` that writes a report in a child."""

from __future__ import annotations

from typing import TextIO

from wheel_checks.formats.secrets import redacted
from wheel_checks.model import Report
from wheelproof.plugins.calling import call, fault_of
from wheelproof.plugins.child import RENDER, Task
from wheelproof.plugins.installed import Plugin


def render(plugin: Plugin, report: Report, stream: TextIO) -> None:
    """Write the report as the plug-in renders it, without secrets. Raises PluginFaultError."""
    answers, fault = call(plugin, Task(RENDER, plugin.value, given=(redacted(report),)))
    if fault or not answers:
        raise fault_of(plugin, fault or "wrote nothing", hint="--also json=FILE keeps the report in any case")
    stream.write(str(answers[0]["text"]))
