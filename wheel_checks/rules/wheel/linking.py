"""Does every library that the wheel loads come with the wheels that it requires on the target?"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from wheel_checks.facts.links.closure import Need, Status
from wheel_checks.facts.links.failing import Loaded, cuda_major, missing_of
from wheel_checks.facts.links.known_libraries import (
    brought_with,
    host_program_of,
    nvidia_package,
    nvidia_project,
    package_of,
)
from wheel_checks.facts.links.linking import LinkFacts
from wheel_checks.facts.links.symbol_versions import lacking_versions
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.fixes.commands import Options
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.phrases import plural, summarised
from wheel_checks.registry import rule

_SHOWN, _MOST_ROWS = 5, 20
_EXTRA = re.compile(r"extra == ['\"]([^'\"]{1,100})['\"]")


_READ_WHOLE = Fix("Read the library completely.", (Options(("wheelproof", "verify"), ("--depth", "gpu")),))


def _place(links: LinkFacts, path: str) -> str:
    """A path with the wheel that provides it, when that is not the judged one."""
    owner = links.owners.get(path, "")
    return path if owner in ("", links.wheels[0]) else f"{path} of {owner}"


def _shown(items: Iterable[str]) -> str:
    return summarised(list(items), _SHOWN, grouping="")


def _needed_by(links: LinkFacts, needs: Iterable[Need]) -> Evidence:
    return Evidence("needed by", _shown(dict.fromkeys(_place(links, item.elf) for item in needs)), "DT_NEEDED")


def _judged_wheel_needs(links: LinkFacts, needs: Iterable[Need]) -> bool:
    """Whether a file of the judged wheel, not of a dependency, has one of the needs."""
    return any(links.owners[item.elf] == links.wheels[0] for item in needs)


def _by_cause(links: LinkFacts, lost: Mapping[str, Sequence[Need]]) -> list[tuple[str, ...]]:
    """The missing libraries by cause.

    A group is the libraries that an absent package would provide, itself or by its requirements, NVIDIA's libraries
    that no wheel has, or all uncertain ones.
    """
    projects = {wheel.partition("-")[0].lower() for wheel in links.wheels[1:]}
    absent = sorted({package for soname in lost if (package := package_of(soname)) and package not in projects})
    causes: dict[str, list[str]] = defaultdict(list)
    for soname, needs in sorted(lost.items()):
        bringing = [package for package in absent if package_of(soname) == package or brought_with(package, soname)]
        cause = f"{bringing[0]} is not required" if bringing else soname
        if not bringing and nvidia_project(soname) and not _elsewhere(links, soname):
            cause = "NVIDIA"
        causes[cause if any(item.certain for item in needs) else "uncertain"].append(soname)
    return [tuple(sonames) for sonames in causes.values()]


def _elsewhere(links: LinkFacts, soname: str) -> str:
    """A file of that name in the closure, which no search path leads to; "" for none."""
    return next((path for path in links.files if posixpath.basename(path) == soname), "")


def _message(links: LinkFacts, sonames: Sequence[str], package: str, *, certain: bool) -> str:
    if len(sonames) == 1:
        lies = _elsewhere(links, sonames[0])
        lacking = f"is needed, but no search path leads to {_place(links, lies)}" if lies else ""
        lacking = lacking or "is needed, but no wheel contains it"
        return f"{sonames[0]} {lacking if certain else 'may be needed, but no wheel contains it'}"
    if not certain:
        return f"{len(sonames)} libraries may be needed, but no wheel contains them: {_shown(sonames)}"
    if not package:
        return f"{len(sonames)} CUDA libraries are needed, but no wheel contains them: {_shown(sonames)}"
    if all(package_of(soname) == package for soname in sonames):
        return f"{len(sonames)} libraries of {package} are needed, but it is not required: {_shown(sonames)}"
    brought = f"{len(sonames)} libraries that it contains or requires are needed"
    return f"{package} is not required, but {brought}: {_shown(sonames)}"


def _fix_of(links: LinkFacts, sonames: Sequence[str], package: str) -> Fix:
    """Require the package, in a build for the CUDA whose runtime is among the libraries; or another provider."""
    cuda = cuda_major(sonames)
    if package:
        return Fix(f"Require {package}{f', in a build for CUDA {cuda}' if cuda else ''}, on this platform.")
    if len(sonames) == 1 and _elsewhere(links, sonames[0]):
        return Fix(
            f"Open {sonames[0]} by path before it is needed, or give the file an RPATH with $ORIGIN that leads to it."
        )
    known = dict.fromkeys(filter(None, (nvidia_package(soname, cuda or links.cuda) for soname in sonames)))
    what = (
        ", ".join(known)
        or f"the wheel{'s' if len(sonames) > 1 else ''} containing {'them' if len(sonames) > 1 else 'it'}"
    )
    shown = "" if known else f" {_shown(sonames)}"
    return Fix(f"Require {what}{shown} on this platform, or bundle {'it' if len(sonames) == 1 else 'them'}.")


def _extras_that_bring(wheel: WheelFacts, sonames: Iterable[str]) -> tuple[Evidence, ...]:
    """The extras of the wheel whose requirements are named after a library: ``ctk`` for libcublas.so.13."""
    requirements = () if isinstance(wheel.metadata, Unavailable) else wheel.metadata.requirements
    found: dict[Evidence, None] = {}
    for soname in sonames:
        stem = soname.removeprefix("lib").partition(".so")[0].lower()
        names = {stem, nvidia_project(soname).removeprefix("nvidia-").removeprefix("cuda-")} - {""}
        for requirement in requirements:
            extra = _EXTRA.search(str(requirement.marker or ""))
            words = re.split(r"[-_.]+", f"{requirement.name}-{'-'.join(requirement.extras)}".lower())
            if extra and any(len(name) > 2 and name in words for name in names):
                text = str(requirement).partition(";")[0].strip()
                found[Evidence("extra that brings it", extra[1], f"METADATA: {text}")] = None
                break
    return tuple(found)


def _lost_together(
    wheel: WheelFacts, links: LinkFacts, lost: Mapping[str, Sequence[Need]], more: Sequence[Evidence]
) -> Finding:
    """The finding about missing libraries that have one cause."""
    sonames, needs = list(lost), [item for items in lost.values() for item in items]
    certain = any(item.certain for item in needs)
    is_own = _judged_wheel_needs(links, needs)
    package = next(filter(None, map(package_of, sonames)), "") if certain and len(sonames) > 1 else ""
    searched = dict.fromkeys(path for item in needs for path in item.searched)
    evidence = (
        *([Evidence("libraries", summarised(sonames, _MOST_ROWS), "DT_NEEDED")] if len(sonames) > 1 else []),
        _needed_by(links, needs),
        Evidence("searched", _shown(searched) or "no search path", "RPATH, RUNPATH"),
        more[0],
        *_extras_that_bring(wheel, sonames),
        *more[1:],
    )
    return Finding(
        _message(links, sonames, package, certain=certain),
        evidence,
        _fix_of(links, sonames, package) if certain else _READ_WHOLE,
        Location(needs[0].elf) if _judged_wheel_needs(links, needs[:1]) else None,
        Severity.WARNING if not certain and not is_own else None,
        undecided=not certain and is_own,
    )


def _opened_unseen(links: LinkFacts, lost: Mapping[str, Sequence[Need]], more: Sequence[Evidence]) -> Finding:
    """The undecided finding about libraries that the package may open by paths which its source does not show."""
    needs = [item for items in lost.values() for item in items]
    evidence = (
        Evidence("opened by", links.opens_unknown),
        *(Evidence(soname, _place(links, _elsewhere(links, soname))) for soname in lost),
        _needed_by(links, needs),
        *more,
    )
    what = f"{_shown(lost)} {'is' if len(lost) == 1 else 'are'} loaded"
    message = f"not proven that {what}: the import opens libraries by paths that its source does not show"
    fix = Fix("Import the installed package: where no search path leads, only libraries opened earlier are found.")
    return Finding(message, evidence, fix, undecided=True)


def _may_be_loaded(links: LinkFacts, loaded: Loaded, more: Sequence[Evidence]) -> Iterable[Finding]:
    """The undecided finding about files that lack libraries and that the import may load."""
    files = {_place(links, path): missing_of(links.closure, path) for path in loaded.undecided}
    if files:
        message = f"the import may load {plural(len(files), 'file')} of the wheel, whose libraries are missing"
        fix = Fix("Import the installed package: its source does not show whether it loads these files.")
        yield Finding(message, (*_needed_of(files), *more), fix, undecided=True)


def _not_needed(wheel: WheelFacts, links: LinkFacts, loaded: Loaded, more: Sequence[Evidence]) -> Iterable[Finding]:
    """The finding about files that lack libraries and that the import does not load."""
    files: dict[str, list[str]] = defaultdict(list)
    undecided = {_place(links, path) for path in loaded.undecided}
    for item in links.closure.needs:
        unloaded = item.elf not in loaded.files and _place(links, item.elf) not in undecided
        if item.status is Status.MISSING and unloaded and not links.is_spare(item.elf, loaded):
            files[_place(links, item.elf)].append(item.soname)
    if not files:
        return
    message = "1 file needs libraries that no wheel contains; the import does not need it"
    if len(files) > 1:
        message = f"{len(files)} files need libraries that no wheel contains; the import does not need them"
    extras = _extras_that_bring(wheel, dict.fromkeys(name for sonames in files.values() for name in sonames))
    fix = Fix("Require the wheels with these libraries, or document where users get them.")
    severity = Severity.WARNING if files.keys() & links.roles.keys() else Severity.NOTE
    yield Finding(message, (*_needed_of(files), *extras, *more), fix, severity=severity)


def _needed_of(files: Mapping[str, Sequence[str]]) -> list[Evidence]:
    return [Evidence(file, _shown(sonames), "DT_NEEDED") for file, sonames in sorted(files.items())][:_MOST_ROWS]


def _left_to_the_host(links: LinkFacts, lost: Mapping[str, Sequence[Need]], more: Sequence[Evidence]) -> Finding:
    """The finding about libraries of programs that only the host can have installed, which answers assume."""
    needs = [item for items in lost.values() for item in items]
    programs = _shown(dict.fromkeys(host_program_of(soname) for soname in lost))
    certain = _judged_wheel_needs(links, needs) or any(item.certain for item in needs)
    evidence = (
        Evidence("libraries", summarised(sorted(lost), _MOST_ROWS), "DT_NEEDED"),
        _needed_by(links, needs),
        *more,
    )
    needed = (
        f"{_shown(sorted(lost))} {'is' if len(lost) == 1 else 'are'} needed, but no wheel contains "
        f"{'it' if len(lost) == 1 else 'them'}"
    )
    return Finding(
        f"the wheel loads only on hosts with {programs}: {needed}",
        evidence,
        Fix(f"Install {programs} with the system's package manager. Of several versions of a library, one is enough."),
        Location(needs[0].elf) if _judged_wheel_needs(links, needs[:1]) else None,
        severity=Severity.WARNING,
        assumes=programs if certain else "",
    )


def _nothing_loads(links: LinkFacts, loaded: Loaded, read: Evidence) -> Iterable[Finding]:
    """The undecided finding about existing libraries outside of the loader's search paths."""
    needs = [item for item in links.closure.needs if item.status is Status.UNLOADED and item.elf in loaded.files]
    if not needs:
        return
    sonames = sorted({item.soname for item in needs})
    owners = _shown(dict.fromkeys(links.owners[item.by] for item in needs))
    evidence = (
        Evidence("libraries", summarised(sonames, _MOST_ROWS), "DT_NEEDED"),
        _needed_by(links, needs),
        read,
    )
    needed = (
        f"{_shown(sonames)} {'is' if len(sonames) == 1 else 'are'} needed, but in {owners}, to which no search path"
    )
    message = f"{needed} leads; the import of torch does not load {'it' if len(sonames) == 1 else 'them'}"
    fix = Fix("Import the installed package. Its authors can add an RPATH with $ORIGIN.")
    yield Finding(message, evidence, fix, Location(needs[0].elf), undecided=True)


def _extras_not_judged(links: LinkFacts) -> Iterable[Finding]:
    """The undecided finding about the extras of a wheel without libraries."""
    if links.not_judged:
        yield Finding(
            f"the wheel has no libraries, and those of its extras were not read: {_shown(links.not_judged)}",
            tuple(Evidence("required", one, "METADATA") for one in links.not_judged[:_MOST_ROWS]),
            Fix("Check them together: `wheelproof stack` accepts the same requirement, with --depth links."),
            undecided=True,
        )


@rule(
    "WHL521",
    "every needed library is provided by the wheels, the driver or the system",
    why="A missing library fails at import, on the user's host: `libnccl.so.2: cannot open shared object file`. The "
    "directories of all required wheels show it before anything is installed.",
    example="libtorch_cuda.so needs libcusparseLt.so.0, but METADATA does not require nvidia-cusparselt-cu13 on "
    "aarch64",
    fix="Require the wheel with the library on this platform, or bundle the library.",
)
def missing(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """No DT_NEEDED of the wheel or of its dependencies lacks a file that is found, or loaded already.

    An error for files that the import of the wheel loads, one for each library, or for the package that would provide
    several; a warning if the host may have it installed; undecided if the name is uncertain (a warning in another
    wheel), or if the source does not show whether a file is loaded, or which libraries it opens first. One warning for
    all files that the import does not load: optional modules, leftovers, and modules of other packages, if these alone
    are a note.
    Nothing for alternatives if another one is chosen. Undecided for extras of a wheel without libraries, since their
    packages are not read.
    """
    links = need(wheel.links)
    loaded = links.loaded([gpu.sm for gpu in expectations.gpus if gpu.sm])
    lost: dict[str, list[Need]] = defaultdict(list)
    for item in links.closure.needs:
        if item.status is Status.MISSING and item.elf in loaded.files:
            lost[item.soname].append(item)
    absent = () if isinstance(links.absent, Unavailable) else links.absent
    read = Evidence("wheels read", f"{len(links.wheels)} ({links.how})")
    more = (read, *(Evidence("not installable", f"{a.name}: {a.why}", "index") for a in absent[:_SHOWN]))
    hosted = {soname: lost.pop(soname) for soname in sorted(lost) if host_program_of(soname)}
    if hosted:
        yield _left_to_the_host(links, hosted, more)
    opened = [name for name in sorted(lost) if links.opens_unknown and _elsewhere(links, name)]
    if opened:
        yield _opened_unseen(links, {soname: lost.pop(soname) for soname in opened}, more)
    for sonames in _by_cause(links, lost):
        yield _lost_together(wheel, links, {soname: lost[soname] for soname in sonames}, more)
    yield from _nothing_loads(links, loaded, read)
    yield from _may_be_loaded(links, loaded, more)
    yield from _not_needed(wheel, links, loaded, more)
    yield from _extras_not_judged(links)


@rule(
    "WHL522",
    "libraries define the symbol versions that others need from them",
    why="The loader finds a library with the right name but another version, and rejects it: `version NCCL_2.28 not "
    "found`.",
    example="libtorch_cuda.so needs libcudart.so.13 (version libcudart.so.13), but the wheel contains another build",
    fix="Pin a version of the wheel that defines them.",
)
def versions(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Each version that a library needs is defined by the file that the closure gives it, if both were read."""
    links = need(wheel.links)
    for item in lacking_versions(links.closure.needs, links.files.get):
        user, library = _place(links, item.need.elf), _place(links, item.need.by)
        evidence = (Evidence("needs", _shown(item.lacking), user), Evidence("defines", _shown(item.defined), library))
        fix = Fix(f"Pin the release whose {item.need.soname} defines them.")
        yield Finding(f"{library} lacks symbol versions that {user} needs", evidence, fix)


@rule(
    "WHL523",
    "every bundled library is needed",
    Severity.NOTE,
    audience=Audience.PUBLISHER,
    why="A library that no file needs wastes space, or is opened by name, which the metadata of libraries does not "
    "show.",
    example="libgfortran.so.5 bundled in a wheel in which no file needs it",
    fix="Remove it, unless it is opened by name (dlopen).",
)
def orphans(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Libraries of the wheel itself that no need leads to."""
    links = need(wheel.links)
    unread = sum(links.owners[path] == links.wheels[0] for path in links.closure.unread)
    if unread:
        need(Unavailable(f"the needs of {unread} of its files are unknown", "--depth full"))
    own = [path for path in links.closure.orphans if links.owners[path] == links.wheels[0]]
    if own:
        count = "1 library" if len(own) == 1 else f"{len(own)} libraries"
        fix = Fix("Remove libraries that are not opened by name (dlopen, ctypes).")
        yield Finding(f"no file in the wheel needs {count} of it", (Evidence("libraries", _shown(own)),), fix)


@rule(
    "WHL524",
    "every requirement has a wheel for the target",
    why="A pin without a wheel for one platform fails there with `no matching distribution`, or compiles from source "
    "for an hour.",
    example="nvidia-cufile-cu12==1.11.1.6 on aarch64, for which it has no wheel",
    fix="Restrict the requirement to the platforms with a wheel, or publish one.",
)
def pins(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Of each requirement that was followed an installer would take a wheel; a source archive alone is a warning."""
    for package in need(need(wheel.links).absent):
        by = ", ".join(filter(None, package.required_by)) or wheel.file_name
        evidence = (Evidence("required by", by, "METADATA"), Evidence("index", package.why))
        fix = Fix(f"Restrict the requirement of {package.name} with a marker, or publish a wheel of it.")
        severity = Severity.WARNING if package.sdist_only else None
        yield Finding(f"{package.name} has no wheel for the target: {package.why}", evidence, fix, severity=severity)


@rule(
    "WHL525",
    "libraries are found through their own search path, not through earlier imports",
    Severity.NOTE,
    audience=Audience.PUBLISHER,
    why="A library that is found only because another package was imported first fails in any other order, for example "
    "in a test or in a tool that imports it alone.",
    example="torchvision's _C.so needs libc10.so, which is found once torch was imported",
    fix="Give it an RPATH with $ORIGIN that leads to the library, or import the other package first and document this.",
)
def preloaded(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No need of the wheel itself has the status preload."""
    links = need(wheel.links)
    found = [n for n in links.closure.needs if n.status is Status.PRELOAD and links.owners[n.elf] == links.wheels[0]]
    if found:
        files = sorted({item.elf for item in found})
        evidence = (
            Evidence("files", _shown(files)),
            Evidence("need", _shown(sorted({f"{n.soname} ({_place(links, n.by)})" for n in found}))),
        )
        count = "1 file finds" if len(files) == 1 else f"{len(files)} files find"
        fix = Fix("Add an RPATH with $ORIGIN, or import the other package first and document this.")
        yield Finding(f"{count} libraries only after another package was imported", evidence, fix)


@rule(
    "WHL529",
    "the library search for --explain is shown",
    Severity.NOTE,
    why="The loader's search order and its result answer why one file was loaded and not another.",
    example="`wheelproof verify torch==2.11.0 --depth links --explain libnccl.so.2`",
    fix="No action is needed.",
)
def explained(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """One note for each file that needs such a library; silent if none was requested."""
    for soname in expectations.explain:
        links = need(wheel.links)
        needs = [item for item in links.closure.needs if item.soname == soname]
        if not needs:
            yield Finding(f"no file needs {soname}")
        for item in needs:
            found = f"{item.status}: {_place(links, item.by)} ({item.how})" if item.by else f"{item.status} {item.how}"
            searched = tuple(Evidence(f"{i}", path) for i, path in enumerate(item.searched, 1))
            message = f"{_place(links, item.elf)} needs {soname}: {found.strip()}"
            yield Finding(message, searched, location=Location(item.elf))
