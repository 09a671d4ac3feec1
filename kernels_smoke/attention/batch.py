"""What the host knows of a batch, and what it can choose from. Imports neither torch nor triton."""

from dataclasses import dataclass

# Each stage has what the one before it has, and more.
STAGES = (
    "naive",  # a program for each query token and head; a tile of keys is a page
    "query_blocks",  # a program takes a block of tokens, and all query heads that share a head of keys
    "segments",  # sequences of few query tokens are divided among several programs, whose results are merged
    "tiles",  # a tile of keys is as large as suits the GPU, whatever the page size
    "static",  # as many programs as the GPU runs at once, which work through the blocks of any batch
)
POWERS_OF_TWO = ("naive", "query_blocks", "segments")  # the stages whose tiles are pages, or halves of one, and so on


@dataclass(frozen=True)
class Batch:
    """One call, as far as the host knows it without reading the GPU's memory.

    ``tokens`` and ``sequences`` are those that there is room for, ``longest_query`` and ``longest_sequence`` upper
    bounds. ``element_size`` is in bytes, ``multiprocessors`` those of the GPU.
    """

    tokens: int
    sequences: int
    longest_query: int
    longest_sequence: int
    heads: int
    kv_heads: int
    head_dim: int
    page_size: int
    element_size: int
    multiprocessors: int

    @property
    def mean_query(self) -> float:
        """Query tokens of a sequence, on average."""
        return self.tokens / max(self.sequences, 1)

    @property
    def pairs(self) -> int:
        """Pairs of a sequence and a head of keys: the programs of a decoding step that is not divided further."""
        return self.sequences * self.kv_heads


@dataclass(frozen=True)
class Choice:
    """A stage; and into how many programs, for each multiprocessor, sequences of few query tokens are divided.

    With ``fill`` 0 such sequences are treated like all others.
    """

    stage: str
    fill: int = 0
