"""Attention within blocks beyond the suite's cases: the list of blocks, autograd, leaks, invalid arguments."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from benchmarks.block_attention_autograd import attend, rotate
from kernels_smoke.block_attention import reference
from kernels_smoke.block_attention.block_diagonal_attention import block_diagonal_attention
from kernels_smoke.block_attention.block_diagonal_attention_backward import block_diagonal_attention_backward
from kernels_smoke.block_attention.blocks import list_blocks
from tests.kernels.support import DEVICE

EXACT = torch.float32 if DEVICE == "cpu" else torch.bfloat16
TOLERANCE = 1e-5 if DEVICE == "cpu" else 8e-3  # on a GPU, the rotated heads are rounded once more
HEAD_DIM = 64


def drawn(tokens: int, *, count: int = 4, dtype: torch.dtype = EXACT) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(20261122)
    return [torch.randn(tokens, 2, HEAD_DIM, generator=generator).to(DEVICE, dtype) for _ in range(count)]


def angles(tokens: int) -> torch.Tensor:
    turn = torch.rand(tokens, HEAD_DIM // 2, generator=torch.Generator().manual_seed(7)) * 6.28
    return torch.cat((turn.cos(), turn.sin()), dim=1).to(DEVICE)


def blocks_of(*lengths: int) -> torch.Tensor:
    return list_blocks(torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0)).to(DEVICE)


@pytest.mark.parametrize(
    ("cumulative_lengths", "blocks"),
    [
        ([0], []),
        ([0, 0, 0], []),
        ([0, 1], [[0, 1]]),
        ([0, 64, 64, 128], [[0, 64], [64, 64]]),
        ([0, 70, 70, 71, 200], [[0, 64], [64, 6], [70, 1], [71, 64], [135, 64], [199, 1]]),
    ],
)
def test_blocks_begin_with_their_sequence_and_have_at_most_64_tokens(
    cumulative_lengths: list[int], blocks: list[list[int]]
) -> None:
    for dtype in (torch.int32, torch.int64):
        made = list_blocks(torch.tensor(cumulative_lengths, dtype=dtype))
        assert made.dtype == torch.int32
        assert made.shape == (len(blocks), 2)
        assert made.tolist() == blocks


@pytest.mark.parametrize(
    ("cumulative_lengths", "message"),
    [
        (torch.tensor([], dtype=torch.int32), "must be \\[sequences \\+ 1\\]"),
        (torch.tensor([[0, 1]]), "must be \\[sequences \\+ 1\\]"),
        (torch.tensor([0.0, 1.0]), "must be torch.int32 or torch.int64"),
        (torch.tensor([1, 2]), "must begin with 0, not with 1"),
        (torch.tensor([0, 5, 4]), "must not fall"),
        (torch.tensor([0, 2**31]), "the limit is 2\\^31 - 1"),
    ],
)
def test_lengths_that_are_none_are_refused(cumulative_lengths: torch.Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        list_blocks(cumulative_lengths)


@pytest.mark.skipif(DEVICE != "cpu", reason="finite differences need float32, which the interpreter computes")
@pytest.mark.filterwarnings("ignore:Input #")  # gradcheck would like float64
def test_the_reference_of_the_gradients_is_what_autograd_makes_of_the_reference() -> None:
    lengths = (1, 70, 0, 3, 64, 130)
    generator = torch.Generator().manual_seed(1)
    q, k, v, dout = (torch.randn(sum(lengths), 2, 8, dtype=torch.float64, generator=generator) for _ in range(4))
    leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
    out = reference.attention(leaves[0], leaves[1], leaves[2], lengths, 0.3)
    wanted = torch.autograd.grad(out, leaves, dout)
    for one, other in zip(reference.gradients(q, k, v, dout, lengths, 0.3), wanted, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)


def test_the_reference_by_blocks_sees_its_own_block_and_no_other() -> None:
    lengths = (70, 3)
    generator = torch.Generator().manual_seed(2)
    q, k, v = (torch.randn(73, 2, 8, dtype=torch.float64, generator=generator) for _ in range(3))
    wanted = []
    for begin, end in ((0, 64), (64, 70), (70, 73)):
        scores = torch.einsum("qhd,khd->hqk", q[begin:end], k[begin:end]) * 0.3
        wanted.append(torch.einsum("hqk,khd->qhd", scores.softmax(dim=-1), v[begin:end]))
    torch.testing.assert_close(reference.attention(q, k, v, lengths, 0.3), torch.cat(wanted))


@pytest.mark.parametrize("rotary", ["", "halves", "interleaved"])
def test_gradients_are_those_of_finite_differences(rotary: str) -> None:
    inputs = [tensor.requires_grad_() for tensor in drawn(67, count=3)]
    blocks, cos_sin = blocks_of(3, 64), angles(67) if rotary else None

    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return attend(q, k, v, blocks, cos_sin=cos_sin, interleaved=rotary == "interleaved")

    torch.manual_seed(1)  # gradcheck's fast mode compares one random projection of the Jacobian
    assert torch.autograd.gradcheck(function, inputs, eps=1e-2, atol=1e-3, rtol=1e-3, fast_mode=True)


@pytest.mark.parametrize("interleaved", [False, True])
def test_gradients_through_the_rotation_are_those_of_the_reference(interleaved: bool) -> None:
    lengths = (70, 5)
    q, k, v, dout = drawn(75)
    cos_sin = angles(75)
    leaves = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
    out = attend(leaves[0], leaves[1], leaves[2], blocks_of(*lengths), cos_sin=cos_sin, interleaved=interleaved)
    got = torch.autograd.grad(out, leaves, dout)

    exact = [tensor.double().requires_grad_() for tensor in (q, k, v)]
    turned_q, turned_k = (reference.rotated(tensor, cos_sin, interleaved=interleaved) for tensor in exact[:2])
    wanted = torch.autograd.grad(
        reference.attention(turned_q, turned_k, exact[2], lengths, HEAD_DIM**-0.5), exact, dout.double()
    )
    for one, other in zip(got, wanted, strict=True):
        assert float((one.double() - other).norm() / other.norm()) < TOLERANCE


def test_the_gradient_of_a_sum_whose_elements_are_one_in_memory() -> None:
    q, k, v = (tensor.requires_grad_() for tensor in drawn(10, count=3))
    out = attend(q, k, v, blocks_of(10))
    out.sum().backward()
    expanded = v.grad
    v.grad = None
    attend(q, k, v, blocks_of(10)).backward(torch.ones_like(out))
    assert torch.equal(expanded, v.grad)


def test_rotated_before_rounding_is_nearer_than_rotated_afterwards() -> None:
    lengths = (64,) * 4
    q, k, v, dout = drawn(256, dtype=torch.float16)
    cos_sin, blocks = angles(256), blocks_of(*lengths)
    fused, _, _ = block_diagonal_attention_backward(q, k, v, dout, blocks, cos_sin=cos_sin)
    plain, _, _ = block_diagonal_attention_backward(q, k, v, dout, blocks)
    back = torch.cat((cos_sin[:, : HEAD_DIM // 2], -cos_sin[:, HEAD_DIM // 2 :]), dim=1)
    separate = rotate(plain, back, interleaved=False)
    wanted, _, _ = reference.gradients(q, k, v, dout, lengths, HEAD_DIM**-0.5, cos_sin)
    fused_error, separate_error = (float((tensor.double() - wanted).norm()) for tensor in (fused, separate))
    assert fused_error < separate_error


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy in the interpreter, about NaN
def test_what_is_in_one_sequence_does_not_reach_another() -> None:
    clean = drawn(133)
    dirty = [tensor.clone() for tensor in clean]
    for tensor in dirty:
        tensor[:65] = float("nan")
    results = []
    for q, k, v, dout in (clean, dirty):
        out = block_diagonal_attention(q, k, v, blocks_of(65, 3, 65))
        results.append((out, *block_diagonal_attention_backward(q, k, v, dout, blocks_of(65, 3, 65))))
    for one, other in zip(*results, strict=True):
        assert torch.equal(one[65:], other[65:])
        assert bool(other[:65].isnan().all())


def test_tokens_of_no_block_are_left_as_they_are() -> None:
    q, k, v, out = drawn(100)
    before = out.clone()
    block_diagonal_attention(q, k, v, blocks_of(10, 60, 30)[1:2], out=out)
    assert torch.equal(out[:10], before[:10])
    assert torch.equal(out[70:], before[70:])
    assert not bool((out[10:70] == before[10:70]).all(dim=-1).any())


def _wrong(**changes: Any) -> dict[str, Any]:
    q, k, v = drawn(8, count=3)
    return {"q": q, "k": k, "v": v, "blocks": blocks_of(8), **changes}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (_wrong(q=torch.zeros(8, HEAD_DIM)), "q must be \\[tokens, heads, head_dim\\]"),
        ({**dict.fromkeys("qkv", torch.zeros(8, 2, 96)), "blocks": blocks_of(8)}, "heads have 96 elements"),
        (_wrong(k=torch.zeros(8, 1, HEAD_DIM, device=DEVICE, dtype=EXACT)), "k must have the shape"),
        (_wrong(v=torch.zeros(8, 2, HEAD_DIM, device=DEVICE, dtype=torch.float64)), "v must be"),
        (_wrong(v=torch.zeros(8, HEAD_DIM, 2, device=DEVICE, dtype=EXACT).mT), "rows of v must be contiguous"),
        (_wrong(blocks=torch.tensor([[0, 8]], device=DEVICE)), "blocks must be torch.int32"),
        (_wrong(blocks=torch.zeros(3, dtype=torch.int32, device=DEVICE)), "blocks must be .blocks, 2., not 1-dim"),
        (_wrong(scale=0.0), "scale must be positive"),
        (_wrong(scale=float("inf")), "scale must be positive and finite in float32, not inf"),
        (_wrong(blocks=torch.tensor(3, dtype=torch.int32, device=DEVICE)), "blocks must be .blocks, 2., not 0-dim"),
        ({**dict.fromkeys("qkv", torch.zeros(8, 2, 0)), "blocks": blocks_of(8)}, "heads have 0 elements"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        block_diagonal_attention(**arguments)
    with pytest.raises(ValueError, match=message):
        block_diagonal_attention_backward(**arguments, dout=arguments["q"])


def test_angles_that_do_not_fit_are_refused() -> None:
    q, k, v, dout = drawn(8)
    with pytest.raises(ValueError, match="cos_sin must have the shape \\(8, 64\\)"):
        block_diagonal_attention_backward(q, k, v, dout, blocks_of(8), cos_sin=angles(7))
    with torch.no_grad(), pytest.raises(ValueError, match="cos_sin must have the shape \\(8, 64\\), not \\(1, 64\\)"):
        attend(q, k, v, blocks_of(8), cos_sin=angles(1))


def test_gradients_may_not_share_memory() -> None:
    q, k, v, dout = drawn(8)
    one, other = torch.empty_like(q), torch.empty_like(q)
    with pytest.raises(ValueError, match=r"out\[0\] and out\[2\] must not share memory"):
        block_diagonal_attention_backward(q, k, v, dout, blocks_of(8), out=(one, other, one))


@pytest.mark.parametrize(
    ("shape", "message"),
    [((1, 2, HEAD_DIM), r"k must have the shape \(8, 2, 64\)"), ((8, HEAD_DIM), "k must have the shape")],
)
def test_rotated_keys_are_not_broadcast(shape: tuple[int, ...], message: str) -> None:
    q = torch.zeros(8, 2, HEAD_DIM, device=DEVICE, dtype=EXACT)
    cos_sin = torch.zeros(8, HEAD_DIM, device=DEVICE, dtype=EXACT)
    with pytest.raises(ValueError, match=message):
        attend(q, q.new_zeros(shape), q, blocks_of(8), cos_sin=cos_sin)
