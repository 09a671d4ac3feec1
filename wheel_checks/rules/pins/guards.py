"""Does what is set up really keep the installed torch? PIN201 to PIN209 judge the guard of one installer."""

from collections.abc import Iterable

from packaging.version import Version

from wheel_checks.commands import run
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.pins.guard import GuardFacts, GuardSetting, Kind
from wheel_checks.facts.wheel.resolution import exact_pin
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity
from wheel_checks.registry import rules_of

TORCH = "torch"
KIND = "pin-guard"
rule = rules_of(KIND, Audience.INSTALLER)
_WRITE = Fix("Install the guard.", (run("wheelproof", "pins", "guard", "--install"),))


@rule(
    "PIN201",
    "the installer cannot replace the installed torch",
    why="If any requirement in the tree does not accept the installed torch, the installer selects another one from "
    "its default index, unless a constraint with the local version, an exclude or an override prevents it.",
    example="a venv with torch 2.7.0+cu128 and neither UV_CONSTRAINT nor UV_EXCLUDE",
    fix="Install the guard: `wheelproof pins guard --install`.",
)
def held(guard: GuardFacts, _: Expectations) -> Iterable[Finding]:
    """A framework, or what the user asked for, fails without a constraint, an exclude or an override."""
    for name, version in guard.installed.items():
        if not any(guard.keeps_away(name)) and not any(guard.pins(name)):
            severity = None if guard.must_keep(name) else Severity.WARNING
            message = f"{guard.installer} can replace {name} {version}: no setting prevents it"
            yield Finding(message, fix=_WRITE, severity=severity)


@rule(
    "PIN202",
    "constraints on torch match the installed version",
    why="A constraint for another version does not keep the installed torch: it requires a replacement.",
    example="`torch==2.6.0+cu124` in constraints.txt, but torch 2.7.0+cu128 is installed",
    fix="Write the guard again, from the current environment.",
)
def current(guard: GuardFacts, _: Expectations) -> Iterable[Finding]:
    """A constraint that the installed version does not satisfy fails; one that also allows others is a warning."""
    for name, version in guard.installed.items():
        for setting, pin in guard.pins(name):
            if not pin.specifier.contains(version, prereleases=True):
                yield _finding(f"the constraint {pin} does not match the installed {name} {version}", setting)
            elif not exact_pin(pin) and not guard.is_pinned(name):
                told = f"the constraint {pin} allows versions other than the installed {name} {version}"
                yield _finding(told, setting, Severity.WARNING)


@rule(
    "PIN203",
    "constraints on torch include its local version",
    Severity.WARNING,
    why="`torch==2.7.0` accepts both 2.7.0+cu128 and the build of the index: with --reinstall, or in a fresh "
    "environment, the index's build is installed, which may be a CPU build.",
    example="`torch==2.7.0` in constraints.txt, but torch 2.7.0+cu128 is installed",
    fix="Pin the full version, as in `torch==2.7.0+cu128`.",
)
def local_version(guard: GuardFacts, _: Expectations) -> Iterable[Finding]:
    """An exact constraint without the local version that is installed fails."""
    for name, version in guard.installed.items():
        for setting, pin in guard.pins(name):
            if Version(version).local and exact_pin(pin) == Version(version).public and not guard.is_pinned(name):
                told = (
                    f"the constraint {pin} also allows the index's build: the installed {name} {version} has a local "
                    "version"
                )
                yield _finding(told, setting, fix=Fix(f"Pin the full version: {name}=={version}."))


@rule(
    "PIN204",
    "no-build-isolation-package does not list torch",
    why="The setting lists packages that are being built, not those that they are built against. Listing torch neither "
    "keeps it installed nor makes any build use it.",
    example='`no-build-isolation-package = ["torch"]` in [tool.uv]',
    fix="List the packages that are compiled against torch, such as flash-attn.",
)
def builds_named(guard: GuardFacts, _: Expectations) -> Iterable[Finding]:
    """A list with torch in it fails."""
    for setting in guard.of(Kind.NO_ISOLATION):
        if TORCH in setting.packages:
            told = (
                "no-build-isolation-package lists torch, which has no effect: the setting lists the packages being "
                "built"
            )
            yield _finding(told, setting, fix=Fix("List the packages that are compiled against torch instead."))


@rule(
    "PIN205",
    "uv accepts its configuration in pyproject.toml",
    why="One key that the installed uv does not know makes it ignore the whole [tool.uv] table with only a warning: "
    "every exclude and override in it is lost.",
    example="`exclude-dependencies` together with a key of a later uv",
    fix="Remove the key, or use a uv that supports it; `required-version` makes older ones stop.",
)
def table_read(guard: GuardFacts, _: Expectations) -> Iterable[Finding]:
    """A table that uv drops fails."""
    if guard.dropped:
        told = f"{guard.installer} {guard.version} ignores its settings in pyproject.toml: {guard.dropped}"
        yield Finding(told, location=Location(path="pyproject.toml"))


@rule(
    "PIN206",
    "isolated builds cannot install another torch",
    Severity.WARNING,
    why="Constraints, excludes and overrides do not apply to build environments: a package built in isolation is "
    "compiled against whatever torch the index has, and fails when it is imported.",
    example="flash-attn built in isolation against the newest torch, for an environment with torch 2.7.0+cu128",
    fix="Set a build constraint with the full version, and build those packages without isolation.",
)
def builds(guard: GuardFacts, _: Expectations) -> Iterable[Finding]:
    """A setup with neither a build constraint on torch nor builds without isolation fails."""
    version = guard.installed.get(TORCH)
    if version is None or guard.is_pinned(TORCH, Kind.BUILD_CONSTRAINT):
        return
    isolated = [s for s in guard.of(Kind.NO_ISOLATION) if not s.packages or set(s.packages) & set(guard.extensions)]
    if not isolated:
        known = ", ".join(guard.extensions[:4])
        told = f"an isolated build ({known}, ...) installs another torch than {version}"
        yield Finding(told, fix=_WRITE)


@rule(
    "PIN207",
    "wheels built against another torch are not reused",
    Severity.WARNING,
    why="Both installers cache the wheels that they build by package only: a wheel built against another torch is "
    "reused later, even with --no-build-isolation or --reinstall.",
    example="the default cache of uv, after an isolated build of flash-attn",
    fix="Use a cache folder for each torch, as the guard does, or no cache.",
)
def cache(guard: GuardFacts, _: Expectations) -> Iterable[Finding]:
    """A cache folder whose path does not name the installed version of torch fails."""
    version = guard.installed.get(TORCH)
    caches = list(guard.of(Kind.CACHE))
    if version is None or any(not setting.path or version in setting.path for setting in caches):
        return
    evidence = tuple(Evidence("cache", setting.path, setting.origin) for setting in caches)
    yield Finding(f"the cache of built wheels is not separate for torch {version}", evidence, _WRITE)


@rule(
    "PIN208",
    "every file that the guard uses can be read",
    why="A variable that points to a missing file makes the installer fail, or protects nothing.",
    example="UV_CONSTRAINT points to a folder that was deleted",
    fix="Write the guard again.",
)
def readable(guard: GuardFacts, _: Expectations) -> Iterable[Finding]:
    """A setting whose file cannot be read fails."""
    for setting in guard.settings:
        if setting.fault:
            yield _finding(f"{setting.origin} points to {setting.path}: {setting.fault}", setting, fix=_WRITE)


@rule(
    "PIN209",
    "an excluded torch is installed",
    Severity.WARNING,
    why="An exclude or override removes torch from every requirement: if torch is not installed, installs succeed "
    "without it. `uv sync` also removes a torch that its lock does not contain, unless it is run with --inexact.",
    example='`exclude-dependencies = ["torch"]` in an environment without torch',
    fix="Install torch first, and sync with --inexact.",
)
def excluded(guard: GuardFacts, _: Expectations) -> Iterable[Finding]:
    """An excluded torch that is not installed fails; in a project, a note names --inexact."""
    for setting in guard.keeps_away(TORCH):
        if TORCH not in guard.installed:
            yield _finding(f"an {setting.kind} excludes torch, but torch is not installed", setting)
        elif "[tool.uv]" in setting.origin:
            told = "`uv sync` removes torch, which the lock does not contain"
            fix = Fix("Run `uv sync --inexact`.", (run("uv", "sync", "--inexact"),))
            yield _finding(told, setting, Severity.NOTE, fix)


def _finding(message: str, setting: GuardSetting, severity: Severity | None = None, fix: Fix | None = None) -> Finding:
    evidence = (Evidence(str(setting.kind), setting.path or ", ".join(setting.packages), setting.origin),)
    return Finding(message, evidence, fix, severity=severity)
