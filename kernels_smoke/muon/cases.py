"""What the suite runs for Muon."""

from kernels_smoke.muon import cases_gram_newton_schulz, cases_muon_step, cases_newton_schulz, cases_qk_clip

KERNELS = {
    kernel.name: kernel
    for kernel in (
        cases_newton_schulz.KERNEL,
        cases_gram_newton_schulz.KERNEL,
        cases_muon_step.KERNEL,
        cases_qk_clip.KERNEL,
    )
}
