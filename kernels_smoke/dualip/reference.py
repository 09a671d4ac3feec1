"""The projection and the product in plain torch, in float64."""

import torch

from kernels_smoke.dualip.segments import Segments


def padded(values: torch.Tensor, segments: Segments, fill: float) -> tuple[torch.Tensor, torch.Tensor]:
    """The segments of ``values`` as rows [count, longest], filled up, and where in them each element is [elements]."""
    lengths = segments.offsets.diff().long()
    longest = int(lengths.max()) if len(lengths) else 0
    row = torch.repeat_interleave(lengths, output_size=segments.elements)
    column = torch.arange(segments.elements, device=values.device) - segments.offsets.long()[row]
    made = torch.full((len(lengths) * longest,), fill, dtype=torch.float64, device=values.device)
    place = row * longest + column
    made[place] = values.double()
    return made.reshape(len(lengths), longest), place


def simplex_projection(values: torch.Tensor, segments: Segments, *, radius: float, equality: bool) -> torch.Tensor:
    """The projection of each segment onto ``{x >= 0, sum(x) <= radius}``, or ``= radius``, by sorting.

    Held, Wolfe and Crowder, "Validation of subgradient optimization" (1974): with values in falling order, the
    threshold is that of the last k for which the k-th exceeds ``(sum of the first k - radius) / k``.
    """
    rows, place = padded(values, segments, float("-inf"))
    if not rows.numel():
        return values.double()
    greatest = rows.amax(dim=1, keepdim=True)
    below = rows - greatest.where(torch.isfinite(greatest), 0.0)  # the radius must not be lost next to large values
    falling = below.sort(dim=1, descending=True).values
    count = torch.arange(1, rows.shape[1] + 1, device=rows.device)
    thresholds = (falling.cumsum(1) - radius) / count
    last = (falling > thresholds).sum(1, keepdim=True).clamp(min=1) - 1
    projected = torch.clamp(below - thresholds.gather(1, last), min=0.0)
    if not equality:
        positive = rows.clamp(min=0.0)
        projected = torch.where(positive.sum(1, keepdim=True) <= radius, positive, projected)
    return projected.reshape(-1)[place]


def sparse_product(
    segments: Segments, indices: torch.Tensor, values: torch.Tensor, vector: torch.Tensor
) -> torch.Tensor:
    """The sum over each segment of ``values * vector[indices]``."""
    products, _ = padded(values.double() * vector.double()[indices.long()], segments, 0.0)
    return products.sum(dim=1)
