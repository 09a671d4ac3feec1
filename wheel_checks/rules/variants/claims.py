"""Does a variant hold what it claims? Its properties against its content, and what of them nothing shows."""

from collections.abc import Iterable, Iterator, Sequence

from packaging.tags import Tag

from wheel_checks.facts.accelerator.meaning import library_meaning
from wheel_checks.facts.accelerator.signals import CONTENT, CUDA
from wheel_checks.facts.accelerator.verdict import NONE, AcceleratorFacts
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.gpu.targets import runs_on
from wheel_checks.facts.variants.claims import (
    SM_ARCH,
    CudaClaim,
    SmClaim,
    cpu_level,
    cuda_claim,
    known_namespaces,
    sm_claims,
)
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.elf.file import ElfFacts, Missing
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.formats.wheel.variant_metadata import Variant, VariantProperty
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.registry import rules_of
from wheel_checks.rules.shared.gpu_code import DECLARED, labels_of
from wheel_checks.rules.variants.metadata import listed_properties, variant_facts
from wheel_checks.targets.of_wheel import target_of_tags
from wheel_checks.targets.target import Target
from wheel_checks.targets.variant_machine import NVIDIA

rule = rules_of("variant")

_SHOWN = 5  # libraries in evidence
_RELABEL = Fix("Make the variant with the properties of its contents, or put the right build into it.")


def _claimed(wheel: WheelFacts) -> Variant:
    """What the wheel claims to be. Skips the check when its metadata does not say."""
    return need(variant_facts(wheel).variant)


def _location(wheel: WheelFacts) -> Location:
    return Location(variant_facts(wheel).member)


@rule(
    "WHL821",
    "the libraries match the CUDA version that the variant claims",
    why="An installer selects the variant on every machine whose driver is within the claimed bounds. If the libraries "
    "are for another CUDA, or for none, the import fails there, or the package silently computes on the CPU.",
    example="a variant for CUDA 13 whose extension needs libcudart.so.12",
    fix="Claim the CUDA version that the wheel was built with, or rebuild it with the claimed one.",
)
def cuda_holds(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """The CUDA of version.py, members, requirements and needed libraries belongs to the claimed bounds."""
    variant = _claimed(wheel)
    accelerator = need(wheel.accelerator)
    claim = cuda_claim(variant)
    if claim is None:
        yield from _unclaimed(wheel, variant, accelerator)
        return
    for each in claim.malformed:
        yield Finding(f"{each} is not a CUDA version", fix=_RELABEL, location=_location(wheel))
    if not str(claim):
        return
    if accelerator.accelerator not in (NONE, CUDA) and CUDA not in accelerator.others:
        evidence = tuple(Evidence(s.name, s.detail, s.source) for s in accelerator.signals if s.accelerators)
        message = f"the variant claims {claim}, but the wheel is {accelerator.label}"
        yield Finding(message, evidence, _RELABEL, _location(wheel))
        return
    told = [*_of_libraries(wheel), *_of_signals(accelerator)]
    if not told:
        need(wheel.elfs)  # at a greater depth the needed libraries show it
        need(Unavailable(f"nothing in the wheel shows its CUDA version, so the claim {claim} cannot be checked"))
    if refused := [item for item in told if claim.refuses(item[0])]:
        yield _refused(claim, refused, told, _location(wheel))


def _unclaimed(wheel: WheelFacts, variant: Variant, accelerator: AcceleratorFacts) -> Iterator[Finding]:
    """A wheel for CUDA that any machine gets."""
    if variant.values(NVIDIA, SM_ARCH):
        need(Unavailable("the variant claims GPUs, but no CUDA version"))
    if accelerator.accelerator == CUDA:
        evidence = tuple(Evidence(s.name, s.detail, s.source) for s in accelerator.signals if CUDA in s.accelerators)
        message = (
            f"the wheel is {accelerator.label}, but claims no property of {NVIDIA}: machines without a GPU get it, too"
        )
        yield Finding(message, evidence, _RELABEL, _location(wheel), Severity.WARNING)


Told = tuple[str, Evidence]
"""A version of CUDA ("13.0", or "13" alone), and what shows it."""


def _of_signals(accelerator: AcceleratorFacts) -> list[Told]:
    return [
        (signal.version, Evidence(signal.name, f"CUDA {signal.version}: {signal.detail}", signal.source))
        for signal in sorted(accelerator.signals, key=lambda signal: signal.name == CONTENT)
        if signal.accelerators[:1] == (CUDA,) and signal.version
    ]


def _of_libraries(wheel: WheelFacts) -> list[Told]:
    """What the libraries need, as far as they were read."""
    told: list[Told] = []
    for member, facts in _elfs(wheel):
        if facts.dynamic is None or isinstance(facts.dynamic, Missing):
            continue
        told += [
            (version, Evidence("needed library", f"CUDA {version}: {soname}", member))
            for soname in facts.dynamic.needed
            for accelerator, version in library_meaning(soname)
            if accelerator == CUDA and version
        ]
    return told


def _refused(claim: CudaClaim, refused: Sequence[Told], told: Sequence[Told], location: Location) -> Finding:
    found = {version for version, _ in refused}
    versions = ", ".join(sorted(v for v in found if not any(other.startswith(f"{v}.") for other in found)))
    agreeing = [item for item in told if item not in refused]
    evidence = tuple(item for _, item in (*refused[:_SHOWN], *agreeing[:_SHOWN]))
    what = refused[0][1]
    where = f"{what.source} needs {what.value.rpartition(' ')[2]}" if what.label == "needed library" else what.label
    message = f"the variant claims {claim}, but contains CUDA {versions} ({where})"
    return Finding(message, evidence, _RELABEL, location)


@rule(
    "WHL822",
    "the wheel has GPU code for every GPU that the variant claims",
    why="Installers select a wheel for the GPUs that it claims. Without code for such a GPU the wheel installs and "
    "imports, and its first kernel fails with `no kernel image is available for execution on the device`.",
    example="`nvidia :: sm_arch :: 100_real` in a wheel whose libraries stop at sm_90",
    fix="Build for the architectures that the variant claims (TORCH_CUDA_ARCH_LIST, CMAKE_CUDA_ARCHITECTURES).",
)
def gpu_code_holds(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Claimed GPUs run machine code (real) or can compile PTX (virtual); code for others is noted."""
    claims, malformed = sm_claims(_claimed(wheel))
    for value in malformed:
        message = (
            f"{VariantProperty(NVIDIA, SM_ARCH, value)} is not a GPU architecture; expected for example 90_real or "
            "90_virtual"
        )
        yield Finding(message, fix=_RELABEL, location=_location(wheel))
    if not claims:
        return
    facts = need(wheel.gpu_code)
    verdict = need(facts.verdict)
    if verdict is None:
        names = ", ".join(claim.value for claim in claims)
        message = f"the variant claims {names}, but contains no GPU code"  # it may compile its own, as Triton does
        yield Finding(message, fix=_RELABEL, location=_location(wheel), severity=Severity.WARNING)
        return
    member, code = verdict
    where = member or DECLARED
    source = f"{where} ({code.certainty})"
    lacking = [claim for claim in claims if not _serves(code, claim)]
    if lacking:
        message = f"the variant claims {', '.join(claim.value for claim in lacking)}, but {where} has {labels_of(code)}"
        evidence = tuple(
            Evidence(claim.value, runs_on(_loaded(code, claim), claim.product).why, source) for claim in lacking
        )
        architectures = ";".join(dict.fromkeys(claim.product.capability for claim in claims))
        fix = Fix(
            f"Build with TORCH_CUDA_ARCH_LIST='{architectures}', or claim only the GPUs that the wheel has code for."
        )
        yield Finding(message, evidence, fix, Location(member) if member else _location(wheel))
    if idle := [label for label in code.sass if not any(_uses(label, claim) for claim in claims)]:
        message = (
            f"the wheel has code for {', '.join(idle)}, which the variant does not claim: installers do not select it "
            "for those GPUs"
        )
        yield Finding(message, (Evidence("code", labels_of(code), source),), severity=Severity.NOTE)


def _loaded(code: GpuCode, claim: SmClaim) -> list[str]:
    """The code that counts for a claim."""
    return list(code.sass if claim.kind == "real" else code.ptx)


def _serves(code: GpuCode, claim: SmClaim) -> bool:
    return runs_on(_loaded(code, claim), claim.product).how != "none"


def _uses(label: str, claim: SmClaim) -> bool:
    return runs_on([label], claim.product).how != "none"


@rule(
    "WHL823",
    "the libraries match the CPU that the variant claims",
    why="A namespace of one CPU in a wheel for the other is never supported where the wheel could run: no installer "
    "selects it. If a library is marked as needing a higher level than the claimed one, the loader of the lower CPUs "
    "rejects it.",
    example="`x86_64 :: level :: v3` in a wheel for aarch64; a library linked with `-z x86-64-v3` under `v2`",
    fix="Claim the CPU and the level that the wheel is built for.",
)
def cpu_holds(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """CPU namespaces are those of the platform and of the ELF files, and no file needs a higher level of x86-64."""
    variant = _claimed(wheel)
    used = {each.namespace for each in variant.properties}
    claimed = {row["machine"]: name for name, row in known_namespaces().items() if "machine" in row and name in used}
    if len(claimed) > 1:
        message = f"the variant claims properties of {' and '.join(claimed)} together: no machine has both"
        yield Finding(message, fix=_RELABEL, location=_location(wheel))
        return
    found = [finding for machine, namespace in claimed.items() for finding in _other_machine(wheel, machine, namespace)]
    found += _higher_level(wheel, cpu_level(variant))
    if not found and _platform(wheel) is not None:
        need(wheel.elfs)  # the name alone says nothing of the libraries
    yield from found


def _other_machine(wheel: WheelFacts, machine: str, namespace: str) -> Iterator[Finding]:
    """A platform and ELF files that are not for ``machine``, of which the variant claims properties."""
    platform = _platform(wheel)
    if platform is not None and platform.machine != machine:
        told = (Evidence("platform", ", ".join(sorted({tag.platform for tag in _tags(wheel)})), wheel.file_name),)
        message = f"the variant claims properties of {namespace}, but the wheel is for {platform.machine}"
        yield Finding(message, told, _RELABEL, _location(wheel))
    others = [
        Evidence(facts.header.machine, member, "ELF header")
        for member, facts in _elfs(wheel)
        if facts.header.machine != machine
    ]
    if others:
        message = f"the variant claims properties of {namespace}, but {others[0].value} is for {others[0].label}"
        yield Finding(message, tuple(others[:_SHOWN]), _RELABEL, Location(others[0].value))


def _tags(wheel: WheelFacts) -> frozenset[Tag]:
    return frozenset() if isinstance(wheel.name, Unavailable) else wheel.name.tags


def _platform(wheel: WheelFacts) -> Target | None:
    """What the wheel is built for by its name, None when that is any machine."""
    return target_of_tags(_tags(wheel))


def _higher_level(wheel: WheelFacts, claimed: int) -> Iterator[Finding]:
    """ELF files that are marked to need more than ``claimed``, a level of x86-64."""
    higher = [(member, level) for member, level in _levels(wheel) if level > claimed]
    if higher:
        member, level = higher[0]
        message = f"the variant is for x86-64-v{claimed} and above, but {member} needs x86-64-v{level}"
        told = tuple(
            Evidence(f"x86-64-v{level}", member, "NT_GNU_PROPERTY_TYPE_0") for member, level in higher[:_SHOWN]
        )
        yield Finding(message, told, _RELABEL, Location(member))


def _elfs(wheel: WheelFacts) -> Iterator[tuple[str, ElfFacts]]:
    """The ELF files that were read."""
    for elf in () if isinstance(wheel.elfs, Unavailable) else wheel.elfs:
        if not isinstance(elf.facts, Unavailable):
            yield elf.member.name, elf.facts


def _levels(wheel: WheelFacts) -> Iterator[tuple[str, int]]:
    """The ELF files that are marked to need a level of x86-64."""
    for member, facts in _elfs(wheel):
        if isinstance(facts.isa_level, int):
            yield member, facts.isa_level


@rule(
    "WHL824",
    "every property of the variant can be checked against its contents",
    Severity.NOTE,
    audience=Audience.PUBLISHER,
    why="A claim that nothing in the wheel shows relies on its builder. It is reported so that a pass of the other "
    "checks is not mistaken for a proof of it.",
    example="`x86_64 :: level :: v3`: the instructions that a library uses are not read",
    fix="Test such a variant on the slowest machine that it claims to support.",
)
def provable(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """Namespaces that are known, and of these the features that content shows."""
    namespaces = known_namespaces()
    unknown: list[VariantProperty] = []
    unseen: list[VariantProperty] = []
    for each in _claimed(wheel).properties:
        row = namespaces.get(each.namespace)
        if row is None:
            unknown.append(each)
        elif each.feature not in row["shown"] and (each.key != "x86_64 :: level" or not any(_levels(wheel))):
            unseen.append(each)
    if unknown:
        named = ", ".join(dict.fromkeys(each.namespace for each in unknown))
        message = f"the namespace {named} is unknown: only its provider can interpret its properties"
        yield Finding(message, (Evidence("properties", listed_properties(unknown)),), location=_location(wheel))
    if unseen:
        message = f"nothing in the wheel shows {listed_properties(unseen)}: machine code is not disassembled"
        yield Finding(message, location=_location(wheel))
