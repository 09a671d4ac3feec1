"""The complete command that puts a distribution right, for the installer that put it there."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from wheel_checks.facts.installed.facts import Distribution, InstalledEnvironment
from wheel_checks.model import Fix, Unavailable
from wheel_checks.sources.environment import Environment
from wheel_checks.targets.target import this_machine

_OTHER_INSTALLERS = {
    "debian": "apt-get install --reinstall python3-{name}",
    "conda": "conda install --force-reinstall {name}={version}",
}


def reinstall(inside: InstalledEnvironment, distributions: Iterable[Distribution], why: str = "") -> Fix:
    """Install the distributions anew, in their very versions and nothing else."""
    chosen = list({d.folder: d for d in distributions}.values())
    pins = [f"{d.name}=={d.version}" for d in chosen]
    summary = why or f"Install {' and '.join(pins)} again."
    other = next((_OTHER_INSTALLERS[d.installer] for d in chosen if d.installer in _OTHER_INSTALLERS), None)
    if other:
        return Fix(summary, tuple(other.format(name=d.name, version=d.version) for d in chosen))
    installer = _installer(chosen)
    return Fix(summary, (_command(inside, installer, ["--force-reinstall", "--no-deps", *pins]),))


def install(inside: InstalledEnvironment, requirement: str, beside: Distribution, why: str) -> Fix:
    """Install what a distribution requires, with its installer; its dependencies come along."""
    return Fix(why, (_command(inside, _installer([beside]), [requirement]),))


def uninstall(inside: InstalledEnvironment, distribution: Distribution) -> str:
    """The command that removes a distribution; pip has none for a target folder, and neither runs foreign Pythons."""
    environment = inside.environment
    if environment.kind == "target":
        return f"uv pip uninstall --target {shlex.quote(environment.path)} {distribution.name}"
    if _installer([distribution]) == "uv" or _is_foreign(inside):
        return f"uv pip uninstall{_where(environment)} {distribution.name}"
    return f"{shlex.quote(environment.interpreter)} -m pip uninstall --yes {distribution.name}"


def _installer(distributions: Iterable[Distribution]) -> str:
    return "uv" if any(d.installer == "uv" for d in distributions) else "pip"


def _is_foreign(inside: InstalledEnvironment) -> bool:
    """True when this machine cannot run the environment's Python; then only uv installs the right files."""
    machine = inside.environment.machine
    return bool(machine) and machine != this_machine().target.machine and inside.environment.tree.is_this_machine


def _command(inside: InstalledEnvironment, installer: str, arguments: Iterable[str]) -> str:
    environment = inside.environment
    tail = " ".join(map(shlex.quote, arguments))
    if installer == "uv" or _is_foreign(inside):
        return f"uv pip install{_where(environment)}{_platform(inside)} {tail}"
    if environment.kind == "target":
        return f"python3 -m pip install --upgrade --target {shlex.quote(environment.path)} {tail}"
    return f"{shlex.quote(environment.interpreter or 'python3')} -m pip install {tail}"


def _where(environment: Environment) -> str:
    if environment.kind == "target":
        return f" --target {shlex.quote(environment.path)}"
    system = " --break-system-packages" if environment.kind == "base" and environment.path == "/usr" else ""
    return f" --python {shlex.quote(environment.interpreter or environment.path)}{system}"


def _platform(inside: InstalledEnvironment) -> str:
    """What uv must be told of a target folder: it has no Python of its own that could be asked."""
    target = inside.target
    if isinstance(target, Unavailable) or (inside.environment.kind != "target" and not _is_foreign(inside)):
        return ""
    version = f" --python-version {target.python[0]}.{target.python[1]}"
    return (f" --python-platform {target.machine}-manylinux_2_28" if _is_foreign(inside) else "") + version
