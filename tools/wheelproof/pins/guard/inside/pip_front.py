"""Changes of a pip call by a guard: constraints, also for builds, and a refusal to remove held packages."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field

from . import layout, pip_conf
from .guarded import Guard, needed_of
from .held import installed, name_of
from .options import PIP_PLACES, PIP_VALUED

_COMMANDS = {
    "install", "lock", "download", "uninstall", "freeze", "inspect", "list", "show", "check", "config", "search",
    "cache", "index", "wheel", "hash", "completion", "debug", "help",
}  # fmt: skip
_BUILD_CONSTRAINT = (25, 3)  # the first pip with --build-constraint


@dataclass(frozen=True)
class Prepared:
    """A prepared call. ``summary`` describes the changes, ``refused`` why it is not made; "" if neither applies.

    ``watch`` says whether it can change the environment.
    """

    arguments: Sequence[str]
    variables: Mapping[str, str]
    summary: str = ""
    refused: str = ""
    watch: bool = False
    steps: Sequence[Sequence[str]] = field(default_factory=tuple)  # calls before this one, each watched


def is_pip(name: str) -> bool:
    """Whether a program is called pip, pip3 or pip3.12."""
    return re.fullmatch(r"pip(?:3(?:\.\d+)?)?", name) is not None


def cache_of(guard: Guard, variables: Mapping[str, str], installer: str = "uv") -> str:
    """A folder in the installer's cache for the held packages, without wheels built against another torch."""
    home = variables.get("XDG_CACHE_HOME") or os.path.join(variables.get("HOME") or os.path.expanduser("~"), ".cache")
    base = variables.get(f"{installer.upper()}_CACHE_DIR") or os.path.join(home, installer)
    anchors = [name for one in guard.settings["families"] for name in one["anchors"] if name in guard.packages]
    title = "-".join(f"{name}-{guard.packages[name]}" for name in anchors) or "held"
    return base if f"{layout.FOLDER}/" in base else os.path.join(base, layout.FOLDER, title)


def find_command(arguments: Sequence[str], valued: Set[str], known: Set[str] = frozenset()) -> int:
    """The index of the first argument that is not an option and no value of one; the count of arguments when all are.

    Where the commands are ``known``, any other word counts as the value of an unknown option.
    """
    index = 0
    while index < len(arguments):
        if not arguments[index].startswith("-") and (not known or arguments[index] in known):
            break
        index += 2 if arguments[index] in valued else 1
    return min(index, len(arguments))


def values_of(arguments: Sequence[str], *names: str) -> list[str]:
    """The values of an option, in each way to write them: ``--name VALUE``, ``--name=VALUE``, ``-nVALUE``."""
    found = []
    for index, argument in enumerate(arguments):
        for name in names:
            if argument == name and index + 1 < len(arguments):
                found.append(arguments[index + 1])
            elif name.startswith("--") and argument.startswith(f"{name}="):
                found.append(argument[len(name) + 1 :])
            elif not name.startswith("--") and argument.startswith(name) and len(argument) > 2:
                found.append(argument[2:].lstrip("="))
    return found


def is_of(path: str, prefix: str, sites: Sequence[str]) -> bool:
    """Whether a folder given to --prefix, --target or --root is the environment itself."""
    real = os.path.realpath(path)
    return real == "/" or real == os.path.realpath(prefix) or real in map(os.path.realpath, sites)


def prepare(guard: Guard, arguments: Sequence[str], variables: Mapping[str, str]) -> Prepared:
    """The call ``pip ARGUMENTS`` in the environment of ``guard``."""
    at = find_command(arguments, PIP_VALUED, _COMMANDS)
    command = arguments[at] if at < len(arguments) else ""
    rest = arguments[at + 1 :]
    if {"-h", "--help"} & set(rest):
        return Prepared(arguments, variables)
    if command == "uninstall":
        return _uninstall(guard, arguments, rest, variables)
    if command not in ("install", "wheel"):
        return Prepared(arguments, variables)
    places = values_of(rest, *PIP_PLACES)
    if command == "install" and places and not any(is_of(path, guard.place.prefix, guard.sites) for path in places):
        other = {**variables, "PIP_CONSTRAINT": variables.get("PIP_CONSTRAINT") or os.devnull}
        return Prepared(arguments, other, f"installs into {places[-1]}, which is not held")
    added: list[str] = []
    if command == "install":
        added += ["-c", guard.constraints]
    own_build = variables.get("PIP_BUILD_CONSTRAINT", "")
    plain = dict(variables)
    if "--no-build-isolation" in rest or pip_conf.is_isolation_off(guard.place.prefix, variables):
        if own_build and all(f"/{layout.CONSTRAINTS}" in word for word in own_build.split()):
            del plain["PIP_BUILD_CONSTRAINT"]  # the guard's variable: pip refuses both together
    elif _version_of_pip(guard) >= _BUILD_CONSTRAINT:
        added += ["--build-constraint", guard.constraints]
    summary = f"{guard.title} held: pip {command} {' '.join(added)}" if added else ""
    if not _has_cache_option(guard, arguments, variables):
        added += ["--cache-dir", cache_of(guard, variables, "pip")]
    new = [*arguments[: at + 1], *added, *rest]
    return Prepared(new, plain, summary, watch=command == "install" and "--dry-run" not in rest)


def _has_cache_option(guard: Guard, arguments: Sequence[str], variables: Mapping[str, str]) -> bool:
    """Whether the user chose the place of built wheels on the command line, or disabled the cache."""
    if "--no-cache-dir" in arguments or values_of(arguments, "--cache-dir"):
        return True
    return bool(variables.get("PIP_NO_CACHE_DIR") or pip_conf.configured(guard.place.prefix, variables, "no-cache-dir"))


def _uninstall(guard: Guard, arguments: Sequence[str], rest: Sequence[str], variables: Mapping[str, str]) -> Prepared:
    wanted = {name_of(argument) for argument in rest if not argument.startswith("-")}
    wanted |= names_in_files(values_of(rest, "-r", "--requirement", "--requirements"))
    refused = refusal(guard, wanted)
    return Prepared(arguments, variables, f"{guard.title} held", refused, watch=True)


def refusal(guard: Guard, wanted: set[str]) -> str:
    """Why packages are not removed, "" when they may be."""
    held = sorted(wanted & (set(guard.packages) | set(needed_of(guard))))
    if not held:
        return ""
    return f"{', '.join(held)} is held ({guard.title}); to remove it anyway: {layout.OFF}=off and the same command"


def names_in_files(paths: Sequence[str]) -> set[str]:
    """The names at the start of the lines of requirements files; unreadable files are left to the installer."""
    return {name_of(line) for path in paths for line in pip_conf.read_text(path).splitlines()} - {""}


def _version_of_pip(guard: Guard) -> tuple[int, ...]:
    found = installed(guard.sites).get("pip")
    parts = found.version.split(".")[:2] if found else []
    return tuple(int(part) for part in parts if part.isdigit())
