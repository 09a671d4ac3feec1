"""The rules, one module per theme. A run loads only those for the kinds of subjects that it judges."""

from __future__ import annotations

import importlib

# Module: the kinds of subjects that its rules judge. Loading all of them takes a quarter of a quick verdict's time.
MODULES = {
    "accelerator": ("wheel", "release"),
    "archive": ("wheel", "reading"),
    "choice": ("requirement",),
    "doctor.containers": ("host",),
    "doctor.containers_limits": ("host",),
    "doctor.driver": ("host",),
    "doctor.driver_libraries": ("host",),
    "doctor.fabric": ("host",),
    "doctor.gpu_code": ("host",),
    "doctor.installation": ("host",),
    "doctor.installation_builds": ("host",),
    "doctor.installation_loader": ("host",),
    "doctor.installation_search": ("host",),
    "doctor.log_texts": ("log",),
    "doctor.triton": ("host",),
    "doctor.triton_surroundings": ("host",),
    "doctor.undecided": ("host", "symptom"),
    "doctor.visibility": ("host",),
    "doctor.wheels": ("host",),
    "doctor.wheels_origin": ("host",),
    "doctor.wheels_platform": ("host",),
    "elf": ("wheel",),
    "fleet": ("fleet",),
    "gpu_code": ("wheel",),
    "identity": ("wheel",),
    "installed": ("distribution",),
    "installed_environment": ("environment",),
    "installed_gpu": ("distribution", "environment"),
    "kernel_code": ("gpu-target",),
    "kernel_probes": ("installation",),
    "kernel_results": ("kernel",),
    "linking": ("wheel",),
    "matrix": ("cell",),
    "members": ("wheel",),
    "metadata": ("wheel",),
    "parity": ("pair", "comparison"),
    "pin_changes": ("requirement-of-installed", "planned-change", "planned-install"),
    "pin_guards": ("pin-guard",),
    "pins": ("requirement-pin",),
    "publishing": ("wheel",),
    "record": ("wheel",),
    "release": ("release-set",),
    "release_file": ("release-file",),
    "stack": ("package", "stack"),
    "variant_claims": ("variant",),
    "variant_coverage": ("machine",),
    "variants": ("variant", "variants-file"),
}


def load(kind: str = "") -> None:
    """Register the rules for subjects of ``kind``, or all of them."""
    for name, kinds in MODULES.items():
        if not kind or kind in kinds:
            importlib.import_module(f"{__name__}.{name}")
