"""What the suite runs for the k greatest of each row, and what it expects."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.routing import reference
from kernels_smoke.suite.correctness.compare import Exact, Near
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Output, Speed, Tensors, Work, big, case, here

VOCABULARY = 151_936  # of Qwen 3
FAR = 2**30 + 64  # elements from one row to the next, so that the third row is beyond 2^31
MARGIN = 1e-5  # of a uniform: cumulative weights are float32, and either neighbour may be drawn within it
EIGHTS = "kernels_smoke.routing.eights"
KEYS = "kernels_smoke.routing.keys"
SELECT = "kernels_smoke.routing.topk_softmax"


def draw_inputs(
    draw: Draw,
    *,
    rows: int,
    width: int,
    k: int,
    dtype: torch.dtype = BF16,
    renormalize: bool = False,
    temperature: float = 1.0,
    scale: float = 2.0,
    row_stride: int = 0,
    out_strides: tuple[int, int] = (0, 0),
    ties: bool = False,
    masked: bool = False,
    bits: bool = False,
) -> Inputs:
    """Draw logits [rows, width] with the standard deviation ``scale``, and a uniform for each row.

    ``ties``: logits are whole numbers, so that many are equal, and zeros of both signs are among them. ``masked``:
    all but two of the first row, and the second half of the others, are minus infinity. ``bits``: logits are the bits
    of the row's number, and minus one: a network that sorts them all sorts everything (Knuth, volume 3, 5.3.4).
    """
    logits = draw.normal(rows, width, dtype=dtype, scale=scale, row_stride=row_stride, name="logits")
    uniforms = draw.uniform(rows, low=0.0, high=0.99999, dtype=FP32, name="uniforms")
    if draw.device != "meta" and rows:
        if ties:
            logits.copy_(logits.float().round())
        if masked:
            logits[:, width // 2 :] = float("-inf")
            logits[0, 2:] = float("-inf")
        if bits:
            logits.fill_(-1.0)
            numbers = torch.arange(rows, device=logits.device)
            for bit in range(8):  # of one list in `topk_softmax.py`, and in another order of the next one
                logits[:, bit * (width // 8)] = numbers >> bit & 1
                logits[:, bit * (width // 8) + 1] = 37 * numbers >> bit & 1
        uniforms[0] = 0.0
    options = {"renormalize": renormalize, "temperature": temperature, "out_strides": out_strides}
    return {"logits": logits, "uniforms": uniforms, "k": k, **options}


def outputs(inputs: Inputs) -> dict[str, Output]:
    """Weights in float32 and indices in int32."""
    shape, strides = (inputs["logits"].shape[0], inputs["k"]), inputs["out_strides"]
    return {"weights": (shape, FP32, strides[0]), "indices": (shape, torch.int32, strides[1])}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    arguments = {name: inputs[name] for name in ("logits", "k", "renormalize", "temperature")}
    return module.topk_softmax(**arguments, out=(outputs["weights"], outputs["indices"]))


def expected(inputs: Inputs) -> Tensors:
    """Both results in float64."""
    arguments = {name: inputs[name] for name in ("logits", "k", "renormalize", "temperature")}
    return dict(zip(("weights", "indices"), reference.topk_softmax(**arguments), strict=True))


def launch_sample(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    arguments = {name: inputs[name] for name in ("logits", "uniforms", "k", "temperature")}
    return module.top_k_sample(**arguments, out=outputs["tokens"])


def expected_sample(inputs: Inputs) -> Tensors:
    """The tokens [rows, 3] for the uniforms, and for a little less and more."""
    arguments = {name: inputs[name] for name in ("logits", "k", "temperature")}
    uniforms = inputs["uniforms"].double()
    drawn = [reference.top_k_sample(uniforms=uniforms + shift, **arguments) for shift in (0.0, -MARGIN, MARGIN)]
    return {"tokens": torch.stack(drawn, dim=1)}


@dataclass(frozen=True)
class OneOf:
    """Each output [rows] is one of the reference's [rows, 3]."""

    def __call__(self, output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any]:
        """Return how many are not."""
        wrong = int((output[:, None] != reference).all(dim=1).sum())
        message = f"{wrong} of {len(output)} tokens are not those of their uniforms" if wrong else ""
        return {"error": float(wrong), "tolerance": 0.0, "message": message}


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """The logits once, and what is written."""
    return Work(bytes=sum(tensor.nbytes for tensor in (inputs["logits"], inputs["uniforms"], *outputs.values())))


SHAPES = (
    case("128 experts, 8 of them", "quick", rows=513, width=128, k=8, renormalize=True),
    case("a vocabulary", "quick", rows=5, width=VOCABULARY, k=50),
    case("float32, 300 experts, strided", rows=37, width=300, k=6, dtype=FP32, row_stride=310, out_strides=(9, 11)),
    case("1 of 1, and no row", rows=0, width=1, k=1),
    case("1,024 wide", rows=9, width=1024, k=128, temperature=0.7),
    case("1,025 wide, float32, masked", rows=9, width=1025, k=20, dtype=FP32, masked=True),
    case("2^18 and 5, float16", rows=3, width=2**18 + 5, k=64, dtype=FP16, temperature=2.5),
    case("many equal", rows=33, width=3000, k=100, ties=True, renormalize=True),
    big("70,001 rows", rows=70_001, width=64, k=4),
    case("as wide as is allowed", "deep", rows=3, width=2**20, k=128),
    case("offsets above 2^31", "deep", rows=3, width=200_000, k=10, row_stride=FAR),
    case("float32, 512 experts, strided", rows=37, width=512, k=8, dtype=FP32, row_stride=520, renormalize=True),
    case("1,000 wide, many equal", rows=301, width=1000, k=3, ties=True),
    case("65 wide, masked", rows=200, width=65, k=8, masked=True, temperature=0.5),
    case("more than there are groups", rows=3, width=1100, k=100, ties=True),
    here("float16, 40 experts, 6 of them", "quick", rows=19, width=40, k=6, dtype=FP16, renormalize=True),
    here("float32, 33 wide, strided", rows=9, width=33, k=5, dtype=FP32, row_stride=41, out_strides=(7, 9)),
    here("float16, several groups, a temperature", rows=3, width=200, k=7, dtype=FP16, temperature=0.6),
    here("float32, several groups, strided", rows=3, width=150, k=12, dtype=FP32, row_stride=163, out_strides=(0, 15)),
    here("float16, many equal", rows=5, width=40, k=20, dtype=FP16, ties=True),
    here("float32, many equal in groups", rows=3, width=130, k=20, dtype=FP32, ties=True, renormalize=True),
    here("float32, 33 wide, many equal", rows=9, width=33, k=8, dtype=FP32, ties=True, temperature=0.7),
    here("float16, more than there are groups", rows=3, width=70, k=20, dtype=FP16, ties=True),
    here("float16, masked", rows=3, width=130, k=10, dtype=FP16, masked=True),
)

TOPK = Kernel(
    name="topk_softmax",
    module="kernels_smoke.routing.topk_softmax",
    inputs=draw_inputs,
    outputs=outputs,
    launch=launch,
    reference=expected,
    checks={"weights": Near(float32=3e-6), "indices": Exact()},
    cases=(*SHAPES, here("float16, all orders of eight bits", rows=256, width=64, k=8, dtype=FP16, bits=True)),
    mutants=(
        Mutant("positions as they are", "(0x7FFFFFFF - o_n)", "(0 + o_n)", KEYS),
        Mutant("negative ones in the wrong order", "((bits & 0x7FFF0000) ^ sign) - sign +", "bits +", KEYS),
        Mutant("zeros of two signs", "((bits & 0x7FFF0000) ^ sign) - sign +", "((bits & 0x7FFF0000) ^ sign) +", KEYS),
        Mutant("two keys in rising order", "x3, x4 = _falling", "x4, x3 = _falling", EIGHTS),
        Mutant("two keys not compared", "x2, x4 = _falling(x2, x4)", "x2, x4 = x2, x4", EIGHTS),
        Mutant("the least of a list dropped", "tl.maximum(a7, b0)", "b0", EIGHTS),
        Mutant("shares of seven parts", " + _share(x7, greatest, coldness)", ""),
        Mutant("never renormalized", "kept if RENORMALIZE else total", "total"),
        Mutant("a group forgets the temperature", "(x - finite[:, None]) * coldness", "(x - finite[:, None])"),
        Mutant("the first groups", "o_n = group[:, None] * GROUP", "o_n = o_k[:, None] * GROUP"),
        Mutant(
            "places taken for positions", "tl.load(kept + place // GROUP, mask=o_k < TOP, other=0)", "(place // GROUP)"
        ),
        Mutant("in rising order", "keys[None, :] > keys[:, None]", "keys[None, :] < keys[:, None]"),
        Mutant("indices at the distances of weights", "rows * indices_stride", "rows * weights_stride"),
    ),
    speeds=(
        Speed(
            "65,536 tokens, 8 of 256 experts",
            {"rows": 65_536, "width": 256, "k": 8, "renormalize": True},
            bar=2.55,
            work=work,
        ),
        Speed("256 x 151,936, 50 of them", {"rows": 256, "width": VOCABULARY, "k": 50}, bar=3.05, work=work),
    ),
)
SAMPLE = Kernel(
    name="top_k_sample",
    module="kernels_smoke.routing.top_k_sample",
    inputs=draw_inputs,
    outputs=lambda inputs: {"tokens": ((inputs["logits"].shape[0],), torch.int32)},
    launch=launch_sample,
    reference=expected_sample,
    checks={"tokens": OneOf()},
    cases=SHAPES,
    mutants=(
        Mutant("always the greatest", "tl.where(o_k == place", "tl.where(o_k == 0 * place", SELECT),
        Mutant(
            "uniforms of the whole row", "mask=inside, other=0.0) * kept", "mask=inside, other=0.0) * total", SELECT
        ),
        Mutant(
            "a later one",
            "place += (passed <= drawn)",
            "place += (passed <= drawn + 0.1)",
            SELECT,
        ),
        Mutant("a later one of a vocabulary", "axis=1) <= drawn)", "axis=1) <= drawn + 0.1)", SELECT),
        Mutant("every row with the first uniform", "tl.load(uniforms + rows", "tl.load(uniforms + rows * 0", SELECT),
    ),
    speeds=(Speed("256 x 151,936, 50 of them", {"rows": 256, "width": VOCABULARY, "k": 50}, bar=2.8, work=work),),
)
KERNELS = {kernel.name: kernel for kernel in (TOPK, SAMPLE)}
