"""The optional packages: what each extra of the distribution names, and the command that installs it.

The command names the packages themselves and the Python that runs this, so that it is right in a checkout, in an
install and in an environment without a ``pip`` on its PATH; pip is among our own dependencies.
"""

import sys
from collections.abc import Mapping

from wheel_checks.commands import in_words, path, requirement, run

# extra: what it names in pyproject.toml; a test compares the two
REQUIREMENTS: Mapping[str, tuple[str, ...]] = {
    "docker": ("docker>=7",),
    "mcp": ("mcp>=2",),
    "provenance": ("pypi-attestations>=0.0.30",),
    "release": ("readme-renderer>=44", "trove-classifiers"),
    "rocm": ("backports.zstd>=1.0",),
}


def how_to_install(extra: str) -> str:
    """The command that installs the packages of ``extra`` for this Python. Raises KeyError for an unknown extra."""
    packages = (requirement(text) for text in REQUIREMENTS[extra])
    return in_words(run(path(sys.executable), "-m", "pip", "install", operands=packages))
