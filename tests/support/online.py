"""The package index that this host is configured to use, for tests marked ``online``."""

from __future__ import annotations

import os
from pathlib import Path

from wheel_checks.sources.installers.config import configured_indexes


def configured_index() -> str:
    """Its URL without a trailing slash. The ``online`` marker has skipped the test when it does not answer."""
    return configured_indexes(os.environ, Path.cwd()).indexes[0].rstrip("/")
