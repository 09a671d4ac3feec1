"""What the suite runs for the block-scaled product, and what it expects."""

from collections.abc import Mapping
from typing import Any

import torch

from kernels_smoke.block_scaled import reference
from kernels_smoke.block_scaled.formats import FORMATS, FP8
from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import BF16, FP32, Draw
from kernels_smoke.suite.model import Case, Inputs, Kernel, Mutant, Output, Speed, Tensors, Work, case, here

EMULATION = "kernels_smoke.block_scaled.emulation"
NAMES = ("a", "b", "scale_a", "scale_b")
BARS = {"mxfp8": 1.18, "mxfp4": 1.15, "nvfp4": 1.15}
LARGE = {"m": 4096, "n": 8192, "k": 4096}
KNOWN = {form.name: form for form in FORMATS}


def draw_inputs(
    draw: Draw,
    *,
    form: str,
    m: int,
    n: int,
    k: int,
    out_dtype: torch.dtype = BF16,
    scaled: bool = False,
    powers: tuple[int, int] = (120, 130),
    a_stride: int = 0,
    b_stride: int = 0,
    scale_a_stride: int = 0,
    scale_b_stride: int = 0,
    out_stride: int = 0,
) -> Inputs:
    """Draw operands of the format ``form`` with all codes of E2M1, and scales over some powers of two.

    ``powers``: those of scales in E8M0, with their bias, for ``a``; those for ``b`` are as far from 1 the other way.
    Strides are elements as they are stored, from one row to the next. ``scaled``: the result has a scale, too.
    """
    known = KNOWN[form]
    drawn: dict[str, Any] = {"out_dtype": out_dtype, "out_stride": out_stride, "scale": None}
    for name, rows, stride, of_scales in (("a", m, a_stride, scale_a_stride), ("b", n, b_stride, scale_b_stride)):
        shape = (rows, k // known.packed)
        if known.packed == 1:
            drawn[name] = draw.normal(*shape, dtype=FP8, row_stride=stride, name=name)
        else:
            codes = draw.integers(*shape, low=0, high=256, dtype=torch.uint8, name=name)
            drawn[name] = draw.place(codes, row_stride=stride, name=name) if stride else codes
        blocks = (rows, k // known.group)
        if known.scales == FP8:
            scales = draw.uniform(*blocks, low=0.01, high=2.0, dtype=FP8, name=f"scale_{name}")
        else:
            low, high = powers if name == "a" else (255 - powers[1], 255 - powers[0])
            scales = draw.integers(*blocks, low=low, high=high, dtype=torch.uint8, name=f"scale_{name}")
        drawn[f"scale_{name}"] = draw.place(scales, row_stride=of_scales, name=f"scale_{name}") if of_scales else scales
    if scaled:
        drawn["scale"] = draw.uniform(1, low=0.25, high=0.75, dtype=FP32, name="scale")
    return drawn


def outputs(inputs: Inputs) -> Mapping[str, Output]:
    """The product [m, n]."""
    return {"out": ((inputs["a"].shape[0], inputs["b"].shape[0]), inputs["out_dtype"], inputs["out_stride"])}


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Everything touched once, and a multiplication and an addition for each element of K, at the rate of bfloat16.

    That is what Hopper multiplies once the elements are scaled; it has no matrix units that scale blocks.
    """
    read = sum(inputs[name].nbytes for name in NAMES)
    k = inputs["scale_a"].shape[1] * (16 if inputs["scale_a"].dtype == FP8 else 32)
    return Work(bytes=read + outputs["out"].nbytes, flops=2 * outputs["out"].numel() * k)


def small(name: str, level: Any = "full", **shape: Any) -> Case:
    """A case for the interpreter, too, with a result in float32."""
    return here(name, level, **{"out_dtype": FP32, "m": 20, "n": 40, "k": 160, **shape})


EXTREMES = (("2^-127", (0, 10)), ("2^127", (245, 255)))
CASES = (
    *(case(f"{form}, 300 x 500, K 1056", "quick", form=form, m=300, n=500, k=1056) for form in KNOWN),
    *(case(f"{form}, 7 rows", "deep", form=form, m=7, n=272, k=544) for form in KNOWN),
    case("nvfp4, 7 rows, scaled", form="nvfp4", m=7, n=272, k=544, scaled=True),
    case("nvfp4, 7 rows, K in parts", form="nvfp4", m=7, n=272, k=4128, scaled=True),
    case("nvfp4, 7 rows, K of 4,112, rows that are not aligned", form="nvfp4", m=7, n=272, k=4112, scaled=True),
    case("nvfp4, 100 rows", form="nvfp4", m=100, n=272, k=544),
    case("nvfp4, 165 rows, float16 out", "deep", form="nvfp4", m=165, n=144, k=400, out_dtype=torch.float16),
    case("mxfp4, rows that are not aligned", "deep", form="mxfp4", m=65, n=75, k=288, a_stride=149, b_stride=147),
    case("nvfp4, few rows that are not aligned", form="nvfp4", m=7, n=75, k=272, a_stride=149, b_stride=147),
    *(
        case(f"{form}, {m} rows, scales of {what}", form=form, m=m, n=272, k=544, powers=powers)
        for form in ("mxfp8", "mxfp4")
        for m in (9, 150)
        for what, powers in EXTREMES
    ),
    case("mxfp8, no row", form="mxfp8", m=0, n=64, k=64),
    case("mxfp8, rows of a above 2^31 elements", "deep", form="mxfp8", m=70, n=64, k=128, a_stride=2**25),
    case("nvfp4, a large product", "deep", form="nvfp4", m=2049, n=4097, k=4096, scaled=True),
    *(small(f"{form}, float32 out", "quick" if form == "nvfp4" else "full", form=form) for form in KNOWN),
    small("nvfp4, few rows, scaled", form="nvfp4", m=7, scaled=True, b_stride=96, scale_b_stride=12),
    small("nvfp4, few rows, rows that are not aligned", form="nvfp4", m=7, a_stride=83, b_stride=81),
    small("mxfp8, few rows", form="mxfp8", m=7),
    small("mxfp4, few rows, twelve words", form="mxfp4", m=3, k=96),
    *(
        small(f"{form}, {m} rows, scales of {what}", form=form, m=m, powers=powers)
        for form in ("mxfp8", "mxfp4")
        for m in (7, 20)
        for what, powers in EXTREMES
    ),
    small("mxfp4, odd rows and columns", form="mxfp4", m=19, n=37, k=96),
    small("mxfp8, rows of a further apart", form="mxfp8", a_stride=176),
    small("mxfp4, rows of b further apart", form="mxfp4", b_stride=96),
    small("mxfp8, scales of a further apart", form="mxfp8", scale_a_stride=9),
    small("nvfp4, scales of b further apart", form="nvfp4", scale_b_stride=12),
    small("mxfp8, rows of the result further apart", form="mxfp8", out_stride=44),
)
MUTANTS = tuple(
    Mutant(name, old, new, EMULATION)
    for name, old, new in (
        ("no sign", "& -0x7E400000", "& 0x01C00000"),
        ("no subnormal elements", "(bits.to(", "(tl.where((bits & 0x01800000) != 0, bits, 0).to("),
        ("elements of a word in the opposite order", "(28 - 4 * place)", "(4 * place)"),
        ("weights in another order than the rows", "PLACES, True, PACKED", "PLACES, False, PACKED"),
        ("scales of the first block", "(factors[:, :, None],", "(tl.min(factors, 1)[:, None, None],"),
        ("large scales as they are", "tl.maximum(largest - 127, 0)", "0"),
        ("small scales as they are", "tl.minimum(largest - 37, 0)", "0"),
        ("what was left out of scales not restored", "* _power(excess)[None, :]", ""),
        ("the last step omitted", "min((split + 1) * part, words)", "min((split + 1) * part, words - BLOCK_K)"),
        ("the first part of K alone", "tl.static_range(SPLITS)", "tl.static_range(1)"),
        ("rows of b taken for dense", "b_stride=b.stride(0)", "b_stride=b.shape[1]"),
        ("scales of b taken for dense", "scale_b_stride=scale_b.stride(0)", "scale_b_stride=scale_b.shape[1]"),
        ("scales taken for dense", "scales_stride=scales.stride(0)", "scales_stride=scales.shape[1]"),
        ("the result not scaled", "factor *= tl.load(scale)", "factor *= 1.0"),
    )
)

KERNELS = {
    "block_scaled_mm": Kernel(
        name="block_scaled_mm",
        module="kernels_smoke.block_scaled.block_scaled_mm",
        inputs=draw_inputs,
        outputs=outputs,
        launch=lambda module, inputs, outputs: module.block_scaled_mm(
            **{name: inputs[name] for name in (*NAMES, "scale")}, out=outputs["out"]
        ),
        reference=lambda inputs: {"out": reference.block_scaled_mm(*(inputs[name] for name in (*NAMES, "scale")))},
        # Scaled elements have at most 6 bits, products at most 12: only the sum and the result are rounded.
        checks={"out": Near(bfloat16=2.5e-3, float16=5e-4, float32=1e-5)},
        cases=CASES,
        mutants=MUTANTS,
        speeds=(
            *(
                Speed(f"{form}, 4096 x 8192, K 4096", {"form": form, **LARGE}, bar=bar, work=work)
                for form, bar in BARS.items()
            ),
            Speed("nvfp4, 16 x 16384, K 8192", {"form": "nvfp4", "m": 16, "n": 16384, "k": 8192}, bar=2.3, work=work),
        ),
        matrix_instructions=True,
    )
}
