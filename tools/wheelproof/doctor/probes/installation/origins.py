"""Which file sets a variable: start-up files of shells, systems and environments, or a container's first process."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from wheelproof.doctor.probes.files import text_of

# In the order in which they are read; the last one that sets a variable wins.
SYSTEM_FILES = (
    "/etc/environment",
    "/etc/security/pam_env.conf",
    "/etc/profile",
    "/etc/profile.d/*.sh",
    "/etc/bash.bashrc",
    "/etc/bashrc",
    "/etc/zsh/zshenv",
    "/etc/zshenv",
)
HOME_FILES = (
    ".pam_environment",
    ".config/environment.d/*.conf",
    ".profile",
    ".bash_profile",
    ".bash_login",
    ".bashrc",
    ".zshenv",
    ".zprofile",
    ".zshrc",
    ".config/fish/config.fish",
)
ENVIRONMENT_FILES = ("etc/conda/activate.d/*.sh", "bin/activate")
FOLDER_FILES = (".envrc", ".env")
MOST_FILES = 200


def read_origins(
    names: Iterable[str],
    environment: Mapping[str, str],
    *,
    root: str = "/",
    prefix: str = "",
    folder: str = "",
) -> Mapping[str, str]:
    """By the name of a variable that is set: the file and line that sets it ("/etc/environment:3").

    ``prefix`` is that of the Python environment, ``folder`` the working directory. A variable that no file sets, and
    with which the first process of a container was started, has the origin "/proc/1/environ". Nothing is run: what a
    file sets in other ways (by sourcing another, by a command) stays unknown, and such a variable is omitted.
    """
    files = list(_files(Path(root), environment.get("HOME", ""), prefix, folder))
    first = _first_process(Path(root))
    found = {}
    for name in names:
        if name not in environment:
            continue
        if places := [place for file, lines in files for place in _settings(name, file, lines)]:
            found[name] = places[-1]
        elif first.get(name) == environment[name]:
            found[name] = "/proc/1/environ"
    return found


def _files(root: Path, home: str, prefix: str, folder: str) -> Iterator[tuple[str, Sequence[str]]]:
    """The files that exist, by their path below ``root``, and their lines."""
    groups: list[tuple[str, Sequence[str]]] = [("/", SYSTEM_FILES), (home, HOME_FILES)]
    groups += [(prefix, ENVIRONMENT_FILES), (folder, FOLDER_FILES)]
    seen = 0
    for base, patterns in groups:
        start = root / base.lstrip("/")
        for pattern in patterns if base else ():
            for path in sorted(start.glob(pattern.lstrip("/"))):
                if (seen := seen + 1) > MOST_FILES:
                    return
                if text := text_of(path):
                    yield f"/{path.relative_to(root)}", text.splitlines()


def _settings(name: str, file: str, lines: Sequence[str]) -> Iterator[str]:
    """Where a file sets a variable: by ``export NAME=``, ``set -gx NAME``, ``setenv NAME``, or ``NAME DEFAULT=``."""
    setting = re.compile(rf"\s*(?:(?:export|declare|typeset|set|setenv)\s+(?:-\w+\s+)*)?{re.escape(name)}(?:=|\s+\S)")
    return (f"{file}:{number}" for number, line in enumerate(lines, 1) if setting.match(line))


def _first_process(root: Path) -> Mapping[str, str]:
    """The environment of the first process as it was started: in a container that of the image and of its options."""
    pairs = (entry.partition("=") for entry in text_of(root / "proc/1/environ").split("\0"))
    return {name: value for name, equals, value in pairs if equals}
