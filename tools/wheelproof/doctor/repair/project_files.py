"""Files of the project in the working directory, and settings of the user, that bring a CPU torch build back.

They are read and never followed: nothing that they name is contacted or run.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.torch.origin import cpu_settings
from wheel_checks.formats.secrets import redact_text
from wheel_checks.sources.regular_file import read_start

_LARGEST = 1 << 20  # bytes of a file
_MOST_FILES = 64
_NAMES = ("pyproject.toml", "uv.toml", "uv.lock", "Pipfile", "environment.yml")
_REQUIREMENTS = re.compile(r"(?:requirements|constraints)[\w.-]*\.(?:txt|in)")
_BRINGS_CPU = (
    (re.compile(r"[^\s\"'=]{0,200}/whl/(?:\w+/)*cpu\b"), "names an index of CPU builds"),
    (re.compile(r"^\s*torch-backend\s*=\s*[\"']cpu[\"']"), "configures uv for CPU builds"),
    (re.compile(r"\btorch(?:vision|audio)?\s*===?\s*[\w.]+\+cpu\b"), "pins a CPU build"),
)


def bring_it_back(facts: HostFacts, folder: Path) -> Iterator[str]:
    """A sentence for each setting and each line of a project file after which an install is for the CPU again."""
    told = set()
    for setting in cpu_settings(facts):
        told.add(setting.source.partition(":")[0])
        yield f"{setting.source or setting.tool} still selects CPU builds ({setting.value}): correct it"
    for file in _files(folder):
        if str(file) not in told and (found := _first_line(file)):
            number, what, text = found
            yield f"{file}:{number} {what} ({text}): installing from that file restores the CPU build"


def _files(folder: Path) -> list[Path]:
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []
    chosen = [name for name in names if name in _NAMES or _REQUIREMENTS.fullmatch(name)]
    return [folder / name for name in chosen[:_MOST_FILES]]


def _first_line(file: Path) -> tuple[int, str, str] | None:
    try:
        text = read_start(file, _LARGEST).decode(errors="replace")
    except OSError:
        return None
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, what in _BRINGS_CPU:
            if found := pattern.search(line):
                return number, what, redact_text(found[0].strip())
    return None
