"""Does a described machine get the variant that is made for it? Judges the choice of an installer with variants."""

from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.variants.claims import sm_claims
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.registry import rules_of
from wheel_checks.rules.variants.findings import falls_through, runs_nowhere
from wheel_checks.targets.variant_choice import MachineChoice

rule = rules_of("machine")

_SHOWN = 8  # labels or namespaces in one finding


@rule(
    "WHL851",
    "a machine with a GPU gets a variant for its GPU",
    Severity.WARNING,
    why="An installer that finds no variant for the GPU, or prefers another one, silently selects a variant for CPUs "
    "or a plain wheel. The program then runs a hundred times slower, or reports that CUDA is missing.",
    example='a T4, and variants for sm_80 and newer together with one for CPUs; `namespace = ["x86_64", "nvidia"]`',
    fix="Update the driver, publish a variant for this GPU, or put nvidia first in default-priorities.namespace: the "
    "finding says which. `--gpu` and `--driver` show which machine gets which variant.",
)
def served(made: MachineChoice, _: Expectations) -> Iterable[Finding]:
    """With a GPU, and variants for GPUs in the release, one of those is chosen; undecided where it is not known."""
    if not made.machine.gpu:
        need(Unavailable("the machine has no GPU"))
    if finding := falls_through(made):
        yield finding


@rule(
    "WHL852",
    "the selected variant has code that runs on the GPU",
    why="Providers compare numbers. Machine code for sm_80 counts as supported on a Jetson Orin (8.7), where it does "
    "not run: the installer selects the variant, and the first kernel fails.",
    example="an Orin that gets a variant claiming only 80_real",
    fix="Build and claim code for this GPU, or PTX.",
)
def runs(made: MachineChoice, _: Expectations) -> Iterable[Finding]:
    """Of the claims of ``sm_arch`` one runs on the GPU, by NVIDIA's rules of compatibility."""
    if made.variant is None or not made.machine.sm:
        need(Unavailable("no variant was selected for a GPU"))
    elif not sm_claims(made.variant)[0]:
        need(Unavailable(f"the variant {made.label} claims no GPU"))
    if finding := runs_nowhere(made):
        yield finding


@rule(
    "WHL853",
    "the namespaces of the release's variants are known",
    Severity.NOTE,
    why="Only a provider can interpret its properties, and providers are programs, which wheelproof does not run. An "
    "installer with the provider may select another variant.",
    example="`intel :: device_ip :: 12.60.7`: an unknown namespace",
    fix="Install on such a machine to see what its provider supports.",
)
def known(made: MachineChoice, _: Expectations) -> Iterable[Finding]:
    """No variant uses a namespace that the tables do not have and that no list of values explains."""
    metadata = need(made.metadata)
    if made.order.unknown:
        unknown = set(made.order.unknown)
        labels = [
            label
            for label, variant in metadata.variants.items()
            if not unknown.isdisjoint(each.namespace for each in variant.properties)
        ]
        named = ", ".join(made.order.unknown[:_SHOWN])
        message = f"the namespace {named} is unknown: an installer with its provider may select another variant"
        yield Finding(message, (Evidence("variants", ", ".join(labels[:_SHOWN])),))


@rule(
    "WHL854",
    "installers without variant support find a wheel, too",
    Severity.WARNING,
    why="No released pip installs wheels with a variant label: without another wheel it builds from source, selects an "
    "older release, or fails.",
    example="a release that contains only variants",
    fix="Publish a wheel without a label together with the variants, as long as such installers are in use.",
)
def plain_wheel(made: MachineChoice, _: Expectations) -> Iterable[Finding]:
    """A wheel without a label of the same version fits the target."""
    if not made.label or (made.plain.chosen is not None and made.plain.version == made.choice.version):
        return
    older = f"select {made.plain.chosen.file_name}" if made.plain.chosen else "find no wheel"
    message = f"installers without variant support {older}, while others get {made.label} of {made.choice.version}"
    yield Finding(message, fix=Fix("Publish a wheel without a label, for CPUs or for the CUDA that most users have."))
