"""Looks at the guard of an environment: its files, the ways that are open, and what happened to what it holds."""

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from wheel_checks.facts.pins.environment_guard import EnvironmentGuard, OpenWay
from wheel_checks.facts.pins.receipt import FileState, GuardFile, InstalledGuard, read_installed_guard
from wheel_checks.sources.environment import Environment
from wheel_checks.sources.uv_binary import find_uv
from wheelproof.pins.guard.inside import guarded, layout, pip_front
from wheelproof.pins.guard.inside.held import installed
from wheelproof.pins.guard.inside.tripwire import compare
from wheelproof.pins.installers import PIP, UV

_FIRST_HOOK = (22, 3)  # the first pip with --python, by which its configuration leads to the guard
_OUTSIDE = (
    "a uv outside the environment, called by its path: /usr/local/bin/uv --no-config",
    "python -m pip with PIP_CONFIG_FILE=/dev/null",
    "an installer that starts neither: conda, poetry, pdm, or another interpreter that writes into the environment",
    "files removed or changed by hand",
)


def inspect_environment(
    environment: Environment, variables: Mapping[str, str], installer: str = ""
) -> EnvironmentGuard:
    """The guard of ``environment`` as it is met with ``variables``, by both installers or by one."""
    prefix, python = environment.path, environment.interpreter
    found = read_installed_guard(environment.tree, prefix)
    running = guarded.load(prefix) if isinstance(found, InstalledGuard) else None
    if not isinstance(found, InstalledGuard) or running is None:
        return EnvironmentGuard(prefix, python, found, tuple(_without_guard(environment, installer)))
    sites = running.sites
    known = guarded.known(running)
    damages = compare(known, guarded.needed_of(running), sites)
    unknown = tuple(f"{name} {version}" for name, version in running.packages.items() if name not in known)
    ways = tuple(_open(found, prefix, variables, installer))
    held = {**guarded.needed_of(running), **running.packages}
    outside = _OUTSIDE if _pip_version(sites) >= _FIRST_HOOK else (_old_pip(sites), *_OUTSIDE)
    damaged = tuple((damage.name, damage.what) for damage in damages)
    return EnvironmentGuard(prefix, python, found, ways, damaged, tuple(held.items()), outside, unknown)


def guard_in_force(environment: Environment, installer: str, variables: Mapping[str, str]) -> guarded.Guard | None:
    """The installed guard that every call of an installer meets; None if none, and where a way is open."""
    guard = read_installed_guard(environment.tree, environment.path)
    if not isinstance(guard, InstalledGuard) or any(_open(guard, environment.path, variables, installer)):
        return None
    return guarded.load(environment.path)


def _without_guard(environment: Environment, installer: str) -> Iterator[OpenWay]:
    """What variables, configuration files and tables never reach."""
    names = {name for entry in environment.entries for name in entry.names}
    has_pip = any(name.startswith("pip-") and name.endswith(".dist-info") for name in names)
    if has_pip and installer in ("", PIP):
        yield OpenWay("pip --isolated, env -i pip, python -m pip", "no guard is installed in the environment")
        yield OpenWay("pip uninstall, and a package that overwrites files of torch", "nothing watches pip")
    if _has_uv(environment.path) and installer in ("", UV):
        yield OpenWay("uv pip install -c FILE", "-c replaces UV_CONSTRAINT")
        yield OpenWay("uv sync, uv run, uv add, uv remove", "they ignore UV_CONSTRAINT and the installed packages")
        yield OpenWay("uv pip sync, uv pip uninstall", "nothing watches uv")


def _has_uv(prefix: str) -> bool:
    if (Path(prefix) / "bin" / "uv").exists():
        return True
    return bool(find_uv())


def _open(guard: InstalledGuard, prefix: str, variables: Mapping[str, str], installer: str = "") -> Iterator[OpenWay]:
    """The ways that are open though a guard is installed: whose program is not in force."""
    files = {file.path: file for file in guard.files}
    share = layout.share_of(prefix)
    programs = [file for file in guard.files if file.role in ("program", "text")]
    if any(file.state is not FileState.INTACT for file in programs):
        yield OpenWay("every call of pip and uv", f"the program in {share} is incomplete")
        return
    if installer in ("", PIP):
        yield from _open_pip(files, prefix, share)
    if installer in ("", UV):
        yield from _open_uv(files, prefix, variables)


def _open_pip(files: Mapping[str, GuardFile], prefix: str, share: str) -> Iterator[OpenWay]:
    for path in (f"{share}/{layout.HOOK}", f"{prefix}/pip.conf"):
        if path in files and files[path].state is not FileState.INTACT:
            yield OpenWay("python -m pip", f"{path} is not what the guard wrote")
    for path, file in files.items():
        name = Path(path).name
        there = file.state is not FileState.MISSING
        if file.role == "front" and name != "uv" and there and file.state is not FileState.INTACT:
            yield OpenWay(name, f"{path} is no longer a front program")
    for name in _names(f"{prefix}/bin"):
        if pip_front.is_pip(name) and f"{prefix}/bin/{name}" not in files and prefix != "/usr":
            yield OpenWay(name, f"{prefix}/bin/{name} was installed after the guard")


def _open_uv(files: Mapping[str, GuardFile], prefix: str, variables: Mapping[str, str]) -> Iterator[OpenWay]:
    path = next((path for path, file in files.items() if file.role == "front" and path.endswith("/uv")), "")
    own = f"{prefix}/bin/uv"
    if not path:
        if Path(own).exists() and not layout.is_front(own):
            yield OpenWay("uv", f"{own} was installed after the guard")
        elif shutil.which("uv", path=variables.get("PATH", "")):
            yield OpenWay("uv", "uv was installed after the guard")
        return
    if files[path].state is not FileState.INTACT:
        yield OpenWay("uv", f"{path} is no longer a front program")
        return
    first = shutil.which("uv", path=variables.get("PATH", ""))
    if _is_active(prefix, variables) and first and not layout.is_front(first):
        yield OpenWay("uv", f"{first} comes before {path} on PATH")


def _is_active(prefix: str, variables: Mapping[str, str]) -> bool:
    active = variables.get("VIRTUAL_ENV") or variables.get("CONDA_PREFIX") or ""
    return bool(active) and os.path.realpath(active) == os.path.realpath(prefix)


def _names(folder: str) -> list[str]:
    try:
        return sorted(path.name for path in Path(folder).iterdir())
    except OSError:
        return []


def _pip_version(sites: list[str]) -> tuple[int, ...]:
    found = installed(sites).get("pip")
    if found is None:
        return _FIRST_HOOK  # no pip is there to be called
    return tuple(int(part) for part in found.version.split(".")[:2] if part.isdigit())


def _old_pip(sites: list[str]) -> str:
    version = installed(sites)["pip"].version
    return f"python -m pip of pip {version}, which is constrained, but not watched: a later pip is"
