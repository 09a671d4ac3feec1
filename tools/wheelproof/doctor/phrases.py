"""Symptoms in words, and the raw observations behind them."""

from collections.abc import Sequence
from typing import Literal

from wheel_checks.facts.host.error_codes import error_name, error_text
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.probes import ChildEnd, CudaProbe, KernelProbe, NvmlProbe, TorchProbe
from wheel_checks.model import Unavailable

_STEPS = {"nvml": "NVML", "cuda": "the CUDA driver", "torch": "importing torch", "kernel": "a Triton kernel"}
_PHRASES = {
    "nvml:-1": "libnvidia-ml.so.1 cannot be loaded",
    "nvml:no-device": "NVML sees no GPU",
    "cuda:-1": "libcuda.so.1 cannot be loaded",
    "cuda:no-device": "CUDA sees no GPU",
    "torch:missing": "torch is not installed",
    "torch:import": "torch cannot be imported",
    "torch:cpu-build": "torch is built for the CPU",
    "torch:unavailable": "torch does not see the GPU",
    "torch:init": "torch cannot initialize CUDA",
    "torch:compute": "torch sees the GPU and cannot compute on it",
    "triton:missing": "Triton is not installed",
    "kernel:failed": "a Triton kernel fails",
}
_TRACE_LINES = 4  # of a traceback that are shown
# What a user complains of, the most fundamental first.
_COMPLAINTS = ("torch:missing", "torch:import", "torch:hang", "torch:signal", "torch:", "cuda:", "nvml:", "kernel:", "")


def symptom_phrase(symptom: str, facts: HostFacts) -> str:
    """Such as ``cuInit gives 802``, ``importing torch hangs``."""
    if symptom in _PHRASES:
        return _PHRASES[symptom]
    step, _, what = symptom.partition(":")
    probe = getattr(facts, step)
    if what in {"hang", "signal"}:
        where = getattr(probe, "failed_at", "") or _STEPS[step]
        return f"{where} hangs" if what == "hang" else f"{where} dies of {probe.end.signal}"
    if symptom == "cuda:fewer":
        expected = 0 if isinstance(facts.nvml, Unavailable) else len(facts.nvml.gpus)
        return f"CUDA sees {len(probe.gpus)} of {expected} GPUs"
    api: Literal["nvml", "cuda"] = "nvml" if step == "nvml" else "cuda"
    call = probe.failed_at or {"nvml": "nvmlInit", "cuda": "cuInit"}[api]
    name = error_name(int(what), api)
    return f"{call} gives {what}" + (f", {name}" if name else "")


def state_phrase(symptoms: Sequence[str], facts: HostFacts) -> str:
    """What is wrong as the user sees it, and where that begins: ``torch does not see the GPU (cuInit gives 802)``."""
    complaint = next(name for start in _COMPLAINTS for name in symptoms if name.startswith(start))
    phrase = symptom_phrase(complaint, facts)
    below = [name for name in symptoms if name.startswith("cuda:")] if complaint.startswith("torch:") else []
    return f"{phrase} ({symptom_phrase(below[0], facts)})" if below else phrase


def observed(symptom: str, facts: HostFacts) -> tuple[tuple[str, str], ...]:
    """What the step after a symptom said, as labels and values."""
    step = symptom.partition(":")[0]
    probe = facts.torch if step == "triton" else getattr(facts, step)
    if isinstance(probe, Unavailable):
        return ()
    cut_short = probe.end.hang or probe.end.signal
    shown = [("ended", end_phrase(probe.end)), ("last words", probe.end.output.strip())]
    match probe:
        case NvmlProbe() | CudaProbe():
            code = "" if cut_short else error_text(probe.code, "nvml" if step == "nvml" else "cuda")
            shown += [("code", code), ("call", probe.failed_at), ("library", probe.library), ("said", probe.fault)]
        case TorchProbe():
            shown += [("said", probe.error or probe.init_error or probe.computes or ""), *_trace(probe.trace)]
        case KernelProbe():
            shown += [("said", probe.error), *_trace(probe.trace)]
    return tuple((label, value) for label, value in shown if value)


def _trace(text: str) -> list[tuple[str, str]]:
    """The last lines of a traceback, without those that only underline."""
    lines = [line.strip() for line in text.splitlines() if line.strip(" ^~\t")]
    return [("trace", line) for line in lines[-_TRACE_LINES:]]


def end_phrase(end: ChildEnd) -> str:
    """Such as ``killed after 20.0 s, waiting in nvidia_ioctl``, ``SIGSEGV``, ``exit code 1``; "" for a good end."""
    if end.hang:
        return f"killed after {end.seconds:.1f} s" + (f", waiting in {end.waits_in}" if end.waits_in else "")
    return end.signal or (f"exit code {end.exit_code}" if end.exit_code else "")
