"""Decoding over a paged cache beyond the suite's cases: a result that it allocates itself, and refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels_smoke.attention import reference
from kernels_smoke.attention.paged_attention_decode import paged_attention_decode
from tests.kernels.support import DEVICE, error, zeros

SEQUENCES, HEADS, KV_HEADS, HEAD_DIM, PAGES, PAGE_SIZE = 2, 4, 2, 16, 5, 16
FP8, FP32, INT32 = torch.float8_e4m3fn, torch.float32, torch.int32
CACHE = (PAGES, PAGE_SIZE, KV_HEADS, HEAD_DIM)


def drawn(**changes: Any) -> dict[str, Any]:
    """Two sequences of 20 and 33 positions in five pages."""
    generator = torch.Generator().manual_seed(20261127)
    made = {
        "query": torch.randn(SEQUENCES, HEADS, HEAD_DIM, generator=generator).to(DEVICE),
        "key_cache": torch.randn(CACHE, generator=generator).to(DEVICE),
        "value_cache": torch.randn(CACHE, generator=generator).to(DEVICE),
        "page_table": torch.tensor([[3, 0, -1], [1, 4, 2]], dtype=INT32, device=DEVICE),
        "sequence_lengths": torch.tensor([20, 33], dtype=INT32, device=DEVICE),
    }
    return {**made, **changes}


def test_a_result_that_is_not_given_is_allocated() -> None:
    out = paged_attention_decode(**drawn(), longest_sequence=40)
    assert (out.shape, out.dtype) == ((SEQUENCES, HEADS, HEAD_DIM), FP32)
    assert error(out, reference.paged_attention_decode(**drawn())) < 1e-6


def test_a_window_that_holds_every_position_changes_nothing() -> None:
    assert torch.equal(paged_attention_decode(**drawn(), window=33), paged_attention_decode(**drawn()))


def test_a_plan_serves_other_lengths_and_pages() -> None:
    options = {"window": 25, "sinks": torch.ones(HEADS, device=DEVICE)}
    plan = paged_attention_decode.plan(**drawn(**options))
    integers = {
        "page_table": torch.tensor([[4, 1, 0], [2, -1, -1]], dtype=INT32, device=DEVICE),
        "sequence_lengths": torch.tensor([48, 7], dtype=INT32, device=DEVICE),
    }
    assert torch.equal(plan(**integers), paged_attention_decode.function(**drawn(**options, **integers)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"query": zeros(HEADS, HEAD_DIM)}, "query must be .* not 2-dimensional"),
        ({"key_cache": zeros(PAGES, KV_HEADS, HEAD_DIM)}, "key_cache must be .* not 3-dimensional"),
        ({"page_table": zeros(SEQUENCES, dtype=INT32)}, "page_table must be"),
        ({"query": zeros(SEQUENCES, HEADS, 257)}, "heads are 257 elements wide; 1 to 256 are possible"),
        ({"query": zeros(SEQUENCES, 3, HEAD_DIM)}, "must be 1 to 64 times that of key heads, not 3 and 2"),
        ({"query": zeros(SEQUENCES, 130, HEAD_DIM)}, "must be 1 to 64 times that of key heads, not 130 and 2"),
        ({"key_cache": zeros(PAGES, 0, KV_HEADS, HEAD_DIM)}, "pages must hold at least one position"),
        ({"window": 0}, "window must be 1 or more, not 0"),
        ({"longest_sequence": 0}, "longest_sequence must be 1 or more, not 0"),
        ({"scale": -1.0}, "scale must be positive"),
        ({"soft_cap": 0.0}, "soft_cap must be positive"),
        ({"query": zeros(SEQUENCES, HEADS, HEAD_DIM, dtype=torch.float64)}, "query must be .* not torch.float64"),
        ({"key_cache": zeros(*CACHE)}, "key_cache must be torch.float32 or torch.float8_e4m3fn, not torch.float16"),
        ({"key_cache": zeros(*CACHE, dtype=FP8)}, "value_cache must be torch.float8_e4m3fn, not torch.float32"),
        ({"value_cache": zeros(PAGES, PAGE_SIZE, KV_HEADS, 20, dtype=FP32)[..., :16]}, "must have the same strides"),
        ({"value_cache": zeros(PAGES + 1, *CACHE[1:], dtype=FP32)}, "value_cache must have the shape"),
        ({"page_table": zeros(SEQUENCES, 3, dtype=torch.int64)}, "page_table must be torch.int32"),
        ({"sequence_lengths": zeros(3, dtype=INT32)}, "sequence_lengths must have the shape"),
        ({"key_scale": zeros(HEADS, dtype=FP32)}, r"key_scale must have the shape \(2,\)"),
        ({"value_scale": zeros(KV_HEADS)}, "value_scale must be torch.float32, not torch.float16"),
        ({"sinks": zeros(KV_HEADS, dtype=FP32)}, r"sinks must have the shape \(4,\)"),
        ({"sinks": zeros(HEADS, dtype=FP32, device="meta")}, "sinks is on meta"),
        ({"out": zeros(SEQUENCES, HEADS, HEAD_DIM)}, "out must be torch.float32"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paged_attention_decode(**drawn(**changes))
