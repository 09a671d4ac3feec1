"""The program: a front program of pip or uv, pip's hook, or the command given by its name."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from . import layout, pip_front, uv_front
from .guarded import BROKEN, Guard, load, run, say, watched
from .held import find_held, installed
from .installing import InstallError, apply, plan, refresh, uninstall
from .layout import Place
from .pip_front import Prepared

_RUNNING = "_PIP_RUNNING_IN_SUBPROCESS"  # pip sets it for a pip that it started by --python
ASK = (
    "import json, site, sys; user = 'python%d.%d' % sys.version_info[:2] if site.ENABLE_USER_SITE else ''; "
    "print(json.dumps({'prefix': sys.prefix, 'sites': [p for p in sys.path if p], 'user_site': user}))"
)


def main(arguments: Sequence[str]) -> int:
    """Run the program; its exit status."""
    try:
        return _start(arguments)
    except OSError as error:
        say(f"{error.filename or 'a file'} cannot be used: {error.strerror}")
        return BROKEN


def _start(arguments: Sequence[str]) -> int:
    name, rest = (arguments[0], list(arguments[1:])) if arguments else ("", [])
    variables = dict(os.environ)
    if name == layout.HOOK:
        return _hook(rest, variables)
    if name == "uv":
        return _uv(rest, variables)
    if name.startswith("pip"):
        return _pip(name, rest, variables)
    commands = {"accept": _accept, "install": _install, "uninstall": _uninstall}
    if name in commands:
        return commands[name](rest)
    sys.stderr.write(f"usage: {layout.PROGRAM} accept | uninstall | install SETTINGS\n")
    return 2


def _own() -> Guard | None:
    """The guard that this program belongs to."""
    share = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    prefix = os.path.dirname(os.path.dirname(share))
    return load(prefix) or (load("/usr") if prefix == "/usr/local" else None)


def _is_off(variables: Mapping[str, str]) -> bool:
    return variables.get(layout.OFF, "").lower() == "off"


def _pip(name: str, arguments: Sequence[str], variables: Mapping[str, str]) -> int:
    """The front program of pip: runs the original."""
    guard = _own()
    if guard is None:
        return _lost(name)
    found = layout.original(guard.place, name)
    if not found:
        return _lost(name)
    at = pip_front.find_command(arguments, {"--python"})
    other = pip_front.values_of(arguments[:at], "--python") or list(filter(None, [variables.get("PIP_PYTHON", "")]))
    if other and not _is_same(other[-1], guard):
        return run([found, *arguments], variables)
    return _guarded_pip(guard, [found], arguments, {**variables, _RUNNING: "1"}, name)


def _hook(arguments: Sequence[str], variables: Mapping[str, str]) -> int:
    """The hook that pip starts in place of Python, with the file to run and pip's arguments."""
    guard = _own()
    if guard is None:
        return _lost("pip")
    if not arguments or os.path.basename(arguments[0]) not in ("__pip-runner__.py", "pip"):  # pip: of a wheel
        return os.execve(guard.place.python, [guard.place.python, *arguments], dict(variables))
    return _guarded_pip(guard, [guard.place.python, arguments[0]], arguments[1:], variables, "pip")


def _guarded_pip(
    guard: Guard, start: Sequence[str], arguments: Sequence[str], variables: Mapping[str, str], name: str
) -> int:
    if _is_off(variables):
        free = {**variables, "PIP_CONSTRAINT": variables.get("PIP_CONSTRAINT") or os.devnull}
        return _unguarded(guard, [*start, *arguments], free)
    prepared = pip_front.prepare(guard, arguments, variables)
    return _carry_out(guard, start, prepared, shlex.join([name, *arguments]))


def _is_same(python: str, guard: Guard) -> bool:
    """Whether a value of --python, a file or an environment, is the environment of the guard."""
    path = os.path.abspath(python)
    prefix = path if os.path.isdir(path) else os.path.dirname(os.path.dirname(path))
    return os.path.realpath(prefix) == os.path.realpath(guard.place.prefix)


def _uv(arguments: Sequence[str], variables: Mapping[str, str]) -> int:
    own = _own()
    uv = uv_front.find_uv(own, variables)
    if not uv:
        return _lost("uv")
    guard, prepared = uv_front.prepare(uv, arguments, variables)
    if guard is None:
        return os.execve(uv, [uv, *arguments], dict(variables))
    if _is_off(variables):
        return _unguarded(guard, [uv, *arguments], variables)
    return _carry_out(guard, [uv], prepared, shlex.join(["uv", *arguments]))


def _carry_out(guard: Guard, start: Sequence[str], prepared: Prepared, shown: str) -> int:
    """Report the command, and run it."""
    if prepared.refused:
        say(prepared.refused)
        return BROKEN
    if prepared.summary:
        say(prepared.summary)
    for step in prepared.steps:
        status = watched(guard, [*start, *step], prepared.variables, shown)
        if status:
            return status
    command = [*start, *prepared.arguments]
    if prepared.watch:
        return watched(guard, command, prepared.variables, shown)
    return os.execve(command[0], command, dict(prepared.variables))


def _unguarded(guard: Guard, command: Sequence[str], variables: Mapping[str, str]) -> int:
    say(f"{layout.OFF}=off: {guard.title} is not held for this command")
    status = run(command, variables)
    for line in refresh(guard.place, accept=not status):  # changes of a failed command are not accepted
        say(line)
    after = load(guard.place.prefix)
    if after is not None and after.packages != guard.packages:
        say(f"from now on {after.title} is held")
    return status


def _lost(name: str) -> int:
    say(f"there is no {name} after this front program: wheelproof pins guard --uninstall, or install {name} again")
    return 127


def _accept(_: Sequence[str]) -> int:
    """Hold the versions that are installed now."""
    guard = _own()
    if guard is None:
        return _lost("guard")
    if not find_held(installed(guard.sites), guard.settings["families"]).pinned:
        say(f"nothing to hold is installed in {guard.place.prefix}")
        return BROKEN
    for line in refresh(guard.place, accept=True):
        say(line)
    after = load(guard.place.prefix)
    say(f"{after.title if after else 'nothing'} is held")
    return 0


def describe(python: str) -> dict[str, Any]:
    """The prefix of an interpreter, and the folders from which it imports. Raises InstallError."""
    done = subprocess.run([python, "-E", "-c", ASK], cwd="/", capture_output=True, check=False)
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise InstallError(f"{python} does not start: {words[-1] if words else done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout.decode().splitlines()[-1])
    return found


def _install(arguments: Sequence[str]) -> int:
    """Install into the environment of the Python that runs this: in an image, without wheelproof."""
    with open(arguments[0], encoding="utf-8") as file:
        settings = json.load(file)
    try:
        found = describe(sys.executable)
        prefix = found.pop("prefix")
        uv = uv_front.find_uv(load(prefix), os.environ)
        planned = plan(Place(prefix, sys.executable), {**settings, **found, "uv": uv}, os.environ)
        made = apply(planned)
    except InstallError as error:
        say(str(error))
        return BROKEN
    for note in planned.notes:
        say(note)
    guard = load(made.prefix)
    say(f"{guard.title if guard else ''} is held in {prefix}")
    return 0


def _uninstall(_: Sequence[str]) -> int:
    guard = _own()
    if guard is None:
        return _lost("guard")
    left = uninstall(guard.place)
    for path in left:
        say(f"{path} was changed since, and is left as it is")
    return BROKEN if left else 0
