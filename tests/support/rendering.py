"""Renders into a string, and reads workflow commands back."""

from __future__ import annotations

import contextlib
import io
import json
from typing import Any
from xml.etree import ElementTree as ET

from tests.support import reports
from wheel_checks.model import Report
from wheel_checks.report import FORMATS, render


def rendered(report: Report, format: str, **options: Any) -> str:  # noqa: A002  # the option's own name
    stream = io.StringIO()
    render(report, stream, format, **options)
    return stream.getvalue()


def formats_for_people() -> list[str]:
    """The formats that are neither JSON nor XML."""
    return [name for name in FORMATS if not _is_document(rendered(reports.passing(), name))]


def _is_document(text: str) -> bool:
    for parse, fault in ((json.loads, ValueError), (ET.fromstring, ET.ParseError)):
        with contextlib.suppress(fault):
            parse(text)
            return True
    return False


def workflow_commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Reads lines as the runner does: ``::name key=value,key=value::data``, unescaping the percent sign last."""

    def unescape(value: str, *pairs: tuple[str, str]) -> str:
        for escape, character in (("%0D", "\r"), ("%0A", "\n"), *pairs, ("%25", "%")):
            value = value.replace(escape, character)
        return value

    found = []
    for line in text.splitlines():
        if not line.lstrip().startswith("::"):
            continue
        head, separator, data = line.lstrip()[2:].partition("::")
        assert separator, f"{line!r} is not a command"
        name, _, listed = head.partition(" ")
        properties = {}
        for item in filter(None, listed.split(",")):
            key, _, value = item.partition("=")
            properties[key] = unescape(value, ("%3A", ":"), ("%2C", ","))
        found.append((name, properties, unescape(data)))
    return found
