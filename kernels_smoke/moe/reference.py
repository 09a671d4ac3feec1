"""The grouped products in plain torch, in float64."""

import itertools

import torch


def grouped_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    offsets: torch.Tensor,
    rows: torch.Tensor | None = None,
    scale_a: torch.Tensor | None = None,
    scale_b: torch.Tensor | None = None,
) -> torch.Tensor:
    """``a[rows] @ b[e].T`` for the rows of each group e, group by group; NaN for rows that no group has.

    ``a`` [tokens, K], ``b`` [E, N, K], ``offsets`` [E + 1], ``rows`` [M] (all of ``a`` in order when it is None).
    ``scale_a`` [tokens, ceil(K / 128)] has a scale for each 128 columns of ``a``, ``scale_b`` [E, ceil(N / 128),
    ceil(K / 128)] one for each 128 x 128 elements of ``b``.
    """
    (_, n, k), count = b.shape, a.shape[0] if rows is None else rows.shape[0]
    result = torch.full((count, n), float("nan"), dtype=torch.float64, device=a.device)
    ends = offsets.tolist()
    for group, (begin, end) in enumerate(itertools.pairwise(ends)):
        taken = slice(begin, end) if rows is None else rows[begin:end].long()
        left, right = a[taken].double(), b[group].double()
        if scale_a is not None and scale_b is not None:
            left = left * scale_a[taken].double().repeat_interleave(128, dim=1)[:, :k]
            both = scale_b[group].double().repeat_interleave(128, dim=0)[:n].repeat_interleave(128, dim=1)[:, :k]
            right = right * both
        result[begin:end] = left @ right.t()
    return result
