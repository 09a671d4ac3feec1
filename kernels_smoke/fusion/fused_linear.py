"""A linear layer with what comes before and after it: RMS norm of its input, bias and activation of its result."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import (
    DTYPES_16,
    check_matrix,
    check_rows,
    interpreted,
    on_device_of,
    require,
)
from kernels_smoke.launch_plan import allocated, launch, plannable
from kernels_smoke.matmul.scaled_mm import configure
from kernels_smoke.matmul.tiles import _halves, _load_tile, _place, _store_tile, check_result, described, launch_tiles

ACTIVATIONS = ("none", "relu", "gelu", "silu")
FEW = 64  # rows that are normed within the product
LARGEST = 2**30  # of the sizes: the last tile may reach beyond, in 32 bits


@triton.jit
def _norm_kernel(
    x, norm_weight, normed, k, x_stride, normed_stride, epsilon, ZERO_CENTRED: tl.constexpr, BLOCK: tl.constexpr
):
    # One row of `x`, normed; it is read twice, the second time from a cache.
    row = tl.program_id(0).to(tl.int64)
    sums = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, k, BLOCK):
        o_k = start + tl.arange(0, BLOCK)
        b_x = tl.load(x + row * x_stride + o_k, mask=o_k < k, other=0.0).to(tl.float32)  # [BLOCK]
        sums += b_x * b_x
    rstd = tl.rsqrt(tl.sum(sums) / k + epsilon)
    for start in range(0, k, BLOCK):
        o_k = start + tl.arange(0, BLOCK)
        b_x = tl.load(x + row * x_stride + o_k, mask=o_k < k, other=0.0).to(tl.float32)  # [BLOCK]
        scale = tl.load(norm_weight + o_k, mask=o_k < k, other=0.0).to(tl.float32)  # [BLOCK]
        if ZERO_CENTRED:
            scale += 1.0
        tl.store(normed + row * normed_stride + o_k, (b_x * rstd * scale).to(normed.dtype.element_ty), mask=o_k < k)


@triton.jit
def _activated(x, ACTIVATION: tl.constexpr):
    """``x`` activated; GELU by its approximation with tanh(z) = 2 sigmoid(2 z) - 1."""
    if ACTIVATION == "relu":
        x = tl.maximum(x, 0.0)
    if ACTIVATION == "gelu":
        x *= tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))
    if ACTIVATION == "silu":
        x *= tl.sigmoid(x)
    return x


@triton.jit
def _fused_linear_kernel(
    a, b, bias, norm_weight, out, m, n, k, a_stride, b_stride, out_stride, epsilon,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    ACTIVATION: tl.constexpr, ZERO_CENTRED: tl.constexpr, SWAPPED: tl.constexpr, HALVES: tl.constexpr,
    PERSISTENT: tl.constexpr, DESCRIBE: tl.constexpr, DESCRIBE_OUT: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # `a` is x [m, k] and `b` the weight [n, k]: both row-major, descriptors or pointers.
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=PERSISTENT):
        tile_m, tile_n = _place(tile, tiles_m, tiles_n, GROUP_M)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_N, BLOCK_M) if SWAPPED else (BLOCK_M, BLOCK_N), tl.float32)
        squares = tl.zeros((BLOCK_M, BLOCK_K), tl.float32)
        for start_k in range(0, k, BLOCK_K):
            tile_a = _load_tile(a, row, start_k, m, k, a_stride, BLOCK_M, BLOCK_K, DESCRIBE)  # [BLOCK_M, BLOCK_K]
            tile_b = _load_tile(b, column, start_k, n, k, b_stride, BLOCK_N, BLOCK_K, DESCRIBE)  # [BLOCK_N, BLOCK_K]
            if norm_weight is not None:
                offs_k = start_k + tl.arange(0, BLOCK_K)
                gamma = tl.load(norm_weight + offs_k, mask=offs_k < k, other=0.0).to(tl.float32)  # [BLOCK_K]
                if ZERO_CENTRED:
                    gamma += 1.0
                values = tile_a.to(tl.float32)
                squares += values * values
                tile_a = (values * gamma[None, :]).to(tile_a.dtype)
            left, right = (tile_b, tile_a) if SWAPPED else (tile_a, tile_b)
            acc = tl.dot(left, right.T, acc)  # [BLOCK_M, BLOCK_N], or its transpose
        if SWAPPED:
            acc = acc.T
        if norm_weight is not None:  # the norm of a row is one factor of its products
            acc *= tl.rsqrt(tl.sum(squares, axis=1) / k + epsilon)[:, None]

        width: tl.constexpr = BLOCK_N // HALVES
        acc0, acc1 = _halves(acc, HALVES)
        for half in tl.static_range(HALVES):
            result = acc0 if half == 0 else acc1
            offs_n = column + half * width + tl.arange(0, width)
            if bias is not None:
                result += tl.load(bias + offs_n, mask=offs_n < n, other=0.0).to(tl.float32)[None, :]  # [1, width]
            result = _activated(result, ACTIVATION)
            _store_tile(out, result, row, column + half * width, m, n, out_stride, DESCRIBE_OUT)


@plannable
def fused_linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    activation: str = "none",
    norm_weight: torch.Tensor | None = None,
    zero_centred: bool = False,
    epsilon: float = 1e-6,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return ``activation(norm(x) @ weight.T + bias)``, accumulated in float32 and rounded once.

    With ``norm_weight``, ``norm(x) = x / sqrt(mean(x^2) + epsilon) * norm_weight`` (RMS norm, Zhang and Sennrich 2019,
    equation 4; ``zero_centred``: the weight is stored less 1), without it ``x``. Up to 64 rows are normed within the
    product: what tensor cores multiply is ``x * norm_weight``, rounded to the dtype of ``x``, and each program computes
    the norms of its rows meanwhile. More rows are normed before it, in memory that is allocated for them. These are
    the epilogue and the prologue fusion of PyTorch's compiler team ("Kernel Fusion", 2026).

    - ``x``: [M, K], bfloat16 or float16; ``weight``: [N, K] of that dtype. Rows may be strided; it is faster when they
      begin at multiples of 16 bytes.
    - ``bias``: [N], ``norm_weight``: [K], of that dtype or float32. In float16, ``x * norm_weight`` must be within
      65,504.
    - ``activation``: "none", "relu", "gelu" (its approximation by tanh) or "silu".
    - ``out``: the result [M, N], of that dtype; rows may be strided.

    Raises ValueError when a shape, dtype, device, stride or name is not as said.
    """
    m, k = check_matrix("x", x, LARGEST)
    require(x.dtype in DTYPES_16, f"x must be {' or '.join(map(str, DTYPES_16))}, not {x.dtype}")
    require(weight.ndim == 2, f"weight must be [N, K], not {weight.ndim}-dimensional")
    n = weight.shape[0]
    require(max(m, n) < LARGEST, f"M and N must be less than {LARGEST}, not {m} and {n}")
    check_rows("weight", weight, (n, k), (x.dtype,), x)
    for name, vector, size in (("bias", bias, n), ("norm_weight", norm_weight, k)):
        if vector is not None:
            check_rows(name, vector, (size,), (x.dtype, torch.float32), x)
    require(activation in ACTIVATIONS, f"activation must be one of {', '.join(ACTIVATIONS)}, not {activation!r}")
    out = check_result(out, (m, n), x.dtype, x)
    if not (m and n):
        return out

    with on_device_of(x):
        if norm_weight is not None and m > (16 if interpreted() else FEW):
            x, norm_weight = _normed(x, norm_weight, epsilon, zero_centred=zero_centred), None
        launch_tiles(
            _fused_linear_kernel,
            configure(m, n, out.itemsize, described=described(x) and described(weight)),
            x,
            weight,
            out,
            bias=bias,
            norm_weight=norm_weight,
            epsilon=epsilon,
            ACTIVATION=activation,
            ZERO_CENTRED=zero_centred,
        )
    return out


def _normed(x: torch.Tensor, norm_weight: torch.Tensor, epsilon: float, *, zero_centred: bool) -> torch.Tensor:
    """The norm of each row of ``x``, in rows that begin at multiples of 16 bytes, as those of ``x`` need not."""
    m, k = x.shape
    normed = allocated(x.new_empty((m, -(-k // 8) * 8)))[:, :k]
    launch(
        _norm_kernel,
        (m,),
        x=x,
        norm_weight=norm_weight,
        normed=normed,
        k=k,
        x_stride=x.stride(0),
        normed_stride=normed.stride(0),
        epsilon=epsilon,
        ZERO_CENTRED=zero_centred,
        BLOCK=min(triton.next_power_of_2(k), 4096),
        num_warps=4,
    )
    return normed
