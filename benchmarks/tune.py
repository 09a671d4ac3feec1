"""Which configuration of each kernel is the fastest on this GPU.

usage: python benchmarks/tune.py [--only KERNEL,...] [--limit N] [--device cuda|cpu] [--output FILE.json]

Reads the candidates of ``benchmarks/tuning/*.py``, compiles them all at once, then runs each alone on the GPU: first
whether it computes the same as the present configuration, then the time. ``--limit`` takes the first N of each kernel.
``--device cpu`` goes through the same steps in Triton's interpreter, where the times mean nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import runpy
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.forked import Ended, Job, messages, summary  # noqa: E402  # found by the line above

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    import torch

    from kernels_smoke.suite.model import Kernel, Speed
    from kernels_smoke.suite.speed.timing import InputSet

COMPILE_TIMEOUT = 180.0
TIMING_TIMEOUT = 60.0
SEED = 20261120
PRESENT = "present"


@dataclass
class Trial:
    """One candidate of one kernel at one shape, and its result. ``configuration`` None is the present one."""

    kernel: str
    case: str
    configuration: Any = None
    candidate: str = PRESENT
    microseconds: float | None = None
    fault: str = ""

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"{self.kernel} / {self.case} / {self.candidate}"


def main() -> None:
    """Read, compile, time, report."""
    parser = argparse.ArgumentParser(description="Time every candidate configuration of our kernels.")
    parser.add_argument("--only", default="", metavar="KERNEL,...")
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="the first N candidates of each kernel")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--output", type=Path, metavar="FILE.json")
    options = parser.parse_args()
    tiny = options.device == "cpu"
    if tiny:
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
    start = time.monotonic()
    trials = read(
        ROOT / "benchmarks" / "tuning", tuple(filter(None, options.only.split(","))), options.limit, tiny=tiny
    )
    print(f"{len(trials)} trials of {len({trial.kernel for trial in trials})} kernels", flush=True)
    if options.device == "cuda":
        compile_all(trials, target())
        print(f"compiled after {time.monotonic() - start:.0f} s", flush=True)
    for group in grouped(trials):
        time_all(group, options.device)
        print(table(group), flush=True)
        if options.output:  # after every kernel, so that measurements are never lost
            records = [{name: getattr(trial, name) for name in RECORDED} for trial in trials]
            options.output.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    print(f"done after {time.monotonic() - start:.0f} s")


RECORDED = ("kernel", "case", "candidate", "microseconds", "fault")


def read(folder: Path, only: Sequence[str], limit: int, *, tiny: bool = False) -> list[Trial]:
    """The trials of the kernels that ``folder`` has candidates for (or of ``only``), the present one always first."""
    from benchmarks.shapes import speeds_of  # after TRITON_INTERPRET is set
    from kernels_smoke.suite import registry  # likewise

    trials = []
    for path in sorted(folder.glob("*.py")):
        for name, candidates in runpy.run_path(str(path))["CANDIDATES"].items():
            if only and name not in only:
                continue
            for speed in speeds_of(registry.load(registry.entry(name)), tiny=tiny):
                chosen = [made for case, made in candidates if tiny or case in {"", speed.name}]
                trials.append(Trial(name, speed.name))
                distinct = dict.fromkeys(chosen[: limit or None])
                trials += [Trial(name, speed.name, configuration, repr(configuration)) for configuration in distinct]
    return trials


def grouped(trials: Sequence[Trial]) -> list[list[Trial]]:
    """The trials of one kernel and shape together."""
    groups: dict[tuple[str, str], list[Trial]] = {}
    for trial in trials:
        groups.setdefault((trial.kernel, trial.case), []).append(trial)
    return list(groups.values())


def _find(trial: Trial, device: str) -> tuple[Kernel, Speed, ModuleType]:
    from benchmarks.shapes import speeds_of  # imports torch
    from kernels_smoke.suite import registry  # likewise

    kernel = registry.load(registry.entry(trial.kernel))
    speed = next(speed for speed in speeds_of(kernel, tiny=device == "cpu") if speed.name == trial.case)
    return kernel, speed, importlib.import_module(kernel.module)


@contextlib.contextmanager
def configured(module: ModuleType, trial: Trial) -> Iterator[None]:
    """While this is active, ``module`` uses the configuration of ``trial``; the present one is noted in the trial."""
    before = module.configure

    def configure(*args: Any, **kwargs: Any) -> Any:
        if trial.configuration is not None:
            return trial.configuration
        made = before(*args, **kwargs)
        trial.candidate = f"{PRESENT}: {made!r}"
        return made

    module.configure = configure  # type: ignore[attr-defined]  # every module of a kernel has it
    try:
        yield
    finally:
        module.configure = before  # type: ignore[attr-defined]  # as above


# Compiling


def target() -> str:
    """The architecture of this GPU, asked in a child: the parent must not start CUDA. Ends the program without one."""
    for _, message in messages([Job("target", _target)], at_once=1, timeout=COMPILE_TIMEOUT):
        if isinstance(message, Ended):
            break
        found: str = message
        return found
    raise SystemExit(f"there is no GPU to tune for: {message.fault}")


def compile_all(trials: Sequence[Trial], target: str) -> None:
    """Fill Triton's cache with every trial, on all CPUs; note in a trial why it does not compile."""
    jobs = [Job(str(number), _compile, (trial, target)) for number, trial in enumerate(trials)]
    for child, message in messages(jobs, at_once=len(os.sched_getaffinity(0)), timeout=COMPILE_TIMEOUT):
        if isinstance(message, Ended) and message.fault:
            trials[int(child.job.name)].fault = f"does not compile: {message.fault}"


def _target(connection: Connection) -> None:
    import torch  # the parent must stay without CUDA, and a child has it from its parent

    major, minor = torch.cuda.get_device_capability()
    connection.send(f"sm_{major}{minor}")


def _compile(_connection: Connection, trial: Trial, target: str) -> None:
    from kernels_smoke.suite.compiling.ahead_of_time import compile_case, target_of  # imports triton

    sys.stderr = open(os.devnull, "w")  # noqa: PTH123, SIM115  # the compiler's pages about a candidate that it refuses
    kernel, speed, module = _find(trial, "cuda")
    with configured(module, trial):
        compile_case(kernel, speed, target_of(target))


# Timing


def time_all(group: Sequence[Trial], device: str) -> None:
    """Run the trials of one kernel and shape in a child; after a crash, the rest in another."""
    left = [trial for trial in group if not trial.fault]
    while left:
        for _, message in messages([Job("", _time, (left, device))], at_once=1, timeout=TIMING_TIMEOUT):
            if isinstance(message, Ended):
                if left and message.fault:
                    left.pop(0).fault = message.fault
                elif left:
                    raise SystemExit(f"{left[0].name}: the child ended and said nothing")
                continue
            trial = left.pop(0)
            trial.candidate, trial.microseconds, trial.fault = message


def _time(connection: Connection, trials: Sequence[Trial], device: str) -> None:
    """Send (candidate, microseconds or None, fault) for each of ``trials``, which are of one kernel and shape."""
    from kernels_smoke.suite.speed.timing import fresh, input_sets  # imports torch

    kernel, speed, module = _find(trials[0], device)
    sets = input_sets(kernel, speed.shape, device=device, seed=SEED, most=64 if device == "cuda" else 1)
    untouched = fresh(sets[0], device)  # timing changes tensors updated in place
    with configured(module, Trial(kernel.name, speed.name)):
        expected = _results(kernel, module, untouched, device)
    for trial in trials:
        with configured(module, trial):
            try:
                found = _trial(kernel, module, sets, untouched, expected, device)
            except Exception as error:  # noqa: BLE001  # a candidate that cannot be launched is a line of the table
                found = (None, summary(error))
        connection.send((trial.candidate, *found))


def _trial(
    kernel: Kernel,
    module: ModuleType,
    sets: Sequence[InputSet],
    untouched: InputSet,
    expected: dict[str, torch.Tensor],
    device: str,
) -> tuple[float | None, str]:
    from functools import partial  # next to the imports that must be here

    from kernels_smoke.suite.speed.timing import measure  # imports torch

    results = _results(kernel, module, untouched, device)
    for name, result in results.items():
        if fault := kernel.checks[name](result, expected[name].double())["message"]:
            return None, f"wrong, {name}: {fault}"
    calls = [partial(kernel.launch, module, each.inputs, each.outputs) for each in sets]
    return measure(calls, device=device).microseconds, ""


def _results(kernel: Kernel, module: ModuleType, inputs: InputSet, device: str) -> dict[str, torch.Tensor]:
    """All tensors written by one call."""
    from kernels_smoke.suite.speed.timing import fresh  # imports torch

    made = fresh(inputs, device)
    kernel.launch(module, made.inputs, made.outputs)
    return {**{name: made.inputs[name] for name in kernel.modifies}, **made.outputs}


# Reporting


def table(group: Sequence[Trial]) -> str:
    """The trials of one kernel and shape, fastest first, each with its ratio to the present; then failures."""
    present = group[0].microseconds
    timed = sorted((trial for trial in group if trial.microseconds), key=lambda trial: trial.microseconds or 0.0)
    lines = [f"\n{group[0].kernel}, {group[0].case}"]
    for trial in timed:
        microseconds = trial.microseconds or 0.0
        against = f"{microseconds / present:6.3f}" if present else "     ?"
        lines.append(f"{microseconds:10.2f} us {against}  {trial.candidate}")
    lines += [f"         - us       -  {trial.candidate}: {trial.fault}" for trial in group if trial.fault]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
