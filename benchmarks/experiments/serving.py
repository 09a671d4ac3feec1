"""Operations of a server around its layers: a gated delta net, routing, sampling; and the loss of training.

The documents have no figures for these. The convolution's states are half of the data that TokenSpeed sends from
prefill to decoding; its layers compute their gates, and its router takes the k greatest experts.
"""

from __future__ import annotations

from typing import Any

from benchmarks.experiments.model import Experiment
from benchmarks.experiments.of_kernel import compiled, eager, ours

QWEN = 8192  # channels of the convolution
VOCABULARY = 151_936


def experiments() -> list[Experiment]:
    """Each kernel next to eager torch and torch.compile."""
    shown: list[tuple[str, str, dict[str, Any], str]] = [
        ("Gates of a gated delta net", "delta_rule_gates", {"tokens": 8192}, "8192 tokens, 32 heads"),
        (
            "Causal convolution, a prompt",
            "causal_conv1d",
            {"lengths": (8192,), "channels": QWEN, "bias": False, "initial": False, "final": False},
            "8192 tokens, 8192 channels, 4 taps",
        ),
        (
            "Causal convolution, a token each of 256 requests",
            "causal_conv1d_update",
            {"requests": 256, "channels": QWEN, "bias": False, "in_place": True},
            "states by row number, in place",
        ),
        (
            "Routing: 8 of 128 experts",
            "topk_softmax",
            {"rows": 8192, "width": 128, "k": 8, "renormalize": True},
            "8192 tokens, bfloat16",
        ),
        (
            "Sampling: 50 of a vocabulary",
            "topk_softmax",
            {"rows": 64, "width": VOCABULARY, "k": 50, "renormalize": True},
            f"64 x {VOCABULARY:,} logits, bfloat16",
        ),
        (
            "Cross entropy and its gradient",
            "cross_entropy",
            {"rows": 2048, "width": VOCABULARY},
            f"2048 x {VOCABULARY:,} logits, bfloat16",
        ),
    ]
    return [
        Experiment(
            name=name,
            reported="no figure",
            baseline="eager torch",
            variants={
                "eager torch": eager(kernel, shape),
                "torch.compile": compiled(kernel, shape),
                "ours": ours(kernel, shape),
            },
            work=work,
        )
        for name, kernel, shape, work in shown
    ]
