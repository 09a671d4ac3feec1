"""Pages in Chromium: what is there after loading, and what the console says."""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

from tests.conftest import find_chromium
from tests.support.patience import PATIENCE

_QUIET = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
_QUIET += ["--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND"]


def chromium(tmp_path: Path, page: str, *options: str) -> tuple[str, str]:
    """The DOM after loading ``page``, and the lines that it wrote to the console."""
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    return chromium_file(tmp_path, file, *options)


def chromium_file(tmp_path: Path, file: Path, *options: str) -> tuple[str, str]:
    """The DOM after loading the page in ``file``, and the lines that it wrote to the console."""
    program = find_chromium()
    assert program is not None, "a test of the browser lane runs without Chromium"
    command = [program, "--headless", "--no-sandbox", *_QUIET, f"--user-data-dir={tmp_path / 'profile'}"]
    command += ["--enable-logging=stderr", "--dump-dom", *options, file.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=PATIENCE, check=True)
    return done.stdout, "\n".join(line for line in done.stderr.splitlines() if "CONSOLE" in line)


def read_result(dom: str) -> Any:
    """What a script of the page wrote, as JSON, into ``<pre id="result">``."""
    found = re.search(r'<pre id="result">(.*?)</pre>', dom, re.DOTALL)
    assert found is not None
    return json.loads(html.unescape(found.group(1)))
