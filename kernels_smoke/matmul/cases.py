"""What the suite runs for the matrix products."""

from kernels_smoke.matmul import cases_scaled_mm, cases_scaled_mm_blockwise

KERNELS = {kernel.name: kernel for kernel in (cases_scaled_mm.KERNEL, cases_scaled_mm_blockwise.KERNEL)}
