"""Paged attention: refusals, and the layout of a call."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernels_smoke.attention.batch import STAGES, Batch, Choice
from kernels_smoke.attention.layout import configure
from kernels_smoke.attention.paged_attention import paged_attention
from tests.kernels.support import DEVICE


def arguments() -> dict[str, Any]:
    """Two sequences, of 3 and of 1 query tokens and 20 and 16 positions, in pages of 16."""

    def integers(*values: Any) -> Any:
        return torch.tensor(values, dtype=torch.int32, device=DEVICE)

    return {
        "query": torch.ones(4, 4, 16, dtype=torch.float16, device=DEVICE),
        "key_cache": torch.ones(3, 16, 2, 16, dtype=torch.float16, device=DEVICE),
        "value_cache": torch.ones(3, 16, 2, 16, dtype=torch.float16, device=DEVICE),
        "page_table": integers([2, 0], [1, -1]),
        "cumulative_query_lengths": integers(0, 3, 4),
        "sequence_lengths": integers(20, 16),
    }


def test_the_mean_of_equal_values_is_that_value() -> None:
    assert torch.equal(paged_attention(**arguments()), arguments()["query"])


def test_a_plan_serves_other_lengths_and_pages() -> None:
    given = arguments()
    generator = torch.Generator().manual_seed(20261127)
    for name in ("query", "key_cache", "value_cache"):
        given[name] = torch.randn(given[name].shape, generator=generator).to(DEVICE, torch.float16)
    plan = paged_attention.plan(**given)
    integers = {
        "page_table": given["page_table"].new_tensor([[1, -1], [0, 2]]),
        "cumulative_query_lengths": given["cumulative_query_lengths"].new_tensor([0, 1, 4]),
        "sequence_lengths": given["sequence_lengths"].new_tensor([9, 31]),
    }
    assert torch.equal(plan(**integers), paged_attention.function(**{**given, **integers}))


REFUSED = {
    "heads that are no multiple": ({"query": (4, 3, 16)}, "must be a multiple of that of key heads, not 3 and 2"),
    "two dimensions": ({"query": (4, 64)}, "query must be [tokens, heads, head_dim], not 2-dimensional"),
    "other width": ({"query": (4, 4, 32)}, "key_cache must have the shape (3, 16, 2, 32), not (3, 16, 2, 16)"),
    "other values": ({"value_cache": (2, 16, 2, 16)}, "value_cache must have the shape (3, 16, 2, 16), not (2,"),
    "too wide": ({"query": (4, 4, 300)}, "heads are 300 elements wide; 1 to 256 are possible"),
    "too few starts": (
        {"cumulative_query_lengths": (2,)},
        "cumulative_query_lengths must have the shape (3,), not (2,)",
    ),
    "a page without positions": ({"key_cache": (3, 0, 2, 16)}, "pages must hold at least one position"),
}


@pytest.mark.parametrize(("shapes", "message"), REFUSED.values(), ids=REFUSED)
def test_shapes_that_do_not_fit_are_refused(shapes: dict[str, tuple[int, ...]], message: str) -> None:
    given = arguments()
    given |= {name: given[name].new_ones(shape) for name, shape in shapes.items()}
    with pytest.raises(ValueError) as raised:  # noqa: PT011  # the message is compared below
        paged_attention(**given)
    assert message in str(raised.value)


@pytest.mark.parametrize("name", arguments())
def test_other_dtypes_and_what_is_no_tensor_are_refused(name: str) -> None:
    given = arguments()
    with pytest.raises(ValueError, match=f"{name} must be .*, not torch.float64"):
        paged_attention(**{**given, name: given[name].double()})
    with pytest.raises(TypeError, match=f"{name} must be a tensor, not list"):
        paged_attention(**{**given, name: given[name].tolist()})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 0.0}, "scale must be positive and finite in float32, not 0.0"),
        ({"scale": 1e-46}, "scale must be positive and finite in float32, not 1e-46"),
        ({"scale": 1e39}, "scale must be positive and finite in float32, not 1e.39"),
        ({"scale": float("nan")}, "scale must be positive"),
        (
            {"variant": "fast"},
            "variant must be auto or one of naive, query_blocks, segments, tiles, static, not 'fast'",
        ),
        ({"longest_query": 0}, "longest_query must be 1 or more, not 0"),
        ({"longest_query": 2.5}, "longest_query must be 1 or more, not 2.5"),
        ({"out": torch.ones(4, 4, 8)}, "out must have the shape"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        paged_attention(**arguments(), **options)


def test_rows_that_are_not_contiguous_and_caches_of_two_layouts_are_refused() -> None:
    given = arguments()
    with pytest.raises(ValueError, match="the rows of query must be contiguous"):
        paged_attention(**{**given, "query": given["query"].transpose(1, 2).contiguous().transpose(1, 2)})
    wider = given["value_cache"].new_ones(3, 16, 2, 32)[..., :16]
    with pytest.raises(ValueError, match="key_cache and value_cache must have the same strides"):
        paged_attention(**{**given, "value_cache": wider})


@pytest.mark.parametrize("variant", ["naive", "query_blocks", "segments"])
def test_the_early_stages_want_pages_of_a_power_of_two(variant: str) -> None:
    given = arguments()
    given |= {name: given[name][:, :12] for name in ("key_cache", "value_cache")}
    with pytest.raises(ValueError, match="pages of 12 positions take the variant 'tiles' or 'static'"):
        paged_attention(**given, variant=variant)


def batch(**changes: Any) -> Batch:
    decoding = {
        "tokens": 1,
        "sequences": 1,
        "longest_query": 1,
        "longest_sequence": 32768,
        "heads": 32,
        "kv_heads": 8,
        "head_dim": 128,
        "page_size": 16,
        "element_size": 2,
        "multiprocessors": 132,
    }
    return Batch(**{**decoding, **changes})


def test_one_long_sequence_is_divided_until_every_multiprocessor_has_work() -> None:
    configuration = configure(batch(), Choice("tiles", fill=2), "sm_90")
    assert configuration.blocks is None  # every sequence is short
    assert configuration.segments * 8 == 264


def test_many_sequences_and_short_ones_are_not_divided() -> None:
    for few in (batch(tokens=64, sequences=64), batch(longest_sequence=200)):
        assert configure(few, Choice("tiles", fill=2), "sm_90").segments == 1


def test_prompts_and_short_sequences_are_laid_out_apart_in_one_batch() -> None:
    both = batch(tokens=2100, sequences=53, longest_query=2048)
    configuration = configure(both, Choice("static", fill=2), "sm_90")
    assert configuration.blocks is not None
    assert configuration.short is not None
    assert configuration.blocks.queries > configuration.short.queries >= 1
    assert configuration.programs


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100", "sm_120", "gfx942"])
@pytest.mark.parametrize("page_size", [16, 64, 512])
@pytest.mark.parametrize("stage", STAGES)
def test_tiles_are_powers_of_two_that_fit_the_matrix_units(stage: str, page_size: int, architecture: str) -> None:
    for heads, head_dim, element_size in (((32, 8), 128, 2), ((6, 2), 80, 2), ((8, 8), 256, 4), ((71, 1), 64, 2)):
        of = batch(
            tokens=999,
            longest_query=999,
            heads=heads[0],
            kv_heads=heads[1],
            head_dim=head_dim,
            element_size=element_size,
            page_size=page_size,
        )
        configuration = configure(of, Choice(stage, fill=2), architecture)
        for layout in filter(None, (configuration.blocks, configuration.short)):
            assert layout.tile in {16, 32, 64, 128}
            assert layout.tile * head_dim * element_size <= 32 * 1024  # of keys: two or three such fit shared memory
            assert layout.queries >= 1
            assert layout.queries * configuration.heads <= 128


@pytest.mark.parametrize(("group", "heads"), [(1, 1), (8, 8), (64, 64), (71, 36), (96, 48), (128, 64), (256, 64)])
def test_more_heads_than_a_block_takes_are_divided(group: int, heads: int) -> None:
    of = batch(tokens=999, longest_query=999, heads=2 * group, kv_heads=2)
    assert configure(of, Choice("tiles", fill=2), "sm_90").heads == heads


def test_long_prompts_on_hopper_have_their_kernel() -> None:
    prompts = batch(tokens=4096, longest_query=4096)
    assert configure(prompts, Choice("tiles", fill=2), "sm_90").specialized
    for other in ({"head_dim": 64}, {"page_size": 560}, {"heads": 24}, {"element_size": 4}, {"tokens": 16}):
        changed = batch(**{"tokens": 4096, "longest_query": 4096, **other})
        assert not configure(changed, Choice("tiles", fill=2), "sm_90").specialized
    assert not configure(prompts, Choice("tiles", fill=2), "sm_100").specialized
    assert not configure(prompts, Choice("segments", fill=2), "sm_90").specialized


def test_one_prompt_is_one_launch_on_hopper() -> None:
    one = configure(batch(tokens=4096, longest_query=4096, sequences=1), Choice("tiles", fill=2), "sm_90")
    assert one.short is None
