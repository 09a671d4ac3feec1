"""Renderers: each module has ``render(report, stream)``. A renderer never decides and trusts no string."""

from __future__ import annotations

import importlib
from typing import Any, TextIO

from wheel_checks.errors import UsageError
from wheel_checks.formats.secrets import redacted
from wheel_checks.model import Report

_MODULES = {
    "text": "text",
    "json": "json_report",
    "junit": "junit",
    "sarif": "sarif",
    "markdown": "markdown",
    "github": "github",
    "gitlab": "gitlab",
    "html": "html_report",
}

FORMATS = tuple(_MODULES)


def render(report: Report, stream: TextIO, format: str, **options: Any) -> None:  # noqa: A002  # the option's own name
    """Write ``report`` to ``stream`` in one of ``FORMATS``, without the secrets that got into it.

    The renderer's module is imported only now.

    ``options`` are those of :func:`wheel_checks.report.text.render` (color, width, quiet, verbose); they say how much
    people want to see and how, so every other format ignores them. Raises UsageError for an unknown format.
    """
    if format not in _MODULES:
        raise UsageError(f"unknown report format {format!r}", expected=f"one of {', '.join(FORMATS)}")
    renderer = importlib.import_module(f"wheel_checks.report.{_MODULES[format]}")
    renderer.render(redacted(report), stream, **(options if format == "text" else {}))


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of the json format, ``wheelproof.report/1``."""
    import json  # whoever declares --format need not pay for this, nor for the next
    from importlib.resources import files

    text = files("wheel_checks.report").joinpath("report.schema.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
