"""RMS norm and rotary embedding of queries and keys, where each query head comes with an output gate (Qwen 3.5)."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import DTYPES, check_rows, check_written, on_device_of, require
from kernels_smoke.launch_plan import allocated, launch, plannable
from kernels_smoke.rotary.heads import Configuration, _norm_and_rotate, blocks, check_norm_and_rope


def configure(head_dim: int) -> Configuration:
    """The layout for heads of ``head_dim`` elements: one warp for 1024 elements, and as many of the gate."""
    return Configuration(heads=max(1024 // triton.next_power_of_2(head_dim), 1), warps=1)


@triton.jit
def _fused_qk_rmsnorm_rope_gate_kernel(
    query_gate_pointer, key_pointer, q_weight_pointer, k_weight_pointer, cos_sin_pointer, positions_pointer,
    query_out_pointer, key_out_pointer, gate_out_pointer,
    query_gate_stride, key_stride, cos_sin_stride, query_out_stride, key_out_stride, gate_out_stride, tokens,
    epsilon,
    QUERY_HEADS: tl.constexpr, KEY_HEADS: tl.constexpr, HEADS: tl.constexpr, HEAD_DIM: tl.constexpr,
    HEAD_BLOCK: tl.constexpr, ROTARY_DIM: tl.constexpr, HALF_BLOCK: tl.constexpr, REST_BLOCK: tl.constexpr,
    ZERO_CENTRED: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # The first programs take the queries of all tokens and the gates, the others the keys.
    program = tl.program_id(0)
    query_programs = tl.cdiv(tokens * QUERY_HEADS, HEADS)
    is_key = program >= query_programs
    index = (program - tl.where(is_key, query_programs, 0)) * HEADS + tl.arange(0, HEADS)[:, None]
    token = tl.where(is_key, index // KEY_HEADS, index // QUERY_HEADS).to(tl.int64)
    head = tl.where(is_key, index % KEY_HEADS, index % QUERY_HEADS)
    present = token < tokens
    source = tl.where(is_key, key_pointer, query_gate_pointer)
    source += token * tl.where(is_key, key_stride, query_gate_stride) + head * tl.where(is_key, HEAD_DIM, 2 * HEAD_DIM)
    target = tl.where(is_key, key_out_pointer, query_out_pointer)
    target += token * tl.where(is_key, key_out_stride, query_out_stride) + head * HEAD_DIM

    columns = tl.arange(0, HEAD_BLOCK)[None, :]
    in_gate = (token < tl.where(is_key, 0, tokens)) & (columns < HEAD_DIM)  # keys have no gates
    # [HEADS, HEAD_BLOCK]
    gate = tl.load(source + HEAD_DIM + columns, mask=in_gate, other=0.0, eviction_policy=EVICTION)
    position = tl.load(positions_pointer + token, mask=present, other=0)  # [HEADS, 1]
    _norm_and_rotate(
        source,
        target,
        present,
        tl.where(is_key, k_weight_pointer, q_weight_pointer),
        cos_sin_pointer + position * cos_sin_stride,
        epsilon,
        HEAD_DIM=HEAD_DIM,
        ROTARY_DIM=ROTARY_DIM,
        HALF_BLOCK=HALF_BLOCK,
        REST_BLOCK=REST_BLOCK,
        INTERLEAVED=False,
        ZERO_CENTRED=ZERO_CENTRED,
        EVICTION=EVICTION,
    )
    tl.store(gate_out_pointer + token * gate_out_stride + head * HEAD_DIM + columns, gate, mask=in_gate)


@plannable
def fused_qk_rmsnorm_rope_gate(
    query_gate: torch.Tensor,
    key: torch.Tensor,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    cos_sin: torch.Tensor,
    positions: torch.Tensor,
    *,
    query_heads: int,
    key_heads: int,
    epsilon: float = 1e-6,
    zero_centred: bool = True,
    out: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return ``(query, key, gate)``: normed and rotated queries and keys, and the gates as they are.

    Each query and key head becomes ``x / sqrt(mean(x^2) + epsilon) * weight``, computed in float32 and rounded to its
    dtype (Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019), equation 4; with ``zero_centred``, the
    weights are stored less 1, as in Gemma and Qwen 3.5). Then its first ``rotary_dim`` elements are rotated by the
    angles of the token's position (Su et al., "RoFormer" (2021), equation 34): the pair ``(a, b)`` of elements
    ``rotary_dim / 2`` apart becomes ``(a cos - b sin, b cos + a sin)``.

    - ``query_gate``: [tokens, query_heads * 2 head_dim], bfloat16, float16 or float32: for each head its query, then
      its gate; rows may be strided.
    - ``key``: [tokens, key_heads * head_dim], of that dtype; rows may be strided.
    - ``q_weight``, ``k_weight``: [head_dim], both of that dtype or both float32.
    - ``cos_sin``: [positions, rotary_dim], of that dtype or float32: rotary_dim / 2 cosines, then as many sines; rows
      may be strided. rotary_dim is even and at most head_dim.
    - ``positions``: [tokens], int64, each from 0 to the rows of ``cos_sin`` less one (which is not checked).
    - ``out``: the three results, of that dtype: [tokens, query_heads * head_dim], [tokens, key_heads * head_dim] and
      [tokens, query_heads * head_dim]; rows may be strided.

    Raises ValueError when a shape, dtype, device or stride is not as said, heads are wider than 1,024 elements, or
    there are 2^31 of them or more.
    """
    require(query_gate.ndim == 2, f"query_gate must be [tokens, heads * 2 head_dim], not {query_gate.ndim}-dimensional")
    tokens, head_dim, rotary_dim = check_norm_and_rope(
        query_gate, q_weight, k_weight, cos_sin, positions, query_heads, key_heads
    )
    check_rows("query_gate", query_gate, (tokens, query_heads * 2 * head_dim), DTYPES, query_gate)
    check_rows("key", key, (tokens, key_heads * head_dim), (query_gate.dtype,), query_gate)
    if out is None:
        query_out, gate_out = (allocated(query_gate.new_empty(tokens, query_heads * head_dim)) for _ in range(2))
        out = query_out, allocated(torch.empty_like(key)), gate_out
    for number, (tensor, heads) in enumerate(zip(out, (query_heads, key_heads, query_heads), strict=True)):
        check_rows(f"out[{number}]", tensor, (tokens, heads * head_dim), (query_gate.dtype,), query_gate)
        check_written(f"out[{number}]", tensor)
    if tokens:
        configuration = configure(head_dim)
        block = blocks(head_dim, rotary_dim)
        programs = sum(triton.cdiv(tokens * heads, configuration.heads) for heads in (query_heads, key_heads))
        with on_device_of(query_gate):
            launch(
                _fused_qk_rmsnorm_rope_gate_kernel,
                (programs,),
                query_gate_pointer=query_gate,
                key_pointer=key,
                q_weight_pointer=q_weight,
                k_weight_pointer=k_weight,
                cos_sin_pointer=cos_sin,
                positions_pointer=positions,
                query_out_pointer=out[0],
                key_out_pointer=out[1],
                gate_out_pointer=out[2],
                query_gate_stride=query_gate.stride(0),
                key_stride=key.stride(0),
                cos_sin_stride=cos_sin.stride(0),
                query_out_stride=out[0].stride(0),
                key_out_stride=out[1].stride(0),
                gate_out_stride=out[2].stride(0),
                tokens=tokens,
                epsilon=epsilon,
                QUERY_HEADS=query_heads,
                KEY_HEADS=key_heads,
                HEADS=configuration.heads,
                HEAD_DIM=head_dim,
                HEAD_BLOCK=triton.next_power_of_2(head_dim),
                ROTARY_DIM=rotary_dim,
                HALF_BLOCK=block.half,
                REST_BLOCK=block.rest,
                ZERO_CENTRED=zero_centred,
                EVICTION=configuration.eviction,
                num_warps=configuration.warps,
            )
    return out
