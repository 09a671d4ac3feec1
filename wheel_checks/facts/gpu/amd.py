"""Which of AMD's GPUs a code object runs on, by the rules of LLVM and ROCm.

* A code object runs on exactly its own processor: there is no compatibility with newer ones, and no PTX.
* A generic target ("gfx9-4-generic") runs on the processors of its group.
* A feature that its target names must be set as on the device: "gfx90a:xnack-" runs where XNACK is off. A target that
  does not name it runs either way. XNACK is off unless HSA_XNACK=1 says otherwise; the memory of Instinct accelerators
  is error-correcting (SRAM-ECC is on).

Source: LLVM, "User Guide for AMDGPU Backend", Processors, Generic Processors and Target ID; read 2026-11.
"""

import re

from wheel_checks.data import load

_LABEL = re.compile(r"(gfx(?:[0-9]+(?:-[0-9]+)?-generic|[0-9a-f]{3,4}))((?::(?:xnack|sramecc)[+-])*)", re.ASCII)
_DIFFERS = {"xnack+": "only with XNACK on (HSA_XNACK=1)", "sramecc-": "only without SRAM-ECC"}


def is_generic(label: str) -> bool:
    """True for a label that is for a group of processors."""
    return "-generic" in label


def refuses(label: str, device: str) -> str:
    """Why code of this label does not run on a device ("gfx942"); "" when it does."""
    matched = _LABEL.fullmatch(label)
    if matched is None:
        return "no code for AMD GPUs"
    processor, features = matched.groups()
    if processor != device and device not in _members(processor):
        return "code for another processor"
    return next((_DIFFERS[feature] for feature in features.split(":") if feature in _DIFFERS), "")


def _members(generic: str) -> tuple[str, ...]:
    """The processors on which code of a generic target runs, () for any other target."""
    return next((tuple(row["members"]) for row in load("products")["amd_generic"] if row["target"] == generic), ())
