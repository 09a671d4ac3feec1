"""In which order kernels are compiled. Imports neither torch nor triton."""

from __future__ import annotations

from collections.abc import Sequence

from kernels_smoke.suite.registry import Entry

# Seconds on one slow CPU, for all kernels of a family and one target (2026-11); what is not named takes about one.
# fp8 products take AMD's compiler several times as long where fp8 has to be converted by software (gfx90a, gfx942).
SECONDS = {"matmul": 3.0, "rotary": 2.0, "quantization": 2.0, "fusion": 1.5}
AMD = 5.0  # times as long, for matmul


def work_units(entries: Sequence[Entry], targets: Sequence[str]) -> list[tuple[str, str]]:
    """Each (kernel, target) that is to be compiled, the longest first: so no CPU idles while another has much to do."""

    def seconds(unit: tuple[Entry, str]) -> float:
        entry, target = unit
        slow = AMD if entry.family == "matmul" and target.startswith("gfx") else 1.0
        return SECONDS.get(entry.family, 1.0) * slow

    units = sorted(((entry, target) for target in targets for entry in entries), key=seconds, reverse=True)
    return [(entry.name, target) for entry, target in units]
