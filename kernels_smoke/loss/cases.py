"""What the suite runs for the losses, and what it expects."""

from types import ModuleType

import torch

from kernels_smoke.loss import reference
from kernels_smoke.suite.correctness.compare import Near, Rounded
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Output, Speed, Tensors, Work, big, case, here

VOCABULARY = 151_936  # of Qwen 3
FAR = 2**30 + 64  # elements from one row to the next, so that the third row is beyond 2^31
ARGUMENTS = ("logits", "targets", "ignore_index", "label_smoothing", "weight")


def draw_inputs(
    draw: Draw,
    *,
    rows: int,
    width: int,
    dtype: torch.dtype = BF16,
    index_dtype: torch.dtype = torch.int64,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    weighted: bool = False,
    ignored: bool = False,
    masked: bool = False,
    in_place: bool = False,
    with_gradient: bool = True,
    scale: float = 2.0,
    row_stride: int = 0,
    out_stride: int = 0,
) -> Inputs:
    """Draw logits [rows, width] with the standard deviation ``scale``, and targets.

    ``ignored``: every third row from the second on is. ``masked``: the second half of each row is minus infinity.
    ``in_place``: the gradient replaces a copy of the logits.
    """
    logits = draw.normal(rows, width, dtype=dtype, scale=scale, row_stride=row_stride, name="logits")
    targets = draw.integers(rows, low=0, high=(width + 1) // 2 if masked else width, dtype=index_dtype, name="targets")
    weight = draw.uniform(1, low=0.01, high=0.4, dtype=FP32, name="weight") if weighted else None
    if draw.device != "meta":
        if ignored:
            targets[1::3] = ignore_index
        if masked:
            logits[:, (width + 1) // 2 :] = float("-inf")
        if rows:
            targets[-1] = (width + 1) // 2 - 1 if masked else width - 1
    options = {"ignore_index": ignore_index, "label_smoothing": label_smoothing, "weight": weight}
    layout = {"out_stride": out_stride, "in_place": in_place, "with_gradient": with_gradient}
    return {"logits": logits, "targets": targets, **options, **layout}


def outputs(inputs: Inputs) -> dict[str, Output]:
    """The losses, and a gradient like the logits."""
    made: dict[str, Output] = {"losses": ((len(inputs["logits"]),), FP32)}
    if inputs["with_gradient"]:
        made["gradient"] = (tuple(inputs["logits"].shape), inputs["logits"].dtype, inputs["out_stride"])
    return made


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function; with ``in_place``, the logits are where the gradient will be."""
    arguments = {name: inputs[name] for name in ARGUMENTS}
    if inputs["in_place"]:
        arguments["logits"] = outputs["gradient"].copy_(inputs["logits"])
    return module.cross_entropy(**arguments, gradient=outputs.get("gradient"), out=outputs["losses"])


def expected(inputs: Inputs) -> Tensors:
    """Both results in float64."""
    losses, gradient = reference.cross_entropy(**{name: inputs[name] for name in ARGUMENTS})
    return {"losses": losses, "gradient": gradient} if inputs["with_gradient"] else {"losses": losses}


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """The logits once, and what is written."""
    return Work(bytes=sum(tensor.nbytes for tensor in (inputs["logits"], inputs["targets"], *outputs.values())))


KERNELS = {
    "cross_entropy": Kernel(
        name="cross_entropy",
        module="kernels_smoke.loss.cross_entropy",
        inputs=draw_inputs,
        outputs=outputs,
        launch=launch,
        reference=expected,
        # A row is little but its element at the target, whose rounding is half a unit in the last place: 2^-8 of it.
        checks={"losses": Near(), "gradient": Rounded(bfloat16=3.95e-3)},
        cases=(
            case("a vocabulary", "quick", rows=33, width=VOCABULARY, ignored=True, weighted=True),
            case("2^17 and 3, smoothed", rows=9, width=2**17 + 3, label_smoothing=0.1),
            case("float32, strided", rows=7, width=5000, dtype=FP32, row_stride=5003, out_stride=5007),
            case("float16, 300 wide, masked", rows=65, width=300, dtype=FP16, masked=True),
            case("one logit", rows=3, width=1),
            case("no row", rows=0, width=100),
            case("in place", rows=33, width=40_000, in_place=True, ignored=True),
            case("losses alone", rows=33, width=40_000, with_gradient=False),
            case("values of 1e4", rows=7, width=5000, scale=1e4),
            big("40,000 rows", rows=40_000, width=1000, ignored=True),
            case("offsets above 2^31", "deep", rows=3, width=100_000, row_stride=FAR, out_stride=FAR),
            case("more than 2^31 logits", "deep", rows=33_000, width=2**17 // 2 + 3, with_gradient=False),
            here(
                "float16, 300 wide, some ignored", "quick", rows=5, width=300, dtype=FP16, ignored=True, weighted=True
            ),
            here(
                "float32, smoothed, strided, some ignored",
                rows=4,
                width=130,
                dtype=FP32,
                label_smoothing=0.2,
                ignored=True,
                weighted=True,
                row_stride=137,
                out_stride=141,
            ),
            here(
                "float16, in place, 32-bit targets",
                rows=4,
                width=200,
                dtype=FP16,
                in_place=True,
                index_dtype=torch.int32,
            ),
            here(
                "float16, masked, one ignored index of its kind",
                rows=5,
                width=150,
                dtype=FP16,
                masked=True,
                ignored=True,
                weighted=True,
                ignore_index=149,
            ),
            here(
                "float32, losses alone, values of 100", rows=3, width=70, dtype=FP32, with_gradient=False, scale=100.0
            ),
        ),
        mutants=(
            Mutant("old sums not rescaled", "l_i * _exp(m_i - finite, FLUSH)", "l_i"),
            Mutant("lanes summed as they are", "tl.sum(l_i * tl.exp(m_i - m))", "tl.sum(l_i)"),
            Mutant(
                "gradients of ignored rows", "scale = tl.where(kept, tl.load(weight), 0.0)", "scale = tl.load(weight)"
            ),
            Mutant(
                "smoothing not in the gradient",
                "                p -= label_smoothing / width",
                "                p -= 0.0",
            ),
            Mutant(
                "nothing at the target",
                "p = tl.exp(x_target - lse) - (1.0 - label_smoothing)",
                "p = tl.exp(x_target - lse)",
            ),
            Mutant("the first block omitted", "start = (blocks - 1 - number)", "start = (blocks - number)"),
            Mutant(
                "gradients at the distances of logits",
                "gradient_stride=0 if gradient is None else gradient.stride(0)",
                "gradient_stride=logits.stride(0)",
            ),
        ),
        speeds=(
            Speed("1,024 x 151,936", {"rows": 1024, "width": VOCABULARY}, bar=1.56, work=work),
            Speed(
                "1,024 x 151,936, losses alone",
                {"rows": 1024, "width": VOCABULARY, "with_gradient": False},
                bar=1.10,
                work=work,
            ),
        ),
    )
}
