"""Reads and judges every file of a release, each on its own and all together, and makes the report."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wheel_checks.answers.release import ReleaseQuestion, answer_release
from wheel_checks.catalogue import select_rules
from wheel_checks.errors import NotFoundError
from wheel_checks.facts.release.expectation import ReleaseExpectation, UploadRules
from wheel_checks.facts.release.facts import FileInRelease, ReleaseFacts, ReleaseFile, lay_out, release_version
from wheel_checks.facts.wheel.dependencies import Dependencies
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.formats.index.file_names import WHEEL_SUFFIX, is_variants_file_of
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.wheel.variant_label import is_variant
from wheel_checks.model import Audience, FailOn, Report, Rule, Subject
from wheel_checks.runner import run_rules
from wheel_checks.sources.client import HttpClient
from wheelproof import __version__
from wheelproof.release.digests import known_digests, known_sizes, local_digests
from wheelproof.release.exemptions import exempt
from wheelproof.release.installable import Installer
from wheelproof.release.machines import machine_choices
from wheelproof.release.matrix import headline, matrix_facts
from wheelproof.release.plan import Candidate, Listing, find_files
from wheelproof.reporting import OpenReport
from wheelproof.wheels.judging import compare_siblings, index_subjects, judge_wheels, local_bytes
from wheelproof.wheels.model import JudgedWheel, Judgement, PlannedWheel, Progress, Silent

if TYPE_CHECKING:  # most runs ask for no attestations
    from wheelproof.wheels.provenance import Attesting

REPLACED = ("WHL108", "WHL201", "WHL301", "WHL302")
"""Rules covered by REL308, REL103, REL106 and REL104, and therefore not reported."""

INSTALLABLE = "REL113"  # the rule for which requirements are resolved

ELFS_AT_ONCE = 4  # wheels whose ELF files are in memory at the same time: some 60 MB for each of torch's

KINDS = ("wheel", "upload", "release", "release-file", "release-set")


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    """The places of a release, its expectation, whether pre-releases count, and the date for exemptions."""

    targets: tuple[str, ...]
    expectation: ReleaseExpectation
    today: date
    pre: bool = False


def judge_release(
    request: ReleaseRequest,
    judgement: Judgement,
    client: HttpClient,
    listing: Listing,
    progress: Progress | None = None,
    dependencies: Dependencies | None = None,
    attesting: Attesting | None = None,
    installer: Installer | None = None,
) -> Report:
    """The report: the release first, then its files by name. A wheel that cannot be read is undecided.

    ``judgement.expectations`` is not used: the release has its own, by platform. ``attesting`` judges the attestations
    of every file, and ``installer`` resolves the wheels' requirements, if expected. Raises UsageError for an invalid
    argument, SourceError when a place cannot be read, NotFoundError when it contains no file of the project.
    """
    opened = OpenReport("release")
    rules, judgement = _rules(request.expectation, judgement)
    candidates, outline = _outlined(request, listing)
    documents = _variant_documents(candidates, listing, request.expectation.project)
    groups = _groups(candidates, documents, outline, judgement.depth)
    wheels = _read(groups, judgement, rules, client, progress or Silent(), dependencies)
    resolves = request.expectation.resolve and any(rule.id == INSTALLABLE for rule in rules["release-set"])
    release = _release(request, outline, candidates, wheels, installer if resolves else None)
    files = [_file_subject(file, release, wheels.get(file.file_name), rules["release-file"]) for file in release.files]
    if attesting is not None:
        files = _attested(attesting, candidates, files, wheels)
    files = [exempt(subject.read_by(Audience.PUBLISHER), release) for subject in files]
    judged = list(wheels.values())
    indexes = [exempt(subject, release) for subject in index_subjects(judged, (), judgement)]
    subjects = (_whole(release, files, rules["release-set"], judgement.selection.fail_on), *files, *indexes)
    answer = answer_release(_question(release, attested=attesting is not None), subjects)
    return opened.close(subjects, judgement.selection, cost=client.cost, local=local_bytes(judged), answers=[answer])


def _rules(expectation: ReleaseExpectation, judgement: Judgement) -> tuple[dict[str, list[Rule]], Judgement]:
    """The rules of each kind, and the judgement that reads their facts."""
    rules = judgement.selection.rules_by_kind(KINDS)
    rules["wheel"] = [rule for rule in rules["wheel"] if rule.id not in REPLACED]
    for exemption in expectation.exemptions:
        select_rules("", exemption.rules)  # a misspelt rule must fail, and not exempt nothing
    if expectation.upload_rules is not UploadRules.PUBLIC or not rules["upload"]:
        return rules, judgement
    rules["wheel"] += rules["upload"]
    return rules, replace(judgement, upload=True)


def _outlined(request: ReleaseRequest, listing: Listing) -> tuple[Sequence[Candidate], ReleaseFacts]:
    """The files of the release, and where each belongs by its name."""
    expectation = request.expectation
    candidates = find_files(request.targets, expectation, listing, pre=request.pre)
    version = release_version((candidate.file_name for candidate in candidates), expectation.project)
    if version is None:
        raise NotFoundError(f"no file of {expectation.project} is in {', '.join(request.targets)}")
    return candidates, lay_out(expectation, version, [ReleaseFile(c.file_name) for c in candidates], request.today)


def _read(
    groups: Sequence[_Group],
    judgement: Judgement,
    rules: Mapping[str, Sequence[Rule]],
    client: HttpClient,
    progress: Progress,
    dependencies: Dependencies | None,
) -> dict[str, JudgedWheel]:
    """Every wheel by its name, judged by the expectations of its group, alone and with wheels for other machines."""
    judged: list[JudgedWheel] = []
    progress.planned(sum(len(group.wheels) for group in groups), alike=True)
    for group in groups:
        held = replace(judgement, expectations=group.expectations)
        judged += judge_wheels(group.wheels, held, rules["wheel"], client, progress, dependencies)
    expected = {planned.file_name: group.expectations for group in groups for planned in group.wheels}
    return {
        wheel.planned.file_name: wheel
        for expectations in set(expected.values())
        for wheel in compare_siblings(judged, rules["release"], expectations)
        if expected[wheel.planned.file_name] == expectations
    }


def _release(
    request: ReleaseRequest,
    outline: ReleaseFacts,
    candidates: Sequence[Candidate],
    wheels: Mapping[str, JudgedWheel],
    installer: Installer | None,
) -> ReleaseFacts:
    """The release with the facts of its files, and the results of the ``installer``, if there is one."""
    hashes = request.expectation.hashes
    digests = local_digests(candidates, hashes)
    files = [_file(c, wheels.get(c.file_name), digests, hashes) for c in candidates]
    release = lay_out(request.expectation, outline.version, files, request.today)
    release = replace(release, machine_choices=machine_choices(release, candidates, wheels))
    if installer is None:
        return release
    paths = [path for candidate in candidates for path in candidate.paths]
    return replace(release, installations=installer.with_files(paths).try_all(release))


def _whole(release: ReleaseFacts, files: Sequence[Subject], rules: Iterable[Rule], fail_on: FailOn) -> Subject:
    """The release judged by the rules about all of it, with the matrix of its files."""
    results = run_rules(rules, release, Expectations())
    facts = matrix_facts(release, Report("release", __version__, "", 0.0, tuple(files), fail_on))
    name = f"{release.expectation.project} {release.version}"
    return exempt(Subject(name, "release-set", headline(release), facts, results), release)


def _question(release: ReleaseFacts, *, attested: bool) -> ReleaseQuestion:
    """The demands of the expectation on the release and on each wheel."""
    platforms = {platform.name: platform for platform in release.expectation.platforms}
    served = {
        file.file_name: [platforms[cell.platform] for cell in file.cells]
        for file in release.files
        if file.file_name.endswith(WHEEL_SUFFIX)
    }
    return ReleaseQuestion(
        bool(release.expectation.parity),
        release.expectation.torch_abi is not None,
        {name for name, found in served.items() if any(platform.accelerator for platform in found)},
        {name for name, found in served.items() if any(platform.gpus for platform in found)},
        {file.file_name for file in release.files} if attested else frozenset(),
    )


class _Group(NamedTuple):
    """Wheels of which the same is expected."""

    expectations: Expectations
    wheels: list[PlannedWheel]


def _variant_documents(candidates: Sequence[Candidate], listing: Listing, project: str) -> tuple[IndexFile, ...]:
    """The variant documents, of any version, on indexes that list variant wheels among the candidates."""
    if not any(candidate.listings and is_variant(candidate.file_name) for candidate in candidates):
        return ()
    return tuple(file for file in listing(project) if is_variants_file_of(file.file_name, project))


def _groups(
    candidates: Sequence[Candidate], documents: Iterable[IndexFile], outline: ReleaseFacts, depth: Depth
) -> list[_Group]:
    """The wheels by platform, without expectations for wheels that serve none, in groups that fit into memory."""
    wheels: dict[str, list[PlannedWheel]] = defaultdict(list)
    listed = (*(listing for candidate in candidates for listing in candidate.listings), *documents)
    for candidate, file in zip(candidates, outline.files, strict=True):
        if candidate.is_wheel:
            listing = candidate.listings[0] if candidate.listings else None
            planned = PlannedWheel(candidate.file_name, candidate.place, listing, listed=listed)
            wheels[file.cells[0].platform if file.cells else ""].append(planned)
    abi = outline.expectation.torch_abi
    expected = {
        platform.name: Expectations(platform.accelerator, platform.max_size, gpus=platform.gpus, torch_abi=abi)
        for platform in outline.expectation.platforms
    }
    bound = ELFS_AT_ONCE if depth.includes(Depth.LINKS) else len(candidates)
    return [
        _Group(expected.get(platform, Expectations()), found[start : start + bound])
        for platform, found in wheels.items()
        for start in range(0, len(found), bound)
    ]


def _file(
    candidate: Candidate, wheel: JudgedWheel | None, digests: Mapping[Path, str], expected: Mapping[str, str]
) -> ReleaseFile:
    """The facts about a file; few if it is no wheel, or an unreadable one."""
    facts = wheel.facts if wheel else None
    reasons = [listing.yanked for listing in candidate.listings if listing.yanked is not None]
    file = ReleaseFile(
        candidate.file_name,
        sizes=known_sizes(candidate, facts.size if facts else None),
        digests=known_digests(candidate, digests, expected, facts.content_sha256 if facts else ""),
        listed=bool(candidate.listings),
        yanked=reasons[0] if reasons else None,
    )
    return replace(file, accelerator=facts.accelerator, metadata=facts.metadata) if facts else file


def _file_subject(
    file: ReleaseFile, release: ReleaseFacts, wheel: JudgedWheel | None, rules: Iterable[Rule]
) -> Subject:
    """The wheel as ``verify`` judges it, or another file, with the results of release rules."""
    results = run_rules(rules, FileInRelease(file, release), Expectations())
    if wheel is not None:
        return replace(wheel.subject, results=(*wheel.subject.results, *results))
    kind, label = ("sdist", "source archive") if file.own else ("file", "no file of the release")
    facts = {"version": str(file.version)} if file.version else {}
    size = {"size": file.size} if file.size is not None else {}
    return Subject(file.file_name, kind, label, {**facts, **size}, results)


def _attested(
    attesting: Attesting,
    candidates: Sequence[Candidate],
    subjects: Sequence[Subject],
    wheels: Mapping[str, JudgedWheel],
) -> list[Subject]:
    """Each file with the results about its attestations; wheels were read whole before, other files are now."""
    from wheelproof.wheels.provenance import NOT_WHOLE, AttestableFile

    found = []
    for candidate, subject in zip(candidates, subjects, strict=True):
        wheel = wheels.get(candidate.file_name)
        read = wheel.facts.content_sha256 if wheel and wheel.facts else ""
        sha256 = read or (NOT_WHOLE if wheel else attesting.sha256_of(candidate.place))
        file = AttestableFile(candidate.file_name, candidate.place, candidate.listings, sha256)
        found.append(attesting.judge(subject, file))
    return found
