"""A token for each row, drawn from the softmax over its k greatest logits."""

import torch

from kernels_smoke.launch import check_rows, check_written, require
from kernels_smoke.launch_plan import allocated, plannable
from kernels_smoke.routing.topk_softmax import check_arguments, select


@plannable
def top_k_sample(
    logits: torch.Tensor,
    uniforms: torch.Tensor,
    k: int,
    *,
    temperature: float = 1.0,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return a token for each row: the first whose cumulative weight exceeds ``uniforms``, in falling order.

    The weights are those of ``topk_softmax`` with ``renormalize``; no tensor of them is written. The same uniforms give
    the same tokens on each run. Source: top-k sampling, Fan, Lewis and Dauphin (2018), by inversion.

    - ``logits``, ``k``, ``temperature``: as for ``topk_softmax``.
    - ``uniforms``: [rows], float32, from 0 to less than 1, contiguous.
    - ``out``: the tokens, [rows], int32, contiguous.

    Raises ValueError when a shape, dtype, device, stride or number is not as said, or rows are wider than 2^20.
    """
    rows, _ = check_arguments(logits, k, temperature)
    check_rows("uniforms", uniforms, (rows,), (torch.float32,), logits)
    tokens = allocated(torch.empty((rows,), dtype=torch.int32, device=logits.device)) if out is None else out
    check_rows("out", tokens, (rows,), (torch.int32,), logits)
    check_written("out", tokens)
    require(uniforms.is_contiguous() and tokens.is_contiguous(), "uniforms and out must be contiguous")
    select(logits, k, temperature, uniforms=uniforms, tokens=tokens)
    return tokens
