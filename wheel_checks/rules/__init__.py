"""The rules, one module per theme. A run loads only those for the kinds of subjects that it judges."""

from __future__ import annotations

import importlib

# Module: the kinds of subjects that its rules judge. Loading all of them takes a quarter of a quick verdict's time.
MODULES = {
    "choice": ("requirement",),
    "fleet": ("fleet",),
    "host.containers.denial": ("host",),
    "host.containers.limits": ("host",),
    "host.containers.runtime": ("host",),
    "host.driver.devices": ("host",),
    "host.driver.known_faults": ("host",),
    "host.driver.libcuda": ("host",),
    "host.driver.modules": ("host",),
    "host.fabric": ("host",),
    "host.gpu_code": ("host",),
    "host.installation.builds": ("host",),
    "host.installation.files": ("host",),
    "host.installation.loader": ("host",),
    "host.installation.search": ("host",),
    "host.log_texts": ("log",),
    "host.triton.ptxas": ("host",),
    "host.triton.release": ("host",),
    "host.triton.surroundings": ("host",),
    "host.undecided": ("host", "symptom"),
    "host.visibility": ("host",),
    "host.wheels.build": ("host",),
    "host.wheels.origin": ("host",),
    "host.wheels.platform": ("host",),
    "installed.distribution": ("distribution",),
    "installed.environment": ("environment",),
    "installed.gpu": ("distribution", "environment"),
    "kernels.code": ("gpu-target",),
    "kernels.probes": ("installation",),
    "kernels.results": ("kernel",),
    "matrix": ("cell",),
    "pins.changes": ("requirement-of-installed", "planned-change", "planned-install"),
    "pins.guards": ("pin-guard",),
    "pins.requirements": ("requirement-pin",),
    "provenance.attestations": ("file-provenance",),
    "provenance.indexes": ("indexes",),
    "provenance.record": ("record",),
    "release.file": ("release-file",),
    "release.parity": ("pair", "comparison"),
    "release.whole": ("release-set",),
    "security.changes": ("pair",),
    "security.files": ("wheel",),
    "security.native": ("wheel",),
    "security.programs": ("wheel",),
    "security.startup": ("wheel",),
    "stack.changes": ("stack-change",),
    "stack.cuda": ("stack",),
    "stack.hashes": ("stack",),
    "stack.packages": ("package",),
    "stack.resolution": ("stack",),
    "stack.locked": ("package", "stack"),
    "variants.claims": ("variant",),
    "variants.coverage": ("machine",),
    "variants.metadata": ("variant", "variants-file"),
    "wheel.accelerator": ("wheel", "release"),
    "wheel.archive": ("wheel", "reading"),
    "wheel.driver": ("wheel",),
    "wheel.elf": ("wheel",),
    "wheel.foreign_names": ("wheel",),
    "wheel.gpu_code": ("wheel",),
    "wheel.identity": ("wheel",),
    "wheel.linking": ("wheel",),
    "wheel.symbols": ("wheel",),
    "wheel.members": ("wheel",),
    "wheel.metadata": ("wheel",),
    "wheel.publishing": ("wheel",),
    "wheel.record": ("wheel",),
}


def load(kind: str = "") -> None:
    """Register the rules for subjects of ``kind``, or all of them."""
    for name, kinds in MODULES.items():
        if not kind or kind in kinds:
            importlib.import_module(f"{__name__}.{name}")
