"""Could a file of requirements replace the torch that works? By what it pins, and where."""

from collections.abc import Iterable

from wheel_checks.commands import path, run
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.pins.facts import BUILD, COMMAND, CONDA, LOCK, PinnedRequirement, RequirementFile
from wheel_checks.model import Audience, Evidence, Finding, Fix, Severity
from wheel_checks.registry import rules_of

KIND = "requirement-pin"
rule = rules_of(KIND, Audience.INSTALLER)
_COMPANIONS = ("torchvision", "torchaudio")  # each release requires one release of torch


_BY_HAND = Fix("Remove it from the command, or guard the environment first (`wheelproof pins guard`).")


def _fix(file: RequirementFile, found: PinnedRequirement) -> Fix:
    """A rewriting, which leaves commands as they are."""
    if found.role == COMMAND:
        return _BY_HAND
    return Fix("Remove it, and install torch first.", (run("wheelproof", "pins", "rewrite", path(file.path)),))


def _evidence(found: PinnedRequirement) -> tuple[Evidence, ...]:
    label = "command" if found.role == COMMAND else "section"
    section = (Evidence(label, found.section),) if found.section else ()
    installed = (Evidence("installed", f"{found.name} {found.installed}"),) if found.installed else ()
    return (Evidence("requirement", found.text), *section, *installed)


@rule(
    "PIN101",
    "no requirement replaces the installed torch",
    why="A package cannot specify an index for its dependencies: if the installed build does not satisfy a "
    "requirement, the installer silently selects another one from the default index, which may be a CPU build.",
    example="`torch==2.8.0` in requirements.txt, while 2.7.0+cu128 is installed",
    fix="`wheelproof pins rewrite` removes it; `wheelproof pins guard` keeps torch in spite of it.",
)
def replaces(file: RequirementFile, _: Expectations) -> Iterable[Finding]:
    """Every requirement that an install heeds keeps the installed version; without one, any version will do."""
    for found in file.requirements:
        if found.role not in (BUILD, CONDA, LOCK) and not found.kept:
            what = f"`{found.section} {found.text}`" if found.role == COMMAND else found.text
            message = f"{what} could replace the installed {found.name}: {found.reason}"
            yield Finding(message, _evidence(found), _fix(file, found), found.location, undecided=not found.certain)


@rule(
    "PIN102",
    "no isolated build installs its own torch",
    Severity.WARNING,
    why="A build environment is filled from the index: extensions compiled in it are linked against that torch, and "
    "fail to load with the installed one.",
    example='`requires = ["setuptools", "torch"]` in build-system',
    fix="Remove torch from requires, and install with `--no-build-isolation`.",
)
def builds(file: RequirementFile, _: Expectations) -> Iterable[Finding]:
    """No requirement of a build environment is on torch."""
    for found in file.requirements:
        if found.role == BUILD:
            message = f"{found.text} is installed again for every build, whatever is installed"
            yield Finding(message, _evidence(found), _fix(file, found), found.location)


@rule(
    "PIN103",
    "no companion package installs another torch",
    Severity.WARNING,
    why="Each release of torchvision and torchaudio requires one release of torch. If the package is not installed, "
    "the newest release is selected, with the torch that it requires.",
    example="a bare `torchvision` with torch 2.10.0+cu128: 0.29.2 needs torch 2.14 or newer",
    fix="Remove it, or pin the release that matches the installed torch (`pins rewrite --mode pin-installed`).",
)
def companions(file: RequirementFile, _: Expectations) -> Iterable[Finding]:
    """A requirement on a companion that any version satisfies is held against an installed one."""
    for found in file.requirements:
        free = found.role not in (BUILD, CONDA, LOCK) and found.kept and not found.installed
        if found.name in _COMPANIONS and free:
            message = f"{found.text} selects the newest release, and the torch that it requires"
            yield Finding(message, _evidence(found), _fix(file, found), found.location)


@rule(
    "PIN104",
    "no script installs torch by name",
    Severity.WARNING,
    why="A `pip install` in a Dockerfile, a workflow or a script counts like any requirement, but rewriting does not "
    "change it. If torch is not installed, it installs the default index's build.",
    example="`RUN pip install torch` in a Dockerfile whose base image has a torch",
    fix="Remove the name from the command, or guard the environment first.",
)
def commands(file: RequirementFile, _: Expectations) -> Iterable[Finding]:
    """No install command names torch."""
    for found in file.requirements:
        if found.role == COMMAND and found.kept:
            message = f"`{found.section} {found.text}` installs {found.name} by name"
            yield Finding(message, _evidence(found), _BY_HAND, found.location)


@rule(
    "PIN105",
    "no lock file contains another torch",
    Severity.WARNING,
    why="A lock file is installed as it is: `uv sync` replaces a build with a local version by the locked one, even if "
    "both have the same public version.",
    example="`torch` 2.7.0 in uv.lock, but 2.7.0+cu128 in the environment",
    fix="Lock again after rewriting, and run `uv sync --inexact`.",
)
def locks(file: RequirementFile, _: Expectations) -> Iterable[Finding]:
    """A lock file holds what is installed, to the local version; where that is not known, it does not name torch."""
    judged = {found.name for found in file.requirements if found.role == LOCK and found.installed}
    for found in file.requirements:
        if found.role == LOCK and found.installed and not found.kept:
            message = (
                f"{found.text} is locked, but {found.installed} is installed: an install of the lock file replaces it"
            )
            there = (Evidence("installed", f"{found.name} {found.installed}"),)
            yield Finding(message, there, location=found.location, severity=Severity.ERROR)
    for notice in file.noticed("lock-file"):
        if not judged & set(notice.names):
            yield Finding(notice.message, location=notice.location)


@rule(
    "PIN106",
    "every requirement can be read",
    Severity.WARNING,
    why="Requirements computed by a setup.py or a script are unknown without running it, and install commands in a "
    "Makefile, justfile, noxfile.py or tox.ini are not read: one of them may be a pin of torch, so nothing is proven.",
    example="`install_requires=read_requirements()` in setup.py",
    fix="Write the requirements as literals, or in pyproject.toml.",
)
def dynamic(file: RequirementFile, _: Expectations) -> Iterable[Finding]:
    """Undecided where anything is computed, included from afar, missing or not read; notes on what was read instead."""
    for notice in file.noticed("dynamic", "remote-include", "include-missing", "install-file", "not-read"):
        yield Finding(notice.message, location=notice.location, undecided=True)
    for notice in file.noticed("outside-tree", "reads-file"):
        yield Finding(notice.message, location=notice.location, severity=Severity.NOTE)


@rule(
    "PIN107",
    "no conda environment file installs its own torch",
    Severity.NOTE,
    why="conda recreates the environment with its own build of torch: no installed package is kept.",
    example="`pytorch-gpu >=2.7` in environment.yml",
    fix="`wheelproof pins rewrite --conda` removes it, if torch is to come from another source.",
)
def conda(file: RequirementFile, _: Expectations) -> Iterable[Finding]:
    """No package of conda is a torch."""
    for found in file.requirements:
        if found.role == CONDA:
            yield Finding(f"{found.text} is conda's own torch", _evidence(found), location=found.location)


@rule(
    "PIN108",
    "no extra, wheel or setting selects another torch",
    Severity.NOTE,
    why="An extra may require torch, a wheel may be built for one torch, and settings of uv may name it: none of these "
    "is a pin, but each has undone a rewrite.",
    example="`transformers[torch]`, or a flash-attn wheel whose name says torch2.10",
    fix="Guard the environment: `wheelproof pins guard`.",
)
def others(file: RequirementFile, _: Expectations) -> Iterable[Finding]:
    """No extra is called torch, no wheel is for one torch, no setting of uv names it."""
    for notice in file.noticed("extra", "wheel-abi", "match-runtime", "build-dependency", "dependency-metadata"):
        yield Finding(notice.message, location=notice.location)


@rule(
    "PIN109",
    "every requested package occurs in a requirement",
    Severity.NOTE,
    why="A misspelled name, or a glob that matches nothing, checks nothing: the absence of findings then means little.",
    example="`--package nvidia-cudn*` in a project whose requirements name nvidia-cudnn-cu12",
    fix="Use the package's name as in its requirements, or a glob such as `nvidia-*`.",
)
def asked(file: RequirementFile, _: Expectations) -> Iterable[Finding]:
    """Every --package matches a requirement."""
    for notice in file.noticed("package-unmatched"):
        yield Finding(notice.message, location=notice.location)
