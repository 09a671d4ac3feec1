"""Whether a wheel is the one that was installed: RECORD of the one, and RECORD of the other."""

import csv
import io
import re
from collections.abc import Mapping

_OF_INSTALLERS = re.compile(r"[^/]+\.dist-info/(?:RECORD|INSTALLER|REQUESTED|direct_url\.json|uv_\w+\.json)(?:\.\w+)?")

_MOVED = re.compile(r"[^/]+\.data/")


def rows_of(record: bytes) -> dict[str, str]:
    """What a RECORD says of the content of each file ("sha256=..."; "" where it says nothing); {} for a damaged one."""
    try:
        rows = list(csv.reader(io.StringIO(record.decode("utf-8", "replace"))))
    except csv.Error:
        return {}
    return {row[0]: row[1] if len(row) > 1 else "" for row in rows if row and row[0]}


def differing(wheel: bytes, installed: Mapping[str, str]) -> tuple[list[str], int]:
    """The paths whose content in the RECORD of a ``wheel`` is not the ``installed`` one, and how many were compared.

    What installers write themselves and what they move (``.data`` folders) is not compared.
    """
    compared = {
        path: digest
        for path, digest in rows_of(wheel).items()
        if digest and not _OF_INSTALLERS.fullmatch(path) and not _MOVED.match(path)
    }
    return [path for path, digest in compared.items() if installed.get(path) != digest], len(compared)
