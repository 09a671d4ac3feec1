"""RMS norm and rotary embedding of the queries and keys in a packed projection, in place."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import DTYPES, check_rows, check_written, on_device_of, require
from kernels_smoke.launch_plan import launch, plannable
from kernels_smoke.rotary.heads import Configuration, _norm_and_rotate, blocks, check_norm_and_rope


def configure(head_dim: int) -> Configuration:
    """The layout for heads of ``head_dim`` elements: 1024 elements for one warp, which then waits for no other."""
    return Configuration(heads=max(1024 // triton.next_power_of_2(head_dim), 1), warps=1)


@triton.jit
def _fused_qk_norm_rope_kernel(
    qkv_pointer, q_weight_pointer, k_weight_pointer, cos_sin_pointer, positions_pointer, qkv_stride,
    cos_sin_stride, tokens, epsilon,
    QUERY_HEADS: tl.constexpr, KEY_HEADS: tl.constexpr, HEADS: tl.constexpr, HEAD_DIM: tl.constexpr,
    ROTARY_DIM: tl.constexpr, HALF_BLOCK: tl.constexpr, REST_BLOCK: tl.constexpr, INTERLEAVED: tl.constexpr,
    ZERO_CENTRED: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # The first programs take the queries of all tokens, the others the keys: each needs one of the weights.
    program = tl.program_id(0)
    query_programs = tl.cdiv(tokens * QUERY_HEADS, HEADS)
    is_key = program >= query_programs
    weight = tl.where(is_key, k_weight_pointer, q_weight_pointer)
    index = (program - tl.where(is_key, query_programs, 0)) * HEADS + tl.arange(0, HEADS)[:, None]
    token = tl.where(is_key, index // KEY_HEADS, index // QUERY_HEADS).to(tl.int64)
    head = tl.where(is_key, QUERY_HEADS + index % KEY_HEADS, index % QUERY_HEADS)
    present = token < tokens
    position = tl.load(positions_pointer + token, mask=present, other=0)  # [HEADS, 1]
    pointers = qkv_pointer + token * qkv_stride + head * HEAD_DIM
    _norm_and_rotate(
        pointers,
        pointers,
        present,
        weight,
        cos_sin_pointer + position * cos_sin_stride,
        epsilon,
        HEAD_DIM=HEAD_DIM,
        ROTARY_DIM=ROTARY_DIM,
        HALF_BLOCK=HALF_BLOCK,
        REST_BLOCK=REST_BLOCK,
        INTERLEAVED=INTERLEAVED,
        ZERO_CENTRED=ZERO_CENTRED,
        EVICTION=EVICTION,
    )


@plannable
def fused_qk_norm_rope(
    qkv: torch.Tensor,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    cos_sin: torch.Tensor,
    positions: torch.Tensor,
    *,
    query_heads: int,
    key_heads: int,
    epsilon: float = 1e-6,
    interleaved: bool = False,
    zero_centred: bool = False,
) -> torch.Tensor:
    """Norm and rotate the query and key heads of ``qkv`` in place, and return it; the values stay as they are.

    Each head becomes ``x / sqrt(mean(x^2) + epsilon) * weight``, computed in float32 and rounded to the dtype of
    ``qkv`` (Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019), equation 4; with ``zero_centred``, the
    weights are stored less 1). Then pairs of its first ``rotary_dim`` elements are rotated by the angles of the token's
    position (Su et al., "RoFormer" (2021), equation 34): ``(a, b)`` becomes ``(a cos - b sin, b cos + a sin)``. A pair
    is two elements ``rotary_dim / 2`` apart (GPT-NeoX), or two neighbours when ``interleaved`` (GPT-J).

    - ``qkv``: [tokens, (query_heads + 2 key_heads) head_dim], bfloat16, float16 or float32: all query heads, then key
      heads, then value heads; rows may be strided. Queries and keys are written in place.
    - ``q_weight``, ``k_weight``: [head_dim], both of that dtype or both float32.
    - ``cos_sin``: [positions, rotary_dim], of that dtype or float32: rotary_dim / 2 cosines, then as many sines; rows
      may be strided. rotary_dim is even and at most head_dim.
    - ``positions``: [tokens], int64, each from 0 to the rows of ``cos_sin`` less one (which is not checked).

    Raises ValueError when a shape, dtype, device or stride is not as said, heads are wider than 1,024 elements, or
    there are 2^31 of them or more.
    """
    require(qkv.ndim == 2, f"qkv must be [tokens, heads * head_dim], not {qkv.ndim}-dimensional")
    tokens, head_dim, rotary_dim = check_norm_and_rope(
        qkv, q_weight, k_weight, cos_sin, positions, query_heads, key_heads
    )
    check_rows("qkv", qkv, (tokens, (query_heads + 2 * key_heads) * head_dim), DTYPES, qkv)
    check_written("qkv", qkv)
    if tokens:
        configuration = configure(head_dim)
        block = blocks(head_dim, rotary_dim)
        programs = sum(triton.cdiv(tokens * heads, configuration.heads) for heads in (query_heads, key_heads))
        with on_device_of(qkv):
            launch(
                _fused_qk_norm_rope_kernel,
                (programs,),
                qkv_pointer=qkv,
                q_weight_pointer=q_weight,
                k_weight_pointer=k_weight,
                cos_sin_pointer=cos_sin,
                positions_pointer=positions,
                qkv_stride=qkv.stride(0),
                cos_sin_stride=cos_sin.stride(0),
                tokens=tokens,
                epsilon=epsilon,
                QUERY_HEADS=query_heads,
                KEY_HEADS=key_heads,
                HEADS=configuration.heads,
                HEAD_DIM=head_dim,
                ROTARY_DIM=rotary_dim,
                HALF_BLOCK=block.half,
                REST_BLOCK=block.rest,
                INTERLEAVED=interleaved,
                ZERO_CENTRED=zero_centred,
                EVICTION=configuration.eviction,
                num_warps=configuration.warps,
            )
    return qkv
