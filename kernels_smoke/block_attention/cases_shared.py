"""What the cases of both passes share: how their inputs are drawn, sequences, mutants of the code that they share."""

import itertools
from collections.abc import Mapping
from typing import Any

import torch

from kernels_smoke.block_attention.blocks import list_blocks
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import EVERYWHERE, Case, Inputs, Mutant, big, case, far

BLOCKS_MODULE = "kernels_smoke.block_attention.blocks"

# A sequence of one token, one of more than a block, one without a token. The last block is whole, so that a mutant
# which takes each for whole stays within the tensors.
JAGGED = (1, 70, 0, 3, 64)
MANY = tuple(97 * number % 300 for number in range(60))  # some 9,000 tokens
# 691,200 tokens: as blocks of 64 and no other, and as the batch of the kernel's authors: 1,152 jagged sequences with a
# mean of 600 tokens (here 23 to 1,177, each as often as its mirror image).
WHOLE = (691_200,)
BATCH = tuple(600 + sign * (number * 577 // 575) for number in range(576) for sign in (-1, 1))
# Of 2 heads of 64, for each tensor others. They grow, so that who takes those of an earlier tensor stays within.
STRIDES = {
    name: (200 + 24 * number, 72 + 8 * number, 1)
    for number, name in enumerate(("q", "k", "v", "out", "dout", "dq", "dk", "dv"))
}
FAR = 2**30 + 64  # elements from one token to the next, so that the third token is beyond 2^31


def draw_heads(
    draw: Draw,
    tokens: int,
    heads: int,
    head_dim: int,
    *,
    dtype: torch.dtype,
    scale: float = 1.0,
    head_stride: int = 0,
    token_stride: int = 0,
    strides: tuple[int, ...] = (),
    values: torch.Tensor | None = None,
    name: str,
) -> torch.Tensor:
    """Draw [tokens, heads, head_dim], normal with the standard deviation ``scale``.

    ``values``: these instead. ``head_stride`` and ``token_stride`` are elements from one head, and from one token, to
    the next (not both); ``strides`` are those of all dimensions.
    """
    shape: tuple[int, ...] = (tokens, heads * head_dim) if token_stride else (tokens, heads, head_dim)
    row_stride = strides or token_stride or head_stride
    if values is not None:
        made = draw.place(values.reshape(shape).to(dtype), row_stride=row_stride, name=name)
    else:
        made = draw.normal(*shape, dtype=dtype, scale=scale, row_stride=row_stride, name=name)
    return made.unflatten(1, (heads, head_dim)) if token_stride else made


def draw_extreme(draw: Draw, tokens: int, heads: int, head_dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys whose scores are 8192^2, 0 and -8192^2, and exact: softmax spreads evenly over the greatest.

    A key is 8192 in one element, which no other key of its block has, and a query has any of three values in each.
    """
    q = draw.integers(tokens, heads, head_dim, low=-1, high=2, dtype=FP32).mul(8192.0)
    places = torch.arange(tokens) % head_dim
    k = 8192.0 * torch.nn.functional.one_hot(places, head_dim)[:, None].expand(-1, heads, -1)
    return q, k


def draw_blocks(draw: Draw, lengths: tuple[int, ...]) -> torch.Tensor:
    """The blocks of sequences of ``lengths``."""
    ends = torch.tensor([0, *itertools.accumulate(lengths)], dtype=torch.int32)
    return draw.place(list_blocks(ends), name="blocks")


def draw_attention(
    draw: Draw,
    *,
    lengths: tuple[int, ...],
    heads: int,
    head_dim: int,
    dtype: torch.dtype = BF16,
    scale: float = 0.0,
    extreme: bool = False,
    values: float = 1.0,
    head_stride: int = 0,
    token_stride: int = 0,
    out_stride: int = 0,
    strides: Mapping[str, tuple[int, ...]] = {},
) -> Inputs:
    """Draw q, k and v of sequences of ``lengths``, with ``heads`` heads of ``head_dim`` elements.

    ``scale`` 0 is the default. ``extreme``: see ``draw_extreme``. ``values``: standard deviation of v. ``strides``: of
    tensors by name.
    """
    shape = (sum(lengths), heads, head_dim)
    q, k = draw_extreme(draw, *shape) if extreme else (None, None)
    apart = {"dtype": dtype, "head_stride": head_stride, "token_stride": token_stride}
    return {
        "q": draw_heads(draw, *shape, **apart, values=q, strides=strides.get("q", ()), name="q"),
        "k": draw_heads(draw, *shape, **apart, values=k, strides=strides.get("k", ()), name="k"),
        "v": draw_heads(draw, *shape, **apart, scale=values, strides=strides.get("v", ()), name="v"),
        "blocks": draw_blocks(draw, lengths),
        "scale": scale or head_dim**-0.5,
        "lengths": lengths,
        "out_stride": out_stride,
        "strides": strides,
    }


def here(name: str, level: Any = "full", **shape: Any) -> Case:
    """A case for every device: small, and in float16."""
    return case(name, level, EVERYWHERE, dtype=FP16, **shape)


def exactly(name: str, **shape: Any) -> Case:
    """A case for the interpreter alone, in float32."""
    return case(name, where=("interpret",), dtype=FP32, **shape)


def shared(name: str, old: str, new: str, **where: Any) -> Mutant:
    """A fault in what both passes share."""
    return Mutant(name, old, new, module=BLOCKS_MODULE, **where)


SHARED_MUTANTS = (
    shared(
        "keys beyond the block's last not masked",
        "tl.where(tl.arange(0, BLOCK)[None, :] < length, s,",
        "tl.where(tl.arange(0, BLOCK)[None, :] < BLOCK, s,",
    ),
    shared("neighbours' tokens loaded", "mask=rows < length, other=0.0", "mask=rows < BLOCK, other=0.0"),
    shared("neighbours' tokens written", "values, mask=rows < length", "values, mask=rows < BLOCK"),
    shared("the greatest score not subtracted", "(s - tl.max(s, axis=1, keep_dims=True))", "s"),
    shared("exp2 for exp", "(scale * 1.4426950408889634)", "scale"),
    shared("the next block for every second head", "block = tile // heads", "block = (tile + 1) // heads"),
    shared("always the first head", "(tile % heads)", "(tile % heads * 0)"),
    shared(
        "offsets in 32 bits",
        "start = tl.load(blocks + 2 * block).to(tl.int64)",
        "start = tl.load(blocks + 2 * block)",
        where=("cuda",),
        why="it takes tokens beyond 2^31 elements, gigabytes for a slow interpreter",
    ),
    Mutant("heads of v at the distance of q's", "v + head * v_head", "v + head * q_head"),
)
COMMON_CASES = (
    case("jagged sequences, head of 128", "quick", lengths=MANY, heads=4, head_dim=128),
    case("jagged sequences, head of 64", lengths=MANY, heads=3, head_dim=64),
    case("blocks of 64 and no other", lengths=(64,) * 40, heads=2, head_dim=128),
    case("sequences of one token", lengths=(1,) * 40, heads=2, head_dim=128),
    big("40,000 sequences of one token", lengths=(1,) * 40_000, heads=2, head_dim=128),
    big("70,000 tokens of 17 heads, jagged", lengths=MANY * 8, heads=17, head_dim=128),
    case("heads apart, unaligned", lengths=JAGGED, heads=2, head_dim=64, head_stride=67, out_stride=65),
    case("scores of 6.7e7, many equal", lengths=MANY, heads=2, head_dim=128, extreme=True),
    case("values of 1e4", lengths=MANY, heads=2, head_dim=128, values=1e4),
    case("a scale of 1", lengths=MANY, heads=2, head_dim=64, scale=1.0),
    case("one token", lengths=(1,), heads=1, head_dim=64),
    here("fp16, jagged sequences", "quick", lengths=JAGGED, heads=2, head_dim=64),
    exactly("fp32, scores of 6.7e7, many equal", lengths=(60,), heads=2, head_dim=64, extreme=True),
    here("fp16, head of 128, a scale of 1", lengths=(65,), heads=1, head_dim=128, scale=1.0),
    here("fp16, their own strides", lengths=(70,), heads=2, head_dim=64, strides=STRIDES),
    here("fp16, no token", lengths=(0,), heads=2, head_dim=64),
    far("offsets above 2^31 in", lengths=(3,), heads=1, head_dim=64, head_stride=FAR),
    far("offsets above 2^31 out", lengths=(3,), heads=1, head_dim=64, out_stride=FAR),
)
