"""What the rules about single machines and about releases say alike of the variant that a machine gets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from packaging.version import Version

from wheel_checks.data import load
from wheel_checks.facts.gpu_targets import Product, runs_on
from wheel_checks.facts.variant_claims import LOWER, UPPER, SmClaim, cuda_claim, sm_claims
from wheel_checks.formats.variant_metadata import Variant
from wheel_checks.model import Evidence, Finding, Fix, Unavailable, need
from wheel_checks.targets.variant_choice import MachineChoice
from wheel_checks.targets.variant_machine import NVIDIA, Machine

REINDEX = Fix("Write the document anew from the wheels, as `variantlib generate-index-json -d FOLDER` does.")
"""What to do about a ``variants.json`` that is missing, cannot be read or contradicts the wheels."""

_SHOWN = 8  # labels in one finding


def is_for_gpu(variant: Variant | None) -> bool:
    """True for a variant with properties of NVIDIA's namespace."""
    return variant is not None and any(each.namespace == NVIDIA for each in variant.properties)


def claimed_labels(claims: Iterable[SmClaim]) -> tuple[str, ...]:
    """The code that claims of ``sm_arch`` promise, by the names of fat binaries: compute_90 of 90_virtual."""
    return tuple(f"{'sm' if claim.kind == 'real' else 'compute'}_{claim.product.sm}" for claim in claims)


def taken(made: MachineChoice) -> str:
    """What the machine gets, for people."""
    if made.label:
        return f"the variant {made.label}"
    if made.choice.chosen:
        return "a wheel without a variant"
    return "a source archive" if made.choice.sdist else "nothing"


def falls_through(made: MachineChoice) -> Finding | None:
    """A finding when a machine with a GPU gets no variant for a GPU, though the release has some.

    Undecided when it has variants of which nothing can be read. Raises through ``need`` when it has none.
    """
    if made.machine.gpu and made.release is not None and isinstance(made.metadata, Unavailable):
        message = f"{made.machine.label} gets {taken(made)}: {made.metadata.reason}"
        return Finding(message, fix=REINDEX, undecided=True)
    metadata = need(made.metadata)
    lost = {label: why for label, why in made.passed_over.items() if is_for_gpu(metadata.variants[label])}
    if not made.machine.gpu or is_for_gpu(made.variant) or not lost:
        return None
    evidence = [Evidence(label, why, "variants.json") for label, why in list(lost.items())[:_SHOWN]]
    if len(lost) > _SHOWN:
        evidence.append(Evidence("passed over as well", f"{len(lost) - _SHOWN} variants for GPUs"))
    message = f"{made.machine.label} falls through to {taken(made)}: it can take no variant for a GPU"
    here = [metadata.variants[label] for label in lost if label in made.order.refused]
    return Finding(message, tuple(evidence), _fix(made.machine, here))


def _fix(machine: Machine, refused: Sequence[Variant]) -> Fix:
    """What to do for a machine that supports none of these variants, which its platform has wheels of."""
    if not machine.cuda:
        return Fix("Install NVIDIA's driver: without it no variant for a GPU is supported.")
    own, running = Version(machine.cuda), [variant for variant in refused if _has_code_for(variant, machine)]
    claims = [claim for variant in running if (claim := cuda_claim(variant))]
    if newer := [claim.lower for claim in claims if claim.lower and claim.lower > own]:
        lowest = min(newer)
        advice = f"Update the driver to one that supports CUDA {lowest}{_driver_for(lowest)}."
        if lowest.minor:
            advice += (
                f" Who builds the wheels can claim {LOWER} {lowest.major}.0: a driver runs machine code that any "
                "toolkit of its major version made."
            )
        return Fix(advice)
    if any(claim.upper and claim.upper <= own for claim in claims):
        return Fix(f"Build the variant without {UPPER}: a driver runs what older toolkits made.")
    major = machine.sm // 10
    code = f"{machine.sm}_real, or {major}0_virtual with PTX of compute_{major}0"
    return Fix(f"Build a variant for {machine.machine} that claims {code}.")


def _driver_for(cuda: Version) -> str:
    rows = [row for row in load("drivers")["branch"] if Version(row["cuda"]) >= cuda]
    return f" (branch {rows[0]['branch']})" if rows else ""


def _has_code_for(variant: Variant, machine: Machine) -> bool:
    """Whether the code that a variant claims runs on the GPU; True when it claims none in particular."""
    claims, malformed = sm_claims(variant)
    if not claims:
        return not malformed
    return runs_on(claimed_labels(claims), Product(machine.gpu, machine.sm)).how != "none"


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
    message = f"{machine.label} gets the variant {variant.label}, which claims code for {told}: none runs on {product}"
    fix = Fix(f"Build it for {machine.sm}_real, or with PTX, too.")
    return Finding(message, (Evidence(machine.gpu, how.why, "sm_arch"),), fix)
