"""Changes of a uv call by a guard, since uv has no configuration of an environment.

Which environment a call is for is found as uv finds it; without a guard there, the call is unchanged. Projects are
synchronized without touching held packages: ``--inexact`` and ``--no-install-package``, which ``uv run`` and ``uv
remove`` do not have, so that these are two calls.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

from . import layout, pip_conf
from .guarded import Guard, load, needed_of
from .held import name_of
from .options import (
    UV_PLACES,
    UV_RUN_ONLY,
    UV_RUN_VALUED,
    UV_SHARED,
    UV_SHARED_VALUED,
    UV_VALUED,
    UV_VENV_VALUED,
)
from .pip_front import Prepared, cache_of, find_command, is_of, names_in_files, refusal, values_of

_COMMANDS = {
    "auth", "run", "init", "add", "remove", "version", "sync", "lock", "export", "tree", "format", "check", "audit",
    "tool", "python", "pip", "venv", "build", "publish", "workspace", "cache", "self", "help",
    "generate-shell-completion",
}  # fmt: skip
_VERBS = {"compile", "sync", "install", "uninstall", "freeze", "list", "show", "tree", "check", "debug"}
_SCRIPT = re.compile(r"^# /// script\s*$", re.MULTILINE)
_LOCK = re.compile(r"pylock(?:\.[^.]+)?\.toml")
_REMOVED = re.compile(r"^ [-~] ([A-Za-z0-9._-]+)", re.MULTILINE)
_ADDED = re.compile(r"^ \+ ([A-Za-z0-9._-]+)", re.MULTILINE)
_VALUED = re.compile(r"^ +(?:(-\w), )?(--[\w-]+) <", re.MULTILINE)
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_ENVIRONMENT = re.compile(r"Would \w+ project environment at: (.+)")
_NOTHING = "Would make no changes"
_TRUE = {"1", "true", "yes", "on", "y", "t"}


def find_uv(guard: Guard | None, variables: Mapping[str, str]) -> str:
    """The uv that is not a front program: the original, else the first on PATH, else the recorded one."""
    folders = [folder for folder in variables.get("PATH", "").split(os.pathsep) if folder]
    candidates = []
    if guard is not None:
        candidates.append(layout.original(guard.place, "uv"))
    candidates += [os.path.join(folder, "uv") for folder in folders]
    if guard is not None:
        candidates.append(guard.settings.get("uv") or "")
    candidates += [os.path.join(variables.get("HOME", "/"), ".local/bin/uv"), "/usr/local/bin/uv", "/usr/bin/uv"]
    found = (path for path in candidates if path and os.access(path, os.X_OK) and os.path.isfile(path))
    return next((path for path in found if not layout.is_front(path)), "")


def prepare(uv: str, arguments: Sequence[str], variables: Mapping[str, str]) -> tuple[Guard | None, Prepared]:
    """The call ``uv ARGUMENTS``, and the guard of the environment that it is for, None when that has none."""
    at = find_command(arguments, UV_VALUED, _COMMANDS)
    command = arguments[at] if at < len(arguments) else ""
    rest = list(arguments[at + 1 :])
    end = find_command(rest, _valued_of_run(uv)) if command == "run" else len(rest)
    options, left = rest[:end], rest[end:]
    folder = _folder(arguments, variables)
    if command not in ("pip", "venv", "sync", "run", "add", "remove") or {"-h", "--help"} & set(options):
        return None, Prepared(arguments, variables)
    if command == "pip":
        below = find_command(rest, UV_VALUED, _VERBS)
        verb = rest[below] if below < len(rest) else ""
        guard = _guard_of_pip(uv, arguments, folder, variables) if verb in ("install", "sync", "uninstall") else None
        words = at + 1 + below + 1
        return guard, _pip(uv, guard, verb, list(arguments[:words]), list(arguments[words:]), variables)
    if command == "venv":
        return _venv(rest, folder, arguments, variables)
    where = [*arguments[:at], *options]
    guard = _guard_of_project(where, folder, variables)
    if guard is None or _is_of_script(command, options, left, folder):
        return _with_overlay(uv, guard, command, where, left, arguments, variables, folder)
    prepared = _project(uv, guard, command, list(arguments[: at + 1]), options, left, variables)
    return (guard, prepared) if prepared is not None else (None, Prepared(arguments, variables))


@functools.cache
def _valued_of_run(uv: str) -> frozenset[str]:
    """The options of ``uv run`` that take a value: known ones, and those in the help of this uv."""
    done = subprocess.run([uv, "run", "--help"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    text = _COLOURS.sub("", done.stdout.decode(errors="replace"))
    return frozenset(UV_RUN_VALUED | {name for found in _VALUED.finditer(text) for name in found.groups("")})


# uv pip


def _pip(
    uv: str, guard: Guard | None, verb: str, head: list[str], rest: list[str], variables: Mapping[str, str]
) -> Prepared:
    arguments = [*head, *rest]
    if guard is None:
        return Prepared(arguments, variables)
    watch = "--dry-run" not in rest
    if verb == "uninstall":
        wanted = {name_of(argument) for argument in rest if not argument.startswith("-")}
        wanted |= names_in_files(values_of(rest, "-r", "--requirement", "--requirements"))
        return Prepared(arguments, variables, f"{guard.title} held", refusal(guard, wanted), watch)
    named = [*values_of(rest, "-r", "--requirement", "--requirements"), *(word for word in rest if word[0:1] != "-")]
    if any(_LOCK.fullmatch(os.path.basename(word)) for word in named):
        refused = _lock_replaces(uv, guard, arguments, variables)
        return Prepared(arguments, variables, f"{guard.title} held: the lock leaves it alone", refused, watch)
    added, plain = _constraints(guard, rest, variables)
    if verb == "install":
        if not ("--no-build-isolation" in rest or variables.get("UV_NO_BUILD_ISOLATION", "").lower() in _TRUE):
            for name in guard.settings["extensions"]:
                added += ["--no-build-isolation-package", name]
        if "--exact" in rest:
            added += ["-r", guard.place.file(layout.KEEP)]
        return Prepared([*head, *added, *rest], plain, f"{guard.title} held: uv pip install {_shown(added)}", "", watch)
    keep = _keep_needed(guard, names_in_files([word for word in named if os.path.isfile(word)]))
    new = [*head, *added, *rest, keep]
    return Prepared(new, plain, f"{guard.title} held: uv pip sync {_shown(added)} {keep}", "", watch)


def _lock_replaces(uv: str, guard: Guard, arguments: Sequence[str], variables: Mapping[str, str]) -> str:
    """Why a lock of PEP 751, with which uv takes no constraints, is not installed; "" when it may be."""
    plain = {**variables, "NO_COLOR": "1"}
    dry = [uv, *[word for word in arguments if word not in ("-q", "--quiet", "--dry-run")], "--dry-run"]
    done = subprocess.run(dry, env=plain, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    text = done.stdout.decode(errors="replace")
    gone = {name_of(name) for name in _REMOVED.findall(text)} & set(needed_of(guard))
    lost = sorted((gone & set(guard.packages)) | (gone - {name_of(name) for name in _ADDED.findall(text)}))
    return f"{guard.title} held: the lock would replace or remove {', '.join(lost)}; nothing was done" if lost else ""


def _keep_needed(guard: Guard, named: set[str]) -> str:
    """A file of the packages to keep, except unpinned ones that files of the call name."""
    held = needed_of(guard)
    lines = [
        f"{name}=={version}\n" for name, version in sorted(held.items()) if name in guard.packages or name not in named
    ]
    path = guard.place.file("keep-sync.txt")
    Path(path).write_text("".join(lines), encoding="utf-8")
    return path


def _constraints(guard: Guard, rest: Sequence[str], variables: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
    """The options for constraints; -c and -b of a call replace the variables of uv, so these are added to the call."""
    added: list[str] = []
    plain = dict(variables)
    for variable, names in (
        ("UV_CONSTRAINT", ("-c", "--constraint", "--constraints")),
        ("UV_BUILD_CONSTRAINT", ("-b", "--build-constraint", "--build-constraints")),
    ):
        files = [] if values_of(rest, *names) else plain.pop(variable, "").split()
        for path in dict.fromkeys([*files, guard.constraints]):
            added += [names[0], path]
    if "UV_NO_CACHE" not in plain and not {"-n", "--no-cache"} & set(rest) and not values_of(rest, "--cache-dir"):
        plain["UV_CACHE_DIR"] = cache_of(guard, variables)
    return added, plain


def _shown(added: Sequence[str]) -> str:
    """The options that were added, without the long list of packages that are built without isolation."""
    shown = []
    for index, word in enumerate(added):
        if word != "--no-build-isolation-package" and (
            index == 0 or added[index - 1] != "--no-build-isolation-package"
        ):
            shown.append(word)
    return " ".join(shown)


# Projects


def _project(  # noqa: PLR0911  # one for each command
    uv: str,
    guard: Guard,
    command: str,
    head: list[str],
    options: list[str],
    left: list[str],
    variables: Mapping[str, str],
) -> Prepared | None:
    """The call in a project; None when its environment is another one, as of a project in a folder of this one."""
    arguments = [*head, *options, *left]
    before = head[:-1]  # options of uv itself
    alone = [word for name in guard.names for word in ("--no-install-package", name)]
    alone += [word for name in guard.settings["extensions"] for word in ("--no-build-isolation-package", name)]
    of_sync = (
        _of_sync(options, _valued_of_run(uv))
        if command == "run"
        else list(options)
        if command == "sync"
        else _shared(options)
    )
    of_sync = [option for option in of_sync if option not in ("--inexact", "--exact")]
    sync = [*before, "sync", *of_sync, "--inexact", *alone]
    plain = dict(variables)
    if "UV_NO_CACHE" not in plain and not {"-n", "--no-cache"} & set(options) and not values_of(options, "--cache-dir"):
        plain["UV_CACHE_DIR"] = cache_of(guard, variables)
    foreseen = _foresee(uv, sync, plain)
    if not _is_for(guard, foreseen, _folder(before, variables)):
        return None
    replaced = next((line for line in foreseen if line.startswith("Would replace")), "")
    refused = f"uv {replaced[0].lower()}{replaced[1:]}, for another Python; nothing was done" if replaced else ""
    refused = refused or (_overlay(uv, guard, [*before, *options], plain) if command == "run" else "")
    if refused:
        return Prepared(arguments, variables, "", f"{guard.title} held: {refused}")
    summary = f"{guard.title} held: uv {command}"
    if command == "sync":
        watch = not {"--dry-run", "--check"} & set(options)
        return Prepared(sync, plain, f"{summary} --inexact, and {len(guard.names)} x --no-install-package", "", watch)
    if command == "add":
        new = [*head, *options, *alone]
        return Prepared(new, plain, f"{summary}, and {len(guard.names)} x --no-install-package", "", watch=True)
    if "--no-sync" in options or variables.get("UV_NO_SYNC", "").lower() in _TRUE:
        return Prepared(arguments, plain)
    new = [*head, "--no-sync", *options, *left]
    if command == "remove":
        summary += " --no-sync, then uv sync --inexact: what it took with it stays installed"
        return Prepared(sync, plain, summary, "", watch=True, steps=[new])
    if _NOTHING in foreseen:
        return Prepared(new, plain, f"{summary} --no-sync: there is nothing to synchronize")
    return Prepared(new, plain, f"{summary}: uv sync --inexact, then --no-sync", steps=[[*sync, "--quiet"]])


def _of_sync(options: Sequence[str], valued: Set[str]) -> list[str]:
    """The options of ``uv run`` that ``uv sync`` has, too."""
    found: list[str] = []
    index = 0
    while index < len(options):
        name = options[index].partition("=")[0]
        width = 2 if options[index] in valued else 1
        if name not in UV_RUN_ONLY:
            found += options[index : index + width]
        index += width
    return found


def _shared(options: Sequence[str]) -> list[str]:
    """The options of ``uv remove`` for the place and manner, not the packages."""
    found = [option for option in options if option in UV_SHARED]
    for name in sorted(UV_SHARED_VALUED):
        found += [word for value in values_of(options, name) for word in (name, value)]
    return found


def _foresee(uv: str, sync: Sequence[str], variables: Mapping[str, str]) -> list[str]:
    """The forecast of uv for a synchronization."""
    dry = [uv, *[option for option in sync if option not in ("-q", "--quiet", "--dry-run")], "--dry-run"]
    plain = {**variables, "NO_COLOR": "1"}
    done = subprocess.run(dry, env=plain, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode(errors="replace").splitlines()


def _is_for(guard: Guard, foreseen: Sequence[str], folder: str) -> bool:
    """Whether uv says that it would work on the guarded environment; it says nothing if it fails beforehand."""
    named = [found[1] for line in foreseen if (found := _ENVIRONMENT.match(line))]
    own = os.path.realpath(guard.place.prefix)
    return not named or os.path.realpath(os.path.join(folder, named[0])) == own


def _with_overlay(
    uv: str,
    guard: Guard | None,
    command: str,
    options: list[str],
    left: list[str],
    arguments: Sequence[str],
    variables: Mapping[str, str],
    folder: str,
) -> tuple[Guard | None, Prepared]:
    """A call that syncs no guarded project: only ``uv run --with`` in a guarded environment is inspected."""
    if command != "run" or _is_of_script(command, options, left, folder):
        return None, Prepared(arguments, variables)
    if guard is None:
        guard = load(variables["VIRTUAL_ENV"]) if variables.get("VIRTUAL_ENV") else None
    if guard is None:
        return None, Prepared(arguments, variables)
    return guard, Prepared(arguments, variables, "", _overlay(uv, guard, options, variables))


def _overlay(uv: str, guard: Guard, options: Sequence[str], variables: Mapping[str, str]) -> str:
    """Why packages of --with would hide held ones, by uv's own resolution; "" if they would not."""
    requirements = [word for value in values_of(options, "--with", "-w") for word in value.split(",")]
    files = [word for value in values_of(options, "--with-requirements") for word in ("-r", value)]
    editable = [word for value in values_of(options, "--with-editable") for word in ("-e", value)]
    if not (requirements or files or editable):
        return ""
    nowhere = os.path.join(guard.place.share, "overlay")
    where = _shared(options)
    shared = [word for word in where if word != "--active"]
    dry = [uv, "pip", "install", "--dry-run", "--target", nowhere, *shared, *files, *editable, *requirements]
    done = subprocess.run(
        dry, env={**variables, "NO_COLOR": "1"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    added = {name_of(name) for name in _ADDED.findall(done.stdout.decode(errors="replace"))}
    hidden = sorted(added & set(guard.packages))
    if not hidden:
        return ""
    words = " ".join([*requirements, *files, *editable])
    return (
        f"{guard.title} held: --with would put another {', '.join(hidden)} in front of it; use uv pip install {words}"
    )


# Which environment


def _folder(arguments: Sequence[str], variables: Mapping[str, str]) -> str:
    """The folder in which uv works."""
    named = values_of(arguments, "--directory") or [variables.get("UV_WORKING_DIR", "")]
    return os.path.abspath(os.path.join(os.getcwd(), named[-1]))


def _guard_of_pip(uv: str, arguments: Sequence[str], folder: str, variables: Mapping[str, str]) -> Guard | None:
    requested = values_of(arguments, "-p", "--python") or list(filter(None, [variables.get("UV_PYTHON", "")]))
    places = values_of(arguments, *UV_PLACES)
    is_system = "--system" in arguments or variables.get("UV_SYSTEM_PYTHON", "").lower() in _TRUE
    if requested or is_system:
        prefix = _prefix_of(uv, requested[-1] if requested else "", folder, variables, is_system=is_system)
    else:
        prefix = variables.get("VIRTUAL_ENV") or variables.get("CONDA_PREFIX") or _nearest_venv(folder)
        if not prefix:
            prefix = _prefix_of(uv, "", folder, variables, is_system=True)
    guard = load(os.path.join(folder, prefix)) if prefix else None
    if (
        guard is not None
        and places
        and not any(is_of(os.path.join(folder, path), guard.place.prefix, guard.sites) for path in places)
    ):
        return None
    return guard


def _prefix_of(uv: str, requested: str, folder: str, variables: Mapping[str, str], *, is_system: bool) -> str:
    """The prefix of an interpreter given by path, by version or by default."""
    path = os.path.join(folder, requested)
    if requested and os.path.isdir(path):
        return path
    if not (requested and os.path.isfile(path)):
        command = [
            uv,
            "python",
            "find",
            "--no-python-downloads",
            *(["--system"] if is_system else []),
            *filter(None, [requested]),
        ]
        done = subprocess.run(
            command, cwd=folder, env=variables, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
        )
        path = done.stdout.decode(errors="replace").strip()
    return os.path.dirname(os.path.dirname(path)) if path else ""


def _nearest_venv(folder: str) -> str:
    for parent in (Path(folder), *Path(folder).parents):
        if (parent / ".venv" / "pyvenv.cfg").is_file():
            return str(parent / ".venv")
    return ""


def _guard_of_project(options: Sequence[str], folder: str, variables: Mapping[str, str]) -> Guard | None:
    """The guard of the environment of the project: its .venv, or the named or active one."""
    if {"--no-project", "--isolated"} & set(options):
        return None
    named = values_of(options, "--project") or list(filter(None, [variables.get("UV_PROJECT", "")]))
    start = Path(os.path.join(folder, named[-1] if named else ""))
    projects = [parent for parent in (start, *start.parents) if (parent / "pyproject.toml").is_file()]
    if not projects:
        return None
    if "--active" in options and variables.get("VIRTUAL_ENV"):
        return load(variables["VIRTUAL_ENV"])
    given = variables.get("UV_PROJECT_ENVIRONMENT")
    for project in projects:  # a member of a workspace uses the environment of its root
        guard = load(os.path.join(project, given or ".venv"))
        if guard is not None:
            return guard
    return None


def _is_of_script(command: str, options: Sequence[str], left: Sequence[str], folder: str) -> bool:
    """Whether the call is for a script with inline requirements, for which uv makes a separate environment."""
    if command != "run":
        return any(option.partition("=")[0] == "--script" for option in options)
    script = os.path.join(folder, left[0]) if left else ""
    return bool(script.endswith(".py") or {"-s", "--script"} & set(options)) and bool(
        _SCRIPT.search(pip_conf.read_text(script))
    )


def _venv(
    rest: Sequence[str], folder: str, arguments: Sequence[str], variables: Mapping[str, str]
) -> tuple[Guard | None, Prepared]:
    """``uv venv``: refused if it would remove a guarded environment."""
    at = find_command(rest, UV_VENV_VALUED)
    guard = load(os.path.join(folder, rest[at] if at < len(rest) else ".venv"))
    clears = {"-c", "--clear"} & set(rest) or variables.get("UV_VENV_CLEAR", "").lower() in _TRUE
    if guard is None or not clears:
        return None, Prepared(arguments, variables)
    refused = f"{guard.title} held: uv venv would remove {guard.place.prefix}; to do it anyway: {layout.OFF}=off"
    return guard, Prepared(arguments, variables, "", refused)
