"""The checks of the arguments of paged attention."""

import torch

from kernels_smoke.launch import DTYPES, check_written, require

WIDEST = 256  # elements of a head


def check_arguments(tensors: dict[str, torch.Tensor | None]) -> None:
    """Raise TypeError or ValueError unless the arguments fit each other as ``paged_attention`` says."""
    for name, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"{name} must be a tensor, not {type(tensor).__name__}")
    given: dict[str, torch.Tensor] = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    query, keys = given["query"], given["key_cache"]
    require(query.ndim == 3, f"query must be [tokens, heads, head_dim], not {query.ndim}-dimensional")
    require(keys.ndim == 4, f"key_cache must be [pages, page_size, kv_heads, head_dim], not {keys.ndim}-dimensional")
    (_, heads, head_dim), (_, page_size, kv_heads, _) = query.shape, keys.shape
    require(given["page_table"].ndim == 2, "page_table must be [sequences, most pages of a sequence]")
    sequences = given["page_table"].shape[0]
    shapes = {
        "query": tuple(query.shape),
        "key_cache": (keys.shape[0], page_size, kv_heads, head_dim),
        "value_cache": tuple(keys.shape),
        "page_table": tuple(given["page_table"].shape),
        "cumulative_query_lengths": (sequences + 1,),
        "sequence_lengths": (sequences,),
        "out": tuple(query.shape),
    }
    require(0 < head_dim <= WIDEST, f"heads are {head_dim} elements wide; 1 to {WIDEST} are possible")
    require(page_size > 0, "pages must hold at least one position")
    require(
        kv_heads > 0 and heads > 0 and heads % kv_heads == 0,
        f"the number of query heads must be a multiple of that of key heads, not {heads} and {kv_heads}",
    )
    require(query.dtype in DTYPES, f"query must be {' or '.join(map(str, DTYPES))}, not {query.dtype}")
    for name, tensor in given.items():
        wanted = query.dtype if tensor.ndim > 2 else torch.int32
        require(
            tuple(tensor.shape) == shapes[name], f"{name} must have the shape {shapes[name]}, not {tuple(tensor.shape)}"
        )
        require(tensor.dtype == wanted, f"{name} must be {wanted}, not {tensor.dtype}")
        require(tensor.device == query.device, f"{name} is on {tensor.device}, query is on {query.device}")
        dense = not tensor.numel() or tensor.shape[-1] == 1 or tensor.stride(-1) == 1
        require(dense, f"the rows of {name} must be contiguous")
    # Offsets within a page and within a token are computed in 32 bits.
    require(page_size * keys.stride(1) < 2**31, "a page of the caches spans 2^31 elements or more")
    for name in ("query", "out"):
        require(heads * given[name].stride(1) < 2**31, f"a token of {name} spans 2^31 elements or more")
    require(keys.stride() == given["value_cache"].stride(), "key_cache and value_cache must have the same strides")
    check_written("out", given["out"])
