"""Which accelerator a wheel is built for, from three independent signals: members, version.py, active requirements."""

from __future__ import annotations

from dataclasses import dataclass

CUDA, ROCM, XPU, CPU, NONE = "cuda", "rocm", "xpu", "cpu", "none"


@dataclass(frozen=True, slots=True)
class Signal:
    """What one source says. ``name`` is "members", "version.py" or "requirements".

    ``accelerator`` is cuda, rocm, xpu, cpu, or "" when this source says nothing; ``version`` is the accelerator's version
    as far as this source tells ("12.8", "13", ""); ``detail`` the observed value for people; ``source`` where it was read.
    """

    name: str
    accelerator: str
    version: str
    detail: str
    source: str


@dataclass(frozen=True, slots=True)
class AcceleratorFacts:
    """The verdict (cuda, rocm, xpu, cpu, none), its version ("" when unknown) and the signals behind it.

    ``local_version`` is the full version with its local part as the wheel's code states it ("2.10.0+cpu"), "" when unknown.
    ``agree`` is False when two signals that say something contradict each other.
    """

    accelerator: str
    version: str
    local_version: str
    signals: tuple[Signal, ...]
    agree: bool
