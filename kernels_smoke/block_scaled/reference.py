"""Block-scaled products in plain torch, in float64: an emulation of the formats by tables."""

import torch

# E2M1 (OCP Microscaling Formats specification 1.0, table 2): a sign, two bits of exponent with bias 1, one of mantissa.
MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def elements_of(stored: torch.Tensor) -> torch.Tensor:
    """Elements [rows, K] in float64, from float8_e4m3fn [rows, K] or two E2M1 a byte [rows, K / 2]."""
    if stored.dtype == torch.float8_e4m3fn:
        return stored.double()
    codes = stored.view(torch.uint8)
    both = torch.stack([codes & 15, codes >> 4], dim=-1).flatten(1).long()  # the first is in the lower bits
    table = torch.tensor([*MAGNITUDES, *(-value for value in MAGNITUDES)], dtype=torch.float64, device=stored.device)
    return table[both]


def scales_of(stored: torch.Tensor) -> torch.Tensor:
    """Scales in float64, from float8_e4m3fn or E8M0, which is a power of two with bias 127."""
    if stored.dtype == torch.float8_e4m3fn:
        return stored.double()
    return torch.exp2(stored.view(torch.uint8).double() - 127.0)


def block_scaled_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    scale: torch.Tensor | None = None,
) -> torch.Tensor:
    """``scale * (a @ b.T)`` for a [M, K], b [N, K], whose elements are scaled first."""
    left, right = (
        values * scales_of(scales).repeat_interleave(values.shape[1] // scales.shape[1], dim=1)
        for values, scales in ((elements_of(a), scale_a), (elements_of(b), scale_b))
    )
    result = left @ right.t()
    return result if scale is None else result * scale.double()
