"""The checks of the arguments that prefill and decode share."""

import torch

from kernels_smoke.launch import check_rows, require

SIZES = (16, 32, 64, 128)  # of a head: tiles are powers of two, and a state of 128 x 128 fits on chip
EPSILON = 1e-6  # added to a squared norm, as the layers of Qwen 3.5 do


def check_heads(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    log_decay: torch.Tensor,
    beta: torch.Tensor,
    dtypes: tuple[torch.dtype, ...],
) -> tuple[int, int, int, int, int]:
    """Return (tokens, key heads, value heads, depth, width) of q, k [tokens, key heads, depth], v and its gates.

    Raises ValueError when a shape, dtype, device or stride does not fit.
    """
    for name, tensor in (("q", q), ("v", v)):
        require(tensor.ndim == 3, f"{name} must be [tokens, heads, size], not {tensor.ndim}-dimensional")
    (tokens, key_heads, depth), (_, value_heads, width) = q.shape, v.shape
    require(key_heads > 0 and value_heads > 0, "q and v need at least one head")
    require(value_heads % key_heads == 0, f"{value_heads} value heads are no multiple of {key_heads} key heads")
    for name, size in (("q", depth), ("v", width)):
        require(size in SIZES, f"heads of {name} have {size} elements; {', '.join(map(str, SIZES))} are possible")
    check_rows("q", q, (tokens, key_heads, depth), dtypes, q)
    check_rows("k", k, (tokens, key_heads, depth), (q.dtype,), q)
    check_rows("v", v, (tokens, value_heads, width), (q.dtype,), q)
    for name, gate in (("log_decay", log_decay), ("beta", beta)):
        check_rows(name, gate, (tokens, value_heads), tuple({q.dtype, torch.float32}), q)
    return tokens, key_heads, value_heads, depth, width


def check_contiguous(name: str, tensor: torch.Tensor, shape: tuple[int, ...], like: torch.Tensor) -> None:
    """Raise ValueError unless ``tensor`` is float32, contiguous, of ``shape`` and on the device of ``like``."""
    check_rows(name, tensor, shape, (torch.float32,), like)
    require(tensor.is_contiguous(), f"{name} must be contiguous")


def check_numbers(name: str, tensor: torch.Tensor, shape: tuple[int, ...], like: torch.Tensor) -> None:
    """Raise ValueError unless ``tensor`` is int32 or int64, contiguous, of ``shape`` and on the device of ``like``."""
    check_rows(name, tensor, shape, (torch.int32, torch.int64), like)
    require(tensor.is_contiguous(), f"{name} must be contiguous")
