"""The program under compute-sanitizer: launches the cases of one kernel; see ``sanitizer.py``."""

import importlib
import inspect
import json
import sys
import time
from pathlib import Path

import torch
from triton.runtime.jit import JITFunction

from kernels_smoke.suite import registry
from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.correctness.judge import seed_of
from kernels_smoke.suite.error_texts import NOT_ON_THIS_GPU
from kernels_smoke.suite.sanitizer.checks import HANDS_OVER, LAUNCHED, NOT_ONE

SPECIALIZE = "gl.warp_specialize("


def main(name: str, seed: str, own: str = "") -> int:
    """Launch the cases of a kernel on the GPU, but the deep ones. What they compute is judged without the checker.

    ``own`` is the entry of a kernel from outside, in JSON.

    Tensors have no guards: what a kernel reads behind the end of one belongs to no allocation, if torch has no pool.
    """
    if own:
        registry.know([registry.Entry(**json.loads(own))])
    kernel = registry.load(registry.entry(name))
    module = importlib.import_module(kernel.module)
    launched = 0
    for case in kernel.cases:
        if "cuda" in case.where and case.level != "deep" and case.checked and not case.far:
            begun = time.monotonic()
            draw = Draw(seed_of(int(seed), name, case.name), "cuda", guard=0)
            inputs = dict(kernel.inputs(draw, **case.shape))
            try:
                kernel.launch(module, inputs, draw.outputs(kernel.outputs(inputs)))
            except Exception as error:  # compilers raise anything
                if any(text in str(error) for text in NOT_ON_THIS_GPU):
                    continue
                raise
            torch.cuda.synchronize()
            launched += 1
            print(f"{time.monotonic() - begun:.1f} s: {case.name}", flush=True)  # noqa: T201  # the last words of a slow one
    for place in _handing_over():
        print(f"{HANDS_OVER}{place}")  # noqa: T201  # read by the parent
    print(LAUNCHED if launched else NOT_ONE)  # noqa: T201  # read by the parent
    return 0


def _handing_over() -> set[str]:
    """KERNEL FILE:LINE where those that are imported hand over to specialised warps: their ``def``, and the call."""
    loaded = [value for module in list(sys.modules.values()) for value in vars(module).values()]
    # By type: isinstance asks a value for its class, and some modules have values that warn then.
    kernels = [value for value in loaded if issubclass(type(value), JITFunction) and SPECIALIZE in value.src]
    return {
        f"{kernel.__name__} {Path(inspect.getsourcefile(kernel.fn) or '').name}:{kernel.starting_line_number + number}"
        for kernel in kernels
        for number, line in enumerate(kernel.raw_src)
        if line.startswith("def ") or SPECIALIZE in line
    }


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
