"""Which accelerator a wheel is built for, from three independent signals: members, version.py, active requirements.

Each signal is read on its own, so that they can contradict each other; ``judge`` weighs them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.requirements import Requirement

from wheel_checks.facts.accelerator.signals import (
    CPU,
    CUDA,
    GPU,
    ROCM,
    XPU,
    Signal,
    bundles_cuda_runtime,
    member_signal,
    requirement_signal,
    version_signal,
)
from wheel_checks.formats.wheel.version_file import VersionFile

NONE = "none"
LABELS = {CUDA: "CUDA", ROCM: "ROCm", XPU: "XPU", CPU: "CPU only", NONE: "no accelerator"}


@dataclass(frozen=True, slots=True)
class AcceleratorFacts:
    """The verdict (cuda, rocm, xpu, cpu, none), its version ("" when unknown), and the signals behind it.

    ``others`` are further accelerators that the wheel serves. ``local_version`` is the full version as the wheel's own
    code states it ("2.10.0+cpu"), "" when it does not. ``conflicts`` are sentences about signals that contradict each
    other.
    """

    accelerator: str
    version: str
    local_version: str
    signals: tuple[Signal, ...]
    others: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """For people: "CUDA 13.0", "CPU only", "CUDA 12 and ROCm"."""
        first = f"{LABELS[self.accelerator]} {self.version}".strip()
        return " and ".join([first, *(LABELS[other] for other in self.others)])

    @property
    def described(self) -> str:
        """The label, with the version that the code states: "CPU only (2.10.0+cpu)"."""
        return f"{self.label} ({self.local_version})" if self.local_version else self.label


def judge(
    members: Sequence[str],
    version_files: Sequence[VersionFile],
    requirements: Sequence[Requirement],
    environment: Mapping[str, str],
    elsewhere: Sequence[Mapping[str, str]],
) -> AcceleratorFacts:
    """Weigh the three signals of one wheel.

    ``environment`` holds the marker variables (PEP 508) of the target; ``elsewhere`` those of other platforms: a
    requirement that is active there but not on the target is itself a sign of a CPU build.
    """
    from_members = member_signal(members)
    from_version, local_version = version_signal(version_files)
    from_requirements = requirement_signal(requirements, environment, elsewhere)
    if from_requirements.accelerators == (CPU,) and bundles_cuda_runtime(members):
        from_requirements = replace(from_requirements, accelerators=())  # nothing needs to bring what the wheel carries
    signals = (from_members, from_version, from_requirements)
    speaking = [signal for signal in signals if signal.accelerators]
    # The members are what is installed; version.py is what the build believed; requirements are only a wish.
    decided = speaking[0].accelerators if speaking else (NONE,)
    accelerator = decided[0]
    versions = [s.version for s in (from_version, from_requirements, from_members) if s.version]
    version = max(
        (v for v in versions if accelerator in GPU), key=lambda v: (v.count("."), -versions.index(v)), default=""
    )
    return AcceleratorFacts(
        accelerator, version, local_version, signals, decided[1:], tuple(_conflicts(speaking, accelerator))
    )


def _conflicts(speaking: Sequence[Signal], accelerator: str) -> Iterable[str]:
    for signal in speaking[1:]:
        if accelerator not in signal.accelerators:
            first = speaking[0]
            yield (
                f"{first.says} {LABELS[accelerator]} ({first.detail}), "
                f"{signal.says} {LABELS[signal.accelerators[0]]} ({signal.detail})"
            )
    told = [signal for signal in speaking if signal.version and accelerator in signal.accelerators]
    for a, b in ((a, b) for i, a in enumerate(told) for b in told[i + 1 :]):
        shorter, longer = sorted((a.version.split("."), b.version.split(".")), key=len)
        if longer[: len(shorter)] != shorter:
            yield f"{a.says} {LABELS[accelerator]} {a.version}, {b.says} {b.version}"
