"""Cut Cross-Entropy: the loss of a classifier whose logits are never written, and its gradients."""

import torch
from cut_cross_entropy import linear_cross_entropy

from kernels_smoke.suite.model import Function, case


def inputs(draw, tokens, size, words, dtype=torch.bfloat16):
    embeddings = {"e": draw.normal(tokens, size, dtype=dtype), "c": draw.normal(words, size, dtype=dtype, scale=0.05)}
    return {**embeddings, "targets": draw.integers(tokens, low=0, high=words, dtype=torch.int64)}


KERNELS = [
    Function(
        lambda e, c, targets: linear_cross_entropy(e, c, targets, filter_eps=None),
        inputs=inputs,
        reference=lambda e, c, targets: torch.nn.functional.cross_entropy(e @ c.T, targets),
        cases=[
            case("odd", tokens=37, size=64, words=200),
            case("a vocabulary", tokens=1024, size=512, words=32_003),
        ],
        name="cut_cross_entropy",
        gradients=("e", "c"),
        # The gradients are summed up in bfloat16, block by block of the vocabulary.
        tolerance={"out": 1e-2, "gradient of e": 5e-2, "gradient of c": 5e-2},
        timed={"tokens": 4096, "size": 2048, "words": 65_536},
        flops=lambda e, c, targets: 4 * 2 * e.shape[0] * e.shape[1] * c.shape[0],
        bar=6.0,
    )
]
