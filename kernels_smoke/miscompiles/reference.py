"""The probes' functions in plain torch, in float64 wherever the definition does not round."""

import torch


def chained_dots(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    """``a @ b + c @ d``."""
    return a.double() @ b.double() + c.double() @ d.double()


def decayed_accumulator(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, decay: torch.Tensor, w: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Readings [heads, tokens, width] and final state [heads, depth, width]: see the function itself."""
    state = torch.zeros(q.shape[0], q.shape[2], v.shape[2], dtype=torch.float64, device=q.device)
    readings = torch.zeros(v.shape, dtype=torch.float64, device=v.device)
    for chunk in range(decay.shape[1]):
        here = slice(64 * chunk, 64 * chunk + 64)
        read = state.to(q.dtype).double()
        readings[:, here] = q[:, here].double() @ read
        values = v[:, here].double()
        if w is not None:
            values = (values - w[:, here].double() @ read).to(v.dtype).double()
        state = state * decay[:, chunk, None, None].double() + k[:, here].double().transpose(1, 2) @ values
    return readings, state
