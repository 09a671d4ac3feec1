"""Liger Kernel: softmax, and a cross-entropy whose forward kernel writes the gradients over the logits."""

import torch
from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
from liger_kernel.ops.softmax import LigerSoftmaxFunction

from kernels_smoke.suite.model import Function, case, here


def logits(draw, rows, words, dtype=torch.bfloat16):
    return {"x": draw.normal(rows, words, dtype=dtype)}


def inputs(draw, rows, words, dtype=torch.bfloat16):
    targets = draw.integers(rows, low=0, high=words, dtype=torch.int64)
    return {**logits(draw, rows, words, dtype), "targets": targets}


def cross_entropy(x, targets):
    return LigerCrossEntropyFunction.apply(x, targets, None)[0]


def softmax(x):
    return LigerSoftmaxFunction.apply(x)


SHAPES = [here("odd width", rows=5, words=127, dtype=torch.float32), case("a vocabulary", rows=257, words=32_003)]
KERNELS = [
    Function(
        cross_entropy,
        inputs,
        lambda x, targets: torch.nn.functional.nll_loss(x.log_softmax(-1), targets),
        SHAPES,
        name="liger_cross_entropy",
        gradients=("x",),
        scratch=("x",),
    ),
    Function(softmax, logits, lambda x: x.softmax(-1), SHAPES, "liger_softmax", gradients=("x",)),
]
