"""Do the ELF files of a wheel match its tags, and load on every machine that they name?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from packaging.version import Version

from wheel_checks.facts.links.linking import installed_path
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.fixes.commands import Options, member, path, run
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.elf.file import ElfFacts, Missing
from wheel_checks.formats.elf.segments import Segments
from wheel_checks.formats.elf.versions import SymbolVersions
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.phrases import joined, plural, summarised
from wheel_checks.registry import rule
from wheel_checks.rules.shared.policies import fitting_policy, oldest_policy, policy_of_target
from wheel_checks.targets.target import DEFAULT_GLIBC, LINUX

PAGE_64K = 64 * 1024  # bytes; the page size of kernels on many Grace machines
_SHOWN, _MOST_ROWS = 5, 20
_POLICIES = "wheel_checks/data/manylinux.toml"

_LINUX_MACHINE = re.compile(r"(?:manylinux_2_\d+|manylinux\d+|musllinux_\d+_\d+|linux)_(\w+)")
_EXTENSION = re.compile(r"\.cpython-3(\d+)t?(?:-(\w+)-linux-\w+)?\.so$")
# Also as auditwheel and delvewheel mangle names: ld-linux-aarch64-5cbc5e90.so.1, ld-linux-aarch64.5cbc5e90.so.1
_LOADER = re.compile(r"(?:^|/)(?:ld-linux[\w-]*|ld64|libc|libpthread|libdl)(?:[-.][0-9a-f]{8})?\.so\.\d$")
_DRIVER = re.compile(r"(?:^|/)(?:libcuda|libnvidia-[\w-]+|libnvcuvid)(?:[-.][0-9a-f]{8})?\.so(?:\.\d+)*$")
_RUNTIME = re.compile(r"(?:^|/)libcudart(?:[-.][0-9a-f]{8})?\.so\.(\d+)")
_VARIANT = re.compile(r"cu(?:da)?_?(\d{2})\d?(?!\d)")  # libbitsandbytes_cuda126.so: only one of several is opened
_VERSIONED = re.compile(r"(GLIBC|GLIBCXX|CXXABI)_([\d.]+)")
_ENDS_VERSIONED = re.compile(r"(GLIBC|GLIBCXX|CXXABI)_(\d{1,3}(?:\.\d{1,3}){1,3})$")
_ALIASES = {"GLIBC_ABI_DT_RELR": "GLIBC_2.36"}  # the first glibc that packs relative relocations (its NEWS)
_NATIVE = re.compile(r"\.so(?:\.\d+)*$")
_MACOS = re.compile(r"darwin|macos|osx", re.IGNORECASE)
_NAMED = {"x86_64": "x86[_-]64|amd64|x64", "aarch64": "aarch64|arm64", "i686": "i[3-6]86|x86", "armv7l": "arm"}
_SUFFIXES = {"i386": "i686", "arm": "armv7l", "powerpc64le": "ppc64le"}  # multiarch names that differ from tags


@dataclass(frozen=True, slots=True)
class _Elf:
    """One readable ELF file of the wheel."""

    member: str
    facts: ElfFacts
    possible_names: tuple[str, ...] | Unavailable = ()


def _elfs(wheel: WheelFacts) -> Iterator[_Elf]:
    for item in need(wheel.elfs):
        if not isinstance(item.facts, Unavailable):
            yield _Elf(item.member.name, item.facts, item.possible_names)


def _dynamic(elf: _Elf) -> DynamicFacts | None:
    return elf.facts.dynamic if isinstance(elf.facts.dynamic, DynamicFacts) else None


def _tagged_machines(wheel: WheelFacts) -> set[str]:
    """The Linux machines of the tags as ELF headers are named here, which do not say one 32-bit Arm from another."""
    named = {match[1] for tag in need(wheel.name).tags if (match := _LINUX_MACHINE.fullmatch(tag.platform))}
    return {"armv7l" if name.startswith("arm") else name for name in named}


def _listed(label: str, values: Sequence[str]) -> tuple[Evidence, ...]:
    return (Evidence(label, _summary(values)),)


def _summary(values: Sequence[str]) -> str:
    return summarised(values, _SHOWN, grouping="")


def _files(files: Sequence[object]) -> str:
    return plural(len(files), "file", grouping="")


@rule(
    "WHL501",
    "every native library is a readable ELF file",
    why="A library with corrupt headers is noticed only when the loader opens it, at import, on the user's host.",
    example="torch/lib/libtorch_cuda.so whose program headers lie outside the file",
    fix="Rebuild the wheel, or upload it again if the local file is intact.",
)
def readable(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No member that is named like a library is corrupt; those of macOS and others have the same suffix."""
    platforms = {tag.platform for tag in need(wheel.name).tags}
    if not any(platform == "any" or "linux" in platform for platform in platforms):
        need(Unavailable(f"the wheel is for {', '.join(sorted(platforms))}, which does not use ELF files"))
    for item in need(wheel.elfs):
        if isinstance(item.facts, Unavailable) and not _MACOS.search(item.member.name):
            fix = Fix("Rebuild the wheel, and inspect the file with readelf before the upload.")
            name, reason = item.member.name, item.facts.reason
            message = reason if reason.startswith(name) else f"{name}: {reason}"
            yield Finding(message, fix=fix, location=Location(item.member.name))


@rule(
    "WHL502",
    "every ELF file is for the machine of the platform tags",
    why="The loader skips a library for another machine, and then reports it as missing. A wheel tagged for any "
    "platform whose libraries are not for the target may work without them, or not: that is undecided.",
    example="an x86_64 library in a wheel tagged manylinux_2_28_aarch64",
    fix="Build on, or cross-compile for, the machine of the tag.",
)
def machine(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The ELF header's machine is one of the tags', but for data whose path names its own (``agent/arm64/lib.so``)."""
    tagged = _tagged_machines(wheel)
    if not tagged:
        yield from _for_any_platform(wheel)
        return
    foreign: dict[str, list[str]] = defaultdict(list)
    for elf in _elfs(wheel):
        machine = elf.facts.header.machine
        is_meant = re.search(_NAMED.get(machine, re.escape(machine)), elf.member) and not _EXTENSION.search(elf.member)
        if machine not in tagged and not is_meant:
            foreign[machine].append(elf.member)
    for name, members in foreign.items():
        message = f"{_files(members)} for {name} in a wheel for {' and '.join(sorted(tagged))}"
        fix = Fix("Build these files for the machine of the tag, or exclude them.")
        yield Finding(message, _listed("files", members), fix, Location(members[0]))


def _for_any_platform(wheel: WheelFacts) -> Iterator[Finding]:
    """A wheel tagged for any platform may have libraries for several machines, or none: debugpy does both.

    So a wheel without a library for the target is undecided, and so is one whose libraries were not read.
    """
    target = wheel.target
    if target is None or target.system != LINUX or all(tag.platform != "any" for tag in need(wheel.name).tags):
        need(Unavailable("the tags contain no Linux machine"))
        return
    native = [member.name for member in need(wheel.archive).members if _NATIVE.search(member.name)]
    if not native:
        need(Unavailable("the wheel has no native libraries"))
    tags = Evidence("tags", ", ".join(sorted(map(str, need(wheel.name).tags))))
    if isinstance(wheel.elfs, Unavailable):
        fix = Fix("Read the libraries.", (Options(("wheelproof", "verify"), ("--depth", "links")),))
        message = f"not known whether the libraries of this wheel, tagged for any platform, are for {target.machine}"
        yield Finding(message, (*_listed("files", native), tags), fix, Location(native[0]), undecided=True)
        return
    machines = {elf.facts.header.machine for elf in _elfs(wheel)}
    if machines and target.machine not in machines:
        message = f"the libraries are for {joined(sorted(machines))}, none is for {target.machine}"
        fix = Fix(f"Import the package on {target.machine} to see whether it works without them.")
        yield Finding(message, (*_listed("files", native), tags), fix, Location(native[0]), undecided=True)


@rule(
    "WHL503",
    "symbol versions are within the limits of the manylinux tag",
    why="The tag states which glibc and libstdc++ the wheel needs. A library that needs newer ones installs on an "
    "older system and fails at import with `version GLIBCXX_3.4.29 not found`. For a target whose glibc is newer than "
    "the tag, the manylinux policy of that glibc determines which versions exist: libraries within it load, and the "
    "tag is the publisher's to fix.",
    example="GLIBC_2.34 needed in a wheel tagged manylinux_2_28",
    fix="Build in the tag's manylinux image, or retag the wheel with the policy that the finding names.",
)
def symbol_versions(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """GLIBC, GLIBCXX and CXXABI needs are at most those of the oldest tagged policy, but for libraries in the wheel.

    If the target's glibc is newer than the wheel's tag, and its policy has the version, it loads there: a warning for
    the publisher. If the needs of a library were not read, a version among its strings that the target lacks is
    undecided.
    """
    policy = oldest_policy(wheel)
    if policy is None:
        need(Unavailable("the tags contain no known manylinux policy"))
        return
    elfs = list(_elfs(wheel))
    own = {elf.member.rpartition("/")[2] for elf in elfs} | {d.soname for elf in elfs if (d := _dynamic(elf))}
    above: dict[str, list[str]] = defaultdict(list)
    yield from _may_need(elfs, own, policy_of_target(wheel) or policy)
    for elf in elfs:
        if not isinstance(elf.facts.versions, SymbolVersions):
            continue
        for library in elf.facts.versions.needs:
            for version in library.versions if library.library not in own else ():
                match = _VERSIONED.fullmatch(_ALIASES.get(version.name, version.name))
                promised = policy.get(match[1], "") if match and not version.weak else ""
                if match and promised and Version(match[2]) > Version(promised):
                    above[version.name].append(elf.member)
    if above:
        yield _broken_promise(wheel, policy, above)


def _may_need(elfs: Iterable[_Elf], own: Iterable[str | None], there: dict[str, str]) -> Iterator[Finding]:
    """The undecided finding about versions that the target lacks, among the strings of libraries read in part."""
    is_bundled = any(name and "libstdc++" in name for name in own)
    found: dict[str, list[str]] = defaultdict(list)
    for elf in elfs:
        if not isinstance(elf.facts.versions, Missing) or isinstance(elf.possible_names, Unavailable):
            continue
        for name in elf.possible_names:
            match = _ENDS_VERSIONED.search(_ALIASES.get(name, name))
            promised = there.get(match[1], "") if match and (match[1] == "GLIBC" or not is_bundled) else ""
            if match and promised and Version(match[2]) > Version(promised):
                found[match[0]].append(elf.member)
    if found:
        members = list(dict.fromkeys(member for users in found.values() for member in users))
        verb = "needs" if len(members) == 1 else "need"
        names = joined(sorted(found, key=_number))
        message = f"not proven that {_files(members)} {verb} no {names}, newer than glibc 2.{there['glibc_minor']} has"
        evidence = tuple(Evidence(name, _summary(users)) for name, users in found.items())
        yield Finding(message, evidence, _read_whole(), Location(members[0]), undecided=True)


def _read_whole() -> Fix:
    return Fix("Read them completely.", (Options(("wheelproof", "verify"), ("--depth", "gpu")),))


def _broken_promise(wheel: WheelFacts, policy: dict[str, str], above: dict[str, list[str]]) -> Finding:
    """One finding for all versions above the ``policy`` of the tag, which names the one tag that has them all."""
    needs = {name: _number(name) for name in sorted(above, key=_number)}
    members = list(dict.fromkeys(member for name in needs for member in above[name]))
    tag = f"manylinux_2_{policy['glibc_minor']}"
    fitting = fitting_policy(wheel, needs.values())
    fits = f"manylinux_2_{fitting['glibc_minor']}_{fitting['machine']} is the matching tag" if fitting else ""
    prefixes = dict.fromkeys(prefix for prefix, _ in needs.values())
    evidence = [Evidence(name, _summary(above[name])) for name in needs]
    evidence += [Evidence(tag, f"{prefix}_{policy[prefix]}", _POLICIES) for prefix in prefixes]
    there = policy_of_target(wheel) or policy
    if there is not policy:
        has = ", ".join(f"{prefix}_{there[prefix]}" for prefix in prefixes)
        evidence.append(Evidence(f"target, glibc 2.{there['glibc_minor']}", has, _POLICIES))
    loads = all(version <= Version(there[prefix]) for prefix, version in needs.values())
    verb = "needs" if len(members) == 1 else "need"
    message = f"{_files(members)} {verb} {joined(list(needs))}, which {tag} does not allow"
    severity, audience = (Severity.WARNING, Audience.PUBLISHER) if loads else (None, None)
    fix = Fix("Build in the tag's manylinux image, or retag the wheel.")
    message += f"; {fits or 'no known policy does'}"
    return Finding(message, tuple(evidence), fix, Location(members[0]), severity, audience=audience)


def _number(name: str) -> tuple[str, Version]:
    """``("GLIBC", 2.34)`` of ``GLIBC_2.34``, and of the names for a version of glibc."""
    prefix, number = _ALIASES.get(name, name).split("_", 1)
    return prefix, Version(number)


@rule(
    "WHL504",
    "on aarch64 every loadable segment is aligned to 64 KiB",
    why="Grace hosts often run kernels with 64 KiB pages. A library with a smaller alignment does not load there: `ELF "
    "load command address/offset not properly aligned`.",
    example="libnccl.so.2 with PT_LOAD aligned to 4096 in an aarch64 wheel",
    fix="Link with -Wl,-z,max-page-size=65536.",
)
def alignment(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The smallest PT_LOAD alignment is at least 65,536 bytes."""
    small: dict[int, list[str]] = defaultdict(list)
    for elf in _elfs(wheel):
        if elf.facts.header.machine == "aarch64" and isinstance(elf.facts.segments, Segments):
            smallest = elf.facts.segments.smallest_load_alignment
            if smallest is not None and smallest < PAGE_64K:
                small[smallest].append(elf.member)
    for smallest, members in sorted(small.items()):
        message = f"{_files(members)} aligned to {smallest:,} bytes do not load on kernels with 64 KiB pages"
        fix = Fix("Link with -Wl,-z,max-page-size=65536, or repair with a patchelf that keeps the alignment.")
        yield Finding(message, _listed("files", members), fix, Location(members[0]))


@rule(
    "WHL505",
    "the wheel contains no loader, C library or driver library",
    why="libcuda and other driver libraries must match the host's kernel module; a bundled one shadows the driver's. A "
    "bundled loader or libc mixes two C libraries in one process.",
    example="torchvision.libs/ld-linux-aarch64.5cbc5e90.so.1",
    fix="Exclude them when you repair the wheel: auditwheel repair --exclude libcuda.so.1",
)
def bundled(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No libcuda and similar outside stubs folders (error), no ld-linux or libc (warning)."""
    for elf in _elfs(wheel):
        if _DRIVER.search(elf.member) and "/stubs/" not in f"/{elf.member}":
            command = run("auditwheel", "repair", "--exclude", "libcuda.so.1", path(wheel.file_name))
            fix = Fix("Exclude the library when you repair the wheel.", (command,))
            yield Finding(f"{elf.member} belongs to NVIDIA's driver", fix=fix, location=Location(elf.member))
        elif _LOADER.search(elf.member):
            fix = Fix("Exclude it when you repair the wheel; the system's own is used instead.")
            message = f"{elf.member} is a copy of the system's loader or C library"
            yield Finding(message, fix=fix, location=Location(elf.member), severity=Severity.WARNING)


@rule(
    "WHL506",
    "the wheel uses one CUDA runtime",
    Severity.WARNING,
    why="Two CUDA runtimes of different major versions in one process do not share contexts or streams, and use twice "
    "the memory.",
    example="libcudart.so.12 in a wheel that requires nvidia-cuda-runtime of CUDA 13",
    fix="Build all libraries of the wheel against one CUDA version.",
)
def one_runtime(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """All libcudart among and needed by the ELF files are of one major version, but for files named for their CUDA."""
    by_major: dict[str, list[str]] = defaultdict(list)
    for elf in _elfs(wheel):
        dynamic = _dynamic(elf)
        variant = _VARIANT.search(elf.member.rpartition("/")[2])
        for name in (elf.member, *(dynamic.needed if dynamic else ())):
            if (match := _RUNTIME.search(name)) and not (variant and variant[1] == match[1]):
                by_major[match[1]].append(elf.member if name == elf.member else f"{elf.member} needs {name}")
    if len(by_major) > 1:
        evidence = tuple(Evidence(f"CUDA {major}", ", ".join(who[:_SHOWN])) for major, who in sorted(by_major.items()))
        message = f"the wheel uses the runtimes of CUDA {' and '.join(sorted(by_major))}"
        yield Finding(message, evidence, Fix("Build all libraries of the wheel against one CUDA version."))


@rule(
    "WHL507",
    "no RPATH or RUNPATH leads outside the environment",
    Severity.WARNING,
    audience=Audience.PUBLISHER,
    why="An absolute search path refers to the build host. If the folder exists elsewhere, libraries of another CUDA "
    "are loaded from it; if any user can create it, any user's libraries are.",
    example="RPATH /usr/local/cuda-12.8/lib64 in libtorch_cuda.so",
    fix="Remove it: patchelf --set-rpath '$ORIGIN' FILE, or -DCMAKE_INSTALL_RPATH='$ORIGIN'",
)
def search_paths(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Every entry begins with $ORIGIN."""
    leaks: dict[str, list[str]] = defaultdict(list)
    for elf in _elfs(wheel):
        if dynamic := _dynamic(elf):
            for entry in dict.fromkeys((*dynamic.rpath, *dynamic.runpath)):
                if not entry.startswith(("$ORIGIN", "${ORIGIN}")):
                    leaks[entry].append(elf.member)
    if leaks:
        members = list(dict.fromkeys(name for found in leaks.values() for name in found))
        fix = Fix(
            "Make the search path relative to the library.",
            (run("patchelf", "--set-rpath", "$ORIGIN", member(members[0])),),
        )
        evidence = [Evidence(entry or "the working directory", _summary(found)) for entry, found in leaks.items()]
        message = f"the search path of {_files(members)} leads outside the environment"
        yield Finding(message, tuple(evidence[:_MOST_ROWS]), fix, Location(members[0]))


@rule(
    "WHL508",
    "extension modules are for the Python of the tags",
    why="Python imports only suffixes that it knows: it never finds a `cpython-311` module in a cp312 wheel, and one "
    "in an abi3 wheel works with one Python only. If the package's source shows that its import works without the "
    "module, or opens the file by path, it is a warning.",
    example="_C.cpython-311-x86_64-linux-gnu.so in a cp312 wheel",
    fix="Build for the tagged Python, or with the limited API and the suffix .abi3.so.",
)
def suffixes(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Suffixes name a tagged interpreter and machine, unless another module of the same name does.

    A file that is known to have no PyInit function is no extension module: torch opens it by its path.
    A module that the source of the package imports without a guard is an error, any other a warning.
    """
    tags = need(wheel.name).tags
    pythons = {int(match[1]) for tag in tags if (match := re.fullmatch(r"cp3(\d+)", tag.interpreter))}
    stable = any(tag.abi == "abi3" for tag in tags)
    machines = _tagged_machines(wheel)
    found: dict[str, list[tuple[str, int, str]]] = defaultdict(list)
    not_imported = () if isinstance(wheel.links, Unavailable) else wheel.links.without_init
    for elf in _elfs(wheel):
        if (match := _EXTENSION.search(elf.member)) and elf.member not in not_imported:
            found[elf.member[: match.start()]].append(
                (elf.member, int(match[1]), _SUFFIXES.get(match[2], match[2] or ""))
            )
    fix = Fix("Build the module for the tagged Python, or with the limited API (.abi3.so).")
    for modules in found.values():
        fitting = [m for m in modules if (not m[2] or m[2] in machines) and (m[1] in pythons and not stable)]
        if fitting or (len(modules) > 1 and (not pythons or stable)):
            continue
        member, minor, name = modules[0]
        if name and machines and name not in machines:
            message = f"{member} is named for {name} in a wheel for {' and '.join(sorted(machines))}"
            yield Finding(message, fix=fix, location=Location(member), severity=_of_module(wheel, member))
        elif stable or (pythons and minor not in pythons):
            tagged = "the tagged Python and later" if stable else f"Python 3.{min(pythons)}"
            message = f"{member} is only for Python 3.{minor} in a wheel for {tagged}"
            yield Finding(message, fix=fix, location=Location(member), severity=_of_module(wheel, member))


def _of_module(wheel: WheelFacts, member: str) -> Severity | None:
    """A warning for a module that the import of the package does without, as far as its source was read."""
    role = None if isinstance(wheel.links, Unavailable) else wheel.links.roles.get(installed_path(member))
    return None if role is None or role.imported else Severity.WARNING


@rule(
    "WHL509",
    "no library requires an executable stack",
    Severity.WARNING,
    why="glibc 2.41 does not load such a library into a running process, and hardened systems never did: `cannot "
    "enable executable stack`.",
    example="a library with hand-written assembly without .note.GNU-stack",
    fix="Link with -Wl,-z,noexecstack, or clear the flag: patchelf --clear-execstack FILE",
)
def executable_stack(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """PT_GNU_STACK is not executable."""
    members = [
        elf.member
        for elf in _elfs(wheel)
        if isinstance(elf.facts.segments, Segments) and elf.facts.segments.executable_stack
    ]
    if members:
        fix = Fix(
            "Clear the flag, or link with -Wl,-z,noexecstack.",
            (run("patchelf", "--clear-execstack", member(members[0])),),
        )
        verb = "asks" if len(members) == 1 else "ask"
        message = f"{_files(members)} {verb} for an executable stack"
        yield Finding(message, _listed("files", members), fix, Location(members[0]))


@rule(
    "WHL510",
    "no library needs text relocations",
    Severity.WARNING,
    audience=Audience.PUBLISHER,
    why="To load such a library the loader must write into its code: SELinux forbids that, and its pages are not "
    "shared.",
    example="a library linked without -fPIC",
    fix="Compile with -fPIC.",
)
def text_relocations(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Neither DT_TEXTREL nor DF_TEXTREL."""
    members = [elf.member for elf in _elfs(wheel) if (dynamic := _dynamic(elf)) and dynamic.text_relocations]
    if members:
        message = f"{_files(members)} with text relocations"
        fix = Fix("Compile every object of these libraries with -fPIC.")
        yield Finding(message, _listed("files", members), fix, Location(members[0]))


@rule(
    "WHL511",
    "the linking data of every library was read",
    Severity.NOTE,
    why="Of a big remote library only its start and end are read. What was not found there is not checked; if the "
    "library may need a newer glibc than the target's, that is undecided.",
    example="a library of 400 MB whose dynamic section is in the middle",
    fix="Use --depth gpu, which reads such libraries completely.",
)
def completely_read(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No part of the loader's facts is missing. Undecided if symbol versions are unknown for an older glibc."""
    unread = [
        elf
        for elf in _elfs(wheel)
        if any(isinstance(part, Missing) for part in (elf.facts.dynamic, elf.facts.segments, elf.facts.versions))
    ]
    unknown = [e for e in unread if isinstance(e.facts.versions, Missing) and isinstance(e.possible_names, Unavailable)]
    if unknown and wheel.target and (0, 0) < wheel.target.glibc < DEFAULT_GLIBC:
        glibc = ".".join(map(str, wheel.target.glibc))
        message = f"not proven that the symbol versions of {_files(unknown)} are in glibc {glibc}"
        yield Finding(f"{message}: not read", _missing_in(unknown), _read_whole(), undecided=True)
        unread = [elf for elf in unread if elf not in unknown]
    if unread:
        yield Finding(f"{_files(unread)} not read far enough to check", _missing_in(unread), _read_whole())


def _missing_in(elfs: Iterable[_Elf]) -> tuple[Evidence, ...]:
    return _listed("files", [f"{elf.member} ({', '.join(sorted(elf.facts.missing))})" for elf in elfs])
