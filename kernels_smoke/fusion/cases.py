"""What the suite runs for the fused operations."""

from kernels_smoke.fusion import (
    cases_fused_gate_sigmoid_mul_add,
    cases_fused_linear,
    cases_mul_sum_add,
    cases_pointwise,
)

KERNELS = {
    kernel.name: kernel
    for kernel in (
        cases_fused_gate_sigmoid_mul_add.KERNEL,
        cases_fused_linear.KERNEL,
        cases_pointwise.MUL_ADD_SIGMOID,
        cases_mul_sum_add.KERNEL,
        cases_pointwise.SIN_AND_COS,
    )
}
