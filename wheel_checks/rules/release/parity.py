"""Do two wheels of one release offer the same? REL201 to REL207 judge a pair, REL208 a comparison of two sets.

Two architectures of a release are expected to differ in places: machine code, the loader's name, maths libraries that
are made for one CPU. These stay silent. Two releases differ in anything, and are not judged.
"""

from collections.abc import Iterable, Sequence

from wheel_checks.facts.accelerator.signals import GPU
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.difference.expected import expected_library, expected_need, is_outlier
from wheel_checks.facts.difference.pairing import Pairing
from wheel_checks.facts.difference.wheels import Difference, Side, name_sides
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.wheel.member_roles import Kind
from wheel_checks.model import Audience, Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.phrases import plural, summarised
from wheel_checks.registry import rules_of
from wheel_checks.rules.shared.accelerator import contradict, served

pair_rule = rules_of("pair", Audience.PUBLISHER)
comparison_rule = rules_of("comparison", Audience.PUBLISHER)

MISSING_API = 0.1
"""The share of Python files on one side alone from which on the two are different packages."""

_SHOWN = 10  # names in evidence


def _pair(pair: Difference) -> tuple[str, str]:
    """How the sides are called in messages. Skips the check unless both are of one release.

    That is one project and one public version; two different local versions (+cpu, +cu130) are different on purpose,
    and so are two variants.
    """
    a, b = pair.a, pair.b
    if a.project != b.project:
        need(Unavailable(f"{a.project} and {b.project} are different projects: parity does not apply"))
    need(a.name)
    need(b.name)
    (public_a, local_a), (public_b, local_b) = (_versions(side) for side in (a, b))
    if public_a != public_b or (local_a and local_b and local_a != local_b):
        need(Unavailable(f"{a.version} and {b.version} are different releases: parity applies within one release"))
    if a.variant != b.variant:
        labels = " and ".join(f"variant {side.variant}" if side.variant else "no variant" for side in (a, b))
        need(Unavailable(f"{labels} differ on purpose: parity applies within one variant"))
    return name_sides(a, b)


def _alike_pair(pair: Difference) -> tuple[str, str]:
    """As :func:`_pair`; skips the check when the accelerators differ, too: that explains everything else."""
    a, b = need(pair.a.accelerator), need(pair.b.accelerator)
    names = _pair(pair)
    if served(a) != served(b):
        need(Unavailable(f"builds for {a.label} and {b.label} differ in all of this (see REL201)"))
    return names


def _versions(side: Side) -> tuple[str, str]:
    version = need(side.name).parsed_version
    return version.public, version.local or ""


def _listed(label: str, names: Sequence[str], source: str = "central directory") -> tuple[Evidence, ...]:
    """Up to ten names as evidence; none when there aren't any."""
    if not names:
        return ()
    return (Evidence(label, summarised(names, _SHOWN), source),)


@pair_rule(
    "REL201",
    "the wheels of a release have the same accelerator",
    why="With different accelerators the same requirement installs CUDA on one architecture and a CPU build on the "
    "other, which imports but finds no GPU.",
    example="torch 2.10.0: CUDA 12.8 for x86_64, CPU only for aarch64",
    fix="Build and publish the missing variant before announcing the release, or name its index in the notes.",
)
def accelerator_parity(pair: Difference, _: Expectations) -> Iterable[Finding]:
    """The same accelerator, and the same version of it where both are known."""
    side_a, side_b = _pair(pair)
    a, b = need(pair.a.accelerator), need(pair.b.accelerator)
    evidence = (*_signals(side_a, a), *_signals(side_b, b))
    proven = all(facts.shows_gpu or not facts.unread for facts in (a, b))
    if served(a) == served(b) and not contradict(a.version, b.version):
        if not proven:
            yield Finding(f"not proven that both are {a.label}: {a.unread or b.unread}", evidence, undecided=True)
        return
    fix = Fix(f"Publish for both what {side_a if b.accelerator not in GPU else side_b} has.")
    message = f"{side_a} is {a.label}, but {side_b} is {b.label}"
    yield Finding(message if proven else f"not proven: {message}", evidence, fix, undecided=not proven)


def _signals(side: str, facts: AcceleratorFacts) -> Iterable[Evidence]:
    return [Evidence(f"{side}, {signal.name}", signal.detail, signal.source) for signal in facts.signals]


@pair_rule(
    "REL202",
    "the wheels of a release have the same Python files",
    Severity.WARNING,
    why="A module that only one architecture has causes an ImportError on the other, in code that was not tested "
    "there. If at least a tenth of the files is missing it is an error: part of the build did not run.",
    example="torch/_vendor/ only in the wheel for x86_64",
    fix="Build both from the same sources with the same options.",
)
def python_parity(pair: Difference, _: Expectations) -> Iterable[Finding]:
    """No .py or .pyi file is on one side alone."""
    side_a, side_b = _pair(pair)
    files = need(pair.members)[Kind.PYTHON]
    if files.only_a or files.only_b:
        counts = [
            f"{plural(len(names), 'Python file')} only for {side}"
            for side, names in ((side_a, files.only_a), (side_b, files.only_b))
            if names
        ]
        evidence = _listed(f"only {side_a}", files.only_a) + _listed(f"only {side_b}", files.only_b)
        severity = Severity.ERROR if files.share >= MISSING_API else Severity.WARNING
        fix = Fix("Build both from the same sources with the same options.")
        yield Finding(" and ".join(counts), evidence, fix, severity=severity)


@pair_rule(
    "REL203",
    "the wheels of a release have the same native libraries",
    Severity.WARNING,
    why="A library that is missing on one side is a missing feature, or a build option that was off. Maths libraries "
    "for one CPU architecture (NVPL, Arm Compute Library, MKL) are expected there and are not reported.",
    example="libtorch_nvshmem.so only in the wheel for x86_64",
    fix="Enable the option in both builds, or state in the release notes what is missing where.",
)
def library_parity(pair: Difference, _: Expectations) -> Iterable[Finding]:
    """No library is on one side alone, but those made for that architecture."""
    side_a, side_b = _alike_pair(pair)
    files = need(pair.members)[Kind.NATIVE]
    fix = Fix("Enable the option in both builds, or state in the release notes what is missing.")
    lone_a = [name for name in files.only_a if not expected_library(name, pair.a, pair.b)]
    lone_b = [name for name in files.only_b if not expected_library(name, pair.b, pair.a)]
    for side, other, lone in ((side_a, side_b, lone_a), (side_b, side_a, lone_b)):
        if lone:
            message = f"{side} has {plural(len(lone), 'native file')} that {other} lacks"
            yield Finding(message, _listed(f"only {side}", lone), fix)


@pair_rule(
    "REL204",
    "the wheels of a release state the same requirements",
    Severity.WARNING,
    why="Resolvers read the METADATA of one wheel and apply it to the whole release: a lock made on x86_64 then lacks "
    "what only the aarch64 wheel requires. Requirements that differ need a marker, in all wheels.",
    example="`Requires-Dist: nvidia-nccl-cu13==2.28.9` in the wheel for x86_64, but not in the one for aarch64",
    fix="Write the union of the requirements into every wheel, with `platform_machine` and `python_version` markers.",
)
def requirement_parity(pair: Difference, _: Expectations) -> Iterable[Finding]:
    """Requirements that differ do so by a marker that both METADATA have."""
    side_a, side_b = _pair(pair)
    found = [item for item in need(pair.requirements).differences if not item.by_marker]
    if found:
        evidence = tuple(
            Evidence(
                item.name, f"{side_a}: {item.a or 'not required'}; {side_b}: {item.b or 'not required'}", "METADATA"
            )
            for item in found[:_SHOWN]
        )
        fix = Fix("Write the same requirements into both, with markers for the differences.")
        yield Finding(
            f"{plural(len(found), 'requirement')} differ{'s' * (len(found) == 1)} without a marker", evidence, fix
        )


@pair_rule(
    "REL205",
    "a library with GPU code on one side also has GPU code on the other",
    Severity.WARNING,
    why="A kernel that was not compiled is noticed only when it is called: at run time, on a GPU, by a user.",
    example="libtorch_cuda_linalg.so of torch 2.11.0: five targets for x86_64, no GPU code for aarch64",
    fix="Find the build option that excludes the kernels on this architecture.",
)
def gpu_code_parity(pair: Difference, _: Expectations) -> Iterable[Finding]:
    """No library has GPU code for one architecture of the CPU, and none at all for another."""
    side_a, side_b = _alike_pair(pair)
    fix = Fix("Find the build option that excludes the kernels on this architecture.")
    found = []
    for code in need(pair.gpu_code).differences:
        if not code.a or not code.b:
            has, lacks, labels = (side_a, side_b, code.a) if code.a else (side_b, side_a, code.b)
            message = f"{code.name} has no GPU code for {lacks}, but code for {plural(len(labels), 'target')} for {has}"
            found.append(Finding(message, (Evidence(has, " ".join(labels), f"GPU code, {code.certainty}"),), fix))
    return found or _nothing(pair.gpu_code_unread, "GPU code")


@pair_rule(
    "REL206",
    "the wheels of a release and their libraries are of similar size",
    Severity.WARNING,
    why="A library of a fraction of the size lacks code, and one of twice the size contains debug symbols or code for "
    "twice as many GPUs.",
    example="libtorch_cuda_linalg.so of torch 2.11.0: 53.5 MB for x86_64, 0.8 MB for aarch64",
    fix="Compare the build options, and strip unneeded symbols and code.",
)
def size_parity(pair: Difference, _: Expectations) -> Iterable[Finding]:
    """No size differs by a factor of two and a mebibyte or more."""
    side_a, side_b = _alike_pair(pair)
    sizes = [(item.name, item.a, item.b) for item in need(pair.sizes).differences]
    for name, a, b in [("the wheel", pair.a.size, pair.b.size), *sizes]:
        if is_outlier(a, b):
            larger, smaller = (side_a, side_b) if a > b else (side_b, side_a)
            message = f"{name} is {max(a, b) / max(1, min(a, b)):,.1f} times as large for {larger} as for {smaller}"
            evidence = (Evidence(side_a, f"{a:,} bytes"), Evidence(side_b, f"{b:,} bytes"))
            yield Finding(message, evidence, Fix("Compare the build options, and strip unneeded symbols and code."))


@pair_rule(
    "REL207",
    "the libraries of a release need the same libraries on both sides",
    Severity.WARNING,
    why="A library that only one side needs is an additional requirement, or one that the other side fails to load. "
    "The loader, system libraries and maths libraries for one CPU are not reported.",
    example="libtorch_global_deps.so of torch 2.11.0, which loads libgomp.so.1 first for x86_64 but not for aarch64",
    fix="Link both with the same libraries, and with the same --as-needed setting.",
)
def needed_parity(pair: Difference, _: Expectations) -> Iterable[Finding]:
    """What is needed for certain on one side alone is the system's, or made for that architecture."""
    side_a, side_b = _alike_pair(pair)
    evidence: list[Evidence] = []
    sonames: dict[str, None] = {}
    needing = 0
    unsure = list(pair.links_unread)
    for link in need(pair.links).differences:
        only_a, only_b = _unexpected(pair, link.only_a, link.only_b)
        needing += bool(only_a or only_b)
        sonames |= dict.fromkeys((*only_a, *only_b))
        evidence += _listed(f"{link.name}, only {side_a}", only_a, "DT_NEEDED")
        evidence += _listed(f"{link.name}, only {side_b}", only_b, "DT_NEEDED")
        if any(_unexpected(pair, link.maybe_a, link.maybe_b)):
            unsure.append(link.name)
    if not evidence:
        return _nothing(unsure, "dynamic section")
    libraries = f"{needing:,} libraries need" if needing > 1 else "one library needs"
    message = f"{libraries} different libraries on the two sides: {', '.join(list(sonames)[:_SHOWN])}"
    fix = Fix("Link both with the same libraries, and with the same --as-needed setting.")
    return [Finding(message, tuple(evidence[:_SHOWN]), fix)]


def _unexpected(pair: Difference, a: Sequence[str], b: Sequence[str]) -> tuple[list[str], list[str]]:
    """The sonames of either side that both should need."""
    return (
        [soname for soname in a if not expected_need(soname, pair.a, pair.b)],
        [soname for soname in b if not expected_need(soname, pair.b, pair.a)],
    )


def _nothing(unread: Sequence[str], what: str) -> Iterable[Finding]:
    """No finding; the check is skipped when there are files of which that is not known."""
    if unread:
        files = summarised(unread, 1)
        need(Unavailable(f"no difference in what was read, but the {what} of {files} was not read", "--depth full"))
    return ()


@comparison_rule(
    "REL208",
    "every wheel has a counterpart in the other set",
    Severity.WARNING,
    why="A Python or an architecture that only one set has was not compared, and may not have been built.",
    example="wheels of 3.10 to 3.14 for x86_64, and of 3.10 to 3.13 for aarch64",
    fix="Build the missing wheels, or compare only what both sets have with --python and --platform.",
)
def counterparts(pairing: Pairing, _: Expectations) -> Iterable[Finding]:
    """No wheel stands alone."""
    for side, names in (("A", pairing.only_a), ("B", pairing.only_b)):
        if names:
            message = f"{plural(len(names), 'wheel')} of {side} {'have' if len(names) > 1 else 'has'} no counterpart"
            yield Finding(message, _listed(f"only {side}", names, "file names"))
