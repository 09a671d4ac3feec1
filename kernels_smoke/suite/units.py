"""What takes how long, so that the longest comes first and parts are equal. Imports neither torch nor triton."""

from collections.abc import Sequence

from kernels_smoke.suite.registry import Entry

# Seconds on one CPU, of all that level full compiles for sm_90 (2026-11, triton 3.6.0); what is not named takes less
# than 4.
SECONDS = {
    "gated_delta_rule_chunk": 42,
    "paged_attention": 36,
    "gram_newton_schulz": 18,
    "newton_schulz": 17,
    "mla_decode": 17,
    "topk_softmax": 17,
    "top_k_sample": 14,
    "block_diagonal_attention_backward": 10,
    "paged_attention_decode": 10,
    "grouped_mm_blockwise": 9,
    "block_scaled_mm": 9,
    "scaled_mm": 8,
    "scaled_mm_blockwise": 8,
    "grouped_mm": 7,
    "fused_linear": 6,
    "causal_conv1d": 6,
    "fused_qk_rmsnorm_rope_gate": 6,
    "fused_qk_norm_rope": 5,
    "gated_delta_rule_decode": 5,
    "rms_norm_dynamic_per_token_quant": 5,
    "rms_norm_per_block_quant": 5,
    "block_diagonal_attention": 4,
    "cross_entropy": 4,
    "dual_ascent": 4,
    "fused_add_rms_norm": 4,
    "silu_and_mul_dynamic_per_token_quant": 4,
    "silu_and_mul_per_block_quant": 4,
    "simplex_projection": 4,
}
OTHERS = 2
# AMD's compiler takes several times as long where fp8 has to be converted by software (gfx90a, gfx942).
AMD = 5.0
SHARE = 3  # seconds that one process compiles


# Seconds of a kernel's cases at level full, next to five other children on an H200 (2026-11), without the first case.
JUDGING = {
    "paged_attention": 5.0,
    "dual_ascent": 2.8,
    "gated_delta_rule_chunk": 2.5,
    "block_diagonal_attention_backward": 2.5,
    "gated_delta_rule_decode": 1.8,
    "fused_qk_rmsnorm_rope_gate": 1.3,
    "fused_qk_norm_rope": 1.2,
    "block_diagonal_attention": 1.2,
}
JUDGING_OTHERS = 0.5


def judging(entry: Entry) -> float:
    """How long the cases of the kernel take."""
    return JUDGING.get(entry.name, JUDGING_OTHERS)


def seconds(entry: Entry) -> float:
    """How long it takes to compile all of the kernel."""
    return SECONDS.get(entry.name, OTHERS)


def shares(entry: Entry, level: str, part: str = "") -> int:
    """How many processes compile the kernel; the quick level has a few cases of a few kernels.

    The ``part`` that is timed is small, and needed first.
    """
    if part == "timed":
        return min(8, -(-int(seconds(entry)) // 4))
    return 4 if level == "quick" else -(-int(seconds(entry)) // SHARE)


def work_units(entries: Sequence[Entry], targets: Sequence[str]) -> list[tuple[str, str]]:
    """Each (kernel, target) that is to be compiled, the longest first: so no CPU idles while another has much to do."""

    def expected(unit: tuple[Entry, str]) -> float:
        entry, target = unit
        return seconds(entry) * (AMD if entry.family == "matmul" and target.startswith("gfx") else 1.0)

    units = sorted(((entry, target) for target in targets for entry in entries), key=expected, reverse=True)
    return [(entry.name, target) for entry, target in units]
