"""One kernel next to eager torch, torch.compile and its peers: in a child of ``benchmarks/kernels.py``.

One shape after the other: implementations are compiled, in parallel with other children and mostly without the GPU,
compared with ours, and timed in a turn, while all other children are stopped.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any, TypeVar

import torch
from triton.runtime.autotuner import Autotuner
from triton.testing import do_bench

from benchmarks.as_called import in_graph, microseconds, plain_and_plan
from benchmarks.comparison_report import CONTROL, OURS
from benchmarks.eager import EAGER, Results
from benchmarks.forked import summary, turn
from benchmarks.gpu_lock import Gpu
from benchmarks.peers import PEERS
from benchmarks.shapes import helion_speeds, small_speeds, speeds_of
from kernels_smoke.suite import registry
from kernels_smoke.suite.compiling.compilations import fill_cache
from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.correctness.judge import judge
from kernels_smoke.suite.model import Case, Inputs, Kernel, Speed
from kernels_smoke.suite.speed.speeds import floor_of
from kernels_smoke.suite.speed.timing import MOST_SETS, Call, InputSet, fresh, input_sets, measure

EAGER_NAME, COMPILED = "eager", "torch.compile"
LONGEST_CALLED = 500.0  # microseconds of ours on the GPU, beyond which no launch shows: then nothing is timed as called
ALIKE = 0.05  # relative: fp8 codes of two roundings differ by 2.5 %, another function by far more

# vLLM's options (the seeds' first document, "Performance Evaluation - Kernel Level").
INDUCTOR_OPTIONS = {
    "enable_auto_functionalized_v2": False,
    "size_asserts": False,
    "alignment_asserts": False,
    "scalar_asserts": False,
    "combo_kernels": True,
    "benchmark_combo_kernel": True,
}

Implementation = Callable[[InputSet], Callable[[], Results]]  # makes, for one set of inputs, the call to be timed
Made = TypeVar("Made")

quick_benchmark = functools.partial(do_bench, warmup=5, rep=20)  # milliseconds, of one configuration of a peer


@dataclass(frozen=True)
class Plan:
    """The input of every child: shapes, device, sizes, the calibrated rates, and the deadline (time.monotonic).

    ``table`` is "suite", whose shapes are timed next to peers, too, or "helion". ``target`` is the GPU's (``sm_90``).
    """

    table: str
    device: str
    tiny: bool
    seed: int
    calibration: dict[str, Any]
    target: str
    until: float


@dataclass
class Row:
    """One shape of one kernel, of the suite's table, of Helion's or of small ones, and its implementations."""

    table: str
    kernel: Kernel
    speed: Speed
    implementations: dict[str, Implementation] = field(default_factory=dict)


def rows_of(kernel: Kernel, plan: Plan) -> list[Row]:
    """All shapes of ``kernel``, those with the least memory first; the control has the suite's in every run."""
    if plan.table == "helion" and kernel.name != CONTROL:
        rows = [Row("helion", kernel, speed) for speed in helion_speeds(kernel, tiny=plan.tiny)]
    else:
        rows = [Row("suite", kernel, speed) for speed in speeds_of(kernel, tiny=plan.tiny)]
        rows += [Row("small", kernel, speed) for speed in small_speeds(kernel) if not plan.tiny]
    return sorted(rows, key=_size)


def _size(row: Row) -> int:
    values = row.kernel.inputs(Draw(0, "meta"), **row.speed.shape).values()
    return sum(value.nbytes for value in values if isinstance(value, torch.Tensor))


def compare(connection: Connection, name: str, numbers: Sequence[int], plan: Plan, gpu: Gpu) -> None:
    """Prepare and time the shapes ``numbers`` of ``rows_of`` the kernel ``name``.

    Every message is one of ``forked.turn``, or a record with the keys table, kernel, shape, implementation,
    microseconds, fault (and, for ours, the work; for short calls, their cost as called).
    """
    kernel = registry.load(registry.entry(name))
    module = importlib.import_module(kernel.module)
    rows = rows_of(kernel, plan)
    if plan.device == "cuda":
        torch._dynamo.config.recompile_limit = 64  # noqa: SLF001  # documented so; each shape is a compilation
        _benchmark_alone(gpu)
    for row in (rows[number] for number in numbers):
        for record in _prepared(row, module, plan, gpu):
            connection.send(record)
        if row.implementations:
            with gpu.alone(), turn(connection):
                for record in _timed(row, module, plan):
                    connection.send(record)
            _free(plan)


# Preparing


def compile_ours(_connection: Connection, name: str, numbers: Sequence[int], plan: Plan) -> None:
    """Fill Triton's cache for these shapes: without the GPU, and so in a process that does nothing else."""
    rows = rows_of(registry.load(registry.entry(name)), plan)
    for row in (rows[number] for number in numbers):
        with contextlib.suppress(Exception):  # compile errors are reported at the launch
            fill_cache(row.kernel, row.speed, plan.target)


def _prepared(row: Row, module: ModuleType, plan: Plan, gpu: Gpu) -> Iterator[dict[str, Any]]:
    """Fill the implementations of ``row`` with those that compute the same; yields a record for each other one."""
    kernel, speed = row.kernel, row.speed
    fault = ""
    if time.monotonic() > plan.until:
        fault = "not timed: the time was up"
    else:
        try:
            case = Case(speed.name, speed.shape)
            fault = _with_memory(gpu, lambda: judge(kernel, case, device=plan.device, seed=plan.seed)["message"])
        except Exception as error:  # noqa: BLE001  # compilers and drivers raise anything; it is a line of the report
            fault = summary(error)
    _free(plan)
    yield _record(row, OURS, fault=fault)  # also without a fault: it says that the child is alive
    if fault:
        return
    row.implementations[OURS] = _ours(kernel, module)
    inputs, expected = _with_memory(gpu, lambda: _expected(row, module, plan))
    for name, implementation in _others(row, plan):
        if time.monotonic() > plan.until:
            yield _record(row, name, fault="not compiled: the time was up")
            continue
        try:
            call = implementation(inputs)
            with contextlib.suppress(torch.cuda.OutOfMemoryError):  # the next line waits for memory
                if name != EAGER_NAME:
                    _compile(call, gpu)
            fault = _with_memory(gpu, functools.partial(_fault, call, expected))
        except Exception as error:  # noqa: BLE001  # a peer raises anything; it is a line of the report
            fault = summary(error)
        if not fault:
            row.implementations[name] = implementation
        yield _record(row, name, fault=fault)
    del inputs, expected
    _free(plan)


def _fault(call: Callable[[], Results], expected: dict[str, torch.Tensor]) -> str:
    return _difference(call(), expected)


def _with_memory(gpu: Gpu, step: Callable[[], Made]) -> Made:
    """The result of ``step``, which uses the GPU next to others, and alone when there is too little memory for that."""
    with gpu.shared():
        try:
            made = step()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
        else:
            if torch.cuda.is_initialized():
                torch.cuda.synchronize()  # who has it alone next is not to wait for this
            return made
    with gpu.alone():
        return step()


def _compile(call: Callable[[], Results], gpu: Gpu) -> None:
    """Call it once without waiting for the GPU, since compiling takes seconds; then let it tune itself there alone.

    An autotuned function compiles and launches each of its configurations in the first call, and times them in the
    second.
    """
    times: Callable[..., Any] = _once
    before = Autotuner._bench  # noqa: SLF001  # its one place where a configuration is timed
    tuning: list[Autotuner] = []

    def bench(self: Any, *args: Any, **kwargs: Any) -> Any:
        tuning.append(self)
        self.do_bench = times
        return before(self, *args, **kwargs)

    Autotuner._bench = bench  # noqa: SLF001  # as above
    try:
        call()
        if tuning:
            for each in tuning:
                each.cache.clear()
            times = quick_benchmark
            with gpu.alone():
                call()
    finally:
        Autotuner._bench = before  # noqa: SLF001  # as above


def _once(call: Callable[[], object], quantiles: Sequence[float]) -> list[float]:
    call()
    return [0.0 for _ in quantiles]


def _free(plan: Plan) -> None:
    """Give back the memory that torch keeps: other children prepare on the same GPU."""
    if plan.device == "cuda":
        torch.cuda.empty_cache()


def _expected(row: Row, module: ModuleType, plan: Plan) -> tuple[InputSet, dict[str, torch.Tensor]]:
    """One set of inputs, and our results for it, which were just found right."""
    (inputs,) = input_sets(row.kernel, row.speed.shape, device=plan.device, seed=plan.seed, most=1)
    made = fresh(inputs, plan.device)
    row.kernel.launch(module, made.inputs, made.outputs)
    return inputs, {**{name: made.inputs[name] for name in row.kernel.modifies}, **made.outputs}


def _others(row: Row, plan: Plan) -> Iterator[tuple[str, Implementation]]:
    """Eager torch and torch.compile; in the suite's shapes and the small ones the peers, too."""
    function = EAGER[row.kernel.name]  # a test requires an entry for every kernel with a speed
    yield EAGER_NAME, _functional(function)
    yield COMPILED, _functional(_compiled(function, plan.device))
    if row.table == "helion":
        return
    for name, prepare in PEERS.get(row.kernel.name, {}).items():
        yield name, _other(prepare)
    if row.speed.peer is not None:
        yield row.speed.versus, _peer(row.speed)


def _compiled(function: Callable[[Inputs], Results], device: str) -> Callable[[Inputs], Results]:
    """``function`` compiled for each shape; on the CPU only traced, because a C++ compiler takes half a minute."""
    if device != "cuda":
        traced: Callable[[Inputs], Results] = torch.compile(function, fullgraph=True, dynamic=False, backend="eager")
        return traced
    compiled: Callable[[Inputs], Results] = torch.compile(
        function, fullgraph=True, dynamic=False, backend="inductor", options=INDUCTOR_OPTIONS
    )
    return compiled


def _functional(function: Callable[[Inputs], Results]) -> Implementation:
    return lambda inputs: functools.partial(function, inputs.inputs)


def _other(prepare: Callable[[Inputs], Callable[[], Results]]) -> Implementation:
    return lambda inputs: prepare(inputs.inputs)


def _peer(speed: Speed) -> Implementation:
    def prepare(inputs: InputSet) -> Callable[[], Results]:
        def call() -> Results:
            assert speed.peer is not None  # noqa: S101  # who calls this has looked
            made = speed.peer(inputs.inputs, inputs.outputs)
            return made if isinstance(made, dict) else dict(inputs.outputs)  # without `out` it returns its results

        return call

    return prepare


def _ours(kernel: Kernel, module: ModuleType) -> Implementation:
    def prepare(inputs: InputSet) -> Callable[[], Results]:
        def call() -> Results:
            kernel.launch(module, inputs.inputs, inputs.outputs)
            return dict(inputs.outputs)

        return call

    return prepare


def _difference(results: Results, expected: dict[str, torch.Tensor]) -> str:
    """Why ``results`` differ from the same function beyond rounding; "" if they do not."""
    for name, result in results.items():
        got = (torch.cat(result, dim=-1) if isinstance(result, tuple) else result).double()
        wanted = expected[name].double()[..., : got.shape[-1]]
        if got.shape != wanted.shape:
            return f"{name} is {tuple(got.shape)} instead of {tuple(wanted.shape)}"
        error = float((got - wanted).norm() / wanted.norm().clamp(min=torch.finfo(torch.float64).tiny))
        if not error <= ALIKE:
            return f"computes something else: {name} differs by {error:.3g}"
    return ""


def _benchmark_alone(gpu: Gpu) -> None:
    """Let Inductor have the GPU alone while it times its candidates: a busy GPU would make it choose a slow one."""
    from torch._inductor.runtime.benchmarking import benchmarker  # slow to import, CUDA only

    measured = benchmarker.benchmark_gpu

    def benchmark_gpu(*arguments: Any, **options: Any) -> Any:
        with gpu.alone():
            return measured(*arguments, **options)

    benchmarker.benchmark_gpu = benchmark_gpu


# Timing


def _timed(row: Row, module: ModuleType, plan: Plan) -> Iterator[dict[str, Any]]:
    most = MOST_SETS if plan.device == "cuda" else 1
    try:
        sets = input_sets(row.kernel, row.speed.shape, device=plan.device, seed=plan.seed, most=most)
    except torch.cuda.OutOfMemoryError as error:
        yield _record(row, OURS, fault=summary(error))
        return
    short = False
    for name, implementation in row.implementations.items():
        try:
            calls: Sequence[Call] = [implementation(inputs) for inputs in sets]
            timing = measure(calls, device=plan.device)
            if name == OURS:
                short = timing.microseconds <= LONGEST_CALLED and row.table != "helion"
            called = _called(row, name, calls[0], sets[0], module, plan) if short else {}
        except Exception as error:  # noqa: BLE001  # as above: a line of the report
            yield _record(row, name, fault=summary(error))
            continue
        work = _work(row, sets[0], plan) if name == OURS else {}
        yield _record(row, name, microseconds=timing.microseconds, note=timing.note, called=called, **work)
    del sets, calls
    _free(plan)


def _called(row: Row, name: str, call: Call, inputs: InputSet, module: ModuleType, plan: Plan) -> dict[str, float]:
    """Microseconds as called: of a plain call, of a plan if there is one, of a call in a CUDA graph if it can be."""
    planned = None
    if name == OURS:
        call, planned = plain_and_plan(row.kernel, module, inputs)
    found = {"plain": microseconds(call, device=plan.device)}
    if planned is not None:
        found["plan"] = microseconds(planned, device=plan.device)
    if plan.device == "cuda":
        with contextlib.suppress(RuntimeError):  # calls that cannot be captured have a note already
            found["graph"] = in_graph(call)
    return found


def _work(row: Row, inputs: InputSet, plan: Plan) -> dict[str, Any]:
    work = row.speed.work(inputs.inputs, inputs.outputs)
    floor, _ = floor_of(work, plan.calibration)
    return {
        "floor_microseconds": floor,
        "bytes": work.bytes,
        "flops": work.flops,
        "unit": work.unit,
        "bar": row.speed.bar,
        "versus": row.speed.versus,
    }


def _record(row: Row, implementation: str, fault: str = "", **facts: Any) -> dict[str, Any]:
    names = {"table": row.table, "kernel": row.kernel.name, "shape": row.speed.name}
    return {**names, "implementation": implementation, "microseconds": None, "fault": fault, **facts}
