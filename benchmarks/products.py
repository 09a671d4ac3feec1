"""Our fp8 products next to torch's over the projections of the Qwen3 models, for every number of tokens up to 8192.

usage: python benchmarks/products.py [--tokens 1,2,4,...] [--device cuda|cpu] [--minutes 5] [--output FILE.md]

Table 1 of "Portable vLLM Model Inference Kernels in Helion" (PyTorch's blog, 10 June 2026): twelve projections, and
numbers of tokens from 1 to 8192 by powers of two. Its table 2 has geometric means over them against CUTLASS on an H100:
1.080 for scaled_mm, 0.957 for scaled_mm_blockwise. Ours are compared with torch's: cuBLAS for scales by rows, CUTLASS
for scales by blocks. Shapes not timed within ``--minutes`` are omitted, with a note.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

REPORTED = {"scaled_mm": 1.080, "scaled_mm_blockwise": 0.957}  # of CUTLASS on an H100
PROJECTIONS = {  # model: [K, N] of qkv, out, gate and up, down
    "Qwen3-1.7B": ((2048, 4096), (2048, 2048), (2048, 12288), (6144, 2048)),
    "Qwen3-8B": ((4096, 6144), (4096, 4096), (4096, 24576), (12288, 4096)),
    "Qwen3-32B": ((5120, 10240), (5120, 5120), (5120, 51200), (25600, 5120)),
}
TOKENS = tuple(2**power for power in range(14))
TINY = {"Qwen3-1.7B": ((64, 48),)}
SEED = 20261127


def main() -> None:
    """Time, and print a table for each kernel."""
    parser = argparse.ArgumentParser(description="Time our fp8 products next to torch's.")
    parser.add_argument("--tokens", default=",".join(map(str, TOKENS)), metavar="N,...")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--output", type=Path, metavar="FILE.md")
    options = parser.parse_args()
    if options.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
    until = time.monotonic() + 60 * options.minutes
    tokens = tuple(map(int, options.tokens.split(",")))
    report = "\n\n".join(table(name, tokens, options.device, until) for name in REPORTED)
    print(report)
    if options.output:
        options.output.write_text(report + "\n", encoding="utf-8")


def table(name: str, tokens: tuple[int, ...], device: str, until: float) -> str:
    """How many times as fast as torch's product ours is, by projection and number of tokens, and their mean."""
    projections = PROJECTIONS if device == "cuda" else TINY
    ratios: list[float] = []
    rows = []
    for model, sizes in projections.items():
        for k, n in sizes:
            found = [ratio(name, m, n, k, device) if time.monotonic() < until else None for m in tokens]
            ratios += [each for each in found if each]
            rows.append(f"| {model} | {k} x {n} | {' | '.join(f'{each:.2f}' if each else '-' for each in found)} |")
    mean = math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan
    left = len(rows) * len(tokens) - len(ratios)
    lines = [
        f"{name}: {mean:.3f} times as fast as torch in the geometric mean over {len(ratios)} shapes"
        + (f"; {left} were left out" if left else "")
        + f" (the document, against CUTLASS on an H100: {REPORTED[name]:.3f}).",
        "",
        f"| model | K x N | {' | '.join(f'M = {m}' for m in tokens)} |",
        f"| --- | --- |{' ---: |' * len(tokens)}",
        *rows,
    ]
    return "\n".join(lines)


def ratio(name: str, m: int, n: int, k: int, device: str) -> float | None:
    """The time of torch's product over ours; None if torch has no such product."""
    from kernels_smoke.suite import registry  # after TRITON_INTERPRET is set
    from kernels_smoke.suite.speed.timing import input_sets, measure  # likewise

    kernel = registry.load(registry.entry(name))
    module: Any = importlib.import_module(kernel.module)
    dtype: dict[str, Any] = {}
    if device == "cpu":
        import torch

        dtype = {"dtype": torch.float16}  # the interpreter has no fp8
    sets = input_sets(kernel, {"m": m, "n": n, "k": k, **dtype}, device=device, seed=SEED, most=8)
    ours = [functools.partial(kernel.launch, module, each.inputs, each.outputs) for each in sets]
    peer = next(speed.peer for speed in kernel.speeds if speed.peer)
    theirs = [functools.partial(peer, each.inputs, each.outputs) for each in sets]
    if device == "cpu":
        theirs = ours
    try:
        return measure(theirs, device=device).microseconds / measure(ours, device=device).microseconds
    except RuntimeError:
        return None


if __name__ == "__main__":
    main()
