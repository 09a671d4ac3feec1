"""Paged attention in plain torch, in float64."""

import math

import torch

SCORES = 2**28  # at once, of all heads


def paged_attention(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    page_table: torch.Tensor,
    cumulative_query_lengths: torch.Tensor,
    sequence_lengths: torch.Tensor,
    scale: float | None = None,
) -> torch.Tensor:
    """Causal attention [tokens, heads, head_dim], sequence by sequence; NaN for tokens that no sequence has."""
    (_, heads, head_dim), (_, page_size, kv_heads, _) = query.shape, key_cache.shape
    scale = 1.0 / math.sqrt(head_dim) if scale is None else scale
    result = torch.full(query.shape, float("nan"), dtype=torch.float64, device=query.device)
    starts = cumulative_query_lengths.tolist()
    for sequence, length in enumerate(sequence_lengths.tolist()):
        begin, end = starts[sequence], starts[sequence + 1]
        if begin == end:
            continue
        pages = page_table[sequence, : -(-length // page_size)].long()
        keys, values = (
            cache[pages].flatten(0, 1)[:length].double().repeat_interleave(heads // kv_heads, dim=1)
            for cache in (key_cache, value_cache)
        )
        visible = torch.arange(length, device=query.device)
        at_once = max(SCORES // (heads * length), 1)
        for first in range(begin, end, at_once):  # so that the scores of a long prompt fit the memory
            last = min(first + at_once, end)
            seen = length - (end - last)  # by the last of these tokens: what is behind it, none of them sees
            tokens = torch.arange(first, last, device=query.device)
            scores = torch.einsum("thd,phd->htp", query[tokens].double(), keys[:seen]) * scale
            sees = visible[None, :seen] <= (length - (end - begin) + tokens - begin)[:, None]
            weights = scores.masked_fill_(~sees, float("-inf")).softmax(dim=-1)
            result[tokens] = torch.einsum("htp,phd->thd", weights, values[:seen])
    return result


def paged_attention_decode(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    page_table: torch.Tensor,
    sequence_lengths: torch.Tensor,
    *,
    scale: float | None = None,
    key_scale: torch.Tensor | None = None,
    value_scale: torch.Tensor | None = None,
    window: int | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float | None = None,
) -> torch.Tensor:
    """Attention [sequences, heads, head_dim] of the last token of each sequence; zero where a sequence is empty."""
    (_, heads, head_dim), (_, page_size, kv_heads, _) = query.shape, key_cache.shape
    scale = 1.0 / math.sqrt(head_dim) if scale is None else scale
    result = torch.zeros(query.shape, dtype=torch.float64, device=query.device)
    for sequence, length in enumerate(sequence_lengths.tolist()):
        if not length:
            continue
        pages = page_table[sequence, : -(-length // page_size)].long()
        first = 0 if window is None else max(length - window, 0)
        keys, values = (
            (
                cache[pages].flatten(0, 1)[first:length].double()
                * (1.0 if factor is None else factor.double()[:, None])
            ).repeat_interleave(heads // kv_heads, dim=1)
            for cache, factor in ((key_cache, key_scale), (value_cache, value_scale))
        )
        scores = torch.einsum("hd,phd->hp", query[sequence].double(), keys) * scale
        if soft_cap is not None:
            scores = soft_cap * torch.tanh(scores / soft_cap)
        if sinks is not None:  # one more position, without a value
            scores = torch.cat([scores, sinks.double()[:, None]], dim=1)
        weights = scores.softmax(dim=-1)[:, : length - first]
        result[sequence] = torch.einsum("hp,phd->hd", weights, values)
    return result
