"""What the suite runs for the grouped products."""

from kernels_smoke.moe import cases_grouped_mm, cases_grouped_mm_blockwise

KERNELS = {kernel.name: kernel for kernel in (cases_grouped_mm.KERNEL, cases_grouped_mm_blockwise.KERNEL)}
