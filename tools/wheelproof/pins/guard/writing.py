"""Writes the files of a guard into one folder, each complete or not at all."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from wheel_checks.errors import SourceError
from wheelproof.pins import atomic


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write ``files`` (name to text) into ``folder``, which is made when it is not there; nothing else is touched.

    A file that is there is replaced in one step. Raises SourceError when one cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"the folder {folder} cannot be made: {error.strerror}") from error
    for name, text in files.items():
        temporary = folder / f".{name}-{os.urandom(6).hex()}.tmp"
        try:
            atomic.write_beside(folder / name, temporary, text.encode())
            atomic.replace(temporary, folder / name)
        finally:
            atomic.remove(temporary)
