"""What the suite runs for all_reduce_add_rms_norm, and what it expects: the inputs of all ranks are on one GPU."""

from collections.abc import Mapping
from types import ModuleType

import torch

from kernels_smoke.norm.peers import Peers
from kernels_smoke.norm.reference import all_reduce_add_rms_norm
from kernels_smoke.suite.correctness.compare import Exact, Rounded
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Output, Speed, Tensors, Work, big, case, here

NORM = "kernels_smoke.norm.fused_add_rms_norm"
EPSILON = 1e-5  # not the default, so that it shows whether it is passed on


def draw_inputs(
    draw: Draw,
    *,
    ranks: int,
    rows: int,
    width: int,
    dtype: torch.dtype = BF16,
    weight_dtype: torch.dtype | None = None,
    zero_centred: bool = True,
    scale: float = 1.0,
    row_stride: int = 0,
    residual_stride: int = 0,
    out_stride: int = 0,
    sum_stride: int = 0,
    in_place: bool = False,
) -> Inputs:
    """Draw x [ranks, rows, width] and where each rank's part is, the residual [rows, width] and the weight [width]."""
    x = draw.normal(ranks, rows, width, dtype=dtype, scale=scale, row_stride=row_stride, name="x")
    addresses = [0] * ranks if draw.device == "meta" else [part.data_ptr() for part in x]
    return {
        "x": x,
        "pointers": draw.place(torch.tensor(addresses, dtype=torch.int64), name="pointers"),
        "residual": draw.normal(rows, width, dtype=dtype, scale=scale, row_stride=residual_stride, name="residual"),
        "weight": draw.normal(width, dtype=weight_dtype or dtype, scale=0.1, name="weight"),
        "zero_centred": zero_centred,
        "out_stride": out_stride,
        "sum_stride": sum_stride,
        "in_place": in_place,
    }


def outputs(inputs: Inputs) -> Mapping[str, Output]:
    """Both results are like the residual."""
    shape, dtype = tuple(inputs["residual"].shape), inputs["residual"].dtype
    return {"normed": (shape, dtype, inputs["out_stride"]), "sum": (shape, dtype, inputs["sum_stride"])}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function; with ``in_place``, the second result holds the residual."""
    residual = outputs["sum"].copy_(inputs["residual"]) if inputs["in_place"] else inputs["residual"]
    peers = Peers(x=inputs["x"][0], pointers=inputs["pointers"])
    options = {"epsilon": EPSILON, "zero_centred": inputs["zero_centred"]}
    out = outputs["normed"], outputs["sum"]
    return module.all_reduce_add_rms_norm(peers, residual, inputs["weight"], **options, out=out)


def expected(inputs: Inputs) -> Tensors:
    """Both results in high precision."""
    arguments = {name: inputs[name] for name in ("x", "residual", "weight", "zero_centred")}
    normed, total = all_reduce_add_rms_norm(**arguments, epsilon=EPSILON)
    return {"normed": normed, "sum": total}


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """The inputs of all ranks, the residual and the weight in, two tensors out."""
    tensors = (inputs["x"], inputs["residual"], inputs["weight"], *outputs.values())
    return Work(bytes=sum(tensor.nbytes for tensor in tensors))


KERNEL = Kernel(
    name="all_reduce_add_rms_norm",
    module="kernels_smoke.norm.all_reduce_add_rms_norm",
    inputs=draw_inputs,
    outputs=outputs,
    launch=launch,
    reference=expected,
    checks={"normed": Rounded(), "sum": Exact()},
    cases=(
        case("2 ranks, 4096 wide", "quick", ranks=2, rows=257, width=4096),
        case("4 ranks, plain weight", ranks=4, rows=33, width=2048, zero_centred=False),
        case("8 ranks, 5136 wide, in float32", ranks=8, rows=7, width=5136, weight_dtype=FP32),
        case("2 ranks, one row, in place", ranks=2, rows=1, width=4096, in_place=True),
        case("no row", ranks=2, rows=0, width=128),
        big("70,001 rows", ranks=2, rows=70_001, width=1032),
        here("float16, one rank, 120 wide", "quick", ranks=1, rows=5, width=120, dtype=FP16),
        here(
            "float16, 2 ranks, strided",
            ranks=2,
            rows=5,
            width=304,
            dtype=FP16,
            row_stride=312,
            residual_stride=320,
            out_stride=330,
            sum_stride=340,
        ),
        here(
            "float32, 3 ranks, in place, plain weight",
            ranks=3,
            rows=5,
            width=300,
            dtype=FP32,
            in_place=True,
            zero_centred=False,
        ),
        here("float16, 2 ranks, small values", ranks=2, rows=4, width=64, dtype=FP16, scale=3e-3, weight_dtype=FP32),
    ),
    mutants=(
        Mutant(
            "one rank omitted", "for peer in tl.static_range(RANKS):  # in", "for peer in tl.static_range(1):  # in"
        ),
        Mutant("every rank the first", "tl.load(pointers + peer).to", "tl.load(pointers + 0 * peer).to"),
        Mutant(
            "rounded before the residual",
            "exact = total + residual",
            "exact = total.to(dtype).to(tl.float32) + residual",
        ),
        Mutant("no epsilon", "/ width + epsilon", "/ width", NORM),
        Mutant("weights not zero-centred", "scale += 1.0", "scale += 0.0", NORM),
        Mutant("the sum with the stride of the norm", "rows * sum_stride", "rows * normed_stride", NORM),
    ),
    speeds=(Speed("2 ranks, 8192 x 4096", {"ranks": 2, "rows": 8192, "width": 4096}, bar=1.15, work=work),),
)
