"""Libraries that tests compile, each of them once: gcc takes as long as the rest of such a test."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

_built: dict[tuple[object, ...], bytes] = {}


def compile_once(path: Path, options: Sequence[str], source: str, needed: Sequence[Path] = ()) -> Path:
    """Make the shared library ``path`` of ``source``, linked against ``needed``, which have sonames; and return it.

    A copy of an earlier one when the options, the source and the contents of ``needed`` are the same.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    key = (*options, source, *(library.read_bytes() for library in needed))
    if key in _built:
        path.write_bytes(_built[key])
        path.chmod(0o755)
        return path
    command = ["gcc", "-shared", "-fPIC", "-o", str(path), *options, "-", "-x", "none", *map(str, needed)]
    subprocess.run(command, input=source, text=True, check=True, capture_output=True)
    _built[key] = path.read_bytes()
    return path
