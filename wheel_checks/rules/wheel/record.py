"""Does RECORD list exactly what the wheel holds? (recording installed projects; binary distribution format)"""

from collections import Counter
from collections.abc import Iterable, Sequence

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.wheel.record import EMPTY_LINE
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.phrases import plural, summarised
from wheel_checks.registry import rule

_REBUILD = Fix("Let the build backend or `python -m wheel pack` write RECORD after the last change to the files.")
_SIGNATURES = ("RECORD", "RECORD.jws", "RECORD.p7s")
_SHOWN = 5


def _listed(paths: Sequence[str]) -> tuple[Evidence, ...]:
    shown = summarised(paths, _SHOWN, grouping="")
    return (Evidence("members", shown, "RECORD against the central directory"),)


def _without_rows(wheel: WheelFacts) -> set[str]:
    """Members that need no row: RECORD itself and signatures."""
    return {f"{folder}/{name}" for folder in wheel.dist_infos for name in _SIGNATURES}


@rule(
    "WHL120",
    "RECORD exists, and every row has a path, a hash and a size that parse",
    why="Uninstallers read the list of files to remove from RECORD; uv and pip reject a wheel without one. Without "
    "hashes a damaged installation cannot be detected; the format requires them for every file except RECORD and its "
    "signatures.",
    example="a row with two columns, or `torch/_C.so,,123456`",
    fix="Let the build backend write RECORD.",
)
def parses(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Three columns, sizes are numbers, hashes are well-formed."""
    record = wheel.record
    if isinstance(record, Unavailable):
        records = {f"{folder}/RECORD" for folder in wheel.dist_infos}
        if records.isdisjoint(member.name for member in need(wheel.archive).members):
            yield Finding("the wheel has no RECORD", fix=_REBUILD)
        elif record.hint:  # there, but dear to read from afar
            need(record)
        else:
            yield Finding(record.reason, fix=_REBUILD, location=Location("RECORD"))
        return
    for line, fault in record.faults:
        place = Location("RECORD", line=line)
        # pip and uv install the others all the same: they read no more of a row than its path.
        audience = None if fault == EMPTY_LINE else Audience.PUBLISHER
        yield Finding(f"RECORD line {line}: {fault}", fix=_REBUILD, location=place, audience=audience)


@rule(
    "WHL121",
    "RECORD lists exactly the members of the wheel",
    audience=Audience.PUBLISHER,
    why="A file missing from RECORD remains after uninstall and shadows the next version; a listed file that does not "
    "exist is always reported as missing.",
    example="torch/lib/libtorch_cuda.so added after RECORD was written",
    fix="Let the build backend write RECORD after the last change to the files.",
)
def complete(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The rows are the members, each once."""
    record, archive = need(wheel.record), need(wheel.archive)
    members = {member.name for member in archive.members if not member.is_directory}
    counts = Counter(row.path for row in record.rows)
    if missing := sorted(members - counts.keys() - _without_rows(wheel)):
        yield Finding(f"RECORD does not list {plural(len(missing), 'file')} of the wheel", _listed(missing), _REBUILD)
    folders = {member.name for member in archive.members if member.is_directory}
    if extra := sorted(counts.keys() - members - folders - _without_rows(wheel)):
        yield Finding(
            f"RECORD lists {plural(len(extra), 'file')} that the wheel does not contain", _listed(extra), _REBUILD
        )
    if twice := sorted(path for path, count in counts.items() if count > 1):
        yield Finding(f"RECORD lists {plural(len(twice), 'file')} more than once", _listed(twice), _REBUILD)


@rule(
    "WHL123",
    "the sizes in RECORD match the members",
    audience=Audience.PUBLISHER,
    why="A size that differs means that the file was changed after RECORD was written: every later check of the "
    "installation reports it as damaged. pip 26.3 and uv 0.13 install it anyway, without comparing sizes, so the "
    "publisher must fix it; in a stack it is a warning.",
    example="a library that was stripped after RECORD was written",
    fix="Let the build backend write RECORD after the last change to the files.",
)
def sizes(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """Size in the row, where there is one, equals the uncompressed size."""
    record, archive = need(wheel.record), need(wheel.archive)
    actual = {member.name: member.size for member in archive.members}
    wrong = [
        f"{row.path} ({row.size:,} in RECORD, actual size {actual[row.path]:,} bytes)"
        for row in record.rows
        if row.size is not None and row.path in actual and actual[row.path] != row.size
    ]
    if wrong:
        severity = Severity.WARNING if expectations.in_stack else None
        message = f"RECORD states a wrong size for {plural(len(wrong), 'file')}"
        yield Finding(message, _listed(wrong), _REBUILD, severity=severity)


@rule(
    "WHL124",
    "every member has the hash stated in RECORD",
    why="A wheel whose contents differ from RECORD was changed after it was built, or damaged.",
    example="torch/version.py edited inside the wheel",
    fix="Rebuild the wheel; do not edit it without updating RECORD.",
)
def contents(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """At depth full: digests, checksums and sizes of all members."""
    for member, fault in need(wheel.hash_faults):
        yield Finding(fault, fix=_REBUILD, location=Location(member))
