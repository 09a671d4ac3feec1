"""What the suite runs for Muon."""

from __future__ import annotations

from kernels_smoke.muon import cases_muon_step, cases_newton_schulz

KERNELS = {kernel.name: kernel for kernel in (cases_newton_schulz.KERNEL, cases_muon_step.KERNEL)}
