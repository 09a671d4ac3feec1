"""Reports that were written before, for commands that show them again."""

from __future__ import annotations

from collections.abc import Sequence

from wheel_checks.errors import FormatError
from wheel_checks.model import Report


def read_reports(paths: Sequence[str]) -> list[Report]:
    """The reports in files, folders and standard input. Raises FormatError for anything else, NotFoundError."""
    from wheel_checks.formats.secrets import redacted
    from wheel_checks.report.json_reading import read_report
    from wheelproof.fleet.inputs import find_inputs, read_inputs

    found = []
    for document in read_inputs(find_inputs(paths), lambda _: None):
        if isinstance(document.content, FormatError):
            raise FormatError(f"{document.source} is not a report: {document.content.what}")
        found.append(redacted(read_report(document.content, document.source)))
    return found
