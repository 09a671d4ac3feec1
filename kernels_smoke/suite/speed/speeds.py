"""The task that times kernels and holds them to their bars, in a child process of the foreman, alone on the GPU."""

import functools
import importlib
import time
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kernels_smoke.suite import registry
from kernels_smoke.suite.correctness.autotuning import autotuned
from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.correctness.judge import seed_of
from kernels_smoke.suite.correctness.tasks import planned
from kernels_smoke.suite.error_texts import CRASHES, NOT_ON_THIS_GPU, AuthorError
from kernels_smoke.suite.model import Emit, Kernel, Level, Speed, Work, includes
from kernels_smoke.suite.speed.calibration import calibrate, monitor
from kernels_smoke.suite.speed.gpu_state import Monitor, describe, explain
from kernels_smoke.suite.speed.timed import Judged, judge_timed
from kernels_smoke.suite.speed.timing import InputSet, Timing, input_sets, measure

# What a measurement may be above the bar: clocks, temperature and neighbours differ from machine to machine.
MEMORY_ALLOWANCE, MATRIX_ALLOWANCE = 1.10, 1.15
NO_FP8 = "this GPU has no fp8 (e4m3) arithmetic"


def speeds(
    emit: Emit,
    *,
    kernels: Sequence[str],
    level: Level,
    seed: int,
    calibration: Mapping[str, Any] | None,
    skip: Sequence[Sequence[str]] = (),
    only: Sequence[Sequence[str]] = (),
) -> None:
    """Time what ``level`` has of ``kernels``, but the (kernel, case) in ``skip``; one record of kind "speed" for each.

    With ``only``, no others than these (kernel, case). Without a ``calibration``, calibrates first, and ends when it
    cannot. Stops after one that crashed, because nothing can be believed after it.
    """
    subjects = [registry.load(registry.entry(name)) for name in kernels]
    items = [(kernel, speed) for kernel in subjects for speed in kernel.speeds if includes(level, speed.level)]
    if only:
        items = [(kernel, speed) for kernel, speed in items if [kernel.name, speed.name] in list(map(list, only))]
    calibration = calibration or calibrate(emit)
    if calibration is None:
        return
    gpu = monitor()
    with autotuned(lambda: emit({"kind": "alive"}), on_gpu=True):
        for kernel, speed in planned(emit, items, skip):
            start = time.monotonic()
            record = run(kernel, speed, calibration, seed, gpu)
            emit({**record, "seconds": time.monotonic() - start})
            if record["outcome"] == "crash":
                return


def run(
    kernel: Kernel, speed: Speed, calibration: Mapping[str, Any], seed: int, gpu: Monitor, device: str = "cuda"
) -> dict[str, Any]:
    """The record of one speed, whatever is raised."""
    record: dict[str, Any] = {
        "kind": "speed",
        "kernel": kernel.name,
        "case": speed.name,
        "outcome": "error",
        "message": "",
        "microseconds": None,
        "floor_microseconds": None,
        "peer_microseconds": None,
        "versus": speed.versus,
        "bar": speed.bar,
        "bar_met": None,
        "ratio": None,
        "bytes": 0,
        "flops": 0,
        "unit": "bf16",
        "outputs": {},
        "evidence": {},
    }
    try:
        return record | _timed(kernel, speed, calibration, seed, gpu, device)
    except Exception as error:  # compilers and drivers raise anything; each is a result
        return record | _failure(error, kernel, speed)


def _timed(
    kernel: Kernel, speed: Speed, calibration: Mapping[str, Any], seed: int, gpu: Monitor, device: str
) -> dict[str, Any]:
    sets = input_sets(kernel, speed.shape, device=device, seed=seed_of(seed, kernel.name, speed.name))
    work = speed.work(sets[0].inputs, sets[0].outputs)
    if work.flops and not calibration[work.unit]:
        return {"outcome": "skip", "message": NO_FP8}
    module = importlib.import_module(kernel.module)
    judged = judge_timed(kernel, module, sets)
    if judged.message:
        return _wrong(judged)
    ours = [functools.partial(kernel.launch, module, each.inputs, each.outputs) for each in sets]
    timing = measure(ours, device=device)
    judged.message = judged.after()
    if judged.message:
        return _wrong(judged)
    floor, bound = floor_of(work, calibration)
    facts: dict[str, Any] = {
        "floor_microseconds": round(floor, 3),
        "bytes": work.bytes,
        "flops": work.flops,
        "unit": work.unit,
        "outputs": judged.outputs,
    }
    reference = floor
    notes = [timing.note]
    if speed.peer is not None:
        peer = _peer(speed, sets, device)
        if isinstance(peer, str):
            return facts | {"outcome": "skip", "message": peer, "evidence": {"ours": f"{timing.microseconds:.1f} us"}}
        reference = peer.microseconds
        facts["peer_microseconds"] = round(reference, 3)
        notes.append(peer.note and f"{speed.versus} was {peer.note}")
    state: dict[str, Any] = {}
    if timing.microseconds > limit(speed, reference, bound):
        again = measure(ours, device=device, while_running=lambda: state.update(gpu.read()))
        timing = min(timing, again, key=lambda each: each.microseconds)
    return facts | verdict(speed, timing, reference, bound, state) | _evidence(state, notes)


def _wrong(judged: Judged) -> dict[str, Any]:
    message = f"what is timed is wrong, so its speed is not reported: {judged.message}"
    return {"outcome": "wrong", "message": message, "outputs": judged.outputs}


def _peer(speed: Speed, sets: Sequence[InputSet], device: str) -> Timing | str:
    """The time of the other implementation, or why it could not be run."""
    assert speed.peer is not None  # noqa: S101  # the caller has looked
    try:
        return measure([functools.partial(speed.peer, each.inputs, each.outputs) for each in sets], device=device)
    except torch.cuda.OutOfMemoryError:
        raise
    except Exception as error:  # an older torch raises anything when it is asked for what it does not have
        if any(text in str(error) for text in CRASHES):
            raise
        return f"nothing to compare with: {speed.versus} says {_first_line(error)}"


def floor_of(work: Work, calibration: Mapping[str, Any]) -> tuple[float, str]:
    """The least microseconds that ``work`` can take at the calibrated rates, and what bounds it: memory or matrix."""
    memory = 1e6 * work.bytes / calibration["bandwidth"]
    matrix = 1e6 * work.flops / calibration[work.unit] if work.flops else 0.0
    return (matrix, "matrix") if matrix > memory else (memory, "memory")


def limit(speed: Speed, reference: float, bound: str) -> float:
    """The microseconds above which ``speed`` is slow: its bar, what a measurement may be off, its slack."""
    return speed.bar * reference * _allowance(bound) + speed.slack


def verdict(speed: Speed, timing: Timing, reference: float, bound: str, state: dict[str, Any]) -> dict[str, Any]:
    """Outcome, message and ratio of a measured time. ``bar_met`` leaves the allowance out of account."""
    measured, most = timing.microseconds, limit(speed, reference, bound)
    slow = measured > most
    message = ""
    if slow:
        percent = round(100 * (_allowance(bound) - 1))
        slack = f", and {speed.slack:g} us" if speed.slack else ""
        message = (
            f"{measured:.1f} us instead of at most {most:.1f}: {measured / reference:.2f} times "
            f"{speed.versus if speed.peer else 'the floor'} ({reference:.1f} us), where {speed.bar:.2f} is the bar and "
            f"{percent} % are allowed for the measurement{slack}"
        )
        message = "; ".join(filter(None, (message, explain(state))))
    return {
        "outcome": "slow" if slow else "pass",
        "message": message,
        "microseconds": round(measured, 3),
        "ratio": round(measured / reference, 4),
        "bar_met": measured <= speed.bar * reference + speed.slack,
        "held_down_by": state.get("held_down_by", []),
        "spread": round(timing.spread, 4),
    }


def _allowance(bound: str) -> float:
    return MATRIX_ALLOWANCE if bound == "matrix" else MEMORY_ALLOWANCE


def _evidence(state: Mapping[str, Any], notes: Sequence[str]) -> dict[str, Any]:
    evidence = {"GPU": describe(state)} if state else {}
    if said := "; ".join(filter(None, notes)):
        evidence["timing"] = said
    return {"evidence": evidence}


def _failure(error: Exception, kernel: Kernel, speed: Speed) -> dict[str, Any]:
    if isinstance(error, AuthorError):
        return {"outcome": "error", "message": _first_line(error)}
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, torch.cuda.OutOfMemoryError) or "out of memory" in said:  # torch's word, and the driver's
        return {"outcome": "error", "message": _out_of_memory(kernel, speed)}
    if any(text in said for text in NOT_ON_THIS_GPU):
        return {"outcome": "skip", "message": NO_FP8}
    outcome = "crash" if any(text in said for text in CRASHES) else "refused"
    return {"outcome": outcome, "message": _first_line(error), "evidence": {"error": said[-2000:]}}


def _out_of_memory(kernel: Kernel, speed: Speed) -> str:
    draw = Draw(0, "meta")
    inputs = kernel.inputs(draw, **speed.shape)
    outputs = draw.outputs(kernel.outputs(inputs)).values()
    wanted = sum(value.nbytes for value in (*inputs.values(), *outputs) if isinstance(value, torch.Tensor))
    free, total = torch.cuda.mem_get_info()
    usable = free + torch.cuda.memory_reserved()
    return (
        f"the GPU's memory does not suffice: inputs and outputs have {wanted:,} bytes, drawing and judging them takes "
        f"up to ten times as much, and {usable:,} of {total:,} are to be had; other processes have the rest (see "
        "nvidia-smi)"
    )


def _first_line(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0] if text else 'without a word'}"
