"""The package index that this machine is configured to use, for tests marked ``online``."""

from __future__ import annotations

import functools
import subprocess
import sys

import pytest

from wheel_checks.errors import WheelproofError
from wheel_checks.sources.http import HttpClient


def require_index() -> str:
    """The URL of the index without a trailing slash; skips the test, saying why, when it does not answer."""
    url, failure = _ask()
    if failure:
        pytest.skip(f"the package index does not answer: {failure}")
    return url


@functools.cache
def _ask() -> tuple[str, str]:
    url = _configured_index()
    with HttpClient(timeout=5, deadline=10, retries=0) as client:
        try:
            client.get_page(f"{url}/wheel/", {"Accept": "text/html"})
        except WheelproofError as error:
            return url, str(error)
    return url, ""


def _configured_index() -> str:
    """pip's index-url (environment and configuration files), else pip's own default."""
    configured = subprocess.run(
        [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False
    ).stdout.strip()
    if configured:
        return configured.rstrip("/")
    from pip._internal.models.index import PyPI

    return str(PyPI.simple_url).rstrip("/")
