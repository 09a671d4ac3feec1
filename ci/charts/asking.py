"""Run `wheelproof verify` on wheels of the public index, without the local configuration of pip."""

from __future__ import annotations

import contextlib
import io
import json
import os
from typing import Any
from unittest.mock import patch

from wheelproof.cli.main import main


def verify(*arguments: str) -> dict[str, Any]:
    """The report of the command with these arguments."""
    set_here = {name for name in os.environ if name.startswith(("PIP_", "UV_"))} - {"PIP_CERT"}
    public = {name: value for name, value in os.environ.items() if name not in set_here}
    public["PIP_CONFIG_FILE"] = os.devnull
    output = io.StringIO()
    with patch.dict(os.environ, public, clear=True), contextlib.redirect_stdout(output):
        main(["verify", *arguments, "--format", "json"])
    report: dict[str, Any] = json.loads(output.getvalue())
    return report
