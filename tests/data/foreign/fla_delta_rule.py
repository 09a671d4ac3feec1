"""flash-linear-attention: the gated delta rule by chunks and by steps; its own recurrence in plain torch is right."""

import torch
from fla.ops.gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule
from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule

from kernels_smoke.suite.model import Function, case, here


def inputs(draw, tokens, heads, size, wide=0, dtype=torch.bfloat16):
    q, v = (draw.normal(1, tokens, heads, each, dtype=dtype) for each in (size, wide or size))
    k = torch.nn.functional.normalize(draw.normal(1, tokens, heads, size, dtype=torch.float32), dim=-1).to(dtype)
    g = -draw.uniform(1, tokens, heads, low=0.0, high=0.1, dtype=torch.float32)
    return {"q": q, "v": v, "k": k, "g": g, "beta": draw.uniform(1, tokens, heads, low=0.0, high=1.0, dtype=dtype)}


GPU = case("heads of 128", tokens=500, heads=4, size=128)  # the interpreter cannot run the chunks
HERE = here("odd sizes", tokens=9, heads=2, size=20, wide=13, dtype=torch.float32)
KERNELS = [
    Function(chunk_gated_delta_rule, inputs, naive_recurrent_gated_delta_rule, [GPU], "fla_chunks", tolerance=1e-2),
    Function(fused_recurrent_gated_delta_rule, inputs, naive_recurrent_gated_delta_rule, [HERE, GPU], "fla_steps"),
]
