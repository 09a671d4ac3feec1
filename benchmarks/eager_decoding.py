"""Decoding over paged caches in eager torch: all pages are gathered, and unused positions are masked."""

from __future__ import annotations

from typing import Any

import torch

from kernels_smoke.suite.model import Inputs

Results = dict[str, Any]


def mla_decode(inputs: Inputs) -> Results:
    """The latent rows of all pages, two products and a softmax between them."""
    query, latent_dim = inputs["query"], inputs["latent_dim"]
    cache = inputs["latent_cache"][inputs["page_table"].long()].flatten(1, 2)  # [sequences, positions, width]
    inside = torch.arange(cache.shape[1], device=query.device) < inputs["sequence_lengths"][:, None]
    cache = cache.where(inside[:, :, None], 0.0)
    scores = query @ cache.mT * inputs["scale"]  # [sequences, heads, positions]
    weights = scores.masked_fill(~inside[:, None], float("-inf")).softmax(dim=-1, dtype=torch.float32)
    weights = weights.nan_to_num(0.0).to(query.dtype)  # a sequence without positions
    return {"out": weights @ cache[:, :, :latent_dim]}


def paged_attention_decode(inputs: Inputs) -> Results:
    """The keys and values of all pages, in the dtype of the query, with everything that changes the scores."""
    query, table = inputs["query"], inputs["page_table"].long()
    (sequences, heads, head_dim), kv_heads = query.shape, inputs["key_cache"].shape[2]
    keys, values = (_gathered(inputs, name, table, query.dtype) for name in ("key", "value"))
    position = torch.arange(keys.shape[1], device=query.device)
    lengths = inputs["sequence_lengths"][:, None]
    inside = position < lengths
    if inputs["window"] is not None:
        inside &= position >= lengths - inputs["window"]
    keys, values = (tensor.where(inside[:, :, None, None], 0.0).transpose(1, 2) for tensor in (keys, values))
    grouped = query.view(sequences, kv_heads, heads // kv_heads, head_dim)
    scores = (grouped @ keys.mT).float() * (inputs["scale"] or head_dim**-0.5)
    if inputs["soft_cap"] is not None:
        scores = inputs["soft_cap"] * torch.tanh(scores / inputs["soft_cap"])
    scores = scores.masked_fill(~inside[:, None, None], float("-inf"))
    if inputs.get("sinks") is not None:
        sinks = inputs["sinks"].float().view(1, kv_heads, -1, 1).expand(sequences, -1, -1, -1)
        scores = torch.cat([scores, sinks], dim=-1)
    weights = scores.softmax(dim=-1)[..., : position.shape[0]].nan_to_num(0.0).to(query.dtype)
    return {"out": (weights @ values).reshape(query.shape)}


def _gathered(inputs: Inputs, name: str, table: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    cache = inputs[f"{name}_cache"][table].flatten(1, 2).to(dtype)  # [sequences, positions, kv_heads, head_dim]
    scale = inputs.get(f"{name}_scale")
    return cache if scale is None else (cache * scale[:, None]).to(dtype)
