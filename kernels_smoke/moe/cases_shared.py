"""What the cases of both grouped products share."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Case, Inputs, Mutant, Output, Speed, Strides, Tensors, Work, big, case, here

TILES = "kernels_smoke.moe.grouped_tiles"


def draw_operands(
    draw: Draw,
    *,
    counts: Sequence[int],
    n: int,
    k: int,
    dtype: torch.dtype,
    tokens: int = 0,
    first: int = 0,
    behind: int = 0,
    index_dtype: torch.dtype = torch.int32,
    out_dtype: torch.dtype = BF16,
    values: float = 1.0,
    whole: bool = False,
    a_stride: int = 0,
    b_stride: Strides = 0,
    out_stride: int = 0,
) -> dict[str, Any]:
    """Draw a, b [groups, n, k], the offsets of groups of ``counts`` rows, and the rows of a, if it is routed.

    With ``tokens``, that many rows of a are routed; otherwise a has a row for each of the result. ``first`` rows of
    the result are before the first group, ``behind`` rows behind the last. With ``whole``, elements are whole numbers
    up to 2, of which also the few bits with which Hopper adds products of fp8 hold every sum of a block.
    """
    m = first + sum(counts) + behind
    a = draw.normal(tokens or m, k, dtype=dtype, scale=values, row_stride=a_stride, name="a")
    b = draw.normal(len(counts), n, k, dtype=dtype, scale=values, row_stride=b_stride, name="b")
    for tensor in (a, b) if whole else ():
        tensor.copy_(tensor.to(FP32).round().clamp(-2, 2).to(dtype))
    ends = torch.tensor(list(itertools.accumulate(counts, initial=first)), dtype=index_dtype)
    rows = draw.integers(m, low=0, high=tokens, dtype=index_dtype, name="rows") if tokens else None
    return {
        "a": a,
        "b": b,
        "offsets": draw.place(ends, name="offsets"),
        "rows": rows,
        "out_dtype": out_dtype,
        "out_stride": out_stride,
    }


def outputs(inputs: Inputs) -> Mapping[str, Output]:
    """The result [M, n]."""
    source = inputs["a"] if inputs["rows"] is None else inputs["rows"]
    return {"out": ((source.shape[0], inputs["b"].shape[1]), inputs["out_dtype"], inputs["out_stride"])}


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Everything touched once, and a multiplication and an addition for each element of K."""
    out, a = outputs["out"], inputs["a"]
    read = sum(value.nbytes for value in inputs.values() if isinstance(value, torch.Tensor))
    return Work(bytes=read + out.nbytes, flops=2 * out.numel() * a.shape[1], unit="fp8" if a.itemsize == 1 else "bf16")


def small(name: str, level: Any = "full", **shape: Any) -> Case:
    """A case for the interpreter, too: float16 in, float32 out."""
    return here(name, level, **{"dtype": FP16, "out_dtype": FP32, "n": 40, "k": 80, **shape})


RAGGED = (0, 5, 130, 0, 0, 1, 64, 129, 0)  # rows of each group
HALVES = (64, 65, 128, 0, 127, 129, 191, 192, 193, 63)  # that end around half a tile of 128 rows
COMMON_CASES = (
    case("ragged", "quick", counts=RAGGED, n=272, k=528),
    case("ragged, routed", counts=RAGGED, n=272, k=528, tokens=70, index_dtype=torch.int64),
    case("one row for each of 200 groups", "deep", counts=(1,) * 200, n=80, k=272),
    case("few rows, routed", "deep", counts=(0, 3, 1, 0, 17), n=272, k=400, tokens=9),
    case("odd sizes: pointers", counts=RAGGED, n=75, k=301),
    case("enough for large tiles", "quick", counts=(0, 5, 700, 0, 300, 129, 0), n=4112, k=528),
    case("large tiles, half full, int64", counts=HALVES, n=4112, k=272, index_dtype=torch.int64),
    case("large tiles, whole numbers, float32", counts=HALVES, n=4112, k=272, whole=True, out_dtype=FP32),
    case("large tiles, rows before and behind the groups", counts=HALVES, n=4112, k=272, first=77, behind=140),
    case(
        "large tiles, all further apart",
        "deep",
        counts=HALVES,
        n=4112,
        k=272,
        a_stride=288,
        b_stride=304,
        out_stride=4128,
    ),
    case("rows before and behind the groups", counts=RAGGED, n=80, k=128, first=77, behind=140),
    big("large groups", counts=(700, 1, 1333), n=528, k=1040),
    big("several large tiles for each program", counts=(130, 5, 300, 64) * 20, n=1040, k=272),
    case("element offsets above 2^31", "deep", counts=(3, 0, 60, 2), n=80, k=128, b_stride=(2**30, 128, 1)),
    case("rows of b above 2^31 elements", "deep", counts=(3, 60), n=80, k=128, b_stride=2**25 + 16),
    case("rows of a above 2^31 elements", "deep", counts=(3, 60), n=80, k=128, a_stride=2**26),
    case("result offsets above 2^31", "deep", counts=(3, 60), n=80, k=128, out_stride=2**26),
    small("float16, ragged", "quick", counts=(0, 5, 20, 0, 1)),
    small("float16, ragged, routed, int64", counts=(0, 5, 20, 0, 1), tokens=7, index_dtype=torch.int64),
    small("float16, few rows", counts=(1, 0, 9)),
    small("float16, rows before and behind the groups", counts=(3, 18), first=17, behind=5),
    small("float16, rows of a further apart", counts=(3, 18), a_stride=88),
    small("float16, rows of b further apart", counts=(3, 18), b_stride=88),
    small("float16, groups of b further apart", counts=(3, 18), b_stride=(88 * 48, 88, 1)),
    small("float16, rows of the result further apart", counts=(3, 18), out_stride=44),
    small("float16, odd sizes: pointers", counts=(3, 18), n=35, k=77),
    small("no row", counts=(0, 0)),
)
COMMON_MUTANTS = (
    Mutant(
        "rows of the next group stored",
        "mask=inside[:, None] & (offs_n < n)",
        "mask=(offs_m < m)[:, None] & (offs_n < n)",
        TILES,
    ),
    Mutant("a group's last rows omitted", "// BLOCK_M + group <= block", "// BLOCK_M <= block", TILES),
    Mutant("the rows of a in order", "tl.load(rows + offs_m, mask=inside, other=0).to", "offs_m.to", TILES),
    Mutant("rows of the result taken for dense", "out_stride=out.stride(0)", "out_stride=n", TILES),
)


def in_gluon(name: str, old: str, new: str, module: str) -> Mutant:
    """A fault of the kernel for Hopper."""
    return Mutant(name, old, new, module, where=("cuda",), why="the interpreter has no Gluon")


def speeds(large: float, few: float) -> tuple[Speed, ...]:
    """The timed shapes with their bars: 32 experts of 4096 x 2048, for 16,384 rows and for 256."""
    matrices = {"n": 4096, "k": 2048}
    many = (40, 2000, 0, 512, *(478, 546) * 13, 100, 420)
    return (
        Speed("16384 rows, 32 x 4096 x 2048", {"counts": many, **matrices}, bar=large, work=work),
        Speed("256 rows, 32 x 4096 x 2048", {"counts": (1, 20, 3, 8) * 8, **matrices}, bar=few, work=work),
    )
