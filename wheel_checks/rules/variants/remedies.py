"""What would give a machine a variant for its GPU that it does not get: the fix of WHL851 and REL112."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from packaging.version import Version

from wheel_checks.data import load
from wheel_checks.facts.gpu.targets import Product, runs_on
from wheel_checks.facts.variants.claims import LOWER, SM_ARCH, UPPER, SmClaim, sm_claims
from wheel_checks.facts.variants.described_machine import cuda_of_driver, default_driver
from wheel_checks.formats.wheel.variant_metadata import Variant, VariantMetadata, revisions
from wheel_checks.model import Fix
from wheel_checks.parsing import version_or_none
from wheel_checks.targets.selection import Reason
from wheel_checks.targets.variant_choice import Lack, MachineChoice, Why
from wheel_checks.targets.variant_machine import NVIDIA, Machine

_MOST_LABELS = 500  # variants that are looked at for the easiest way


class Remedy(NamedTuple):
    """One thing to do, as a sentence. ``driver`` is the branch when it is for whoever has the machine, else 0.

    ``unknown`` is True when no one here can say whether anything is to be done.
    """

    sentence: str
    driver: int = 0
    unknown: bool = False


def fix_for(metadata: VariantMetadata, remedies: Mapping[str, Sequence[Remedy]]) -> Fix:
    """The easiest way to one of the variants: a driver before a new build, and little before much."""
    if metadata.revision is None:
        return Fix(f"Regenerate variants.json in a revision that installers support, such as {revisions()[0].schema}.")

    def effort(found: Sequence[Remedy]) -> tuple[bool, int, int]:
        return not all(each.driver for each in found), len(found), max((each.driver for each in found), default=0)

    return Fix(" ".join(each.sentence for each in min(remedies.values(), key=effort)))


def remedies_for(made: MachineChoice, metadata: VariantMetadata, labels: Iterable[str]) -> dict[str, list[Remedy]]:
    """All that has to be done for the machine to get one of the variants, by label."""
    rejections = made.rejections
    return {
        label: _remedies(made, metadata, metadata.variants[label], rejections.get(label, frozenset()))
        for label in list(labels)[:_MOST_LABELS]
    }


def claimed_labels(claims: Iterable[SmClaim]) -> tuple[str, ...]:
    """The code that claims of ``sm_arch`` promise, by the names of fat binaries: compute_90 of 90_virtual."""
    return tuple(f"{'sm' if claim.kind == 'real' else 'compute'}_{claim.product.sm}" for claim in claims)


def _remedies(
    made: MachineChoice, metadata: VariantMetadata, variant: Variant, reasons: frozenset[Reason]
) -> list[Remedy]:
    lacks = made.order.lacks(variant)
    listed = {name for name, provider in metadata.providers.items() if provider.static_properties}
    of_gpu = [lack for lack in lacks if (lack.namespace, lack.why) == (NVIDIA, Why.UNSUPPORTED)]
    of_gpu = [] if NVIDIA in listed else of_gpu
    found = _of_gpu(variant, of_gpu, made.machine) if of_gpu else []
    found += [_of_namespace(lack, made, lack.namespace in listed) for lack in lacks if lack not in of_gpu]
    target = made.choice.target.label
    if Reason.YANKED in reasons and Reason.VARIANT not in reasons:
        found.append(Remedy(f"Publish a wheel of {variant.label} for {target}: the existing one is yanked."))
    elif Reason.VARIANT not in reasons:
        found.append(Remedy(f"Also build {variant.label} for {target}."))
    return list(dict.fromkeys(found))


def _of_namespace(lack: Lack, made: MachineChoice, listed: bool) -> Remedy:
    """What to do about a namespace that is not asked, or a feature of the CPU, or of a list in the metadata."""
    name = lack.namespace
    if lack.why is Why.UNORDERED:
        return Remedy(f"List {name} in default-priorities.namespace.")
    if lack.why is Why.UNKNOWN:
        return Remedy(f"Install on such a machine to see what the provider of {name} supports.", unknown=True)
    if lack.why is Why.OPTIONAL:
        return Remedy(f"Remove `optional` from the provider of {name}, or have users enable it in their installer.")
    if lack.why is Why.DISABLED:
        return Remedy(f"Correct enable-if of the provider of {name}: it is false on {made.choice.target.label}.")
    if listed:
        return Remedy(f"List {lack} in static-properties of the provider of {name}.")
    return Remedy(f"Build a variant for a GPU with {made.machine.cpu}: without {lack}.")


def _of_gpu(variant: Variant, lacks: Sequence[Lack], machine: Machine) -> list[Remedy]:
    """What to do about features of the driver and the GPU: a driver first, then what it does not bring."""
    found = []
    branches = _branches_for(variant, machine)
    if not machine.cuda:
        found.append(_install(variant, branches))
        machine = replace(machine, cuda=branches[0]["cuda"] if branches else cuda_of_driver(default_driver()))
    elif branches and any(lack.feature == LOWER for lack in lacks):
        found.append(_update(variant, branches[0], machine))
        machine = replace(machine, cuda=branches[0]["cuda"])
    supported = machine.features(NVIDIA) or {}
    still = [lack for lack in lacks if set(lack.values).isdisjoint(supported.get(lack.feature, ()))]
    return found + [_of_feature(lack, machine) for lack in still]


def _branches_for(variant: Variant, machine: Machine) -> list[Mapping[str, Any]]:
    """The branches of the driver, newer than the machine's, that run on its GPU and are within the claimed bounds."""
    own = Version(machine.cuda or "0")
    last = min(
        (row["branch"] for row in load("variant_machines")["last_driver"] if machine.sm < row["below_sm"]), default=0
    )
    bounds = [(feature, variant.values(NVIDIA, feature)) for feature in (LOWER, UPPER)]
    found = []
    for row in load("drivers")["branch"]:
        supported = replace(machine, cuda=row["cuda"]).features(NVIDIA) or {}
        within = all(not values or not set(values).isdisjoint(supported.get(name, ())) for name, values in bounds)
        if within and Version(row["cuda"]) > own and (not last or row["branch"] <= last):
            found.append(row)
    return found


def _install(variant: Variant, branches: Sequence[Mapping[str, Any]]) -> Remedy:
    bounded = any(variant.values(NVIDIA, feature) for feature in (LOWER, UPPER))
    if not bounded or not branches:
        return Remedy("Install NVIDIA's driver: without it no variant for a GPU is supported.", 1)
    first, last = branches[0]["branch"], branches[-1]["branch"]
    newest = last == load("drivers")["branch"][-1]["branch"]
    which = f"{first} or later" if newest else f"{first} to {last}" if last > first else str(first)
    return Remedy(f"Install NVIDIA's driver, branch {which}: without it no variant for a GPU is supported.", first)


def _update(variant: Variant, branch: Mapping[str, Any], machine: Machine) -> Remedy:
    cuda = Version(branch["cuda"])
    advice = f"Update the driver to one that supports CUDA {cuda} (branch {branch['branch']})."
    if cuda.minor and cuda.major == Version(machine.cuda).major and _has_machine_code(variant, machine):
        advice += f" {_claim_less(cuda.major)}"
    return Remedy(advice, branch["branch"])


def _claim_less(major: int) -> str:
    return (
        f"The wheels' publisher can claim {LOWER} {major}.0: a driver runs machine code from any toolkit of its major "
        "version."
    )


def _has_machine_code(variant: Variant, machine: Machine) -> bool:
    """Whether the machine code that a variant claims runs on the GPU; True when it claims no code in particular."""
    claims, malformed = sm_claims(variant)
    if not claims:
        return not malformed
    real = claimed_labels(claim for claim in claims if claim.kind == "real")
    return runs_on(real, Product(machine.gpu, machine.sm)).how != "none"


def _of_feature(lack: Lack, machine: Machine) -> Remedy:
    """What to do about a feature of NVIDIA's namespace that no driver for the GPU brings."""
    if lack.feature == SM_ARCH:
        major = machine.sm // 10
        code = f"{machine.sm}_real, or {major}0_virtual with PTX of compute_{major}0"
        return Remedy(f"Build a variant for {machine.machine} that claims {code}.")
    versions = [version for value in lack.values if (version := version_or_none(value))]
    if lack.feature not in (LOWER, UPPER) or not versions:
        return Remedy(f"Build it without {lack}, which NVIDIA's provider does not support.")
    if lack.feature == UPPER:
        return Remedy(f"Build the variant without {UPPER}: a driver runs code from older toolkits.")
    own = Version(machine.cuda)
    if min(versions) <= own:
        return Remedy(
            f"Claim {LOWER} {own.major}.0: NVIDIA's provider supports only MAJOR.MINOR, not {lack.values[0]}."
        )
    if min(versions).major == own.major:
        return Remedy(_claim_less(own.major))
    return Remedy(
        f"Build a variant with CUDA {own.major} that claims {LOWER} {own.major}.0: no known driver for {machine.gpu} "
        f"supports CUDA {min(versions)}."
    )
