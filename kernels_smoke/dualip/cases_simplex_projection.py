"""What the suite runs for simplex_projection, and what it expects."""

from types import ModuleType

import torch

from kernels_smoke.dualip import reference
from kernels_smoke.dualip.cases_shared import draw_segments, found, placed
from kernels_smoke.suite.correctness.compare import Absolute
from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Speed, Tensors, Work, big, case, here

SEGMENTS = "kernels_smoke.dualip.segments"


def dropped_one_by_one() -> list[float]:
    """Values of which Newton's method, from the threshold -1, drops one at each step: 9, 8, 7, ... 2 stay.

    Each is just below the threshold of those before it, and by so much that the next one is, too; float32 allows nine.
    """
    values, threshold, below = [0.0, -0.2], -0.6, 1e-5
    while threshold - below > -1.0:
        values.append(threshold - below)
        count = len(values)
        threshold -= below / count
        below *= 1.1 * (count + 1) * (count - 1) / count
    return values


def draw_inputs(
    draw: Draw,
    *,
    count: int,
    low: int,
    high: int,
    long: int = 0,
    scale: float = 1.0,
    shift: float = 0.0,
    steps: float = 0.0,
    slowly: bool = False,
    radius: float = 1.0,
    equality: bool = False,
    offsets: torch.dtype = torch.int32,
) -> Inputs:
    """Draw values for ``count`` segments of ``low`` to ``high`` elements, and for one of ``long``.

    Values are normal around ``shift``. With ``steps``, they fall in each segment by ever larger steps of this ratio.
    ``slowly``: each segment begins with values of which one is dropped at a time, and what follows is far below.
    """
    made = draw_segments(draw, count=count, low=low, high=high, long=long, offsets=offsets)
    if steps and draw.device != "meta":
        lengths = made.offsets.diff().long()
        place = torch.arange(made.elements) - torch.repeat_interleave(made.offsets[:-1].long(), lengths)
        values = draw.place(-scale * steps ** place.float() + shift, name="values")
    elif slowly and draw.device != "meta":
        falling = torch.tensor([*dropped_one_by_one(), *[-2.0] * high])
        lengths = made.offsets.diff().long()
        place = torch.arange(made.elements) - torch.repeat_interleave(made.offsets[:-1].long(), lengths)
        values = draw.place(falling[place], name="values")
    else:
        values = draw.normal(made.elements, dtype=torch.float32, scale=scale, name="values")
        values += shift
    return {"values": values, "radius": radius, "equality": equality, **placed(draw, made)}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    options = {name: inputs[name] for name in ("radius", "equality")}
    return module.simplex_projection(inputs["values"], found(inputs), out=outputs["out"], **options)


def expected(inputs: Inputs) -> Tensors:
    """The projections by sorting, in float64."""
    options = {name: inputs[name] for name in ("radius", "equality")}
    return {"out": reference.simplex_projection(inputs["values"], found(inputs), **options)}


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Values in, values out, and the offsets."""
    return Work(bytes=inputs["values"].nbytes + outputs["out"].nbytes + inputs["segments_offsets"].nbytes)


KERNEL = Kernel(
    name="simplex_projection",
    module="kernels_smoke.dualip.simplex_projection",
    inputs=draw_inputs,
    outputs=lambda inputs: {"out": (tuple(inputs["values"].shape), torch.float32)},
    launch=launch,
    reference=expected,
    checks={"out": Absolute(1e-6)},
    cases=(
        case("10,000 of 0 to 32", "quick", count=10_000, low=0, high=32),
        big("100,000 of 0 to 32", count=100_000, low=0, high=32),
        case("3,000 of 0 to 300", count=3000, low=0, high=300),
        case("100 of 1 to 9, one of 16,384", count=100, low=1, high=9, long=16384, scale=0.2),
        case("10,000 of 5 to 20, values of 1e4", count=10_000, low=5, high=20, scale=1e4),
        case("every length, sum 1", count=4097, low=0, high=4096, equality=True),
        case("offsets of 64 bits", count=1000, low=0, high=40, offsets=torch.int64, radius=0.25),
        case("64 segments, one element dropped at a time", count=64, low=9, high=120, slowly=True, equality=True),
        case("ever larger steps", count=64, low=30, high=120, steps=1.1, scale=1e-3, shift=1.0),
        case("1,000,000 of 0 to 32", "deep", count=1_000_000, low=0, high=32),
        case("more than 2^31 bytes", "deep", count=40_000, low=10_000, high=16_384),
        here("20 of 0 to 9, one of 70", "quick", count=20, low=0, high=9, long=70),
        here("sum 1", count=13, low=0, high=9, equality=True, scale=0.1),
        here("inside the simplex", count=9, low=1, high=9, scale=0.02),
        here("values of 1e4", count=9, low=1, high=20, scale=1e4, radius=1.5),
        here("one element dropped at a time", count=5, low=9, high=17, slowly=True, equality=True),
        here("ever larger steps, around 1,000", count=5, low=12, high=17, steps=1.3, scale=0.01, shift=1000.0),
        here("radius 3", count=60, low=1, high=15, radius=3.0),
        here("sum 1, the least numbers", count=5, low=1, high=4, equality=True, shift=-3.3e38),
        here("below zero", count=9, low=1, high=5, shift=-10.0, offsets=torch.int64),
        here("no element", count=3, low=0, high=0),
        here("no segment", count=0, low=0, high=0),
    ),
    mutants=(
        Mutant("begins at zero", "threshold = tl.zeros_like(v_max) - radius", "threshold = tl.zeros_like(v_max)"),
        Mutant("two steps of Newton's method", "while shrinking > 0:", "for _ in range(2):"),
        Mutant("begins at -1", "tl.zeros_like(v_max) - radius", "tl.zeros_like(v_max) - 1.0"),
        Mutant("six steps of Newton's method", "while shrinking > 0:", "for _ in range(6):"),
        Mutant("radius forgotten", "_sum(above * below) - radius)", "_sum(above * below) - 1.0)"),
        Mutant("values cut off above zero", "[None, :, None], -2.0 * radius", "[None, :, None], -0.5 * radius"),
        Mutant("negative values stay", "- threshold[None, :, None], 0.0)", "- threshold[None, :, None], -1.0)"),
        Mutant("always the equality", "if not EQUALITY:", "if False:"),
        Mutant("never the equality", "if not EQUALITY:", "if True:"),
        Mutant("not masked", "inside = element < length[None, :, None]", "inside = element < LENGTH"),
        Mutant("not measured from the greatest", "tl.max(tl.max(value, axis=0), axis=1), 0.0)", "0.0, 0.0)"),
        Mutant("what is inside moved", "outside = v_max + threshold > 0.0", "outside = v_max > 0.0"),
        Mutant("the first class only", "order + first + place", "order + place", SEGMENTS),
        Mutant("segments in their own order", "segment = tl.load(order + first + place, mask=exists, other=0)",
               "segment = place", SEGMENTS),
        Mutant("last segment of a tile missing", "exists = place < count", "exists = place < count - 1", SEGMENTS),
    ),
    speeds=(
        # 1.15 of what was measured on an H200 (2026-11-27): 1.77 floors, 55 us. DuaLip's own in torch takes 6663 there.
        Speed("1,000,000 of 0 to 32", {"count": 1_000_000, "low": 0, "high": 32}, bar=2.0, work=work),
    ),
)  # fmt: skip
