"""What the rules about single machines and about releases say alike of the variant that a machine gets."""

from collections.abc import Sequence

from wheel_checks.facts.gpu.targets import Product, runs_on
from wheel_checks.facts.variants.claims import sm_claims
from wheel_checks.formats.wheel.variant_metadata import Variant, VariantMetadata
from wheel_checks.model import Evidence, Finding, Fix, Unavailable, need
from wheel_checks.rules.variants.remedies import claimed_labels, fix_for, remedies_for
from wheel_checks.targets.selection import Reason
from wheel_checks.targets.variant_choice import MachineChoice
from wheel_checks.targets.variant_machine import NVIDIA

REINDEX = Fix("Regenerate the document from the wheels, for example with `variantlib generate-index-json -d FOLDER`.")
"""What to do about a ``variants.json`` that is missing, cannot be read or contradicts the wheels."""

_SHOWN = 8  # labels in one finding


def is_for_gpu(variant: Variant | None) -> bool:
    """True for a variant with properties of NVIDIA's namespace."""
    return variant is not None and any(each.namespace == NVIDIA for each in variant.properties)


def taken(made: MachineChoice) -> str:
    """What the machine gets, for people."""
    older = f" of {made.choice.version}" if made.choice.version not in (None, made.release) and made.release else ""
    if made.label:
        return f"the variant {made.label}{older}"
    if made.choice.chosen:
        return f"a wheel without a variant{older}"
    return f"a source archive{older}" if made.choice.sdist else "nothing"


def falls_through(made: MachineChoice) -> Finding | None:
    """A finding when a machine with a GPU gets no variant for a GPU, though the release has some, or a newer one has.

    Undecided when there are variants of which nothing can be read. Raises through ``need`` when there aren't any.
    """
    if not made.machine.gpu or is_for_gpu(made.variant):
        return None
    return _missed(made) or (_missed(made.newer) if made.newer else None)


def _missed(made: MachineChoice) -> Finding | None:
    """What the machine misses of the variants for GPUs of one release."""
    if made.release is not None and isinstance(made.metadata, Unavailable):
        message = f"{made.machine.label} gets {taken(made)}: {made.metadata.reason}"
        return Finding(message, fix=REINDEX, undecided=True)
    metadata = need(made.metadata)
    for_gpu = [label for label, variant in metadata.variants.items() if is_for_gpu(variant)]
    if not for_gpu:
        return None
    rejections = made.rejections
    if fitting := [label for label in for_gpu if Reason.LESS_PREFERRED in rejections.get(label, ())]:
        return _less_preferred(made, metadata, fitting)
    passed_over = made.passed_over
    lost = {label: passed_over[label] for label in for_gpu if label in passed_over}
    evidence = [Evidence(label, why, "variants.json") for label, why in list(lost.items())[:_SHOWN]]
    if len(lost) > _SHOWN:
        evidence.append(Evidence("passed over as well", f"{len(lost) - _SHOWN} variants for GPUs"))
    remedies = remedies_for(made, metadata, lost)
    open_ones = {label: found for label, found in remedies.items() if all(each.unknown for each in found)}
    if open_ones and metadata.revision is not None:
        could = ", ".join(list(open_ones)[:_SHOWN])
        message = f"{made.machine.label} gets {taken(made)}: it is unknown whether it supports {could}"
        return Finding(message, tuple(evidence), fix_for(metadata, open_ones), undecided=True)
    newer = f" of {made.release}" if made.choice.version not in (None, made.release) else ""
    message = f"{made.machine.label} gets {taken(made)}: it supports no variant for a GPU{newer}"
    return Finding(message, tuple(evidence), fix_for(metadata, remedies))


def _less_preferred(made: MachineChoice, metadata: VariantMetadata, fitting: Sequence[str]) -> Finding:
    """The machine supports variants for its GPU, and gets another one by the order of the namespaces."""
    order = metadata.priorities.namespaces
    own = {each.namespace for each in made.variant.properties} if made.variant else set()
    before = ", ".join(each for each in order[: order.index(NVIDIA)] if each in own)
    could = ", ".join(fitting[:_SHOWN])
    message = f"{made.machine.label} gets {taken(made)} instead of {could} for its GPU: {before} has a higher priority"
    evidence = (Evidence("default-priorities.namespace", ", ".join(order[:_SHOWN]), "variants.json"),)
    return Finding(message, evidence, Fix(f"Put {NVIDIA} before {before} in default-priorities.namespace."))


def runs_nowhere(made: MachineChoice) -> Finding | None:
    """A finding when the code that the chosen variant claims does not run on the GPU of the machine."""
    variant, machine = made.variant, made.machine
    claims = sm_claims(variant)[0] if variant else ()
    if variant is None or not claims or not machine.sm:
        return None
    product = Product(machine.gpu, machine.sm)
    how = runs_on(claimed_labels(claims), product)
    if how.how != "none":
        return None
    told = ", ".join(claim.value for claim in claims[:_SHOWN])
    message = (
        f"{machine.label} gets the variant {variant.label}, which claims code for {told}; that code does not run on "
        f"{product}"
    )
    fix = Fix(f"Build it for {machine.sm}_real, or with PTX, too.")
    return Finding(message, (Evidence(machine.gpu, how.why, "sm_arch"),), fix)
