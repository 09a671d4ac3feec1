"""Do the ELF files of a wheel match its tags, and load on every machine that they name?"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from wheel_checks.facts.links.linking import installed_path
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.native_heads import is_for_any
from wheel_checks.fixes.commands import member, path, run
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.elf.file import ElfFacts
from wheel_checks.formats.elf.segments import Segments
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.phrases import joined, plural, summarised
from wheel_checks.registry import rule
from wheel_checks.targets.target import LINUX

PAGE_64K = 64 * 1024  # bytes; the page size of kernels on many Grace machines
_SHOWN, _MOST_ROWS = 5, 20

_LINUX_MACHINE = re.compile(r"(?:manylinux_2_\d+|manylinux\d+|musllinux_\d+_\d+|linux)_(\w+)")
_EXTENSION = re.compile(r"\.cpython-3(\d+)t?(?:-(\w+)-linux-\w+)?\.so$")
# Also as auditwheel and delvewheel mangle names: ld-linux-aarch64-5cbc5e90.so.1, ld-linux-aarch64.5cbc5e90.so.1
_LOADER = re.compile(r"(?:^|/)(?:ld-linux[\w-]*|ld64|libc|libpthread|libdl)(?:[-.][0-9a-f]{8})?\.so\.\d$")
_DRIVER = re.compile(r"(?:^|/)(?:libcuda|libnvidia-[\w-]+|libnvcuvid)(?:[-.][0-9a-f]{8})?\.so(?:\.\d+)*$")
_RUNTIME = re.compile(r"(?:^|/)libcudart(?:[-.][0-9a-f]{8})?\.so\.(\d+)")
_VARIANT = re.compile(r"cu(?:da)?_?(\d{2})\d?(?!\d)")  # libbitsandbytes_cuda126.so: only one of several is opened
_NATIVE = re.compile(r"\.so(?:\.\d+)*$")
_MACOS = re.compile(r"darwin|macos|osx", re.IGNORECASE)
_NAMED = {"x86_64": "x86[_-]64|amd64|x64", "aarch64": "aarch64|arm64", "i686": "i[3-6]86|x86", "armv7l": "arm"}
_SUFFIXES = {"i386": "i686", "arm": "armv7l", "powerpc64le": "ppc64le"}  # multiarch names that differ from tags


@dataclass(frozen=True, slots=True)
class Elf:
    """One readable ELF file of the wheel."""

    member: str
    facts: ElfFacts
    possible_names: tuple[str, ...] | Unavailable = ()


def elfs_of(wheel: WheelFacts) -> Iterator[Elf]:
    """The ELF files of a wheel that could be read."""
    for item in need(wheel.elfs):
        if not isinstance(item.facts, Unavailable):
            yield Elf(item.member.name, item.facts, item.possible_names)


def dynamic_of(elf: Elf) -> DynamicFacts | None:
    """The dynamic section of a file, None if it was not read."""
    return elf.facts.dynamic if isinstance(elf.facts.dynamic, DynamicFacts) else None


def _tagged_machines(wheel: WheelFacts) -> set[str]:
    """The Linux machines of the tags as ELF headers are named here, which do not say one 32-bit Arm from another."""
    named = {match[1] for tag in need(wheel.name).tags if (match := _LINUX_MACHINE.fullmatch(tag.platform))}
    return {"armv7l" if name.startswith("arm") else name for name in named}


def listed(label: str, values: Sequence[str]) -> tuple[Evidence, ...]:
    """The evidence of a list of names."""
    return (Evidence(label, summary_of(values)),)


def summary_of(values: Sequence[str]) -> str:
    """The first names of a list, and the number of the others."""
    return summarised(values, _SHOWN, grouping="")


def files_of(files: Sequence[object]) -> str:
    """Such as "3 files"."""
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
def machine(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """The ELF header's machine is one of the tags', but for data whose path names its own (``agent/arm64/lib.so``)."""
    tagged = _tagged_machines(wheel)
    if not tagged:
        yield from _for_any_platform(wheel, expectations)
        return
    foreign: dict[str, list[str]] = defaultdict(list)
    for elf in elfs_of(wheel):
        machine = elf.facts.header.machine
        is_meant = re.search(_NAMED.get(machine, re.escape(machine)), elf.member) and not _EXTENSION.search(elf.member)
        if machine not in tagged and not is_meant:
            foreign[machine].append(elf.member)
    for name, members in foreign.items():
        message = f"{files_of(members)} for {name} in a wheel for {' and '.join(sorted(tagged))}"
        fix = Fix("Build these files for the machine of the tag, or exclude them.")
        yield Finding(message, listed("files", members), fix, Location(members[0]))


def _for_any_platform(wheel: WheelFacts, expectations: Expectations) -> Iterator[Finding]:
    """A wheel tagged for any platform may have libraries for several machines, or none: debugpy does both.

    So a wheel without a library for the target is undecided, or an error if it is for a GPU and has to run on one.
    """
    target = wheel.target
    if target is None or target.system != LINUX or not is_for_any(need(wheel.name).tags):
        need(Unavailable("the tags contain no Linux machine"))
        return
    named = [head for head in need(wheel.heads).heads if _NATIVE.search(head.member)]
    heads = [head for head in named if head.kind == "ELF"]
    if not heads:
        need(Unavailable("the wheel has no native libraries"))
    machines, members = {head.machine for head in heads}, [head.member for head in heads]
    if machines and target.machine not in machines:
        tags = Evidence("tags", ", ".join(sorted(map(str, need(wheel.name).tags))))
        message = f"the libraries are for {joined(sorted(machines))}, none is for {target.machine}"
        fix = Fix(f"Import the package on {target.machine} to see whether it works without them.")
        is_for_gpu = not isinstance(wheel.accelerator, Unavailable) and wheel.accelerator.shows_gpu
        are_known = not need(wheel.heads).unread and all(head.kind for head in named)
        undecided = not (expectations.gpus and is_for_gpu and are_known)
        yield Finding(message, (*listed("files", members), tags), fix, Location(members[0]), undecided=undecided)


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
    for elf in elfs_of(wheel):
        if elf.facts.header.machine == "aarch64" and isinstance(elf.facts.segments, Segments):
            smallest = elf.facts.segments.smallest_load_alignment
            if smallest is not None and smallest < PAGE_64K:
                small[smallest].append(elf.member)
    for smallest, members in sorted(small.items()):
        message = f"{files_of(members)} aligned to {smallest:,} bytes do not load on kernels with 64 KiB pages"
        fix = Fix("Link with -Wl,-z,max-page-size=65536, or repair with a patchelf that keeps the alignment.")
        yield Finding(message, listed("files", members), fix, Location(members[0]))


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
    for elf in elfs_of(wheel):
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
    for elf in elfs_of(wheel):
        dynamic = dynamic_of(elf)
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
    for elf in elfs_of(wheel):
        if dynamic := dynamic_of(elf):
            for entry in dict.fromkeys((*dynamic.rpath, *dynamic.runpath)):
                if not entry.startswith(("$ORIGIN", "${ORIGIN}")):
                    leaks[entry].append(elf.member)
    if leaks:
        members = list(dict.fromkeys(name for found in leaks.values() for name in found))
        fix = Fix(
            "Make the search path relative to the library.",
            (run("patchelf", "--set-rpath", "$ORIGIN", member(members[0])),),
        )
        evidence = [Evidence(entry or "the working directory", summary_of(found)) for entry, found in leaks.items()]
        message = f"the search path of {files_of(members)} leads outside the environment"
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
    for elf in elfs_of(wheel):
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
        for elf in elfs_of(wheel)
        if isinstance(elf.facts.segments, Segments) and elf.facts.segments.executable_stack
    ]
    if members:
        fix = Fix(
            "Clear the flag, or link with -Wl,-z,noexecstack.",
            (run("patchelf", "--clear-execstack", member(members[0])),),
        )
        verb = "asks" if len(members) == 1 else "ask"
        message = f"{files_of(members)} {verb} for an executable stack"
        yield Finding(message, listed("files", members), fix, Location(members[0]))


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
    members = [elf.member for elf in elfs_of(wheel) if (dynamic := dynamic_of(elf)) and dynamic.text_relocations]
    if members:
        message = f"{files_of(members)} with text relocations"
        fix = Fix("Compile every object of these libraries with -fPIC.")
        yield Finding(message, listed("files", members), fix, Location(members[0]))
