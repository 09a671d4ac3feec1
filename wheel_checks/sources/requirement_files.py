"""Files of requirements: how they are read, and which requirements pip would build."""

from __future__ import annotations

from pathlib import Path

from wheel_checks.errors import UsageError
from wheel_checks.parsing import requirement_or_none
from wheel_checks.sources.regular_file import read_whole

LARGEST = 16 << 20  # bytes of one file; the hashes of 500 packages are 2 MB
MOST = 1000  # files


def read_requirements_file(path: Path) -> bytes:
    """The content of a requirements file. Raises UsageError when it cannot be read."""
    try:
        return read_whole(path, LARGEST)
    except OSError as error:
        raise UsageError(f"the file {path} cannot be read: {error.strerror}") from error


def is_built(requirement: str) -> bool:
    """Whether pip builds what a requirement names, in spite of ``--only-binary``: a path or a URL that is not a
    wheel.
    """
    parsed = requirement_or_none(requirement)
    place = parsed.url if parsed else requirement.partition(";")[0].strip()
    return place is not None and not place.partition("#")[0].partition("?")[0].partition("[")[0].endswith(".whl")
