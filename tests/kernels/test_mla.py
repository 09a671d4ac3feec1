"""Decoding of latent attention beyond the suite's cases: a result that it allocates itself, and refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels_smoke.launching.gluon import GLUON
from kernels_smoke.mla import reference
from kernels_smoke.mla.mla_decode import configure, mla_decode
from tests.kernels.support import DEVICE, error, zeros

SEQUENCES, HEADS, LATENT, WIDTH, PAGES, PAGE_SIZE = 2, 3, 16, 24, 5, 16
FP32, INT32 = torch.float32, torch.int32


def drawn(**changes: Any) -> dict[str, Any]:
    """Two sequences of 20 and 33 positions in five pages."""
    generator = torch.Generator().manual_seed(20261127)
    made = {
        "query": torch.randn(SEQUENCES, HEADS, WIDTH, generator=generator).to(DEVICE),
        "latent_cache": torch.randn(PAGES, PAGE_SIZE, WIDTH, generator=generator).to(DEVICE),
        "page_table": torch.tensor([[3, 0, -1], [1, 4, 2]], dtype=INT32, device=DEVICE),
        "sequence_lengths": torch.tensor([20, 33], dtype=INT32, device=DEVICE),
        "scale": 0.2,
        "latent_dim": LATENT,
    }
    return {**made, **changes}


def test_a_result_that_is_not_given_is_allocated() -> None:
    out = mla_decode(**drawn(), longest_sequence=40)
    assert (out.shape, out.dtype) == ((SEQUENCES, HEADS, LATENT), FP32)
    assert error(out, reference.mla_decode(**drawn())) < 1e-6


def test_a_result_that_is_given_is_returned() -> None:
    out = zeros(SEQUENCES, HEADS, LATENT, dtype=FP32)
    assert mla_decode(**drawn(), out=out) is out
    assert out.any()


def test_a_plan_serves_other_lengths_and_pages() -> None:
    plan = mla_decode.plan(**drawn())
    integers = {
        "page_table": torch.tensor([[4, 1, 0], [2, -1, -1]], dtype=INT32, device=DEVICE),
        "sequence_lengths": torch.tensor([48, 7], dtype=INT32, device=DEVICE),
    }
    assert torch.equal(plan(**integers), mla_decode.function(**drawn(**integers)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": zeros(HEADS, WIDTH)}, r"query must be \[sequences, heads, width\], not 2-dimensional"),
        ({"latent_cache": zeros(PAGES, WIDTH)}, "latent_cache must be .* not 2-dimensional"),
        ({"page_table": zeros(SEQUENCES, dtype=INT32)}, "page_table must be"),
        ({"latent_dim": 0}, "latent vectors are 0 elements wide; 1 to 512 are possible"),
        ({"latent_dim": 513}, "latent vectors are 513 elements wide"),
        ({"latent_dim": WIDTH}, "query is 24 elements wide; 25 to 536 are possible"),
        ({"latent_cache": zeros(PAGES, 0, WIDTH, dtype=FP32)}, "pages must hold at least one position"),
        ({"longest_sequence": 0}, "longest_sequence must be 1 or more, not 0"),
        ({"scale": 0.0}, "scale must be positive"),
        ({"query": zeros(SEQUENCES, HEADS, WIDTH, dtype=torch.float64)}, "query must be .* not torch.float64"),
        ({"latent_cache": zeros(PAGES, PAGE_SIZE, WIDTH)}, "latent_cache must be torch.float32, not torch.float16"),
        ({"latent_cache": zeros(PAGES, PAGE_SIZE, WIDTH + 1, dtype=FP32)}, "latent_cache must have the shape"),
        ({"latent_cache": zeros(PAGES, WIDTH, PAGE_SIZE, dtype=FP32).mT}, "rows of latent_cache must be contiguous"),
        ({"page_table": zeros(SEQUENCES + 1, 3, dtype=INT32)}, "page_table must have the shape"),
        ({"page_table": zeros(SEQUENCES, 3, dtype=torch.int64)}, "page_table must be torch.int32"),
        ({"sequence_lengths": zeros(3, dtype=INT32)}, "sequence_lengths must have the shape"),
        ({"sequence_lengths": zeros(SEQUENCES, dtype=INT32, device="meta")}, "sequence_lengths is on meta"),
        ({"out": zeros(SEQUENCES, HEADS, WIDTH, dtype=FP32)}, "out must have the shape"),
        ({"out": zeros(SEQUENCES, HEADS, LATENT)}, "out must be torch.float32"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mla_decode(**drawn(**changes))


def test_many_heads_on_hopper_have_their_kernel() -> None:
    assert configure(128, 2, "sm_90").specialized
    for other in ((16, 2, "sm_90"), (128, 4, "sm_90"), (128, 2, "sm_100"), (128, 2, "sm_80"), (128, 2, "gfx942")):
        assert not configure(*other).specialized


@pytest.mark.skipif(not GLUON, reason="our Gluon kernels compile with Triton 3.6 and 3.7 only")
def test_that_kernel_takes_whole_tiles_of_the_widths_of_deepseek_v3_in_strides_that_suit_tma() -> None:
    from kernels_smoke.mla.specialized_heads import fits  # imports Gluon

    def takes(
        *shape: int, latent_dim: int = 512, heads: tuple[int, int] = (128, 576), dtype: torch.dtype = torch.float16
    ) -> bool:
        query = torch.empty(4, *heads, dtype=dtype, device="meta")[..., :576]
        cache = torch.empty(shape, dtype=dtype, device="meta")
        return fits(query, cache[..., :576], latent_dim)

    assert takes(9, 64, 576)
    assert takes(9, 128, 584, heads=(70, 592))
    assert not takes(9, 32, 576)  # a tile is in several pages
    assert not takes(9, 64, 580)  # rows begin at multiples of 8 bytes
    assert not takes(9, 64, 576, latent_dim=256)
    assert not takes(9, 64, 576, dtype=torch.float32)
    assert not takes(0, 64, 576)
