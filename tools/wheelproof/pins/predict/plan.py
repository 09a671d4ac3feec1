"""Ask an installer for its plan, source archives included, without building one.

pip and uv see wheels alone (``--only-binary``, ``--no-build``), which changes what they choose. So the source archives
that they would choose are read, and offered as empty wheels with the same metadata, until none is missing
(:mod:`wheelproof.wheels.resolving`). The result is open only if a build would compute the metadata.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import SourceError, UsageError, WheelproofError
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.lock.model import LockedPackage
from wheel_checks.formats.secrets import redact_text
from wheel_checks.model import NotUnderstood
from wheel_checks.parsing import version_or_none
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import IndexConfig
from wheel_checks.sources.requirement_files import is_built
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.sources.trust import UntrustedAddressError
from wheel_checks.sources.uv.own_configuration import (
    config_options,
    pinning_project,
    private_folder,
    toml_text,
    write_private,
)
from wheel_checks.sources.uv.resolver import NoSolutionError, Resolution, python_platform
from wheel_checks.sources.uv.user_settings import uv_settings
from wheel_checks.sources.uv_binary import run_uv
from wheel_checks.targets.selection import choose
from wheelproof.pins.installers import PIP, UV, DryRun, pip_dry_run, refused, uv_dry_run
from wheelproof.pins.predict.environment import describe
from wheelproof.pins.predict.model import Destination, PredictRequest
from wheelproof.wheels.handing import Handed
from wheelproof.wheels.indexes import KnownIndexes
from wheelproof.wheels.resolving import ArchiveSearch, Settled, UndecidedConflictError

HOW_TO_DECIDE = "--build allows the installer to build it, which runs its code"


@dataclass(frozen=True, slots=True)
class Planned:
    """The plan of an installer."""

    dry: DryRun
    open: tuple[str, ...] = ()  # its open questions, as sentences
    not_understood: tuple[NotUnderstood, ...] = ()  # what keeps it from being made


def plan(installer: str, request: PredictRequest, handed: Handed, client: HttpClient, index: SimpleIndex) -> Planned:
    """The plan of one installer for its input ``handed``. Raises SourceError without one."""
    with private_folder() as folder:
        asking = _asking(installer, request, handed, folder)
        if request.build or request.wheels_only or handed.hashes:  # with hashes only the named files count
            try:
                return Planned(asking.ask((), ()))
            except NoSolutionError as error:
                open_ = (
                    ()
                    if request.build or request.wheels_only or not error.explanation.unusable
                    else (_needs_build(error),)
                )
                return Planned(refused(error.explanation), open_)
        if not (request.requested.requirements or handed.requirements):
            return Planned(DryRun({}, {}, {}))  # a project that requires nothing
        requested = [Requirement(text) for text in handed.requirements]
        constraints = [Requirement(text) for text in handed.constraints]
        return settled_plan(
            installer,
            asking.ask,
            requested,
            request,
            KnownIndexes(index),
            client,
            constraints=constraints,
            pre=handed.pre,
            passed_over=handed.pinned,
        )


def _needs_build(error: NoSolutionError) -> str:
    names = ", ".join(error.explanation.unusable)
    return f"no wheel of {names} fits, and source archives with hashes are not read ({HOW_TO_DECIDE})"


@dataclass(slots=True)
class _Query:
    """An installer with its input, except the wheels in place of source archives; ``runs`` counts its runs."""

    installer: str
    request: PredictRequest
    folder: Path
    arguments: list[str]
    there: list[str]
    python: str = ""
    runs: int = 0

    def ask(self, places: Sequence[str], constraints: Sequence[str]) -> DryRun:
        """Run it once. Raises NoSolutionError, SourceError."""
        request, self.runs = self.request, self.runs + 1
        more = [part for place in places for part in ("--find-links", place)]
        if constraints:
            text = "".join(f"{line}\n" for line in constraints)
            more += ["-c", str(write_private(self.folder / f"more-{self.runs}.txt", text))]
        requested = ["--", *request.requested.requirements] if request.requested.requirements else []
        arguments = [*more, *self.arguments, *requested]
        if self.installer == UV:
            return uv_dry_run([*self.there, *arguments], request.variables, request.timeout, build=request.build)
        packages = {name: copy.version for name, copy in request.place.seen_by(PIP).items()}
        return pip_dry_run(arguments, packages, self.python, request.variables, request.timeout, build=request.build)


def _asking(installer: str, request: PredictRequest, handed: Handed, folder: Path) -> _Query:
    arguments = [*request.options, *(["--upgrade"] if request.upgrade else [])]
    typed_constraints = any(name.startswith("-c ") for name in request.requested.typed)
    arguments += _files(handed, folder, installer, typed_constraints=typed_constraints)
    place = request.place
    if installer == PIP:
        arguments += ["--user"] * request.to_user
        arguments += ["--target", str(folder / "target")] if request.folder else []
        python = _described_python(place, folder) if place.described else place.python
        return _Query(installer, request, folder, arguments, [], python)
    arguments = [*_settings(request, handed.config, folder), *arguments]
    return _Query(installer, request, folder, arguments, _uv_place(request, folder))


def _uv_place(request: PredictRequest, folder: Path) -> list[str]:
    """The options that show uv the environment."""
    place = request.place
    if request.folder:
        (folder / "target").mkdir()
        return ["--target", str(folder / "target"), "--python", place.python or sys.executable]
    if not place.described:
        return ["--python", place.python]
    (folder / "there").mkdir()
    describe(folder / "there", place.own.values())
    there = ["--target", str(folder / "there"), "--python", place.python or sys.executable]
    there += ["--python-version", ".".join(map(str, place.target.python))]
    return [*there, "--python-platform", python_platform(place.target)]


def _described_python(place: Destination, folder: Path) -> str:
    """The interpreter of an empty environment with the described metadata, for pip.

    Raises UsageError for another platform than this one: pip evaluates the markers of this host (pypa/pip issues
    11664 and 10050). Raises SourceError if this host has no such Python.
    """
    if not place.python and place.target.machine != platform.machine():
        raise UsageError(
            "pip cannot plan for another platform: it evaluates the markers of this host",
            hint="use --installer uv",
        )
    venv = folder / "described"
    version = ".".join(map(str, place.target.python))
    python = place.python or (sys.executable if place.target.python == sys.version_info[:2] else version)
    made = run_uv(["venv", "--no-config", "--quiet", "--no-python-downloads", "--python", python, str(venv)], {}, 60)
    if made.status:
        raise SourceError(
            f"no environment of Python {version} could be created for pip: {' '.join(made.words.split())[-300:]}"
        )
    (site,) = venv.glob("lib/python3*/site-packages")
    describe(site, place.order.everything.values())
    return str(venv / "bin" / "python")


def _files(handed: Handed, folder: Path, installer: str, *, typed_constraints: bool) -> list[str]:
    """The options that pass the requirements in files of a tree to an installer, as files that we write."""
    of_files = handed.lines(pinned=installer == PIP)
    options: list[str] = []
    if handed.constraints:
        text = "".join(f"{line}\n" for line in handed.constraints)
        constraints = str(write_private(folder / "constraints.txt", text))
        if typed_constraints:  # in uv they replace UV_CONSTRAINT, as those within a file do not
            options += ["-c", constraints]
        else:
            of_files = f"-c {constraints}\n{of_files}"
    options += ["-r", str(write_private(folder / "requirements.txt", of_files))] if of_files else []
    if handed.pinned and installer == UV:
        (folder / "pinned").mkdir()
        text = pinning_project(handed.pinned_requirements, handed.pinned)
        options += ["-r", str(write_private(folder / "pinned" / "pyproject.toml", text))]
    return options


def _settings(request: PredictRequest, config: IndexConfig, folder: Path) -> list[str]:
    """The options that give uv the user's settings. Raises UntrustedAddressError for an index of a tree that counts."""
    settings = uv_settings(request.variables, Path.cwd(), config.trust, build=request.build)
    if settings.refused and "--no-index" not in request.options:
        raise UntrustedAddressError(request.requested.label, settings.refused)
    if settings.builds and not request.build:  # uv builds these in spite of --no-build
        raise SourceError(
            "no-binary in the settings of uv requires builds, which run code", hint="--build lets uv build"
        )
    return config_options(folder, toml_text(settings.table))


def refuse_builds(installer: str, request: PredictRequest, handed: Handed) -> None:
    """Raises SourceError if the installer would build a requested package despite all options."""
    texts = (*handed.requirements, *handed.constraints) if not request.build else ()
    built = next(filter(is_built, texts), None)
    if built is not None:
        raise SourceError(
            f"{installer} would build `{redact_text(built)}`, which runs its code", hint="--build lets it"
        )


def settled_plan(
    installer: str,
    ask: Callable[[tuple[str, ...], tuple[str, ...]], DryRun],
    requested: Sequence[Requirement],
    request: PredictRequest,
    indexes: KnownIndexes,
    client: HttpClient,
    *,
    constraints: Iterable[Requirement] = (),
    pre: bool = False,
    passed_over: Iterable[str] = (),
) -> Planned:
    """The plan with the source archives of the installer. ``ask`` runs it with more sources and constraints."""
    last = DryRun({}, {}, {})
    direct = {str(canonicalize_name(requirement.name)) for requirement in requested if requirement.url}

    def run(places: tuple[str, ...], more: tuple[str, ...]) -> Resolution:
        nonlocal last
        last = ask(places, more)
        return Resolution(tuple(_locked(last, direct, search, indexes)))

    search = ArchiveSearch(
        run,
        requested,
        request.place.target,
        indexes,
        client,
        constraints=constraints,
        pre=pre or "--pre" in request.options,
        passed_over=passed_over,
    )
    try:
        settled = search.settle(compared=False)
    except UndecidedConflictError as error:
        computed = tuple(f"{archive}: {archive.computed} ({HOW_TO_DECIDE})" for archive in error.computed)
        return Planned(refused(error.explanation), computed)
    except NoSolutionError as error:
        unread = [
            f"the source archive of {name} {version} could not be read: {reason} ({HOW_TO_DECIDE})"
            for (name, version), reason in search.folder.failed.items()
            if name in {canonicalize_name(other) for other in error.explanation.unusable}
        ]
        return Planned(refused(error.explanation), tuple(unread))
    urls = {name: url for name, url in last.urls.items() if name not in settled.archives}  # without empty wheels
    return Planned(replace(last, urls=urls), tuple(_open(installer, last, settled)))


def _open(installer: str, dry: DryRun, settled: Settled) -> Iterator[str]:
    """The open questions of a plan: builds that compute metadata, unreadable archives, an unfinished search."""
    for name, archive in settled.archives.items():
        computed = archive.own_computed if installer == PIP else archive.computed
        if name in dry.installed and computed:
            yield f"{archive}, which computes what it requires: {computed} ({HOW_TO_DECIDE})"
    for name, reason in settled.failed.items():
        if name in dry.installed:
            yield f"a newer source archive of {name} could not be read: {reason} ({HOW_TO_DECIDE})"
    if settled.unfinished:
        yield settled.unfinished


def _locked(
    dry: DryRun, direct: Collection[str], search: ArchiveSearch, indexes: KnownIndexes
) -> Iterator[LockedPackage]:
    """The packages that an installer would install, each with its file: an archive's empty wheel, or one of an index.

    Those that are requested by their address are ``direct``.
    """
    for name, version in dry.installed.items():
        parsed = version_or_none(version)
        if parsed is None:
            continue
        if known := search.folder.archives.get((name, parsed)):
            stub = f"{name.replace('-', '_')}-{known[0].version}-py3-none-any.whl"
            yield LockedPackage(name, version, (IndexFile(stub, (search.folder.folder / stub).as_uri()),))
            continue
        is_direct = name in direct
        files = () if is_direct else _files_of(name, version, search, indexes)
        yield LockedPackage(name, version, files, direct=is_direct)


def _files_of(name: str, version: str, search: ArchiveSearch, indexes: KnownIndexes) -> tuple[IndexFile, ...]:
    try:
        listed = indexes.files(name)
        choice = choose(Requirement(f"{name}=={version}"), listed, search.folder.target, pre=True)
    except (WheelproofError, ValueError):
        return ()
    return (choice.chosen,) if choice.chosen else ()
