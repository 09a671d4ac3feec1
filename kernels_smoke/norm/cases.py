"""What the suite runs for the norms, and what it expects."""

from collections.abc import Mapping
from types import ModuleType

import torch

from kernels_smoke.norm import cases_all_reduce
from kernels_smoke.norm.reference import add_rms_norm
from kernels_smoke.suite.correctness.compare import Exact, Rounded
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Output, Speed, Tensors, Work, big, case, far, here

EPSILON = 1e-5  # not the default, so that it shows whether it is passed on
LAYOUT = ("out_stride", "sum_stride", "in_place", "own")  # of the inputs: what says how to call, and no argument
FAR = 2**30 + 64  # elements from one row to the next, so that the third row is beyond 2^31


def draw_inputs(
    draw: Draw,
    *,
    rows: int,
    width: int,
    dtype: torch.dtype = torch.bfloat16,
    weight_dtype: torch.dtype | None = None,
    zero_centred: bool = True,
    row_stride: int = 0,
    residual_stride: int = 0,
    out_stride: int = 0,
    sum_stride: int = 0,
    in_place: bool = False,
    own: bool = False,
    scale: float = 1.0,
    largest: float = 0.0,
) -> Inputs:
    """Draw x and residual [rows, width], weight [width]; the middle row is zero, where there are three or more.

    Values are normal with the standard deviation ``scale``, or uniform up to ``largest`` when that is given. Rows of
    the residual and of the sum are as far apart as those of x and of the norm, unless they have their own stride.
    ``own``: the function makes its results itself.
    """
    x, residual = (
        draw.uniform(rows, width, low=-largest, high=largest, dtype=dtype, row_stride=stride, name=name)
        if largest
        else draw.normal(rows, width, dtype=dtype, scale=scale, row_stride=stride, name=name)
        for name, stride in (("x", row_stride), ("residual", residual_stride or row_stride))
    )
    if rows >= 3 and x.device.type != "meta":
        x[rows // 2] = 0
        residual[rows // 2] = 0
    weight = draw.normal(width, dtype=weight_dtype or dtype, scale=0.1, name="weight")
    arguments = {"x": x, "residual": residual, "weight": weight, "zero_centred": zero_centred}
    layout = {"out_stride": out_stride, "sum_stride": sum_stride or out_stride, "in_place": in_place, "own": own}
    return {**arguments, **layout}


def outputs(inputs: Inputs) -> Mapping[str, Output]:
    """Both results look like ``x``, and have rows ``out_stride`` and ``sum_stride`` elements apart."""
    shape, dtype = tuple(inputs["x"].shape), inputs["x"].dtype
    return {"normed": (shape, dtype, inputs["out_stride"]), "sum": (shape, dtype, inputs["sum_stride"])}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function; with ``in_place``, the second result holds the residual."""
    arguments = {name: value for name, value in inputs.items() if name not in LAYOUT}
    normed, total = outputs["normed"], outputs["sum"]
    if inputs["own"]:
        made = module.fused_add_rms_norm(**arguments, epsilon=EPSILON)
        normed.copy_(made[0])
        total.copy_(made[1])
        return made
    if inputs["in_place"]:
        arguments["residual"] = total.copy_(inputs["residual"])
    return module.fused_add_rms_norm(**arguments, epsilon=EPSILON, out=(normed, total))


def reference(inputs: Inputs) -> Tensors:
    """Both results in high precision."""
    arguments = {name: value for name, value in inputs.items() if name not in LAYOUT}
    normed, total = add_rms_norm(**arguments, epsilon=EPSILON)
    return {"normed": normed, "sum": total}


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Two tensors and the weight in, two tensors out."""
    tensors = (inputs["x"], inputs["residual"], inputs["weight"], *outputs.values())
    return Work(bytes=sum(tensor.nbytes for tensor in tensors))


CASES = (
    case("4096 wide", "quick", rows=257, width=4096),
    here("fp16, 127 wide", "quick", rows=5, width=127, dtype=FP16, row_stride=144),
    case("plain weight", rows=33, width=4096, zero_centred=False),
    *(case(f"{width} wide", rows=7, width=width) for width in (1, 127, 300, 1025, 4097, 5137)),
    case("no row", rows=0, width=128),
    case("one row", rows=1, width=4096),
    case("several tiles of narrow rows", rows=1025, width=128),
    case("strided rows", rows=7, width=1000, row_stride=1024),
    case("values of 1e4", rows=7, width=4096, scale=1e4),
    case("values of 1e17, whose squares float32 just holds", rows=7, width=4096, largest=1e17),
    case("rows as wide as is allowed", rows=3, width=16384),
    big("70,001 rows", rows=70_001, width=1025),
    case("in place", rows=33, width=4096, in_place=True),
    here("fp32, 512 wide", rows=5, width=512, dtype=FP32, row_stride=528),
    here("fp32, 127 wide", rows=5, width=127, dtype=FP32, out_stride=130),
    here("fp32, one column", rows=7, width=1, dtype=FP32),
    here("fp32, values of 1e4", rows=3, width=300, dtype=FP32, scale=1e4),
    here("fp32, plain weight", rows=3, width=300, dtype=FP32, zero_centred=False),
    here("fp16, 512 wide", rows=5, width=512, dtype=FP16),
    here("fp16, sums near 65504", rows=3, width=300, dtype=FP16, largest=32000.0),
    here("fp16, weight in fp32", rows=5, width=300, dtype=FP16, weight_dtype=FP32),
    here("fp16, in place", rows=5, width=300, dtype=FP16, in_place=True),
    here(
        "fp32, strides of each tensor's own",
        rows=5,
        width=300,
        dtype=FP32,
        row_stride=304,
        residual_stride=320,
        out_stride=310,
        sum_stride=330,
    ),
    here("fp16, in place, strided", rows=5, width=300, dtype=FP16, in_place=True, row_stride=304, sum_stride=320),
    here("fp32, squares near epsilon", rows=5, width=300, dtype=FP32, scale=3e-3),
    here("fp32, its own results", rows=5, width=300, dtype=FP32, row_stride=304, own=True),
    here("fp16, no row", rows=0, width=300, dtype=FP16),
    far("offsets above 2^31 in", rows=3, width=1000, row_stride=FAR),
    far("offsets above 2^31 out", rows=3, width=1000, out_stride=FAR),
    *(
        case(f"sweep: {rows} x {width}, {str(dtype)[6:]}", "deep", rows=rows, width=width, dtype=dtype)
        for dtype in (BF16, FP16, FP32)
        for rows, width in ((4096, 128), (1023, 1024), (1024, 2880), (513, 8192), (257, 16384))
    ),
)

MUTANTS = (
    Mutant(
        "loads without a mask for columns",
        "x = tl.load(x_pointer + rows * x_stride + columns, mask=mask",
        "x = tl.load(x_pointer + rows * x_stride + columns, mask=rows < count",
    ),
    Mutant(
        "a store without a mask for columns",
        "rows * normed_stride + columns, normed, mask=mask)",
        "rows * normed_stride + columns, normed, mask=tl.sum(mask, axis=1, keep_dims=True) > 0)",
    ),
    Mutant("the last row omitted", "(rows < count) &", "(rows < count - 1) &"),
    Mutant("mean over the block", "/ width + epsilon", "/ exact.shape[1] + epsilon"),
    Mutant("no epsilon", "/ width + epsilon", "/ width"),
    Mutant("epsilon of another size", "/ width + epsilon", "/ width + 1e-6"),
    Mutant(
        "epsilon in the sum instead of the mean",
        "tl.sum(total * total, axis=1, keep_dims=True) / width + epsilon",
        "(tl.sum(total * total, axis=1, keep_dims=True) + epsilon) / width",
    ),
    Mutant("weights not zero-centred", "scale += 1.0", "scale += 0.0"),
    Mutant(
        "norm of the sum before it is rounded",
        "total = rounded.to(tl.float32)",
        "total = exact",
    ),
    Mutant("stride of the wrong tensor", "sum_stride=total.stride(0)", "sum_stride=x.stride(0)"),
    Mutant("the residual with the stride of x", "rows * residual_stride", "rows * x_stride"),
    Mutant("the sum with the stride of the norm", "rows * sum_stride", "rows * normed_stride"),
    Mutant("the norm with the stride of the sum", "rows * normed_stride", "rows * sum_stride"),
    Mutant(
        "one tensor for both results",
        "out or (allocated(torch.empty_like(x)), allocated(torch.empty_like(x)))",
        "out or (allocated(torch.empty_like(x)),) * 2",
    ),
    Mutant("residual not added", "x.to(tl.float32) + residual.to(tl.float32)", "x.to(tl.float32)"),
    Mutant(
        "offsets in 32 bits",
        "tl.arange(0, ROWS)[:, None]).to(tl.int64)",
        "tl.arange(0, ROWS)[:, None])",
        where=("cuda",),
        why="it takes rows beyond 2^31 elements, gigabytes for a slow interpreter",
    ),
)

KERNELS = {
    "fused_add_rms_norm": Kernel(
        name="fused_add_rms_norm",
        module="kernels_smoke.norm.fused_add_rms_norm",
        inputs=draw_inputs,
        outputs=outputs,
        launch=launch,
        reference=reference,
        checks={"normed": Rounded(), "sum": Exact()},
        cases=CASES,
        mutants=MUTANTS,
        speeds=(Speed("16384 x 4096", {"rows": 16384, "width": 4096}, bar=1.10, work=work),),
    ),
    "all_reduce_add_rms_norm": cases_all_reduce.KERNEL,
}
