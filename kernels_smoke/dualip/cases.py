"""What the suite runs for DuaLip."""

from kernels_smoke.dualip import cases_dual_ascent, cases_simplex_projection, cases_sparse_product

KERNELS = {
    kernel.name: kernel
    for kernel in (cases_simplex_projection.KERNEL, cases_sparse_product.KERNEL, cases_dual_ascent.KERNEL)
}
