"""The timed shapes of paged attention, their work, and the other implementations that they are held against.

The model is Llama 3 8B's attention: 32 query heads, 8 heads of keys, 128 wide; pages in random order, of 16 positions
unless said otherwise.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from kernels_smoke.suite.model import Inputs, Speed, Tensors, Work


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Keys and values of every sequence once, queries and results; and 4 operations for each pair that is seen."""
    query, keys = inputs["query"], inputs["key_cache"]
    positions = sum(length for _, length in inputs["batch"])
    seen = sum(count * (length - count) + count * (count + 1) // 2 for count, length in inputs["batch"])
    cached = 2 * positions * keys.shape[2] * keys.shape[3] * keys.itemsize
    flops = 4 * seen * query.shape[1] * query.shape[2]
    return Work(bytes=cached + query.nbytes + outputs["out"].nbytes + inputs["page_table"].nbytes, flops=flops)


def dense(inputs: Inputs, backend: SDPBackend) -> Mapping[str, torch.Tensor]:
    """Torch's attention over the same keys and values without pages, for sequences that are equally long."""
    ((count, _),) = set(inputs["batch"])
    query = inputs["query"].unflatten(0, (-1, count)).transpose(1, 2)
    keys, values = (inputs[name].transpose(1, 2) for name in ("dense_keys", "dense_values"))
    with sdpa_kernel(backend):
        made = scaled_dot_product_attention(query, keys, values, is_causal=count > 1, enable_gqa=True)
    return {"out": made.transpose(1, 2).flatten(0, 1)}


def cudnn(inputs: Inputs, _outputs: Tensors) -> object:
    """Dense attention by cuDNN."""
    return dense(inputs, SDPBackend.CUDNN_ATTENTION)


def flash(inputs: Inputs, _outputs: Tensors) -> object:
    """Dense attention by FlashAttention 2, as torch has it."""
    return dense(inputs, SDPBackend.FLASH_ATTENTION)


def _prompt(length: int, page_size: int = 16) -> dict[str, Any]:
    return {"batch": ((length, length),), "longest": True, "spare": 0, "dense": True, "page_size": page_size}


def _decoding(sequences: int, length: int) -> dict[str, Any]:
    return {"batch": ((1, length),) * sequences, "longest": True, "spare": 0}


SPEEDS = (
    *(
        Speed(f"prompt of {length}, {name}", _prompt(length), bar=bar, work=work, versus=name, peer=peer)
        for length, of_cudnn, of_flash in ((4096, 0.99, 0.49), (16384, 1.15, 0.57))
        for name, peer, bar in (("cuDNN", cudnn, of_cudnn), ("FlashAttention 2", flash, of_flash))
    ),
    Speed("prompt of 4096, pages of 64, cuDNN", _prompt(4096, 64), bar=0.98, work=work, versus="cuDNN", peer=cudnn),
    Speed("decoding, 1 x 32768", _decoding(1, 32768), bar=1.30, work=work),
    Speed("decoding, 64 x 2048", _decoding(64, 2048), bar=1.10, work=work),
    Speed("decoding, 128 x 8192", _decoding(128, 8192), bar=1.0, work=work),
)
