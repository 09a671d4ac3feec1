"""What both passes share: the list of blocks, the checks, the launch's layout, how a tile is loaded and stored."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import DTYPES_16, check_rows, check_scale, interpreted, multiprocessors, require

BLOCK = 64  # tokens of a block: part of the definition, not of the layout
HEAD_DIMS = (64, 128)


def list_blocks(cumulative_lengths: torch.Tensor) -> torch.Tensor:
    """The blocks of jagged sequences: [blocks, 2], int32, of each its first token and how many it has (1 to 64).

    ``cumulative_lengths`` is [sequences + 1], int32 or int64: the sequences' first tokens, and the end of the last.
    Each sequence is cut into blocks of 64 tokens from its beginning; its last block may be shorter, and a sequence
    without a token has none. The list is on the device of ``cumulative_lengths``. It depends on the batch alone: make
    it once, on the CPU where the lengths are known there, and use it in every layer and in both passes. Of lengths on
    a GPU, this function waits for that GPU.

    Raises ValueError when ``cumulative_lengths`` is not as said, does not begin with 0, or falls anywhere.
    """
    require(
        cumulative_lengths.ndim == 1 and len(cumulative_lengths) > 0,
        f"cumulative_lengths must be [sequences + 1], not {tuple(cumulative_lengths.shape)}",
    )
    require(
        cumulative_lengths.dtype in {torch.int32, torch.int64},
        f"cumulative_lengths must be torch.int32 or torch.int64, not {cumulative_lengths.dtype}",
    )
    ends = cumulative_lengths.cpu().to(torch.int64)
    lengths = ends.diff()
    require(int(ends[0]) == 0, f"cumulative_lengths must begin with 0, not with {int(ends[0])}")
    require(not bool((lengths < 0).any()), "cumulative_lengths must not fall: a sequence has a negative length")
    require(int(ends[-1]) < 2**31, f"there are {int(ends[-1])} tokens; the limit is 2^31 - 1")
    counts = (lengths + BLOCK - 1) // BLOCK
    within = torch.arange(int(counts.sum())) - (counts.cumsum(0) - counts).repeat_interleave(counts)
    starts = ends[:-1].repeat_interleave(counts) + BLOCK * within
    sizes = (ends[1:].repeat_interleave(counts) - starts).clamp(max=BLOCK)
    return torch.stack((starts, sizes), dim=1).to(torch.int32).to(cumulative_lengths.device)


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out. A tile is one head of one block.

    - ``warps``: of one program.
    - ``stages``: of the loop of a persistent program. 5 hold three tiles: one is computed, two are being loaded (the
      others look up where a tile is).
    - ``programs``: persistent programs for each multiprocessor, which share all tiles evenly; 0 is one for each tile.
    - ``registers``: the most that a thread may have, so that more programs fit a multiprocessor (NVIDIA); 0: no limit.
    """

    warps: int = 8
    stages: int = 1
    programs: int = 0
    registers: int = 0

    def count(self, tiles: int, like: torch.Tensor) -> int:
        """How many programs work on ``tiles`` tiles on the GPU of ``like``."""
        if interpreted():  # fewer programs than tiles, so that the loop over tiles is interpreted as it will run
            return min(tiles, 3)
        return min(tiles, self.programs * multiprocessors(like)) or tiles

    def options(self) -> dict[str, int]:
        """What Triton is given."""
        limit = {"maxnreg": self.registers} if self.registers else {}
        return {"num_warps": self.warps, "num_stages": self.stages, **limit}


def check_heads(like: torch.Tensor, blocks: torch.Tensor, scale: float | None, **tensors: torch.Tensor) -> float:
    """The scale to use, which is 1 / sqrt(head_dim) unless given.

    Raises ValueError unless all ``tensors`` are [tokens, heads, head_dim] like ``like``, and ``blocks`` fits.
    """
    require(like.ndim == 3, f"q must be [tokens, heads, head_dim], not {like.ndim}-dimensional")
    require(blocks.ndim == 2, f"blocks must be [blocks, 2], not {blocks.ndim}-dimensional")
    require(
        like.shape[2] in HEAD_DIMS,
        f"heads have {like.shape[2]} elements; {' or '.join(map(str, HEAD_DIMS))} are possible",
    )
    scale = like.shape[2] ** -0.5 if scale is None else scale
    check_scale(scale)
    # In float32, which Triton's interpreter computes best, the tiles would not fit the registers of a GPU.
    dtypes = (*DTYPES_16, torch.float32) if interpreted() else DTYPES_16
    for name, tensor in tensors.items():
        check_rows(name, tensor, tuple(like.shape), dtypes if tensor is like else (like.dtype,), like)
    check_rows("blocks", blocks, (len(blocks), 2), (torch.int32,), like)
    require(blocks.is_contiguous(), "blocks must be contiguous")
    require(len(blocks) * like.shape[1] < 2**31, f"{len(blocks)} blocks of {like.shape[1]} heads are too many")
    return scale


def strides(**tensors: torch.Tensor) -> dict[str, int]:
    """Of each tensor [tokens, heads, head_dim] the elements from token to token, and from head to head.

    ``q_token`` is from one token of ``q`` to the next, ``q_head`` from one head to the next.
    """
    steps = {}
    for name, tensor in tensors.items():
        steps[f"{name}_token"], steps[f"{name}_head"], _ = tensor.stride()
    return steps


@triton.jit
def _tile(blocks, tile, heads):
    """First token, number of tokens, and head of a tile: heads of a block lie side by side, so they come in turn."""
    block = tile // heads
    start = tl.load(blocks + 2 * block).to(tl.int64)  # [1]
    return start, tl.load(blocks + 2 * block + 1), (tile % heads).to(tl.int64)  # [1]


@triton.jit
def _load(source, start, length, BLOCK: tl.constexpr, WIDTH: tl.constexpr, stride):
    """Rows [BLOCK, WIDTH] from row ``start`` of ``source`` on; zero beyond ``length``, where others' tokens lie."""
    rows = tl.arange(0, BLOCK)[:, None]
    columns = tl.arange(0, WIDTH)[None, :]
    return tl.load(source + (start + rows) * stride + columns, mask=rows < length, other=0.0)  # [BLOCK, WIDTH]


@triton.jit
def _store(target, values, start, length, BLOCK: tl.constexpr, WIDTH: tl.constexpr, stride):
    """The inverse of ``_load``: ``values``, rounded to the dtype of ``target``."""
    rows = tl.arange(0, BLOCK)[:, None]
    columns = tl.arange(0, WIDTH)[None, :]
    values = values.to(target.dtype.element_ty)
    tl.store(target + (start + rows) * stride + columns, values, mask=rows < length)


@triton.jit
def _weights(q, k, length, scale, BLOCK: tl.constexpr):
    """``exp(scale (s - max s))`` of each row of scores ``s = q k^T`` [BLOCK, BLOCK], and each row's sum [BLOCK, 1].

    Both are complete: a block's queries see no other keys, so there is nothing to rescale and nothing to keep.
    """
    s = tl.dot(q, k.T)  # [BLOCK, BLOCK]
    s = tl.where(tl.arange(0, BLOCK)[None, :] < length, s, float("-inf"))
    # The difference comes before the scale: it is exact where scores are large and near each other.
    p = tl.exp2((s - tl.max(s, axis=1, keep_dims=True)) * (scale * 1.4426950408889634))
    return p, tl.sum(p, axis=1, keep_dims=True)
