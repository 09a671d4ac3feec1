"""Multi-head latent attention in plain torch, in float64."""

import torch


def mla_decode(
    query: torch.Tensor,
    latent_cache: torch.Tensor,
    page_table: torch.Tensor,
    sequence_lengths: torch.Tensor,
    scale: float,
    latent_dim: int,
) -> torch.Tensor:
    """Attention [sequences, heads, latent_dim] of one token of each sequence; zero where a sequence is empty."""
    page_size = latent_cache.shape[1]
    shape = (*query.shape[:2], latent_dim)
    result = torch.zeros(shape, dtype=torch.float64, device=query.device)
    for sequence, length in enumerate(sequence_lengths.tolist()):
        if not length:
            continue
        pages = page_table[sequence, : -(-length // page_size)].long()
        keys = latent_cache[pages].flatten(0, 1)[:length].double()  # [length, width]
        weights = (query[sequence].double() @ keys.t() * scale).softmax(dim=-1)  # [heads, length]
        result[sequence] = weights @ keys[:, :latent_dim]
    return result
