"""What the rules for installed wheels find, as facts: which rule, what it says, and the files that it is about."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from wheel_checks.catalogue import select_rules
from wheel_checks.facts.elf.file import read_elf_file
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.host.software import FileFinding
from wheel_checks.facts.installed.facts import Distribution, InstalledDistribution, InstalledEnvironment, RecordedFiles
from wheel_checks.formats.elf.file import ElfFacts, Part
from wheel_checks.formats.elf.segments import Segments
from wheel_checks.model import CheckResult, Outcome
from wheel_checks.runner import run_rules
from wheel_checks.sources.file_tree import FileTree

MOST_FINDINGS = 200
MOST_PATHS = 50  # of one finding
CUT_OFF, PRESENT = "cut off", "present"  # labels of evidence


def file_findings(inside: InstalledEnvironment) -> tuple[FileFinding, ...]:
    """The failures, those of the environment first.

    Two things are inspected besides: what is left of a distribution that lacks files (evidence ``PRESENT``), and
    whether libraries of another size are cut off (evidence ``CUT_OFF``).
    """
    return tuple(islice(_all(inside), MOST_FINDINGS))


def _all(inside: InstalledEnvironment) -> Iterator[FileFinding]:
    for result in run_rules(select_rules("environment"), inside, Expectations()):
        if result.outcome is Outcome.FAIL:
            yield _finding(result, (inside.environment.path, ""), _paths(result, inside, None), inside)
    rules = select_rules("distribution")
    for distribution in inside.distributions:
        for result in run_rules(rules, InstalledDistribution(distribution, inside), Expectations()):
            if result.outcome is Outcome.FAIL:
                subject = distribution.name, distribution.version
                yield _finding(result, subject, _paths(result, inside, distribution), inside)


def _finding(
    result: CheckResult, subject: tuple[str, str], paths: Sequence[str], inside: InstalledEnvironment
) -> FileFinding:
    evidence = [(item.label, item.value) for item in result.evidence]
    if result.rule == "WHL702":
        evidence.append((PRESENT, str(_present(inside, subject[0]))))
    if result.rule == "WHL703":
        cut = ((path, _cut_off(inside.environment.tree, path)) for path in paths[:MOST_PATHS] if _is_library(path))
        evidence += [(CUT_OFF, f"{path}: {reason}") for path, reason in cut if reason]
    owners = [d.name for d in inside.distributions if paths and _holds(d, paths[0])]
    return FileFinding(
        rule=result.rule,
        subject=subject[0],
        version=subject[1],
        severity=result.severity.value,
        message=result.message,
        evidence=tuple(evidence),
        paths=tuple(sorted(paths, key=lambda path: not _is_library(path))[:MOST_PATHS]),
        distributions=tuple(dict.fromkeys(owners)),
        count=len(paths),
    )


def _paths(result: CheckResult, inside: InstalledEnvironment, distribution: Distribution | None) -> Sequence[str]:
    """All files that a finding is about, as far as the facts say more of them than the finding does."""
    place = result.location.path if result.location else ""
    if distribution is not None and isinstance(distribution.files, RecordedFiles):
        files = distribution.files
        told = {"WHL702": files.missing, "WHL703": tuple(file.path for file in files.sizes)}
        return told.get(result.rule, (place,) if place else ())
    whole: dict[str, Callable[[], Sequence[str]]] = {
        "WHL710": lambda: _same_name(inside, place),
        "WHL712": lambda: inside.leftovers,
        "WHL713": lambda: _shared_alike(inside, place),
        "WHL714": lambda: inside.unowned,
        "WHL723": lambda: (place, *(item.source for item in result.evidence if item.label == "needs")),
    }
    return whole[result.rule]() if result.rule in whole else (place,) if place else ()


def _present(inside: InstalledEnvironment, name: str) -> int:
    """How many files of a distribution are there, besides its metadata."""
    found = 0
    for distribution in inside.distributions:
        if distribution.name == name and isinstance(distribution.files, RecordedFiles):
            files = distribution.files
            gone = set(files.missing)
            found += sum(path not in gone and not path.startswith(f"{distribution.folder}/") for path in files.owned)
    return found


def _same_name(inside: InstalledEnvironment, folder: str) -> list[str]:
    """The metadata folders of the distribution that has this one."""
    (one,) = (d for d in inside.distributions if d.folder == folder)
    return [d.folder for d in inside.distributions if (d.name, d.entry) == (one.name, one.entry)]


def _shared_alike(inside: InstalledEnvironment, path: str) -> list[str]:
    """The files that the same distributions share as this one."""
    owners = next((shared.owners for shared in inside.shared if shared.path == path), ())
    return [shared.path for shared in inside.shared if shared.owners == owners]


def _holds(distribution: Distribution, path: str) -> bool:
    files = distribution.files
    return path == distribution.folder or (isinstance(files, RecordedFiles) and path in files.owned)


def _is_library(path: str) -> bool:
    return ".so" in path.rpartition("/")[2]


def _cut_off(tree: FileTree, path: str) -> str:
    """What of a library is after the end of its file; "" for one that is complete, however it was changed."""
    elf, _ = read_elf_file(tree, path, {Part.SEGMENTS, Part.SECTIONS})
    if not isinstance(elf, ElfFacts):
        return elf
    size = tree.size(path) or 0
    ends = [one.offset + one.file_size for one in elf.segments.headers] if isinstance(elf.segments, Segments) else []
    return f"it has {size:,} bytes, and a segment ends at {max(ends):,}" if max(ends, default=0) > size else ""
