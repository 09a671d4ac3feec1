"""What would an install do to torch and the packages that belong to it, and who demands that?

The installer's own dry run decides, in this environment or in one that is only described. For another platform uv
resolves against a folder that holds the metadata of what is described as installed; pip evaluates the markers of this
machine (pypa/pip issues 11664 and 10050) and is never asked about another.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.requirements import Requirement

from wheel_checks.errors import SourceError, UsageError, WheelproofError
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.pins.changes import Fate, PackageChange
from wheel_checks.facts.stack.facts import LinkedPackage
from wheel_checks.facts.wheel.facts import Depth
from wheel_checks.formats.index_page import file_from_url
from wheel_checks.formats.secrets import redact_text
from wheel_checks.model import Report, Subject, Unavailable
from wheel_checks.runner import run_rules
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.installer_config import IndexConfig
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
from wheel_checks.sources.uv.resolver import python_platform
from wheel_checks.sources.uv.user_settings import uv_settings
from wheel_checks.targets.selection import choose
from wheel_checks.targets.target import Target
from wheelproof.pins.installers import DEFAULT_TIMEOUT, PIP, UV, DryRun, pip_dry_run, uv_dry_run
from wheelproof.pins.predict.demands import DemandSearch
from wheelproof.pins.predict.environment import TORCH, WATCHED, describe
from wheelproof.reporting import EVERY_RULE, OpenReport, Selection
from wheelproof.wheels.asked import Asked
from wheelproof.wheels.handing import Handed, hand_over
from wheelproof.wheels.judging import read_planned, unreadable
from wheelproof.wheels.model import PlannedWheel


@dataclass(frozen=True, slots=True)
class Destination:
    """Where the install would go: ``packages`` are there, ``python`` is the interpreter of an environment.

    ``described`` is True when nothing of it exists: the packages were named, and the target may be any.
    """

    target: Target
    packages: Mapping[str, LinkedPackage]
    python: str = ""
    described: bool = False


@dataclass(frozen=True, slots=True)
class PredictRequest:
    """What would be installed where, and by which installers. ``options`` are passed on to them (indexes, --pre).

    ``build`` lets them build source archives, which runs their code; else an install that needs one is undecided.
    """

    asked: Asked
    place: Destination
    installers: tuple[str, ...] = (UV, PIP)
    options: tuple[str, ...] = ()
    upgrade: bool = False
    build: bool = False
    selection: Selection = EVERY_RULE
    timeout: float = DEFAULT_TIMEOUT
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)


def predict(request: PredictRequest, client: HttpClient, index: SimpleIndex) -> Report:
    """The report: for each installer one subject for the install, and one for each watched package that is installed.

    An installer that gives no answer is undecided. Raises UsageError for a rule prefix that means nothing, for a
    platform that uv cannot resolve for, and for pip with a described environment.
    """
    opened = OpenReport("pins predict")
    subjects: list[Subject] = []
    for installer in request.installers:
        try:
            subjects += _judge(installer, request, client, index)
        except UsageError:
            raise
        except WheelproofError as error:
            subjects.append(unreadable(f"{installer}: {request.asked.label}", "install", error))
    return opened.close(subjects, request.selection, cost=client.cost)


def _judge(installer: str, request: PredictRequest, client: HttpClient, index: SimpleIndex) -> list[Subject]:
    rules = request.selection.rules_by_kind(("planned-install", "planned-change"))
    handed = _handed(installer, request, index.config)
    index = SimpleIndex(client, handed.config, handed.pinned)
    planned = plan(installer, replace(request, timeout=client.time_left(request.timeout)), handed)
    changes = changes_of(installer, planned, request, client, index)
    where = request.place.target.label
    results = run_rules(rules["planned-install"], planned.conflict, Expectations())
    facts = {
        "installer": installer,
        "requested": list(request.asked.names),
        "target": where,
        "installed": len(planned.installed.keys() - planned.removed.keys()),
        "replaced": len(planned.installed.keys() & planned.removed.keys()),
        "removed": len(planned.removed.keys() - planned.installed.keys()),
    }
    told = "; ".join(change.sentence for change in changes) or "torch is not installed"
    subjects = [Subject(f"{installer}: {request.asked.label} on {where}", "install", told, facts, results)]
    for change in changes:
        told_facts = {
            "installer": installer,
            "name": change.name,
            "fate": change.fate.value,
            "from": change.before,
            "to": change.after,
            "build": change.build,
            "wheel": change.file_name,
            "demanded_by": [str(demand) for demand in change.chain],
        }
        results = run_rules(rules["planned-change"], change, Expectations())
        subjects.append(Subject(f"{change.name} under {installer}", "package", change.sentence, told_facts, results))
    return subjects


def _handed(installer: str, request: PredictRequest, config: IndexConfig) -> Handed:
    """What the installer is given. Raises SourceError when a package is left out: it could demand another torch."""
    if installer == PIP and request.place.described:
        raise UsageError(
            "pip cannot tell what it would do elsewhere: it evaluates the markers of this machine",
            hint="use --installer uv",
        )
    handed = hand_over(request.asked, request.place.target, config)
    if handed.left_out:
        raise next(iter(handed.left_out.values()))
    for project in handed.projects:
        if project.name in WATCHED:
            raise SourceError(f"{project.name} would be built from a folder of the tree, and nothing is built")
    texts = (*handed.requirements, *handed.constraints) if installer == PIP and not request.build else ()
    built = next(filter(is_built, texts), None)
    if built is not None:
        raise SourceError(f"pip would build `{redact_text(built)}`, which runs its code", hint="--build lets it")
    return handed


def plan(installer: str, request: PredictRequest, handed: Handed) -> DryRun:
    """The dry run of one installer. Raises SourceError when it gives no answer."""
    place = request.place
    with private_folder() as folder:
        arguments = [*request.options, *(["--upgrade"] if request.upgrade else [])]
        arguments += _files(handed, folder, installer)
        arguments += ["--", *request.asked.requirements] if request.asked.requirements else []
        if installer == PIP:
            packages = {name: package.version for name, package in place.packages.items()}
            return pip_dry_run(
                arguments, packages, place.python, request.variables, request.timeout, build=request.build
            )
        arguments = [*_settings(request, handed.config, folder), *arguments]
        if not place.described:
            there = ["--python", place.python]
        else:
            (folder / "there").mkdir()
            describe(folder / "there", {name: package.version for name, package in place.packages.items()})
            there = ["--target", str(folder / "there"), "--python", sys.executable]
            there += ["--python-version", ".".join(map(str, place.target.python))]
            there += ["--python-platform", python_platform(place.target)]
        return uv_dry_run([*there, *arguments], request.variables, request.timeout, build=request.build)


def _files(handed: Handed, folder: Path, installer: str) -> list[str]:
    """The options that give an installer what the files of a tree ask for, in files that we write."""
    of_files = handed.lines(pinned=installer == PIP)
    options = ["-r", str(write_private(folder / "requirements.txt", of_files))] if of_files else []
    if handed.constraints:
        text = "".join(f"{line}\n" for line in handed.constraints)
        options += ["-c", str(write_private(folder / "constraints.txt", text))]
    if handed.pinned and installer == UV:
        (folder / "pinned").mkdir()
        text = pinning_project(handed.pinned_requirements, handed.pinned)
        options += ["-r", str(write_private(folder / "pinned" / "pyproject.toml", text))]
    return options


def _settings(request: PredictRequest, config: IndexConfig, folder: Path) -> list[str]:
    """The options that give uv the user's settings. Raises UntrustedAddressError for an index of a tree that counts."""
    settings = uv_settings(request.variables, Path.cwd(), config.trust)
    if settings.refused and "--no-index" not in request.options:
        raise UntrustedAddressError(request.asked.label, settings.refused)
    if settings.builds and not request.build:  # uv builds these in spite of --no-build
        raise SourceError(
            "no-binary in the settings of uv asks for builds, which run code", hint="--build lets uv build"
        )
    return config_options(folder, toml_text(settings.table))


def changes_of(
    installer: str, planned: DryRun, request: PredictRequest, client: HttpClient, index: SimpleIndex
) -> list[PackageChange]:
    """What becomes of each watched package that is installed, and of a torch that is not, with the wheel and the demand
    behind a change.
    """
    place = request.place
    search = DemandSearch(request.asked, place.packages, planned.installed, place.target, client, index)
    found = []
    for name in WATCHED:
        before = place.packages[name].version if name in place.packages else ""
        added = name == TORCH and not before and name in planned.installed
        if not before and not added:
            continue
        if name not in planned.removed and not added:
            found.append(PackageChange(name, before, before, installer, place.target.machine))
            continue
        after = planned.installed.get(name, "")
        file_name, build = "", None
        if after:
            file_name, build = _taken(name, after, planned.urls.get(name, ""), place.target, client, index)
        found.append(
            PackageChange(
                name,
                before,
                after,
                installer,
                place.target.machine,
                build,
                file_name,
                search.chain(name, before) if before else (),
                request.upgrade,
            )
        )
    return sorted(found, key=lambda change: (change.fate is Fate.KEPT, WATCHED.index(change.name)))


def _taken(
    name: str, version: str, url: str, target: Target, client: HttpClient, index: SimpleIndex
) -> tuple[str, AcceleratorFacts | Unavailable]:
    """The wheel of ``name`` that an installer would take, by its file name ("" for none), and what it is built for.

    It is the one at ``url``, else what the index has for ``target``. What cannot be had is Unavailable with the reason.
    """
    try:
        file = file_from_url(url, "") if url else None
        if file is None:
            requirement = Requirement(f"{name}=={version}")
            choice = choose(requirement, index.files(name).files, target, pre=True)
            if choice.chosen is None:
                return "", Unavailable(choice.explanation)
            file = choice.chosen
        location = path_of(file.url) if is_file_url(file.url) else file.url
        facts = read_planned(PlannedWheel(file.file_name, location, file, target), Depth.QUICK, client)
    except (WheelproofError, ValueError) as error:
        return "", Unavailable(str(error))
    return file.file_name, facts.accelerator
