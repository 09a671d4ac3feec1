"""The checks of the arguments of paged_attention_decode."""

import torch

from kernels_smoke.attention.arguments import WIDEST
from kernels_smoke.launch import DTYPES, FP8, check_rows, check_written, require

MOST_HEADS = 64  # that share a head of keys


def check_decoding(tensors: dict[str, torch.Tensor], options: dict[str, torch.Tensor | None]) -> None:
    """Raise ValueError unless the arguments fit each other as ``paged_attention_decode`` says."""
    query, key_cache, page_table = (tensors[name] for name in ("query", "key_cache", "page_table"))
    require(query.ndim == 3, f"query must be [sequences, heads, head_dim], not {query.ndim}-dimensional")
    layout = "[pages, page_size, kv_heads, head_dim]"
    require(key_cache.ndim == 4, f"key_cache must be {layout}, not {key_cache.ndim}-dimensional")
    require(page_table.ndim == 2, "page_table must be [sequences, most pages of a sequence]")
    (sequences, heads, head_dim), (_, page_size, kv_heads, _) = query.shape, key_cache.shape
    require(0 < head_dim <= WIDEST, f"heads are {head_dim} elements wide; 1 to {WIDEST} are possible")
    require(page_size > 0, "pages must hold at least one position")
    require(
        kv_heads > 0 and heads > 0 and heads % kv_heads == 0 and heads // kv_heads <= MOST_HEADS,
        f"the number of query heads must be 1 to {MOST_HEADS} times that of key heads, not {heads} and {kv_heads}",
    )
    cached = (key_cache.shape[0], page_size, kv_heads, head_dim)
    own = (query.dtype,)
    for name, shape, dtypes in (
        ("query", tuple(query.shape), DTYPES),
        ("key_cache", cached, (query.dtype, FP8)),
        ("value_cache", cached, (key_cache.dtype,)),
        ("page_table", (sequences, page_table.shape[1]), (torch.int32,)),
        ("sequence_lengths", (sequences,), (torch.int32,)),
        ("out", tuple(query.shape), own),
    ):
        check_rows(name, tensors[name], shape, dtypes, query)
    for name, count, dtypes in (
        ("key_scale", kv_heads, (torch.float32,)),
        ("value_scale", kv_heads, (torch.float32,)),
        ("sinks", heads, (*own, torch.float32)),
    ):
        given = options[name]
        if given is not None:
            check_rows(name, given, (count,), dtypes, query)
    same = key_cache.stride() == tensors["value_cache"].stride()
    require(same, "key_cache and value_cache must have the same strides")
    # Offsets within a page and within a token are computed in 32 bits.
    require(page_size * key_cache.stride(1) < 2**31, "a page of the caches spans 2^31 elements or more")
    for name in ("query", "out"):
        require(heads * tensors[name].stride(1) < 2**31, f"a token of {name} spans 2^31 elements or more")
    check_written("out", tensors["out"])
