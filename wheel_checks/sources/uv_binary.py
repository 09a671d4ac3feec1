"""The program uv, and the index that it asks by default: no host of an index is written in our code."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess

from wheel_checks.errors import SourceError, UsageError

_DEFAULT = re.compile(r"--default-index <\w+>\s+[^<]*\(by\s+default:\s+<(https?://[^>\s]+)>")
_TIMEOUT = 30  # seconds


def find_uv() -> str:
    """The path of uv: of its Python package, else of the search path. Raises SourceError when there is none."""
    try:
        from uv import find_uv_bin

        return find_uv_bin()
    except (ImportError, FileNotFoundError):
        found = shutil.which("uv")
    if found is None:
        raise SourceError("uv, which resolves requirements, is not installed", hint="python -m pip install uv")
    return found


@functools.cache
def default_index() -> str:
    """The URL of uv's default index, which is pip's too. Raises UsageError when uv is missing or names none."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    try:
        command = [find_uv(), "pip", "compile", "--help"]
        help_text = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env=environment | {"NO_COLOR": "1"},
            timeout=_TIMEOUT,
            check=False,
        ).stdout
    except (OSError, SourceError, subprocess.SubprocessError):
        help_text = ""
    if match := _DEFAULT.search(help_text):
        return match[1]
    raise UsageError(
        "no index is configured, and uv, whose default would be used, did not name it",
        hint="name one with --index-url",
    )
