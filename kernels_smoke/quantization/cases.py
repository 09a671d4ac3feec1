"""What the suite runs for quantisation, and what it expects."""

from kernels_smoke.quantization import cases_plain, cases_rms_norm, cases_silu

KERNELS = {**cases_plain.KERNELS, **cases_rms_norm.KERNELS, **cases_silu.KERNELS}
