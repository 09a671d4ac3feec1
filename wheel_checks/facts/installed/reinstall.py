"""The complete command that puts a distribution right, for the installer that put it there."""

from collections.abc import Iterable

from wheel_checks.commands import Command, NoCommand, Word, option, package, path, requirement, run
from wheel_checks.facts.installed.facts import Distribution, InstalledEnvironment
from wheel_checks.model import Fix, Unavailable
from wheel_checks.sources.environment import Environment
from wheel_checks.targets.target import this_machine


def reinstall(inside: InstalledEnvironment, distributions: Iterable[Distribution], why: str = "") -> Fix:
    """Install the distributions again, in their very versions and nothing else."""
    chosen = list({d.folder: d for d in distributions}.values())
    summary = why or f"Reinstall {' and '.join(f'{d.name}=={d.version}' for d in chosen)}."
    if any(d.installer == "debian" for d in chosen):
        return Fix(summary, tuple(run("apt-get", "install", "--reinstall", _of_debian(d)) for d in chosen))
    if any(d.installer == "conda" for d in chosen):
        return Fix(summary, tuple(run("conda", "install", "--force-reinstall", _of_conda(d)) for d in chosen))
    pins = [package(d.name, d.version) for d in chosen]
    return Fix(summary, (_install(inside, _installer(chosen), "--force-reinstall", "--no-deps", *pins),))


def install(inside: InstalledEnvironment, wanted: str, beside: Distribution, why: str) -> Fix:
    """Install what a distribution requires, with its installer; its dependencies come along."""
    return Fix(why, (_install(inside, _installer([beside]), requirement(wanted)),))


def uninstall(inside: InstalledEnvironment, distribution: Distribution) -> Command | NoCommand:
    """The command that removes a distribution; pip has none for a target folder, and neither runs foreign Pythons."""
    environment, name = inside.environment, package(distribution.name)
    of_uv = environment.kind == "target" or not environment.interpreter or _installer([distribution]) == "uv"
    if of_uv or _is_foreign(inside):
        return run("uv", "pip", "uninstall", *_where(environment), name)
    return run(path(environment.interpreter), "-m", "pip", "uninstall", "--yes", name)


def _of_debian(distribution: Distribution) -> Word:
    name = package(distribution.name)
    return f"python3-{name}" if isinstance(name, str) else name


def _of_conda(distribution: Distribution) -> Word:
    pin = package(distribution.name, distribution.version)
    return pin.replace("==", "=") if isinstance(pin, str) else pin


def _installer(distributions: Iterable[Distribution]) -> str:
    return "uv" if any(d.installer == "uv" for d in distributions) else "pip"


def _is_foreign(inside: InstalledEnvironment) -> bool:
    """True when this host cannot run the environment's Python; then only uv installs the right files."""
    machine = inside.environment.machine
    return bool(machine) and machine != this_machine().target.machine and inside.environment.tree.is_this_machine


def _install(inside: InstalledEnvironment, installer: str, *arguments: Word) -> Command | NoCommand:
    environment = inside.environment
    if installer == "uv" or _is_foreign(inside):
        return run("uv", "pip", "install", *_where(environment), *_platform(inside), *arguments)
    if environment.kind == "target":
        return run("python3", "-m", "pip", "install", "--upgrade", option("--target", environment.path), *arguments)
    return run(path(environment.interpreter or "python3"), "-m", "pip", "install", *arguments)


def _where(environment: Environment) -> tuple[Word, ...]:
    if environment.kind == "target":
        return (option("--target", environment.path),)
    system = ["--break-system-packages"] * (environment.kind == "base" and environment.path == "/usr")
    return (option("--python", environment.interpreter or environment.path), *system)


def _platform(inside: InstalledEnvironment) -> tuple[Word, ...]:
    """What uv needs for a target folder, which has no Python that could be asked."""
    target = inside.target
    if isinstance(target, Unavailable) or (inside.environment.kind != "target" and not _is_foreign(inside)):
        return ()
    version = option("--python-version", f"{target.python[0]}.{target.python[1]}")
    foreign = [option("--python-platform", f"{target.machine}-manylinux_2_28")] * _is_foreign(inside)
    return (*foreign, version)
