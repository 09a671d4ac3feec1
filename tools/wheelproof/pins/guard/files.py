"""The files of a guard: what really keeps pip and uv from replacing the installed torch.

Constraints with the local version keep torch or fail loudly, with ``-U`` as well. Excludes (where uv has them, else
overrides whose marker never holds) drop every requirement on torch. Neither reaches build environments: there a build
constraint makes an isolated build against another torch fail, and what is known to compile against torch is built
without isolation. Wheels that were built against another torch would come from the cache: each torch has its own.
"""

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheel_checks.data import load
from wheel_checks.errors import SourceError, UsageError
from wheel_checks.sources.regular_file import read_whole
from wheelproof.pins.atomic import open_folder
from wheelproof.pins.guard import inside
from wheelproof.pins.guard.abilities import UvAbilities
from wheelproof.pins.guard.inside.layout import MAIN, MAIN_TEXT, PACKAGE, PROGRAM
from wheelproof.pins.guard.versions import companions_of

CONSTRAINTS, EXCLUDES, OVERRIDES = "constraints.txt", "excludes.txt", "overrides.txt"
VARIABLES, SHELL, TABLE = "guard.env", "guard.sh", "pyproject-tool-uv.toml"
GITHUB, DOCKER, SETTINGS = "github-step.yml", "Dockerfile.guard", "settings.json"
_LARGEST = 1 << 20  # bytes of a module
IN_IMAGE = "/etc/torch-guard"  # where the Dockerfile puts the folder
TORCH = "torch"


@dataclass(frozen=True, slots=True)
class Guard:
    """What is guarded: ``installed`` versions by name, the anchor first, in which ``folder`` the files lie.

    ``keep_going`` makes uv drop requirements that contradict the installed versions, instead of failing.
    ``extensions`` are the packages that are built without isolation.
    """

    installed: Mapping[str, str]
    folder: Path
    uv: UvAbilities
    extensions: tuple[str, ...]
    keep_going: bool = False


def known_extensions() -> tuple[str, ...]:
    """The packages that are known to be compiled against torch, by name."""
    return tuple(row["name"] for row in load("torch_extensions")["extension"])


def guard_files(guard: Guard, settings: Mapping[str, Any]) -> dict[str, str]:
    """The text of every file, by its name in the folder. ``settings`` are what an installed guard is to hold.

    Raises UsageError when torch is not among what is installed, and for a folder whose path holds white space: pip and
    uv split the variables that name the files there.
    """
    if not guard.installed:
        raise UsageError("there is no torch to guard", expected="an environment with torch, or --installed 2.7.0+cu128")
    if any(char.isspace() for char in str(guard.folder)):
        raise UsageError(
            f"the folder {guard.folder} has white space in its path, where pip and uv split their variables"
        )
    pins = "".join(f"{name}=={version}\n" for name, version in {**_missing(guard), **guard.installed}.items())
    never = "".join(f"{name}; sys_platform == 'never'\n" for name in guard.installed)
    return {
        CONSTRAINTS: f"# Keeps what is installed, local versions included, or makes the install fail.\n{pins}",
        EXCLUDES: "".join(f"{name}\n" for name in guard.installed),
        OVERRIDES: never,
        VARIABLES: "".join(f"{name}={value}\n" for name, value in variables(guard, str(guard.folder)).items()),
        SHELL: _shell(guard),
        TABLE: tool_uv(guard),
        GITHUB: _GITHUB,
        DOCKER: _DOCKER,
        SETTINGS: json.dumps(settings, indent=1, sort_keys=True) + "\n",
    }


def program_files() -> dict[str, dict[str, str]]:
    """The program of an installed guard, by folder and name: an image that has these files needs no wheelproof."""
    modules = {
        path.name: read_whole(path, _LARGEST).decode() for path in sorted(Path(inside.__file__).parent.glob("*.py"))
    }
    return {PROGRAM: {MAIN: MAIN_TEXT}, f"{PROGRAM}/{PACKAGE}": modules}


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write ``files`` (name to text) into ``folder``, which is made when it is not present; nothing else is touched.

    A file that is there is replaced in one step; a link among them is replaced, and not followed. Raises SourceError
    when one cannot be written, and when the folder is a link: a repository may have made it, to lead elsewhere.
    """
    if folder.is_symlink():
        raise SourceError(f"{folder} is a link", expected="a folder", hint="name the folder itself: --directory FOLDER")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SourceError(f"the folder {folder} cannot be made: {error.strerror}") from error
    with open_folder(folder) as opened:
        for name, text in files.items():
            temporary = f".{name}-{os.urandom(6).hex()}.tmp"
            try:
                opened.write(temporary, text.encode(), like=name)
                opened.replace(temporary, name)
            finally:
                opened.remove(temporary)


def _missing(guard: Guard) -> dict[str, str]:
    """The companions that are not installed, when requirements on torch are dropped: nothing else chooses them then.

    Without their local version, which the default index lacks.
    """
    if not guard.keep_going or TORCH not in guard.installed:
        return {}
    return {name: version.partition("+")[0] for name, version in companions_of(guard.installed[TORCH]).items()}


def variables(guard: Guard, folder: str) -> dict[str, str]:
    """The environment variables of the guard, when its files are in ``folder``."""
    anchor = TORCH if TORCH in guard.installed else next(iter(guard.installed))
    cache = f"{folder}/cache/{anchor}-{guard.installed[anchor]}"
    constraints = f"{folder}/{CONSTRAINTS}"
    found = {"UV_CONSTRAINT": constraints, "UV_BUILD_CONSTRAINT": constraints, "UV_CACHE_DIR": f"{cache}/uv"}
    if guard.keep_going:
        found |= (
            {"UV_EXCLUDE": f"{folder}/{EXCLUDES}"} if guard.uv.excludes else {"UV_OVERRIDE": f"{folder}/{OVERRIDES}"}
        )
    return found | {"PIP_CONSTRAINT": constraints, "PIP_BUILD_CONSTRAINT": constraints, "PIP_CACHE_DIR": f"{cache}/pip"}


def tool_uv(guard: Guard) -> str:
    """The table [tool.uv] for a project that ``uv sync`` serves, with the keys that the available uv knows.

    A lock knows nothing of what is installed, so that a constraint with a local version could not be locked: here torch
    is excluded, and ``uv sync --inexact`` leaves the installed one alone.
    """
    names, keys = list(guard.installed), guard.uv.keys
    pins = [f"{name}=={version}" for name, version in guard.installed.items()]
    never = [f"{name}; sys_platform == 'never'" for name in names]
    lines = [
        f"# For pyproject.toml; every key is known to uv {guard.uv.version}. Sync with: uv sync --inexact",
        "[tool.uv]",
    ]
    if "exclude-dependencies" in keys:
        lines.append(f"exclude-dependencies = {_array(names)}")
    else:
        lines.append(f"override-dependencies = {_array(never)}")
    if "build-constraint-dependencies" in keys:
        lines.append(f"build-constraint-dependencies = {_array(pins)}")
    if "no-build-isolation-package" in keys:
        lines.append(f"no-build-isolation-package = {_array(guard.extensions)}")
    return "\n".join(lines) + "\n"


def instructions(guard: Guard) -> str:
    """What was written and how it is used, for people."""
    names = ", ".join(f"{name} {version}" for name, version in guard.installed.items())
    folder = shlex.quote(str(guard.folder))
    return f"""\
The guard of {names} is in {guard.folder}.

a shell:      . {folder}/{SHELL}
elsewhere:    the variables of {VARIABLES} (env files, GITHUB_ENV, docker run --env-file)
a project:    copy the table of {TABLE} into pyproject.toml, and sync with uv sync --inexact
GitHub:       the step of {GITHUB}
Docker:       the lines of {DOCKER}
then:         wheelproof pins guard --check
"""


def _array(values: Sequence[str]) -> str:
    return "[" + ", ".join(f'"{value}"' for value in values) + "]"


def _shell(guard: Guard) -> str:
    settings = ""
    for name, value in variables(guard, "$TORCH_GUARD").items():
        if name.endswith("_CACHE_DIR"):
            settings += f'export {name}="{value}"\n'
            continue
        settings += f"""\
_files=""
for _file in $(printf '%s' "${{{name}-}}"); do
    [ -e "${{_file%/*}}/{SHELL}" ] || _files="$_files$_file " # files of the user, not of another guard
done
export {name}="$_files{value}"
"""
    wrap = " \\\n                "
    isolated = wrap.join(f"--no-build-isolation-package {name}" for name in guard.extensions)
    left = " ".join(f"--no-install-package {name}" for name in guard.installed)
    return f"""\
# Source this before you install anything: . {SHELL}
# It keeps {", ".join(f"{name} {version}" for name, version in guard.installed.items())}, or makes the install fail.
[ "${{TORCH_GUARD-}}" != "${{TORCH_GUARD_DEFAULT-}}" ] || TORCH_GUARD="" # that of a guard that was sourced before
TORCH_GUARD_DEFAULT={shlex.quote(str(guard.folder))}
TORCH_GUARD="${{TORCH_GUARD:-$TORCH_GUARD_DEFAULT}}"
{settings}
# What compiles against torch is built against the installed one; its other build requirements must be installed.
# With pip, ask for that: pip install --no-build-isolation PACKAGE
uv() {{
    case "${{1-}} ${{2-}}" in
        "pip install")
            shift 2
            command uv pip install \\
                {isolated} \\
                "$@"
            ;;
        "pip sync")
            echo "uv pip sync removes what the file does not list: use uv pip install -r FILE" >&2
            return 2
            ;;
        "sync "*)
            shift
            command uv sync --inexact {left} \\
                {isolated} \\
                "$@"
            ;;
        *) command uv "$@" ;;
    esac
}}
pip() {{
    case " $* " in
        *" --no-build-isolation "*) (unset PIP_BUILD_CONSTRAINT && command pip "$@") ;; # pip refuses both together
        *) command pip "$@" ;;
    esac
}}
"""


_GITHUB = """\
# Behind the step that installs torch into the environment that is active.
- name: Keep the installed torch
  run: wheelproof pins guard --install --yes
"""
_DOCKER = f"""\
# Behind the line that installs torch; the folder of the guard is in the build context as torch-guard.
COPY torch-guard {IN_IMAGE}
RUN python3 -B {IN_IMAGE}/{PROGRAM} install {IN_IMAGE}/{SETTINGS}
# Every later RUN is guarded, and every container of the image, without sourcing anything. Where the environment is not
# that of the first python3 on PATH, name its own: RUN /opt/venv/bin/python {IN_IMAGE}/{PROGRAM} install ...
"""
