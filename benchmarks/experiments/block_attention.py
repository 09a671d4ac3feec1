"""Attention within blocks measured again: both passes and FlashAttention 2, and the cost of a rotation afterwards.

"TLX Block Attention" (PyTorch's blog, 26 May 2026), tables 5 to 8, on a B200. FlashAttention 2 and cuDNN get blocks as
a batch of sequences of 64 tokens, for which they need no mask: this batch has no other blocks.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from benchmarks.experiments.model import Experiment, Noted, Run

SEED = 20261122
BACKENDS = {"FlashAttention 2": "FLASH_ATTENTION", "cuDNN": "CUDNN_ATTENTION"}
BASELINE = "FlashAttention 2"
WORK = "691,200 tokens, 4 heads of 128, bfloat16"
SEQUENCES = 1152
LONGEST, SPARSITIES = (500, 2000, 5000), (0.3, 0.7)  # of table 6


def experiments() -> list[Experiment]:
    """The forward pass, the backward pass, and that with a rotary embedding."""
    backward = {name: functools.partial(_torch_backward, backend) for name, backend in BACKENDS.items()}
    rotated: dict[str, Callable[[], Run]] = {
        f"{BASELINE}, then rotated": functools.partial(_torch_backward, BACKENDS[BASELINE], rotated=True),
        "ours, then rotated by eager torch": functools.partial(_backward, compiled=False),
        "ours, then rotated": functools.partial(_backward, compiled=True),
        "ours, rotated in it": _fused_backward,
    }
    return [
        Experiment(
            name="block diagonal attention, forward",
            reported="B200, 1152 jagged sequences: 1.85 times as fast as FlashAttention 2 with blocks (0.98 ms)",
            baseline=BASELINE,
            variants={
                **{name: functools.partial(_torch_forward, backend) for name, backend in BACKENDS.items()},
                "ours": _forward,
            },
            work=WORK,
        ),
        Experiment(
            name="block diagonal attention, backward",
            reported="B200, the same: 2.50 times as fast (2.36 ms)",
            baseline=BASELINE,
            variants={**backward, "ours": _plain_backward},
            work=WORK,
            without_graph=frozenset(backward),  # autograd runs on the stream of the forward pass
        ),
        Experiment(
            name="block diagonal attention, backward through a rotary embedding",
            reported="B200, 1.7M tokens, 3 heads: 3.54 times as fast as the kernel and the rotation (1.819 ms)",
            baseline="ours, then rotated",
            variants=rotated,
            work=WORK,
            without_graph=frozenset({f"{BASELINE}, then rotated"}),
        ),
        *(_jagged(longest, sparsity) for longest in LONGEST for sparsity in SPARSITIES),
        _errors(),
    ]


def _jagged(longest: int, sparsity: float) -> Experiment:
    """Both passes over jagged sequences, as in table 6; FlashAttention 2 has their blocks padded to 64 tokens."""
    lengths = spread(longest, sparsity)
    shape = {"lengths": lengths, "heads": 4, "head_dim": 128}
    baseline = f"{BASELINE}, both passes"
    return Experiment(
        name=f"block diagonal attention, sequences up to {longest}, sparsity {sparsity}",
        reported="table 6, a picture: speedups are consistent over lengths and sparsities (B200, near 2.3)",
        baseline=baseline,
        variants={
            baseline: functools.partial(_torch_both, shape),
            "ours, both passes": functools.partial(_both, shape),
        },
        work=f"{len(lengths)} sequences, {sum(lengths):,} tokens, 4 heads of 128, bfloat16",
        without_graph=frozenset({baseline, "ours, both passes"}),  # autograd runs on the stream of the forward pass
    )


def spread(longest: int, sparsity: float) -> tuple[int, ...]:
    """Lengths as many times from 1 to ``longest`` whose mean is ``1 - sparsity`` of that: powers of even steps."""
    power = sparsity / (1 - sparsity)  # the mean of x^power over (0, 1) is 1 / (power + 1)
    return tuple(max(1, round(longest * ((number + 0.5) / SEQUENCES) ** power)) for number in range(SEQUENCES))


def _errors() -> Experiment:
    """The errors of the gradients through a rotary embedding, as in table 8."""
    separate = f"{BASELINE}, then rotated"
    return Experiment(
        name="block diagonal attention, errors of the gradients",
        reported="table 8: the greatest error of dq is 0.2559 by FlashAttention 2 and 0.1201 fused, that of dk 0.1689 "
        "by both; the mean errors of dq are 0.000309 and 0.000220",
        baseline=separate,
        variants={
            separate: functools.partial(_with_errors, fused=False),
            "ours, rotated in it": functools.partial(_with_errors, fused=True),
        },
        work="64 sequences up to 2000 tokens, 4 heads of 128, bfloat16, values of 10; errors against float64",
        without_graph=frozenset({separate}),
    )


def _with_errors(*, fused: bool) -> Run:
    from kernels_smoke.block_attention import reference  # as above

    drawn = _jagged_inputs(
        {"lengths": tuple(64 * (number % 31 + 1) for number in range(64)), "heads": 4, "head_dim": 128},
        rotary="interleaved",
    )
    for name in ("v", "dout"):
        drawn[name].mul_(10.0)
    names = ("q", "k", "v", "dout", "lengths", "scale", "cos_sin")
    wanted: Any = reference.gradients(*(drawn[name] for name in names), interleaved=True)
    if fused:
        run: Run = _gradients(drawn, cos_sin=drawn["cos_sin"])
        got: Any = run()
    else:
        turn = _rotation(drawn, compiled=False)
        plain = _torch_gradients(drawn)
        run = lambda: turn(*plain()[:2])  # noqa: E731  # the other branch has a function
        dq, dk, dv = plain()
        turned: Any = turn(dq, dk)
        got = (*turned, dv)
    return Noted(run, ", ".join(_difference(*each) for each in zip(("dq", "dk", "dv"), got, wanted, strict=True)))


def _difference(name: str, got: Any, wanted: Any) -> str:
    error = (got.double() - wanted).abs()
    return f"{name} off by {float(error.max()):.4f} at most, {float(error.mean()):.6f} in the mean"


def _jagged_inputs(shape: dict[str, Any], rotary: Any = "") -> dict[str, Any]:
    import torch  # as above

    from kernels_smoke.block_attention.cases_backward import draw_inputs  # as above
    from kernels_smoke.suite.correctness.draw import Draw  # as above

    return dict(draw_inputs(Draw(SEED, "cuda" if torch.cuda.is_available() else "cpu"), **shape, rotary=rotary))


def _both(shape: dict[str, Any]) -> Run:
    from kernels_smoke.block_attention.block_diagonal_attention import block_diagonal_attention  # as above

    drawn = _jagged_inputs(shape)
    arguments = [drawn[name] for name in ("q", "k", "v", "blocks")]
    gradients = _gradients(drawn, cos_sin=None)

    def run() -> object:
        block_diagonal_attention(*arguments)
        return gradients()

    return run


def _torch_both(shape: dict[str, Any]) -> Run:
    import torch  # as above

    padded = tuple(-(-length // 64) * 64 for length in shape["lengths"])
    drawn = _jagged_inputs({**shape, "lengths": padded})
    leaves = [_batched(drawn[name]).contiguous().requires_grad_() for name in ("q", "k", "v")]
    dout = _batched(drawn["dout"])
    return lambda: torch.autograd.grad(_attend(BACKENDS[BASELINE], *leaves), leaves, dout)


def _torch_gradients(drawn: dict[str, Any]) -> Callable[[], Any]:
    import torch  # as above

    leaves = [drawn[name].requires_grad_() for name in ("q", "k", "v")]
    out = _attend(BACKENDS[BASELINE], *map(_batched, leaves))
    return lambda: torch.autograd.grad(out, leaves, _batched(drawn["dout"]), retain_graph=True)


def _drawn(*, rotary: Any = "") -> dict[str, Any]:
    import torch  # this module is imported where torch is not

    from kernels_smoke.block_attention.cases_backward import draw_inputs  # likewise
    from kernels_smoke.block_attention.cases_shared import WHOLE  # likewise
    from kernels_smoke.suite.correctness.draw import Draw  # likewise

    if torch.cuda.is_available():
        return dict(draw_inputs(Draw(SEED, "cuda"), lengths=WHOLE, heads=4, head_dim=128, rotary=rotary))
    small = {"lengths": (128,), "heads": 2, "head_dim": 64, "dtype": torch.float16}  # for a test of this module
    return dict(draw_inputs(Draw(SEED, "cpu"), **small, rotary=rotary))


def _forward() -> Run:
    import torch  # as above

    from kernels_smoke.block_attention.block_diagonal_attention import block_diagonal_attention  # as above

    drawn = _drawn()
    arguments = [drawn[name] for name in ("q", "k", "v", "blocks")]
    out = torch.empty_like(drawn["q"])
    return lambda: block_diagonal_attention(*arguments, out=out)


def _plain_backward() -> Run:
    return _gradients(_drawn(), cos_sin=None)


def _fused_backward() -> Run:
    drawn = _drawn(rotary="interleaved")
    return _gradients(drawn, cos_sin=drawn["cos_sin"])


def _backward(*, compiled: bool) -> Run:
    drawn = _drawn(rotary="interleaved")
    gradients, turn = _gradients(drawn, cos_sin=None), _rotation(drawn, compiled=compiled)
    return lambda: turn(*gradients()[:2])


def _gradients(drawn: dict[str, Any], *, cos_sin: Any) -> Callable[[], Any]:
    import torch  # as above

    from kernels_smoke.block_attention.block_diagonal_attention_backward import (  # as above
        block_diagonal_attention_backward,
    )

    arguments = [drawn[name] for name in ("q", "k", "v", "dout", "blocks")]
    out = tuple(torch.empty_like(drawn["q"]) for _ in range(3))
    return lambda: block_diagonal_attention_backward(*arguments, cos_sin=cos_sin, interleaved=True, out=out)


def _rotation(drawn: dict[str, Any], *, compiled: bool = True) -> Callable[[Any, Any], object]:
    """The rotation back as its own operation, for which the gradients are rounded once more.

    Eager torch takes a dozen kernels for it; ``compiled`` makes one of it, as who has a kernel for it would.
    """
    import torch  # as above

    from benchmarks.block_attention_autograd import rotate  # as above

    cosine, sine = drawn["cos_sin"].chunk(2, dim=-1)
    back = torch.cat((cosine, -sine), dim=-1)

    def both(dq: Any, dk: Any) -> Any:
        return tuple(rotate(tensor, back, interleaved=True) for tensor in (dq, dk))

    turn: Callable[[Any, Any], object] = torch.compile(both) if compiled else both
    return turn


def _batched(tensor: Any) -> Any:
    """[tokens, heads, head_dim] as a batch of blocks, [blocks, heads, 64, head_dim]."""
    return tensor.unflatten(0, (-1, 64)).transpose(1, 2)


def _torch_forward(backend: str) -> Run:
    drawn = _drawn()
    return functools.partial(_attend, backend, *(_batched(drawn[name]) for name in ("q", "k", "v")))


def _torch_backward(backend: str, *, rotated: bool = False) -> Run:
    import torch  # as above

    drawn = _drawn(rotary="interleaved" if rotated else "")
    leaves = [drawn[name].requires_grad_() for name in ("q", "k", "v")]
    out = _attend(backend, *map(_batched, leaves))
    dout = _batched(drawn["dout"])

    def gradients() -> Any:
        return torch.autograd.grad(out, leaves, dout, retain_graph=True)

    if not rotated:
        return gradients
    turn = _rotation(drawn)
    return lambda: turn(*gradients()[:2])


def _attend(backend: str, q: Any, k: Any, v: Any) -> Any:
    from torch.nn.attention import SDPBackend, sdpa_kernel  # as above
    from torch.nn.functional import scaled_dot_product_attention  # as above

    with sdpa_kernel(getattr(SDPBackend, backend)):
        return scaled_dot_product_attention(q, k, v)
