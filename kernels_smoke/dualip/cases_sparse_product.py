"""What the suite runs for sparse_product, and what it expects."""

from types import ModuleType

import torch

from kernels_smoke.dualip import reference
from kernels_smoke.dualip.cases_shared import draw_segments, found, placed
from kernels_smoke.dualip.cases_simplex_projection import SEGMENTS
from kernels_smoke.dualip.sparse_product import Compressed
from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Speed, Tensors, Work, big, case, here


def draw_inputs(
    draw: Draw,
    *,
    count: int,
    low: int,
    high: int,
    width: int,
    long: int = 0,
    scale: float = 1.0,
    offsets: torch.dtype = torch.int32,
) -> Inputs:
    """Draw a matrix of ``count`` segments of ``low`` to ``high`` non-zeros, one of ``long``, and a vector [width].

    Non-zeros are positive, as those of a matching problem are: the sums do not vanish.
    """
    made = draw_segments(draw, count=count, low=low, high=high, long=long, offsets=offsets)
    return {
        "indices": draw.integers(made.elements, low=0, high=width, dtype=torch.int32, name="indices"),
        "values": draw.uniform(made.elements, low=0.5 * scale, high=1.5 * scale, dtype=torch.float32, name="values"),
        "vector": draw.uniform(width, low=0.1, high=1.0, dtype=torch.float32, name="vector"),
        **placed(draw, made),
    }


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    matrix = Compressed(found(inputs), inputs["indices"], inputs["values"])
    return module.sparse_product(matrix, inputs["vector"], out=outputs["out"])


def expected(inputs: Inputs) -> Tensors:
    """The sums in float64."""
    return {"out": reference.sparse_product(found(inputs), inputs["indices"], inputs["values"], inputs["vector"])}


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Everything touched once."""
    names = ("indices", "values", "vector", "segments_offsets")
    return Work(bytes=sum(inputs[name].nbytes for name in names) + outputs["out"].nbytes)


def cusparse(inputs: Inputs, _outputs: Tensors) -> object:
    """The same product by cuSPARSE, which torch calls for matrices compressed by rows."""
    shape = (inputs["segments_order"].shape[0], inputs["vector"].shape[0])
    matrix = torch.sparse_csr_tensor(
        inputs["segments_offsets"], inputs["indices"], inputs["values"], shape, check_invariants=False
    )
    return {"out": torch.mv(matrix, inputs["vector"])}


KERNEL = Kernel(
    name="sparse_product",
    module="kernels_smoke.dualip.sparse_product",
    inputs=draw_inputs,
    outputs=lambda inputs: {"out": (tuple(inputs["segments_order"].shape), torch.float32)},
    launch=launch,
    reference=expected,
    checks={"out": Near()},
    cases=(
        case("10,000 of 0 to 32", "quick", count=10_000, low=0, high=32, width=500),
        case("300 of 0 to 3,000", count=300, low=0, high=3000, width=100_000),
        case("10,000 of 1, one of 100,000", count=10_000, low=1, high=1, width=10_000, long=100_000),
        big("100,000 of 0 to 40, 2,000,000 columns", count=100_000, low=0, high=40, width=2_000_000),
        case("values of 1e4", count=1000, low=0, high=40, width=7, scale=1e4),
        case("offsets of 64 bits", count=1000, low=0, high=40, width=77, offsets=torch.int64),
        case("more than 2^31 bytes", "deep", count=1000, low=600_000, high=600_000, width=1_000_000),
        here("20 of 0 to 9, one of 70", "quick", count=20, low=0, high=9, width=30, long=70),
        here("one of 2,500: two rounds", count=3, low=1, high=3, width=40, long=2500),
        here("17 of 1, 64 bits", count=17, low=1, high=1, width=5, offsets=torch.int64),
        here("values of 1e4, one column", count=5, low=0, high=5, width=1, scale=1e4),
        here("no element", count=3, low=0, high=0, width=4),
        here("no segment", count=0, low=0, high=0, width=4),
    ),
    mutants=(
        Mutant("first round only", "range(0, tl.max(length, axis=0), LENGTH)", "range(0, LENGTH, LENGTH)"),
        Mutant("rounds not moved on", "_elements(LENGTH, LANES) + start", "_elements(LENGTH, LANES)"),
        Mutant("values omitted", "_sum(value * tl.load(", "_sum(tl.load("),
        Mutant("gather by place", "vector + tl.max_contiguous(index,", "vector + tl.max_contiguous(element,"),
        Mutant("not masked", "inside = element < length[None, :, None]", "inside = element < LENGTH + start"),
        Mutant("stored in another order", "out + segment, total", "out + first + tl.arange(0, SEGMENTS), total"),
        Mutant("sums of one thread only", "return tl.sum(tl.sum(values, axis=0), axis=1)",
               "return tl.max(tl.sum(values, axis=0), axis=1)", SEGMENTS),
        Mutant("lanes overlap", "[:, None, None] * LANES", "[:, None, None]", SEGMENTS),
    ),
    speeds=(
        Speed(
            "A^T y: 1,000,000 columns of 0 to 32",
            {"count": 1_000_000, "low": 0, "high": 32, "width": 10_000},
            bar=1.18,
            work=work,
            versus="cuSPARSE",
            peer=cusparse,
        ),
        Speed(
            "A x: 10,000 rows of 1,500 to 1,700",
            {"count": 10_000, "low": 1500, "high": 1700, "width": 1_000_000},
            bar=1.14,
            work=work,
            versus="cuSPARSE",
            peer=cusparse,
        ),
    ),
)  # fmt: skip
