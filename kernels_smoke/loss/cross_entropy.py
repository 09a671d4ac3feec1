"""Cross entropy of rows of logits and its gradient in one launch: no tensor of probabilities is written."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import (
    architecture,
    check_matrix,
    check_rows,
    check_written,
    interpreted,
    on_device_of,
    require,
)
from kernels_smoke.launch_plan import allocated, launch, plannable

WIDEST = 2**30  # logits of a row
VECTOR = 8  # neighbouring logits that one thread takes: 16 bytes of bfloat16


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out: a program goes through a row ``block`` logits at a time, with ``warps`` warps.

    ``hints``: the cache is to keep what the first pass reads, and neither what the second one reads nor the gradient.
    """

    block: int
    warps: int
    hints: bool = True


def configure(width: int, *, gradient: bool) -> Configuration:
    """The layout for rows of ``width`` logits, with their gradient or without: see "Layouts" in README.md."""
    if interpreted():  # small, so that small cases have several blocks
        return Configuration(block=64, warps=4)
    block = min(max(triton.next_power_of_2(width), 256), 16384 if gradient else 8192)
    return Configuration(block=block, warps=min(max(block // 512, 1), 32))


@triton.jit
def _exp(x, FLUSH: tl.constexpr):
    """``exp(x)``; with ``FLUSH``, zero where it would be below 2^-126: without a range check, at half of the cost."""
    scaled = x * 1.4426950408889634
    if FLUSH:
        result = tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [scaled], tl.float32, True, 1)
    else:
        result = tl.exp2(scaled)
    return result


@triton.jit
def _cross_entropy_kernel(
    logits, targets, weight, losses, gradient, logits_stride, gradient_stride, width, ignore_index, label_smoothing,
    SMOOTH: tl.constexpr, LANES: tl.constexpr, VECTOR: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr,
    FLUSH: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # One row. A lane has a maximum m_i and a sum l_i by itself, so that a block costs no exchange between threads.
    row = tl.program_id(0).to(tl.int64)
    logits += row * logits_stride
    target = tl.load(targets + row).to(tl.int64)  # [1]
    kept = target != ignore_index
    x_target = tl.load(logits + target, mask=kept, other=0.0).to(tl.float32)  # [1]
    o_n = tl.arange(0, LANES)[:, None] * VECTOR + tl.arange(0, VECTOR)[None, :]
    m_i = tl.full((LANES,), float("-inf"), tl.float32)
    l_i = tl.zeros((LANES,), tl.float32)
    sums = tl.zeros((LANES,), tl.float32)
    for start in range(0, tl.where(kept, width, 0), LANES * VECTOR):
        inside = start + o_n < width
        # [LANES, VECTOR]
        x = tl.load(logits + start + o_n, mask=inside, other=float("-inf"), eviction_policy=FIRST).to(tl.float32)
        m_new = tl.maximum(m_i, tl.max(x, axis=1))
        finite = tl.where(m_new == float("-inf"), 0.0, m_new)  # a lane may have seen nothing but minus infinity
        l_i = l_i * _exp(m_i - finite, FLUSH) + tl.sum(_exp(x - finite[:, None], FLUSH), axis=1)
        if SMOOTH:
            sums += tl.sum(tl.where(inside, x, 0.0), axis=1)
        m_i = m_new
    m = tl.max(m_i)
    m = tl.where(kept, m, 0.0)
    lse = m + tl.log(tl.where(kept, tl.sum(l_i * tl.exp(m_i - m)), 1.0))
    loss = lse - x_target
    if SMOOTH:
        loss = (1.0 - label_smoothing) * loss + label_smoothing * (lse - tl.sum(sums) / width)
    tl.store(losses + row, tl.where(kept, loss, 0.0))

    if gradient is not None:
        gradient += row * gradient_stride
        scale = kept.to(tl.float32)
        if weight is not None:
            scale = tl.where(kept, tl.load(weight), 0.0)  # [1]
        blocks = tl.cdiv(width, LANES * VECTOR)
        for number in range(blocks):
            start = (blocks - 1 - number) * LANES * VECTOR  # backwards: what was read last is still in the L2 cache
            inside = start + o_n < width
            mask = inside & kept
            # [LANES, VECTOR]
            x = tl.load(logits + start + o_n, mask=mask, other=float("-inf"), eviction_policy=SECOND).to(tl.float32)
            p = _exp(x - lse, FLUSH)
            if SMOOTH:
                p -= label_smoothing / width
            tl.store(
                gradient + start + o_n, (p * scale).to(gradient.dtype.element_ty), mask=inside, eviction_policy=SECOND
            )
        tl.debug_barrier()  # the element at the target is written once more, by one thread
        p = tl.exp(x_target - lse) - (1.0 - label_smoothing)
        if SMOOTH:
            p -= label_smoothing / width
        tl.store(gradient + target, (p * scale).to(gradient.dtype.element_ty), mask=kept)


@plannable
def cross_entropy(
    logits: torch.Tensor,
    targets: torch.Tensor,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    weight: torch.Tensor | None = None,
    gradient: torch.Tensor | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the cross entropy of each row, and write the gradient of their sum times ``weight``.

    ``loss = lse - (1 - e) x[target] - e mean(x)`` with ``lse = log(sum(exp(x)))`` and the smoothing e, and
    ``gradient = weight (softmax(x) - (1 - e) onehot(target) - e / width)``, computed in float32 and rounded once.
    The sum is found in one pass (Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018); the
    gradient reads the row again, backwards, while its end is in the cache. Smoothing: Szegedy et al. (2016), as torch
    has it.

    - ``logits``: [rows, width], bfloat16, float16 or float32; rows may be strided. Values are finite or, without
      smoothing, minus infinity; each row has a finite one, at its target among them.
    - ``targets``: [rows], int32 or int64, contiguous: from 0 to ``width - 1``, or ``ignore_index``, whose rows have the
      loss and the gradient zero. They are not checked.
    - ``weight``: one float32 on the device of ``logits``; 1 without it. For a mean, one over the rows that count.
    - ``gradient``: like ``logits``, which it may be: then the logits are replaced.
    - ``out``: the losses, [rows], float32, contiguous.

    Raises ValueError when a shape, dtype, device, stride or number is not as said.
    """
    rows, width = check_matrix("logits", logits, WIDEST)
    check_rows("targets", targets, (rows,), (torch.int32, torch.int64), logits)
    losses = allocated(torch.empty((rows,), dtype=torch.float32, device=logits.device)) if out is None else out
    check_rows("out", losses, (rows,), (torch.float32,), logits)
    check_written("out", losses)
    require(targets.is_contiguous() and losses.is_contiguous(), "targets and out must be contiguous")
    require(0.0 <= label_smoothing < 1.0, f"label_smoothing must be at least 0 and less than 1, not {label_smoothing}")
    if weight is not None:
        require(weight.numel() == 1, f"weight must be one element, not {tuple(weight.shape)}")
        check_rows("weight", weight, tuple(weight.shape), (torch.float32,), logits)
    if gradient is not None:
        check_rows("gradient", gradient, (rows, width), (logits.dtype,), logits)
        check_written("gradient", gradient)
    if rows:
        choice = configure(width, gradient=gradient is not None)
        with on_device_of(logits):
            launch(
                _cross_entropy_kernel,
                (rows,),
                logits=logits,
                targets=targets,
                weight=weight,
                losses=losses,
                gradient=gradient,
                logits_stride=logits.stride(0),
                gradient_stride=0 if gradient is None else gradient.stride(0),
                width=width,
                ignore_index=ignore_index,
                label_smoothing=label_smoothing,
                SMOOTH=label_smoothing > 0.0,
                LANES=choice.block // VECTOR,
                VECTOR=VECTOR,
                FIRST="evict_last" if choice.hints and gradient is not None else "",
                SECOND="evict_first" if choice.hints else "",
                FLUSH=architecture().backend == "cuda",
                num_warps=choice.warps,
            )
    return losses
