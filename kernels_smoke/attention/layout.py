"""How a call is laid out on a GPU: the table of tiles, warps and stages. Imports neither torch nor triton."""

from dataclasses import dataclass, replace

from kernels_smoke.attention.batch import POWERS_OF_TWO, Batch, Choice

# Whose tensor cores take their operands from registers, of which larger tiles take too many; some have 99 KiB of
# shared memory only.
REGISTER_OPERANDS = {"sm_80", "sm_86", "sm_87", "sm_89", "sm_120", "sm_121"}
# Whose accumulators are in tensor memory, and come into registers, all of them at once, to be rescaled.
TENSOR_MEMORY = {"sm_100", "sm_103", "sm_110"}
FEW_ROWS = 16  # of a block: the least that a matrix product of Triton takes
MOST_HEADS = 64  # of a block, of those that share a head of keys: rows of more would take too much shared memory
MOST_SEGMENTS = 256  # a program that merges them holds 32 columns of all
LEAST_SEGMENT = 128  # positions
PROMPT = 512  # tokens: room for so many in one sequence is for its prompt


@dataclass(frozen=True)
class Layout:
    """The layout of one launch: ``queries`` tokens in a block, ``tile`` positions of keys in a step of the loop."""

    queries: int
    tile: int
    warps: int
    stages: int


@dataclass(frozen=True)
class Configuration:
    """The layout of one call.

    - ``blocks``: how blocks of query tokens are done; None when every sequence is short.
    - ``short``: how sequences of at most ``short.queries`` query tokens are done; None: like the others.
    - ``segments``: the most parts into which a short sequence is divided.
    - ``programs``: for each multiprocessor, which then work through everything; 0 is one program for each block.
    - ``heads``: query heads of a block, all of which share a head of keys.
    - ``specialized``: blocks are done by the kernel in ``specialized_prompts.py`` where the tensors' strides allow it.
    """

    blocks: Layout | None
    short: Layout | None = None
    segments: int = 1
    programs: int = 0
    heads: int = 1
    specialized: bool = False


def configure(batch: Batch, choice: Choice, architecture: str) -> Configuration:
    """The layout of ``choice`` for ``batch`` on ``architecture`` (``sm_90``, ``gfx942`` or ``interpret``).

    See "Layouts" in README.md.
    """
    heads = 1 if choice.stage == "naive" else _heads_of_a_block(batch.heads // batch.kv_heads)
    few = max(FEW_ROWS // heads, 1)
    short = _short(batch, 1 if choice.stage == "naive" else few, architecture)
    blocks = short if choice.stage == "naive" or batch.longest_query <= few else _blocks(batch, heads, architecture)
    if choice.stage in POWERS_OF_TWO:  # a page, or the largest part of one that is a tile
        short = replace(short, tile=min(short.tile, batch.page_size))
        blocks = replace(blocks, tile=min(blocks.tile, batch.page_size))
    if choice.stage == "naive":
        return Configuration(blocks)
    programs = 2 if choice.stage == "static" else 0
    if programs:  # the loop over items takes registers, too
        most, stages = (32, 4) if architecture in TENSOR_MEMORY else (64, blocks.stages)
        blocks = replace(blocks, tile=min(blocks.tile, most), stages=stages)
    specialized = architecture == "sm_90" and choice.stage not in POWERS_OF_TWO and _specialized(batch, heads)
    # One prompt: the two launches for short sequences would find none.
    alone = specialized and batch.sequences == 1 and batch.tokens >= PROMPT
    if choice.stage == "query_blocks" or not choice.fill or alone:
        return Configuration(blocks, programs=programs, heads=heads, specialized=specialized)
    segments = choice.fill * batch.multiprocessors // max(batch.pairs, 1)
    segments = max(min(segments, batch.longest_sequence // LEAST_SEGMENT, MOST_SEGMENTS), 1)
    if architecture == "interpret":  # several segments of few positions
        segments = 3
    elif segments > 1 and not architecture.startswith("gfx"):  # few programs: each loads further ahead
        roomy = architecture not in REGISTER_OPERANDS or heads <= FEW_ROWS
        short = replace(short, stages=3 if roomy else short.stages)
    return Configuration(None if batch.longest_query <= few else blocks, short, segments, programs, heads, specialized)


def _specialized(batch: Batch, heads: int) -> bool:
    """Whether there is a kernel in Gluon for such blocks: long prompts, and sizes that are powers of two."""
    whole = heads * batch.kv_heads == batch.heads and heads & (heads - 1) == 0
    pages = batch.page_size >= FEW_ROWS and batch.page_size & (batch.page_size - 1) == 0
    long = batch.mean_query * heads > 64
    return whole and pages and long and batch.head_dim == 128 and batch.element_size == 2


def _heads_of_a_block(group: int) -> int:
    """All heads that share a head of keys, or of more than ``MOST_HEADS`` as equal parts as there are."""
    return -(-group // -(-group // MOST_HEADS))


def _short(batch: Batch, few: int, architecture: str) -> Layout:
    """Reading keys and values is all that counts: 32 KiB in each step, and as many programs as shared memory holds."""
    if architecture == "interpret":
        return Layout(few, 16, warps=4, stages=1)
    tile = _within(16 * 1024, batch)
    if architecture.startswith("gfx"):  # 64 KiB of local memory
        return Layout(few, min(tile, 32), warps=4, stages=2)
    return Layout(few, tile, warps=4, stages=2)


def _blocks(batch: Batch, heads: int, architecture: str) -> Layout:
    """The matrix units are all that counts: as many rows as registers hold, because each reads all keys."""
    if architecture == "interpret":
        return Layout(max(FEW_ROWS // heads, 1), 16, warps=4, stages=1)
    rows, tile, warps, stages = 128, _within(16 * 1024, batch), 8, 3
    if architecture == "sm_90" and batch.mean_query * heads > 64:
        tile = _within(32 * 1024, batch, most=128)
    if architecture in REGISTER_OPERANDS:
        rows, tile, warps, stages = 64, min(tile, 32), 4, 3 if _row_size(batch) <= 256 else 2
    elif architecture.startswith("gfx"):
        rows, tile, stages = 128, min(tile, 32), 2
    if batch.mean_query * heads <= 64:  # mostly short prompts: a larger block would be half empty
        rows, warps = 64, 4
    if batch.head_dim > 128:  # accumulators of rows x head_dim must stay in registers
        rows, warps = 64, 8
    if architecture in REGISTER_OPERANDS and _row_size(batch) > 512:
        rows = 32
    return Layout(max(rows // heads, 1), tile, warps, stages)


def _within(size: int, batch: Batch, most: int = 64) -> int:
    """The positions whose keys take ``size`` bytes, as a power of two from 16 to ``most``."""
    return min(max(size // _row_size(batch), 16), most)


def _row_size(batch: Batch) -> int:
    """The bytes that a head of a position takes on chip."""
    return (1 << (max(batch.head_dim, 16) - 1).bit_length()) * batch.element_size
