"""Choosing among variants: ours next to variantlib, the reference, in one run, on generated variants and products.

python benchmarks/variants.py [--variants 200] [--machines 20]

Prints one line for each: the best of five runs, in milliseconds, of choosing for all machines. Reading the document is
part of it, once. Ours also chooses the wheel, by version and tags; variantlib orders labels, and gets the properties
that our tables say the machines have, since its providers would have to run there. Both must give the same order, or
the run fails.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from packaging.requirements import Requirement
from variantlib.models.variant import VariantProperty as TheirProperty
from variantlib.resolver.lib import sort_and_filter_supported_variants
from variantlib.variants_json import VariantsJson

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a script finds only modules in its own folder

from wheel_checks.facts.gpu.targets import products  # noqa: E402  # as above
from wheel_checks.facts.variants.described_machine import describe_machines  # noqa: E402  # found by the line above
from wheel_checks.formats.index.page import IndexFile  # noqa: E402  # as above
from wheel_checks.formats.wheel.variant_metadata import parse_variant_metadata  # noqa: E402  # as above
from wheel_checks.targets.target import parse_targets  # noqa: E402  # as above
from wheel_checks.targets.variant_choice import choose_for_machines  # noqa: E402  # as above
from wheel_checks.targets.variant_machine import Machine  # noqa: E402  # as above

RUNS = 5
NAMESPACES = ("nvidia", "aarch64", "x86_64")
SMS = (75, 80, 86, 89, 90, 100, 103, 120)


def document(count: int) -> bytes:
    """A release of so many variants: CUDA bounds, a few GPUs, a level of either CPU."""
    draw = random.Random(9)  # noqa: S311  # no secret: the same variants in every run
    variants = {}
    for number in range(count):
        cpu = draw.choice(
            [{"x86_64": {"level": [draw.choice(["v2", "v3", "v4"])]}}, {"aarch64": {"version": ["8.2a"]}}]
        )
        sms = sorted(f"{sm}_real" for sm in draw.sample(SMS, draw.randint(1, 5)))
        lower = draw.choice(["12.0", "12.6", "13.0"])
        variants[f"v{number}"] = {"nvidia": {"cuda_version_lower_bound": [lower], "sm_arch": sms}, **cpu}
    providers = {name: {"requires": [f"provider-{name}"]} for name in NAMESPACES}
    schema = "https://variants-schema.wheelnext.dev/v0.2.0.json"
    made = {"$schema": schema, "default-priorities": {"namespace": NAMESPACES}, "providers": providers}
    return json.dumps({**made, "variants": variants}).encode()


def ours(data: bytes, machines: tuple[Machine, ...]) -> list[list[str]]:
    """The labels for each machine, as wheelproof orders them, and its wheel, which is not kept."""
    metadata = parse_variant_metadata(data)
    names = [
        f"demo-1.0-cp312-cp312-manylinux_2_28_{m}-{v}.whl" for v in metadata.variants for m in ("x86_64", "aarch64")
    ]
    files = [IndexFile(name, f"https://example.org/{name}") for name in names]
    chosen = [
        made
        for target in parse_targets(["all"], ["3.12"])
        for made in choose_for_machines(Requirement("demo"), files, target, machines, lambda _: metadata)
    ]
    by_machine = {made.machine: list(made.order.preferred) for made in chosen}
    return [by_machine[machine] for machine in machines]


def theirs(data: bytes, machines: tuple[Machine, ...]) -> list[list[str]]:
    """The same, as variantlib does."""
    read = VariantsJson(json.loads(data))
    found = []
    for machine in machines:
        supported = [
            TheirProperty(namespace, feature, value)
            for namespace in NAMESPACES
            for feature, values in (machine.features(namespace) or {}).items()
            for value in values
        ]
        ordered = sort_and_filter_supported_variants(
            list(read.variants.values()), supported, namespace_priorities=list(NAMESPACES), filter_values=True
        )
        found.append([each.label for each in ordered if each.label != "null"])
    return found


def best(
    choose: Callable[[bytes, tuple[Machine, ...]], list[list[str]]], data: bytes, machines: tuple[Machine, ...]
) -> float:
    """Seconds of the fastest of five runs."""
    spent = []
    for _ in range(RUNS):
        clock = time.perf_counter()
        choose(data, machines)
        spent.append(time.perf_counter() - clock)
    return min(spent)


def main() -> int:
    """Print the figures; 1 when the orders differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variants", type=int, default=200)
    parser.add_argument("--machines", type=int, default=20)
    options = parser.parse_args()
    data, machines = document(options.variants), describe_machines(products(), ["535", "580"], None)[: options.machines]
    if ours(data, machines) != theirs(data, machines):
        sys.stdout.write("the orders differ\n")
        return 1
    what = f"{options.variants} variants, {len(machines)} machines"
    for name, choose in (("wheelproof", ours), ("variantlib", theirs)):
        sys.stdout.write(f"{name:<12}{what}: {1000 * best(choose, data, machines):8.1f} ms\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
