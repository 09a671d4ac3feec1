"""What the suite runs for attention within blocks."""

from kernels_smoke.block_attention import cases_backward, cases_forward

KERNELS = {kernel.name: kernel for kernel in (cases_forward.KERNEL, cases_backward.KERNEL)}
