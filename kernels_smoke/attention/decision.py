"""Which stage a batch gets: nested conditions, as ``benchmarks/paged_attention_tree.py`` writes them.

That script measures the choices on a GPU and replaces this file: change the script, not what it wrote.
"""

from kernels_smoke.attention.batch import Batch, Choice

SOURCE = "2026-11-22, NVIDIA H200, torch 2.11.0, triton 3.6.0; 1.023 times the best choice of 80 batches, at worst 1.49"


def choose(batch: Batch) -> Choice:
    """The choice for ``batch``."""
    if batch.mean_query <= 46:
        return Choice("tiles", fill=2)
    if batch.longest_sequence <= 724:
        return Choice("static")
    return Choice("tiles", fill=4)
