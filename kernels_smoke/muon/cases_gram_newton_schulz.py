"""What the suite runs for gram_newton_schulz, and what it expects: what newton_schulz gives."""

from types import ModuleType

from kernels_smoke.muon.cases_newton_schulz import case, draw_inputs, expected, small
from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Speed, Tensors, Work

OPTIONS = ("steps", "coefficients")
PRODUCT = "kernels_smoke.muon.product"


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    return module.gram_newton_schulz(inputs["x"], out=outputs["out"], **{name: inputs[name] for name in OPTIONS})


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """For five steps, restarted once: four products with x, two of them by halves, and 14 small ones by halves."""
    x = inputs["x"]
    p, q = sorted(x.shape[-2:])
    flops = (2 * p * p * q + 2 * 2 * p * p * q + 14 * p * p * p) * (x.numel() // (p * q))
    return Work(bytes=x.nbytes + outputs["out"].nbytes, flops=flops)


KERNEL = Kernel(
    name="gram_newton_schulz",
    module="kernels_smoke.muon.gram_newton_schulz",
    inputs=draw_inputs,
    outputs=lambda inputs: {"out": (tuple(inputs["x"].shape), inputs["out_dtype"], inputs["out_stride"])},
    launch=launch,
    reference=expected,
    # In float16, 20,000 matrices of 40 x 96 (torch, rounded as here, 2026-11-27) were 3.4e-3 off in the median and
    # 4.6e-3 at most, ten times as rarely for each 2.7e-4 more; 190 on an H200 agree. In bfloat16 a result is rounded by
    # 1.7e-3 more, but its matrices are not as small.
    checks={"out": Near(bfloat16=5e-3, float16=5.5e-3, floor=1e-5)},
    cases=(
        case("256 x 640", 256, 640, level="quick"),
        case("640 x 256: transposed", 640, 256),
        case("2 of 1408 x 4096, the first zero", 2, 1408, 4096, zero=True),
        case("5 of 1000 x 2500, strided, four steps", 5, 1000, 2500, row_stride=2504, out_stride=2503, steps=4),
        case("9 of 1300 x 600, one step, other coefficients", 9, 1300, 600, coefficients=(2.0, -1.5, 0.5), steps=1),
        case("127 x 1025, strided", 127, 1025, row_stride=1032, out_stride=1031),
        case("12 of 64 x 768, float32 in, bfloat16 out", 12, 64, 768, dtype=FP32, out_dtype=BF16),
        case("float16, 300 x 5137", 300, 5137, dtype=FP16),
        case("values of 1e4", 300, 512, scale=1e4),
        case("256 x 16,384", 256, 16_384, checked=False),
        case("3,001 of 64 x 768", 3001, 64, 768, checked=False),
        case("no matrix", 0, 64, 64),
        case("4096 x 12288", 4096, 12288, level="deep"),
        small("float16, 40 x 96", 40, 96, level="quick"),
        small("float16, 40 x 72", 40, 72),
        small("float16, 37 x 21: transposed", 37, 21, row_stride=24, out_stride=27, steps=3),
        small(
            "float16, 3 of 20 x 33, the first zero, strided",
            3,
            20,
            33,
            zero=True,
            row_stride=40,
            out_stride=36,
            steps=2,
        ),
        small("float16, other coefficients", 20, 33, coefficients=(2.0, -1.5, 0.5), steps=1),
        small("float32, values of 1e4", 17, 30, scale=1e4, dtype=FP32, out_dtype=FP16, steps=4),
    ),
    mutants=(
        Mutant("above the diagonal not transposed", "rounded.T, first + column", "rounded, first + column", PRODUCT),
        Mutant("no identity", "[None, :], gamma, 0.0)", "[None, :], 0.0 * gamma, 0.0)", PRODUCT),
        Mutant("the Gram matrix stays", "Product(factor, between, gram", "Product(factor, between, between"),
        Mutant("the factors of a stage but the first", "        whole = following", "        whole = factor"),
        Mutant("every matrix the first", "first = matrix * rows", "first = 0 * rows", PRODUCT),
        Mutant("half of the factors at a restart", "other, matrices, alpha=1.0", "other, matrices, alpha=0.5"),
    ),
    speeds=(
        Speed("4096 x 12288", {"shape": (4096, 12288)}, bar=1.4, work=work),
        Speed("8 of 1024 x 4096", {"shape": (8, 1024, 4096)}, bar=1.6, work=work),
    ),
    matrix_instructions=True,
)
