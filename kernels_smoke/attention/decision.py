"""Which stage a batch gets: nested conditions, as ``benchmarks/paged_attention_tree.py`` writes them.

That script measures the choices on a GPU and replaces this file: change the script, not what it wrote.
"""

from __future__ import annotations

from kernels_smoke.attention.batch import Batch, Choice

SOURCE = "2026-11-22, NVIDIA H200, torch 2.11.0, triton 3.6.0; 1.027 times the best choice of 60 batches, at worst 1.37"


def choose(batch: Batch) -> Choice:
    """The choice for ``batch``."""
    if batch.longest_query <= 362:
        return Choice("tiles", fill=2)
    return Choice("tiles")
