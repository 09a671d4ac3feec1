"""The clipping of attention logits in MuonClip: query and key weights of heads whose logits grew are scaled down."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import DTYPES, check_rows, check_scale, check_written, on_device_of, require
from kernels_smoke.launch_plan import launch, plannable

BLOCK = 2048  # elements of a row that a program scales
WARPS = 4


@triton.jit
def _clip_kernel(
    weight, max_logits, row_stride, width, blocks, threshold,
    HEAD_DIM: tl.constexpr, GROUP: tl.constexpr, GROUP_BLOCK: tl.constexpr, KEY: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    program = tl.program_id(0).to(tl.int64)
    row = program // blocks
    head = row // HEAD_DIM
    shared = head if KEY else head // GROUP  # the key head of this row
    o_g = tl.arange(0, GROUP_BLOCK)
    greatest = tl.load(max_logits + shared * GROUP + o_g, mask=o_g < GROUP, other=0.0)  # [GROUP_BLOCK]
    factor = tl.sqrt(tl.min(tl.where(greatest > threshold, threshold / greatest, 1.0)))
    if not KEY:
        own = tl.load(max_logits + head)  # [1]
        factor = tl.where(own > threshold, threshold / own, 1.0) / factor
    if factor != 1.0:
        o_n = program % blocks * BLOCK + tl.arange(0, BLOCK)
        pointers = weight + row * row_stride + o_n
        values = tl.load(pointers, mask=o_n < width, other=0.0)  # [BLOCK]
        tl.store(pointers, (values.to(tl.float32) * factor).to(weight.dtype.element_ty), mask=o_n < width)


@plannable
def qk_clip(
    query_weight: torch.Tensor, key_weight: torch.Tensor, max_logits: torch.Tensor, *, threshold: float = 100.0
) -> None:
    """Scale the rows of both weights in place so that no head's greatest attention logit exceeds ``threshold``.

    Head h gets the factor ``f[h] = min(1, threshold / max_logits[h])``, half of it (its square root) in the query and
    half in the key weight. Where heads share a key head, that gets the square root of the least factor g of its heads,
    and the query weight of each ``f[h] / sqrt(g)``: the logits of every head are multiplied by its own f[h]. Weights
    that need no scaling keep their bits and are not read. Source: Kimi Team, "Kimi K2: Open agentic intelligence"
    (2025), algorithm 1 (MuonClip), whose heads share nothing.

    - ``query_weight``: [heads * head_dim, width], ``key_weight``: [key heads * head_dim, width], both of one dtype,
      bfloat16, float16 or float32, or as many rows of a larger matrix; rows may be strided. Both may be parameters.
    - ``max_logits``: [heads], float32, contiguous: the greatest logit of each head since the last step.

    Raises ValueError when a shape, dtype, device, stride or number is not as said.
    """
    require(query_weight.ndim == 2, f"query_weight must be a matrix, not {query_weight.ndim}-dimensional")
    rows, width = query_weight.shape
    require(max_logits.ndim == 1 and len(max_logits) > 0, "max_logits must be [heads]")
    heads = len(max_logits)
    require(rows > 0 and rows % heads == 0, f"{rows} rows of query_weight are no multiple of {heads} heads")
    head_dim = rows // heads
    require(key_weight.ndim == 2, f"key_weight must be a matrix, not {key_weight.ndim}-dimensional")
    key_rows = key_weight.shape[0]
    fits = key_rows > 0 and key_rows % head_dim == 0 and heads % (key_rows // head_dim) == 0
    require(fits, f"{key_rows} rows of key_weight are not key heads of {head_dim} that {heads} heads share")
    check_rows("query_weight", query_weight, (rows, width), DTYPES, query_weight)
    check_rows("key_weight", key_weight, (key_rows, width), (query_weight.dtype,), query_weight)
    check_rows("max_logits", max_logits, (heads,), (torch.float32,), query_weight)
    require(max_logits.is_contiguous(), "max_logits must be contiguous")
    check_written("query_weight", query_weight)
    check_written("key_weight", key_weight)
    check_scale(threshold, "threshold")
    group = heads * head_dim // key_rows
    blocks = triton.cdiv(width, BLOCK)
    if not width:
        return
    with on_device_of(query_weight):
        for weight, key in ((query_weight, False), (key_weight, True)):
            launch(
                _clip_kernel,
                (weight.shape[0] * blocks,),
                weight=weight.detach(),
                max_logits=max_logits,
                row_stride=weight.stride(0),
                width=width,
                blocks=blocks,
                threshold=threshold,
                HEAD_DIM=head_dim,
                GROUP=group,
                GROUP_BLOCK=triton.next_power_of_2(group),
                KEY=key,
                BLOCK=BLOCK,
                num_warps=WARPS,
            )
