"""Requirements files with hashes are locks: the files that the hashes admit are judged, and nothing is resolved.

pip requires hashes of every line as soon as one line has some (``--require-hashes``), and takes no other file.
"""

import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import NotFoundError, SourceError, WheelproofError
from wheel_checks.facts.stack.facts import Unhashed
from wheel_checks.facts.wheel.resolution import active_with_extras, exact_pin
from wheel_checks.formats.index_page import IndexFile, file_from_url
from wheel_checks.formats.lock.model import LockedPackage
from wheel_checks.model import Location
from wheel_checks.sources.uv.explanation import Explanation
from wheel_checks.sources.uv.resolver import NoSolutionError
from wheel_checks.targets.selection import Choice, choose
from wheel_checks.targets.target import Target
from wheelproof.stacks.packages import Pick, planned
from wheelproof.wheels.asked import Asked
from wheelproof.wheels.declared_model import Line
from wheelproof.wheels.indexes import KnownIndexes
from wheelproof.wheels.judging import AT_ONCE

_FRAGMENT = re.compile(r"[#&](?:md5|sha1|sha224|sha256|sha384|sha512)=[0-9a-fA-F]{32,128}(?:&|$)")  # pip counts it, too


@dataclass(frozen=True, slots=True)
class HashedFiles:
    """What requirements files with hashes give on a target. ``left_out`` are packages that cannot be inspected."""

    picks: tuple[Pick, ...]
    unhashed: tuple[Unhashed, ...]
    left_out: Mapping[str, WheelproofError]


@dataclass(frozen=True, slots=True)
class _Pinned:
    """A package with the hashes that its lines admit ("sha256:..."), and one of these lines."""

    requirement: Requirement
    hashes: frozenset[str]
    line: Line

    @property
    def version(self) -> str:
        return exact_pin(self.requirement)


def requires_hashes(asked: Asked) -> bool:
    """Whether pip would require hashes: only requirements files are requested, and a line has a hash or says so."""
    if asked.requirements or any(path.suffix == ".toml" for path in asked.files):
        return False
    return asked.declared.require_hashes or any(line.hashes for line in _lines(asked))


def read_hashed(
    asked: Asked, target: Target, indexes: KnownIndexes, left_out: Mapping[str, WheelproofError]
) -> HashedFiles:
    """The file that pip takes for each line whose marker holds on ``target``.

    Raises NoSolutionError for a package with two versions, and SourceError when an index does not answer.
    """
    pinned, unhashed = _pinned(asked, target, left_out)
    with ThreadPoolExecutor(AT_ONCE, "pick") as pool:
        found = list(pool.map(lambda one: _pick(one, target, indexes), pinned))
    unknown = {pick.package.name: error for pick, error in found if error is not None}
    return HashedFiles(tuple(pick for pick, error in found if error is None), unhashed, unknown)


def _lines(asked: Asked) -> list[Line]:
    """The lines of requirements files; those of projects that they name say what these require."""
    return [line for line in asked.declared.lines if not line.constraint and not line.file.endswith(".toml")]


def _pinned(
    asked: Asked, target: Target, left_out: Mapping[str, WheelproofError]
) -> tuple[list[_Pinned], tuple[Unhashed, ...]]:
    active = {id(r) for r in active_with_extras((line.requirement for line in asked.declared.lines), target.markers())}
    unhashed: list[Unhashed] = []
    found: dict[str, _Pinned] = {}
    for line in _lines(asked):
        if id(line.requirement) not in active or line.name in left_out:
            continue
        is_direct = bool(line.requirement.url)
        if not (line.hashes or (is_direct and _FRAGMENT.search(line.requirement.url or ""))) or not (
            is_direct or exact_pin(line.requirement)
        ):
            reason = "is not pinned to one version by ==" if line.hashes else "has no hash"
            text = str(line.requirement).partition(";")[0].strip()
            unhashed.append(Unhashed(text, reason, Location(file=line.file, line=line.number or None)))
            continue
        new, known = _Pinned(line.requirement, frozenset(map(str.lower, line.hashes)), line), found.get(line.name)
        if known is not None:
            _agree(known, line)
            new = replace(new, hashes=new.hashes & known.hashes)
        found[line.name] = new
    for line in asked.declared.lines:
        if line.constraint and id(line.requirement) in active and line.name in found:
            _agree(found[line.name], line)
    return list(found.values()), tuple(unhashed)


def _agree(known: _Pinned, line: Line) -> None:
    """Raises NoSolutionError when another line wants another version."""
    if known.requirement.url or line.requirement.url:
        differs = known.requirement.url != line.requirement.url
    else:
        differs = not line.requirement.specifier.contains(known.version, prereleases=True)
    if differs:
        both = [(known.line.where, known.requirement), (line.where, line.requirement)]
        raise NoSolutionError(Explanation(tuple(f"{where} requires {requirement}" for where, requirement in both)))


def _pick(one: _Pinned, target: Target, indexes: KnownIndexes) -> tuple[Pick, WheelproofError | None]:
    """The file for one package; with an error where it cannot be known which file the hashes admit."""
    name = canonicalize_name(one.requirement.name)
    plain = Requirement(str(one.requirement).partition(";")[0])
    if one.requirement.url:
        linked = file_from_url(one.requirement.url, "")
        files = (linked,) if linked else ()
        choice = choose(plain, files, target, pre=True)
        wheel = planned(choice.chosen, target, ()) if choice.chosen else None
        return Pick(LockedPackage(name, str(choice.version or ""), files, direct=True), wheel, choice), None
    package = LockedPackage(name, one.version, ())
    try:
        listed = indexes.files(name)
    except NotFoundError as error:
        return Pick(package, None, Choice(plain, target, explanation=error.what)), None
    refused = indexes.refused(name)
    listed = tuple(file for file in listed if file.file_name not in refused)
    admitted = [file for file in listed if _states(file) & one.hashes]
    choice = choose(plain, admitted, target, pre=True)
    pick = Pick(replace(package, files=tuple(admitted)), None, choice)
    if choice.chosen is not None:
        return replace(pick, wheel=planned(choice.chosen, target, listed)), None
    if choice.sdist is not None:
        return pick, None
    return _without_file(pick, one, listed)


def _without_file(pick: Pick, one: _Pinned, listed: Sequence[IndexFile]) -> tuple[Pick, WheelproofError | None]:
    """Why the hashes admit no file; with an error where the index states hashes of another kind."""
    choice, name = pick.choice, one.requirement.name
    kinds = {value.partition(":")[0] for value in one.hashes}
    unknown = [file for file in listed if not kinds & file.hashes.keys()]
    if choose(choice.requirement, unknown, choice.target, pre=True).version is not None:
        what = (
            f"{name} has hashes of the kind {', '.join(sorted(kinds))} in {one.line.where}, but the index states others"
        )
        return pick, SourceError(what, hint="pip downloads the file and compares; lock with --hash=sha256:...")
    offered = choose(choice.requirement, listed, choice.target, pre=True)
    file = offered.chosen or offered.sdist
    if file is None:
        explanation = offered.explanation
    else:
        explanation = (
            f"{name} {one.version} has no file for {choice.target.label} among those that {one.line.where} has hashes "
            f"of; the index has {file.file_name}"
        )
    return replace(pick, choice=replace(offered, chosen=None, sdist=None, version=None, explanation=explanation)), None


def _states(file: IndexFile) -> frozenset[str]:
    return frozenset(f"{kind}:{value}".lower() for kind, value in file.hashes.items())
