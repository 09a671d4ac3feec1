"""The gates of the delta rule from what a layer projects: decays by softplus, strengths by sigmoid."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import check_matrix, check_rows, check_written, on_device_of, whole_rows
from kernels_smoke.launch_plan import allocated, launch, plannable

WIDEST = 1024  # value heads of a layer
configure = whole_rows  # benchmarks/tune.py tries others


@triton.jit
def _softplus(x):
    """log(1 + exp(x)) with a relative error of some float32 units everywhere: nothing overflows, nothing cancels.

    It is max(x, 0) + log(1 + u) for u = exp(-|x|), and log(1 + u) = 2 atanh(u / (2 + u)), whose series needs eight
    terms up to 1/3. tl.log(1 + u) is off by 2e-7, which is all of it where x is below -16.
    """
    u = tl.exp(-tl.abs(x))
    s = u / (2.0 + u)
    square = s * s
    series = 1.0 / 13.0 + square * (1.0 / 15.0)
    series = 1.0 / 11.0 + square * series
    series = 1.0 / 9.0 + square * series
    series = 1.0 / 7.0 + square * series
    series = 1.0 / 5.0 + square * series
    series = 1.0 / 3.0 + square * series
    return tl.maximum(x, 0.0) + 2.0 * s * (1.0 + square * series)


@triton.jit
def _log_decay(a, A_log, dt_bias):
    """-exp(A_log) softplus(a + dt_bias), in float32."""
    return -tl.exp(A_log.to(tl.float32)) * _softplus(a.to(tl.float32) + dt_bias.to(tl.float32))


@triton.jit
def _gates_kernel(
    a, b, A_log, dt_bias, log_decay, beta, a_stride, b_stride, log_decay_stride, beta_stride, tokens, heads,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    o_h = tl.arange(0, BLOCK)[None, :]
    o_t = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    mask = (o_t < tokens) & (o_h < heads)
    b_a = tl.load(a + o_t * a_stride + o_h, mask=mask, other=0.0, eviction_policy=EVICTION)  # [ROWS, BLOCK]
    b_b = tl.load(b + o_t * b_stride + o_h, mask=mask, other=0.0, eviction_policy=EVICTION)  # [ROWS, BLOCK]
    parameter = tl.load(A_log + o_h, mask=o_h < heads, other=0.0)  # [1, BLOCK]
    bias = tl.load(dt_bias + o_h, mask=o_h < heads, other=0.0)  # [1, BLOCK]
    tl.store(log_decay + o_t * log_decay_stride + o_h, _log_decay(b_a, parameter, bias), mask=mask)
    tl.store(beta + o_t * beta_stride + o_h, tl.sigmoid(b_b.to(tl.float32)), mask=mask)


@plannable
def delta_rule_gates(
    a: torch.Tensor,
    b: torch.Tensor,
    A_log: torch.Tensor,
    dt_bias: torch.Tensor,
    *,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``(log_decay, beta)``: ``-exp(A_log) softplus(a + dt_bias)`` and ``sigmoid(b)``, in float32.

    Both are what ``gated_delta_rule_chunk`` takes; ``gated_delta_rule_decode`` can compute them itself. Source: Yang,
    Kautz and Hatamizadeh, "Gated Delta Networks" (2024), with the decay of Mamba 2; the layers of Qwen 3.5.

    - ``a``, ``b``: [tokens, value heads], bfloat16, float16 or float32, both of one dtype, finite; rows may be strided.
    - ``A_log``, ``dt_bias``: [value heads], of that dtype or float32.
    - ``out``: the two results, [tokens, value heads], float32.

    Raises ValueError when a shape, dtype, device or stride is not as said, or there are more than 1,024 heads.
    """
    tokens, heads = check_matrix("a", a, WIDEST)
    check_rows("b", b, (tokens, heads), (a.dtype,), a)
    check_parameters(A_log, dt_bias, heads, a)
    shape = (tokens, heads)
    if out is None:
        log_decay, beta = (allocated(torch.empty(shape, dtype=torch.float32, device=a.device)) for _ in range(2))
    else:
        log_decay, beta = out
    for name, tensor in (("out[0]", log_decay), ("out[1]", beta)):
        check_rows(name, tensor, shape, (torch.float32,), a)
        check_written(name, tensor)
    if tokens:
        configuration = configure(heads)
        with on_device_of(a):
            launch(
                _gates_kernel,
                (triton.cdiv(tokens, configuration.rows),),
                a=a,
                b=b,
                A_log=A_log,
                dt_bias=dt_bias,
                log_decay=log_decay,
                beta=beta,
                a_stride=a.stride(0),
                b_stride=b.stride(0),
                log_decay_stride=log_decay.stride(0),
                beta_stride=beta.stride(0),
                tokens=tokens,
                heads=heads,
                BLOCK=configuration.block,
                ROWS=configuration.rows,
                EVICTION=configuration.eviction,
                num_warps=configuration.warps,
            )
    return log_decay, beta


def check_parameters(A_log: torch.Tensor, dt_bias: torch.Tensor, heads: int, like: torch.Tensor) -> None:
    """Raise ValueError unless both are [heads], float32 or of the dtype of ``like``, and on its device."""
    dtypes = tuple(dict.fromkeys((like.dtype, torch.float32)))
    check_rows("A_log", A_log, (heads,), dtypes, like)
    check_rows("dt_bias", dt_bias, (heads,), dtypes, like)
