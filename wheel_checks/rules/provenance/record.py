"""Is what is behind each name what was judged before? Judges a run by the record of another (`--same-as`)."""

from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.provenance.record import Compared, RecordComparison, RecordedFile, Sameness
from wheel_checks.model import Evidence, Finding, Fix, Severity
from wheel_checks.phrases import abbreviated, summarised
from wheel_checks.registry import rules_of

rule = rules_of("record")

_SHOWN = 20


def _of(file: RecordedFile, when: str) -> Evidence:
    hashes = [f"{name}={digest}" for name, digest in file.known_hashes.items()] or ["no hash"]
    size = "no size" if file.size is None else f"{file.size:,} bytes"
    return Evidence(when, ", ".join([*hashes, size]), file.url or "a file on disk")


def _both(item: Compared) -> tuple[Evidence, ...]:
    return _of(item.before, "then"), _of(item.now, "now")


@rule(
    "WHL411",
    "the file behind a recorded name is the file that was checked",
    why="The installed file is not the checked one if it was replaced: by an upload over an old file, a mirror that "
    "was tampered with, or a rebuilt wheel of the same version.",
    example="a wheel with sha256=9f3a... in the record but sha256=1c22... on the index today",
    fix="Find out why the file changed, check it again, and write a new record.",
)
def unchanged(comparison: RecordComparison, _: Expectations) -> Iterable[Finding]:
    """Equal hashes. Undecided without a strong hash, or a strong validator of one address, on both sides."""
    fix = Fix("Find out why it changed before you install it. Check it again, and write a new record.")
    for item in comparison.compared:
        if item.sameness is Sameness.CHANGED:
            yield Finding(f"{abbreviated(item.now.name, 200)} is a different file: {item.why}", _both(item), fix)
        elif item.sameness is Sameness.UNKNOWN and item.moved:
            message = f"{abbreviated(item.now.name, 200)} comes from another index: {item.why}"
            yield Finding(message, (*_both(item), *_indexes(item)), fix)
        elif item.sameness is Sameness.UNKNOWN:
            full = Fix("Write the record, and compare with it, with --depth full, which reads every byte.")
            message = f"not known whether {abbreviated(item.now.name, 200)} is the same file: {item.why}"
            yield Finding(message, _both(item), full, undecided=True)
    if not comparison.compared:
        message = "the record contains no file of this run, so nothing was compared"
        yield Finding(message, fix=Fix("Use the record of the same command."), undecided=True)


@rule(
    "WHL412",
    "every recorded file is still selected",
    why="A name that now resolves to another file installs code that was never checked: a release was deleted, yanked "
    "or added, or another index responds.",
    example="torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl in the record, but torch-2.12.0 selected today",
    fix="Pin the versions that were checked, or check the selected ones now and write a new record.",
)
def gone(comparison: RecordComparison, _: Expectations) -> Iterable[Finding]:
    """The run meets every name of the record. Undecided where a target of the run could not be read."""
    if not comparison.gone:
        return
    names = [abbreviated(file.name, 200) for file in comparison.gone]
    evidence = tuple(_of(file, abbreviated(file.name)) for file in comparison.gone[:_SHOWN])
    if taken := [abbreviated(file.name, 200) for file in comparison.new]:
        evidence += (Evidence("not in the record", summarised(taken, _SHOWN, grouping="")),)
    asked = comparison.record.asked
    words = [*asked.targets, *(f"--platform {p}" for p in asked.platforms), *(f"--python {p}" for p in asked.pythons)]
    evidence += (Evidence("the record is of", abbreviated(" ".join(words), 200) or "a run without target options"),)
    listed = summarised(names, 3, grouping="")
    if comparison.is_complete:
        fix = Fix(
            "Pin the versions that were checked, or check the selected ones now and write a new record. Compare a "
            "record with a run for the same targets."
        )
        yield Finding(f"no longer selected: {listed}", evidence, fix)
    else:
        yield Finding(f"not selected, but not every target could be read: {listed}", evidence, undecided=True)


@rule(
    "WHL413",
    "every recorded file comes from the recorded index",
    Severity.WARNING,
    why="The bytes are the same, but another source serves them: a mirror, or an index placed before the other. That "
    "source also decides about the next release.",
    example="an `--extra-index-url` that lists the same file",
    fix="Use the index of the record, or write a new record.",
)
def moved(comparison: RecordComparison, _: Expectations) -> Iterable[Finding]:
    """The addresses of the indexes are equal, for files that are the same."""
    for item in comparison.compared:
        if item.moved and item.sameness is Sameness.SAME:
            message = f"{abbreviated(item.now.name, 200)} is unchanged, but comes from another index"
            yield Finding(message, _indexes(item), Fix("Use the index of the record, or write a new record."))


def _indexes(item: Compared) -> tuple[Evidence, ...]:
    return tuple(
        Evidence(f"index {when}", file.index or file.url or "a file on disk")
        for when, file in (("then", item.before), ("now", item.now))
    )


@rule(
    "WHL414",
    "every file of the run is in the record",
    Severity.NOTE,
    why="A file that is not in the record was not checked when it was written. This run has checked it.",
    example="a new wheel in the folder",
    fix="Write a new record if the new files are intended.",
)
def new(comparison: RecordComparison, _: Expectations) -> Iterable[Finding]:
    """No name is new."""
    if comparison.new:
        names = [abbreviated(file.name, 200) for file in comparison.new]
        evidence = tuple(_of(file, abbreviated(file.name)) for file in comparison.new[:_SHOWN])
        fix = Fix("Write a new record if they are intended.")
        yield Finding(f"not in the record: {summarised(names, 3, grouping='')}", evidence, fix)
