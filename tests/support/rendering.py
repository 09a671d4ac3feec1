"""Renders into a string, as every test here wants it."""

from __future__ import annotations

import io
from typing import Any

from wheel_checks.model import Report
from wheel_checks.report import render


def rendered(report: Report, format: str, **options: Any) -> str:  # noqa: A002  # the option's own name
    stream = io.StringIO()
    render(report, stream, format, **options)
    return stream.getvalue()
