"""What the suite runs for the gated delta rule."""

from kernels_smoke.delta_net import (
    cases_chunk,
    cases_convolution,
    cases_convolution_update,
    cases_decode,
    cases_gates,
)

KERNELS = {
    kernel.name: kernel
    for kernel in (
        cases_chunk.KERNEL,
        cases_decode.KERNEL,
        cases_gates.KERNEL,
        cases_convolution.KERNEL,
        cases_convolution_update.KERNEL,
    )
}
