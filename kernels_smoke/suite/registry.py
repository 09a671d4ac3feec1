"""Which kernels there are. Imports neither torch nor triton: `--list`, `--only` and the parent process need neither."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernels_smoke.suite.model import Kernel


@dataclass(frozen=True)
class Entry:
    """A kernel's name, its family (its folder), a short description, and whether level ``quick`` runs it.

    ``across``: it reads the memory of other GPUs, which no case does: each has all its ranks on one GPU.

    ``source`` is the file, module or entry point of an external kernel (``own/sources.py``), "" for ours; ``triton`` is
    False if it is not written in Triton.
    """

    name: str
    family: str
    summary: str
    quick: bool = False
    source: str = ""
    triton: bool = True
    across: bool = False


ENTRIES = (
    Entry("fused_add_rms_norm", "norm", "residual addition and RMS norm, plain or zero-centred", quick=True),
    Entry(
        "all_reduce_add_rms_norm", "norm", "the same of a sum over ranks, which read each other's memory", across=True
    ),
    Entry("dynamic_per_token_scaled_fp8_quant", "quantization", "one scale for each row"),
    Entry("per_token_group_fp8_quant", "quantization", "one scale for each group of a row, also as UE8M0", quick=True),
    Entry("rms_norm_dynamic_per_token_quant", "quantization", "RMS norm, then one scale for each row"),
    Entry("rms_norm_per_block_quant", "quantization", "RMS norm, then one scale for each group of a row"),
    Entry("silu_and_mul_dynamic_per_token_quant", "quantization", "SwiGLU, then one scale for each row", quick=True),
    Entry("silu_and_mul_per_block_quant", "quantization", "SwiGLU, then one scale for each group of a row"),
    Entry("fused_qk_norm_rope", "rotary", "RMS norm of each query and key head, then rotary embedding", quick=True),
    Entry("fused_qk_rmsnorm_rope_gate", "rotary", "the same next to an output gate, which is copied out"),
    Entry("fused_gate_sigmoid_mul_add", "fusion", "a gated addition in place: f += sigmoid(x . w) s"),
    Entry("fused_linear", "fusion", "a linear layer with the norm before it and the activation after it"),
    Entry("mul_add_sigmoid", "fusion", "vertical fusion: sigmoid(x w + b)"),
    Entry("mul_sum_add", "fusion", "reduction fusion: (2 x).sum(-1) + 1", quick=True),
    Entry("sin_and_cos", "fusion", "horizontal fusion: two outputs of one input"),
    Entry("scaled_mm", "matmul", "fp8 matrix product with a scale for each row and column", quick=True),
    Entry("scaled_mm_blockwise", "matmul", "fp8 matrix product with scales for blocks of 1x128 and 128x128"),
    Entry("grouped_mm", "moe", "a matrix for each group of rows: mixture of experts, ragged, routed"),
    Entry("grouped_mm_blockwise", "moe", "the same in fp8 with scales for blocks of 1x128 and 128x128"),
    Entry("block_scaled_mm", "block_scaled", "matrix product in mxfp8, mxfp4 and nvfp4"),
    Entry("paged_attention", "attention", "causal attention over a paged cache, prompts and decoding in one batch"),
    Entry("paged_attention_decode", "attention", "decoding with an fp8 cache, a window, sinks and a soft cap"),
    Entry("mla_decode", "mla", "decoding of multi-head latent attention over a paged cache"),
    Entry("block_diagonal_attention", "block_attention", "softmax attention within blocks of 64 tokens"),
    Entry("block_diagonal_attention_backward", "block_attention", "its gradients, and those of a rotary embedding"),
    Entry("newton_schulz", "muon", "five Newton-Schulz steps, each symmetric product computed once"),
    Entry("gram_newton_schulz", "muon", "the same for wide matrices, by their Gram matrix"),
    Entry("muon_step", "muon", "a step of Muon: momentum, Newton-Schulz, scale, weight decay"),
    Entry("qk_clip", "muon", "MuonClip: weights of heads whose attention logits grew, scaled down"),
    Entry("gated_delta_rule_chunk", "delta_net", "gated delta rule over sequences, by chunks: prefill", quick=True),
    Entry("gated_delta_rule_decode", "delta_net", "the same for a few tokens, states by row indices"),
    Entry("delta_rule_gates", "delta_net", "its gates: decays by softplus, strengths by sigmoid"),
    Entry("causal_conv1d", "delta_net", "the short causal convolution over sequences, states by row indices"),
    Entry("causal_conv1d_update", "delta_net", "the same for a few tokens of many requests"),
    Entry("topk_softmax", "routing", "the k greatest of each row and their softmax: experts, or tokens"),
    Entry("top_k_sample", "routing", "a token for each row, drawn from its k greatest"),
    Entry("cross_entropy", "loss", "cross entropy of rows of logits and its gradient, in one launch"),
    Entry("simplex_projection", "dualip", "ragged segments projected onto a simplex each, without sorting"),
    Entry("sparse_product", "dualip", "a compressed sparse matrix by a vector, from either side"),
    Entry("dual_ascent", "dualip", "a small matching problem solved, with a proof of how well"),
    Entry(
        "chained_dots", "miscompiles", "two products in one accumulator: wrong on sm_100 before Triton 3.9", quick=True
    ),
    Entry(
        "decayed_accumulator", "miscompiles", "a decayed accumulator read by a product: wrong on Blackwell", quick=True
    ),
)

# Broken on purpose, to prove that the suite finds it: they run only when they are named.
FAULTS = (
    Entry("reads_out_of_bounds", "faults", "reads where nothing is mapped"),
    Entry("hangs", "faults", "waits for ever"),
    Entry("is_wrong", "faults", "copies from the wrong place"),
    Entry("is_right", "faults", "copies; its mutants are all that a mutant can come to"),
)

IN_SUITE = ("faults", "miscompiles")  # families whose folders are in `suite`: they test compilers, and the suite itself


_from_outside: dict[str, Entry] = {}  # passed to this process


def know(entries: Iterable[Entry]) -> None:
    """Register external kernels in this process: a child gets those that its parent found."""
    _from_outside.update((entry.name, entry) for entry in entries)


def entry(name: str) -> Entry:
    """The entry of the kernel ``name``. Raises KeyError."""
    return {**{entry.name: entry for entry in (*ENTRIES, *FAULTS)}, **_from_outside}[name]


def from_outside(name: str) -> Entry | None:
    """The entry of the kernel ``name`` if it is from outside."""
    return _from_outside.get(name)


def load(entry: Entry) -> Kernel:
    """Import the family of ``entry`` (and with it torch and triton) and return its description of the kernel.

    Raises OwnKernelsError when one from outside cannot be had any more.
    """
    if entry.source:
        sources = importlib.import_module("kernels_smoke.suite.own.sources")
        found: Kernel = sources.load(entry.source)[entry.name]
        return found
    if entry.family in IN_SUITE:
        cases = importlib.import_module(f"kernels_smoke.suite.{entry.family}.cases")
    else:
        cases = importlib.import_module(f"kernels_smoke.{entry.family}.cases")
    kernels: dict[str, Kernel] = cases.KERNELS
    return kernels[entry.name]


def select(only: tuple[str, ...] = (), own: tuple[Entry, ...] = (), *, strict: bool = True) -> tuple[Entry, ...]:
    """The entries that the items of ``only`` name; all if it is empty, except the family "faults".

    An item is a kernel or a family, or a prefix of kernel names; ``own`` are external kernels. Raises LookupError when
    there is no such kernel, unless not ``strict``.
    """
    known = (*ENTRIES, *own, *FAULTS)
    chosen: list[Entry] = []
    for item in only:
        named = [entry for entry in known if item in {entry.name, entry.family}]
        named = named or [entry for entry in (*ENTRIES, *own) if entry.name.startswith(item)]
        if not named and strict:
            raise LookupError(f"no kernel and no family is called {item!r}")
        chosen += named
    return tuple(entry for entry in known if entry in chosen) if only else (*ENTRIES, *own)
