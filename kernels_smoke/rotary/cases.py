"""What the suite runs for the rotary embeddings."""

from kernels_smoke.rotary import cases_fused_qk_norm_rope, cases_fused_qk_rmsnorm_rope_gate

KERNELS = {kernel.name: kernel for kernel in (cases_fused_qk_norm_rope.KERNEL, cases_fused_qk_rmsnorm_rope_gate.KERNEL)}
