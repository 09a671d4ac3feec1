"""Variants of an experiment that are a kernel of the suite, its eager function, or that compiled."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.experiments.model import Noted, Run

SEED = 20261127

Shape = Mapping[str, Any]
GENERATED = re.compile(
    r"^def (triton_\w+)\(", re.MULTILINE
)  # of Inductor's code: each kernel's name lists its operations


def ours(name: str, shape: Shape) -> Callable[[], Run]:
    """The kernel ``name`` on inputs of ``shape``, which are drawn as for the suite."""

    def make() -> Run:
        kernel, inputs = _drawn(name, shape)
        outputs = _draw().outputs(kernel.outputs(inputs))
        module = importlib.import_module(kernel.module)
        return lambda: kernel.launch(module, inputs, outputs)

    return make


def eager(name: str, shape: Shape) -> Callable[[], Run]:
    """Its eager function."""

    def make() -> Run:
        from benchmarks.eager import EAGER  # imports torch, which experiments() must not need

        _, inputs = _drawn(name, shape)
        return lambda: EAGER[name](inputs)

    return make


def compiled(name: str, shape: Shape) -> Callable[[], Run]:
    """Its eager function by torch.compile, with the names of the kernels that Inductor generates for it."""

    def make() -> Run:
        import torch  # as above
        from torch._inductor.utils import run_and_get_code  # likewise

        from benchmarks.eager import EAGER  # likewise

        _, inputs = _drawn(name, shape)
        tensors = {key: value for key, value in inputs.items() if isinstance(value, torch.Tensor)}
        others = {key: value for key, value in inputs.items() if key not in tensors}
        function: Any = torch.compile(lambda **given: EAGER[name]({**others, **given}), dynamic=False)
        _, code = run_and_get_code(function, **tensors)
        return Noted(lambda: function(**tensors), generated("\n".join(code)))

    return make


def generated(code: str) -> str:
    """The kernels of Inductor's ``code``, and the products that it calls."""
    kernels = sorted(set(GENERATED.findall(code)))
    calls = sorted(set(re.findall(r"extern_kernels\.(\w+)\(", code)))
    return ", ".join([*kernels, *(f"{call} (cuBLAS)" for call in calls)]) or "no kernel"


def _drawn(name: str, shape: Shape) -> tuple[Any, Any]:
    from kernels_smoke.suite import registry  # as above

    kernel = registry.load(registry.entry(name))
    return kernel, kernel.inputs(_draw(), **shape)


def _draw() -> Any:
    import torch  # as above

    from kernels_smoke.suite.correctness.draw import Draw  # likewise

    return Draw(SEED, "cuda" if torch.cuda.is_available() else "cpu")
