"""Measurements of an invented GPU, whose clock advances when a kernel runs.

The tests marked ``kernels`` run in the Python that has torch, as scripts that return their results.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from kernels_smoke.suite.speed.gpu_state import Monitor, explain, reasons
from tests.support.smoke import document
from tests.support.torch_worker import found
from wheel_checks.facts.kernels.document import parse_smoke_document

GPU = """
import torch
from kernels_smoke.suite.speed import timing

class Gpu:
    clock, capturing, calls, refuse, allowed = 0.0, None, 0, False, 10**9
    def kernel(self, microseconds=100.0):
        def call():
            if self.capturing is not None:
                if self.refuse:
                    raise RuntimeError("operation not permitted when stream is capturing\\nmore")
                self.capturing.append(microseconds)
            else:
                self.calls += 1
                self.clock += microseconds
        return call

gpu = Gpu()

class Event:
    def __init__(self, enable_timing): self.time = None
    def record(self): self.time = gpu.clock
    def elapsed_time(self, other): return (other.time - self.time) / 1000

class Graph:
    def capture_begin(self): gpu.capturing = []
    def capture_end(self): self.made, gpu.capturing = gpu.capturing, None
    def replay(self): gpu.clock += sum(self.made)

class Stream:
    def __enter__(self): return self
    def __exit__(self, *rest): return None

torch.cuda.Event, torch.cuda.CUDAGraph, torch.cuda.Stream = Event, Graph, Stream
torch.cuda.stream = lambda stream: stream
torch.cuda.synchronize = lambda: None
"""


def measured(script: str) -> Any:
    """What ``script`` prints after the made-up GPU was put in place of CUDA."""
    return found(GPU + script)


@pytest.mark.kernels
def test_the_time_of_a_call_is_that_of_a_replay_divided_by_its_calls() -> None:
    timing = measured("answer(vars(timing.measure([gpu.kernel(3.0) for _ in range(4)])))")
    assert timing["microseconds"] == pytest.approx(3.0)
    assert timing["spread"] == pytest.approx(0.0)
    assert timing["note"] == ""
    assert timing["calls"] % 4 == 0  # every input set equally often
    assert timing["calls"] * 3.0 == pytest.approx(2000, rel=0.1)  # so long that the start of a replay does not count
    assert timing["replays"] == 7  # 15 ms


@pytest.mark.kernels
@pytest.mark.parametrize(("microseconds", "calls", "replays"), [(9000.0, 1, 5), (0.001, 1024, 50)])
def test_slow_calls_are_repeated_a_few_times_and_fast_ones_not_for_ever(
    microseconds: float, calls: int, replays: int
) -> None:
    timing = measured(f"answer(vars(timing.measure([gpu.kernel({microseconds})])))")
    assert (timing["calls"], timing["replays"]) == (calls, replays)


@pytest.mark.kernels
def test_a_call_that_cannot_be_captured_is_timed_without_a_graph_and_the_note_says_why() -> None:
    timing = measured("gpu.refuse = True\nanswer(vars(timing.measure([gpu.kernel()])))")
    assert timing["microseconds"] == pytest.approx(100.0)
    assert timing["note"] == (
        "timed without a CUDA graph, which refused it: operation not permitted when stream is capturing"
    )


@pytest.mark.kernels
def test_what_a_call_raises_comes_through_and_the_state_is_queried_while_the_gpu_works() -> None:
    script = """
def broken(): raise ValueError("no such shape")
try:
    timing.measure([broken])
except ValueError as error:
    said = str(error)
seen = []
timing.measure([gpu.kernel()], while_running=lambda: seen.append(gpu.clock))
answer([said, len(seen)])
"""
    assert measured(script) == ["no such shape", 1]


SETS = """
import torch
from kernels_smoke.suite.speed import timing
from kernels_smoke.suite.model import Kernel

def inputs(draw, *, rows):
    x = draw.normal(rows, 100, dtype=torch.float32, row_stride=128, name="x")
    return {"x": x, "codes": x.to(torch.float8_e4m3fn), "flag": True}

def outputs(given):
    return {"out": (tuple(given["x"].shape), torch.bfloat16)}

kernel = Kernel("k", "m", inputs, outputs, None, None, {}, (), ())
"""


@pytest.mark.kernels
def test_input_sets_are_equal_lie_in_other_memory_and_have_the_same_strides() -> None:
    script = """
timing.ROTATION = 3 * 7 * 100 * (4 + 1 + 2) - 1
sets = timing.input_sets(kernel, {"rows": 7}, device="cpu", seed=1)
first, last = sets[0].inputs, sets[-1].inputs
answer([
    len(sets),
    torch.equal(first["x"], last["x"]) and torch.equal(first["codes"].float(), last["codes"].float()),
    len({each.inputs["x"].data_ptr() for each in sets} | {each.outputs["out"].data_ptr() for each in sets}),
    last["x"].stride(),
    last["flag"],
])
"""
    assert found(SETS + script) == [3, True, 6, [128, 1], True]


@pytest.mark.kernels
def test_there_is_one_set_of_large_inputs_and_no_more_than_the_most_of_small_ones() -> None:
    script = """
sizes = [len(timing.input_sets(kernel, {"rows": rows}, device="cpu", seed=1)) for rows in (1, 400_000)]
answer([*sizes, len(timing.input_sets(kernel, {"rows": 1}, device="cpu", seed=1, most=2))])
"""
    assert found(SETS + script) == [64, 1, 2]


@pytest.mark.kernels
def test_fresh_outputs_are_poison_and_fresh_inputs_may_be_written() -> None:
    script = """
(made,) = timing.input_sets(kernel, {"rows": 2}, device="cpu", seed=1, most=1)
other = timing.fresh(made, "cpu")
other.inputs["x"].zero_()
answer([bool(other.outputs["out"].isnan().all()), float(made.inputs["x"].abs().sum()) > 0])
"""
    assert found(SETS + script) == [True, True]


# The verdict

SPEED = """
import dataclasses, torch
from kernels_smoke.suite.speed import speeds as speed
from kernels_smoke.suite.speed.gpu_state import Monitor
from kernels_smoke.suite.model import Kernel, Speed, Work
from kernels_smoke.suite.speed.timing import Timing

RATES = {"bandwidth": 1e12, "bf16": 1e15, "fp8": None}
times = []

def measure(calls, *, device, while_running=lambda: None):
    calls[0]()
    while_running()
    return Timing(times.pop(0), 0.01, 1, 1)

def work(inputs, outputs):
    return WORK

def launch(module, inputs, outputs):
    pass

WORK = Work(bytes=100_000_000)  # 100 us at 1 TB/s
drawn = lambda draw: {"x": draw.empty(4, dtype=torch.float32)}
kernel = Kernel("k", "json", drawn, lambda given: {}, launch, lambda given: {}, {}, (), ())
timed = Speed("big", {}, bar=1.1, work=work)
speed.measure = measure

class Hot(Monitor):
    def read(self):
        return {"held_down_by": ["software power cap"], "sm_clock_mhz": 900, "sm_clock_limit_mhz": 1980}

def run(**changes):
    record = speed.run(kernel, dataclasses.replace(timed, **changes), RATES, 1, Hot(), "cpu")
    answer(record)
"""


@pytest.mark.kernels
def test_a_time_within_the_bar_passes_and_one_within_the_allowance_passes_without_meeting_the_bar() -> None:
    record = found(SPEED + "times[:] = [105.0]\nrun()")
    assert (record["outcome"], record["bar_met"], record["ratio"]) == ("pass", True, 1.05)
    assert record["floor_microseconds"] == 100.0
    record = found(SPEED + "times[:] = [120.0]\nrun()")  # the bar is 110, and 10 % of it are allowed
    assert (record["outcome"], record["bar_met"]) == ("pass", False)


@pytest.mark.kernels
def test_a_slow_time_is_measured_again_and_the_better_one_counts() -> None:
    assert found(SPEED + "times[:] = [130.0, 119.0]\nrun()")["outcome"] == "pass"
    record = found(SPEED + "times[:] = [130.0, 140.0]\nrun()")
    assert (record["outcome"], record["microseconds"]) == ("slow", 130.0)
    assert record["message"] == (
        "130.0 us instead of at most 121.0: 1.30 times the floor (100.0 us), where 1.10 is the bar and 10 % are "
        "allowed for the measurement; the GPU's clocks were held down: software power cap, SM clock 900 of 1980 MHz"
    )
    assert (record["held_down_by"], record["evidence"]) == (["software power cap"], {"GPU": "SM clock 900 of 1980 MHz"})
    shown = document(verdict="fail", speeds=[{"kernel": "k", "case": "big", **record}])
    (read,) = parse_smoke_document(json.dumps(shown).encode()).speeds  # as wheelproof reads it
    assert read.held_down_by == ("software power cap",)
    assert [note.value for note in read.notes] == ["SM clock 900 of 1980 MHz"]


@pytest.mark.kernels
def test_with_a_peer_its_time_is_the_reference_and_slack_is_added() -> None:
    record = found(SPEED + "times[:] = [33.0, 20.0, 33.0]\nrun(bar=1.0, versus='cuBLAS', peer=lambda i, o: None)")
    assert (record["outcome"], record["ratio"], record["peer_microseconds"]) == ("slow", 1.65, 20.0)
    assert "1.65 times cuBLAS (20.0 us), where 1.00 is the bar" in record["message"]
    record = found(SPEED + "times[:] = [24.0, 20.0]\nrun(bar=1.0, versus='cuBLAS', peer=lambda i, o: None, slack=3.0)")
    assert (record["outcome"], record["bar_met"]) == ("pass", False)  # 20 * 1.1 + 3 are allowed; 20 + 3 are the bar


@pytest.mark.kernels
def test_what_computes_is_held_to_the_matrix_rate_and_allowed_more() -> None:
    script = "WORK = Work(bytes=1000, flops=10**11)\ntimes[:] = [120.0, 125.0]\nrun()"  # 100 us at 1e15; the bar is 110
    record = found(SPEED + script)
    assert (record["outcome"], record["floor_microseconds"]) == ("pass", 100.0)  # 126.5 with 15 %


@pytest.mark.kernels
def test_without_fp8_without_the_peer_and_without_memory_it_says_so() -> None:
    record = found(SPEED + "WORK = Work(bytes=1000, flops=10**11, unit='fp8')\nrun()")
    assert (record["outcome"], record["message"]) == ("skip", "this GPU has no fp8 (e4m3) arithmetic")

    lacking = "def peer(i, o): raise NotImplementedError('rowwise scaling needs CUDA 12.9')\n"
    record = found(SPEED + lacking + "times[:] = [50.0]\nrun(versus='cuBLAS', peer=peer)")
    assert record["outcome"] == "skip"
    assert record["message"] == (
        "nothing to compare with: cuBLAS says NotImplementedError: rowwise scaling needs CUDA 12.9"
    )

    full = """
torch.cuda.mem_get_info = lambda: (1_000, 24_000_000_000)
torch.cuda.memory_reserved = lambda: 500
def measure(calls, **rest): raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
speed.measure = measure
run()
"""
    record = found(SPEED + full)
    assert record["outcome"] == "error"
    assert "inputs and outputs have 16 bytes" in record["message"]
    assert "1,500 of 24,000,000,000 are to be had" in record["message"]


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ("RuntimeError('CUDA error: an illegal memory access was encountered')", "crash"),
        ("RuntimeError('out of resource: shared memory, Required: 300000')", "refused"),
        ("RuntimeError('type fp8e4nv not supported in this architecture')", "skip"),
    ],
)
def test_what_our_kernel_raises_is_a_crash_a_refusal_or_a_skip(message: str, outcome: str) -> None:
    record = found(SPEED + f"def measure(calls, **rest): raise {message}\nspeed.measure = measure\nrun()")
    assert record["outcome"] == outcome


@pytest.mark.kernels
def test_the_task_says_what_it_will_do_and_what_it_begins_and_leaves_out_what_is_done() -> None:
    script = """
speed.registry.load = lambda entry: dataclasses.replace(
    kernel, name=entry, speeds=(timed, dataclasses.replace(timed, name="deep one", level="deep"))
)
speed.registry.entry = lambda name: name
speed.monitor = Hot
real, records = speed.run, []
speed.run = lambda *arguments: real(*arguments, "cpu")
times[:] = [105.0]
speed.speeds(records.append, kernels=["a", "b"], level="full", seed=1, calibration=RATES, skip=[["a", "big"]])
answer(records)
"""
    plan, begin, record = found(SPEED + script)
    assert plan == {"kind": "plan", "items": [["b", "big"]]}
    assert begin == {"kind": "begin", "kernel": "b", "case": "big"}
    assert (record["kind"], record["kernel"], record["outcome"]) == ("speed", "b", "pass")


# Timed kernels are judged

JUDGED = """
import types, torch
from kernels_smoke.suite.correctness.compare import Exact
from kernels_smoke.suite.model import Kernel
from kernels_smoke.suite.speed.timed import judge_timed
from kernels_smoke.suite.speed.timing import input_sets

launches = []

def launch(module, inputs, outputs):
    launches.append(0)
    wrong(len(launches), inputs, outputs)

def right(inputs, outputs):
    outputs["out"].copy_(inputs["x"] + inputs["total"])
    inputs["total"] += inputs["x"]

def wrong(number, inputs, outputs):
    right(inputs, outputs)

kernel = Kernel(
    "adds", "json",
    lambda draw, rows: {
        name: draw.normal(rows, 8, dtype=torch.float32, name=name) for name in ("x", "total")
    },
    lambda inputs: {"out": (tuple(inputs["x"].shape), torch.float32)},
    launch,
    lambda inputs: {"out": inputs["x"] + inputs["total"], "total": inputs["x"] + inputs["total"]},
    {"out": Exact(), "total": Exact()}, (), (), modifies=("total",),
)

def tried(rows=100, sets=3):
    judged = judge_timed(kernel, None, input_sets(kernel, {"rows": rows}, device="cpu", seed=1, most=sets))
    answer([judged.message, judged.message or judged.after(), len(launches)])
"""


@pytest.mark.kernels
def test_a_timed_shape_is_judged_in_place_and_launched_often_from_the_same_values() -> None:
    message, after, launches = found(JUDGED + "tried()")
    assert (message, after) == ("", "")
    assert 5 <= launches <= 257


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("inputs['total'][90:] = 0", "total: 80 of 800 elements differ"),  # a row
        ("outputs['out'][:, 7:] += 1e-3", "out: 100 of 800 elements differ"),  # one element of each
        ("outputs['out'][99] = float('nan') if number == 3 else outputs['out'][99]", "out: launch 3, on equal inputs,"),
        ("outputs['out'][5, 5] += 1e-6 if number == 2 else 0", "out: launch 2, on equal inputs, wrote other bits"),
    ],
)
def test_what_is_wrong_in_a_timed_shape_is_named(wrong: str, says: str) -> None:
    script = f"def wrong(number, inputs, outputs):\n    right(inputs, outputs)\n    {wrong}\ntried()"
    assert found(JUDGED + script)[0].startswith(says)


@pytest.mark.kernels
def test_a_launch_that_does_nothing_leaves_poison() -> None:
    script = "def wrong(number, inputs, outputs):\n    if number % 4: right(inputs, outputs)\ntried()"
    assert found(JUDGED + script)[0].startswith("total: launch 4, on equal inputs, wrote other bits")


@pytest.mark.kernels
def test_what_the_timed_launches_wrote_is_compared_too() -> None:
    script = """
import dataclasses
kernel = dataclasses.replace(
    kernel, modifies=(), checks={"out": Exact()}, reference=lambda inputs: {"out": 2 * inputs["x"]},
    launch=lambda module, inputs, outputs: outputs["out"].copy_(2 * inputs["x"]),
)
sets = input_sets(kernel, {"rows": 10}, device="cpu", seed=1, most=3)
judged = judge_timed(kernel, None, sets)
before = judged.after()
sets[2].outputs["out"][3, 3] += 1
answer([judged.message, before, judged.after()])
"""
    message, before, after = found(JUDGED + script)
    assert (message, before) == ("", "")
    assert after.startswith("out: the timed launches on set 2 of 3 wrote other bits than the first launch, in ")


@pytest.mark.kernels
def test_a_large_result_is_judged_in_parts_and_the_part_is_named() -> None:
    script = """
from kernels_smoke.suite.speed import timed
timed.PART = 100
def wrong(number, inputs, outputs):
    right(inputs, outputs)
    outputs['out'][50] += 1
tried()
"""
    assert found(JUDGED + script)[0].startswith("out: 8 of 104 elements differ (of those from 39 to 51)")


@pytest.mark.kernels
def test_a_wrong_timed_run_is_wrong_and_has_no_speed() -> None:
    script = """
kernel = dataclasses.replace(
    kernel, outputs=lambda given: {"out": ((4,), torch.float32)},
    reference=lambda given: {"out": torch.ones(4)}, checks={"out": Exact()},
    launch=lambda module, inputs, outputs: outputs["out"].zero_(),
)
from kernels_smoke.suite.correctness.compare import Exact
kernel = dataclasses.replace(kernel, checks={"out": Exact()})
times[:] = [50.0]
run()
"""
    script = script.replace('checks={"out": Exact()},\n    launch', "checks={},\n    launch")
    record = found(SPEED + script)
    assert (record["outcome"], record["microseconds"], record["bar_met"]) == ("wrong", None, None)
    assert record["message"] == "what is timed is wrong, so its speed is not reported: out: 4 of 4 elements differ"
    assert record["outputs"]["out"]["error"] == 4.0


# The state of the GPU


class Library:
    """NVML as its functions answer; a missing one is missing there."""

    def nvmlDeviceGetClockInfo(self, _device: object, kind: int, answer: Any) -> int:  # noqa: N802  # NVML's name
        answer._obj.value = {1: 1410, 2: 3201}[kind]
        return 0

    def nvmlDeviceGetPowerUsage(self, _device: object, answer: Any) -> int:  # noqa: N802  # NVML's name
        answer._obj.value = 698_412
        return 0

    def nvmlDeviceGetTemperature(self, _device: object, _sensor: int, _answer: Any) -> int:  # noqa: N802  # NVML's name
        return 3  # NVML_ERROR_NOT_SUPPORTED

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, _device: object, answer: Any) -> int:  # noqa: N802  # likewise
        answer._obj.value = 0x1 | 0x4 | 0x40
        return 0


def test_the_state_of_the_gpu_is_what_nvml_answers_and_nothing_else() -> None:
    assert Monitor(Library(), SimpleNamespace()).read() == {
        "sm_clock_mhz": 1410,
        "memory_clock_mhz": 3201,
        "power_watts": 698,
        "held_down_by": ["software power cap", "hardware thermal slowdown"],
    }


def test_without_nvml_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels_smoke.suite.speed.gpu_state.LIBRARY", "libno-such-library.so.1")
    assert Monitor.open("GPU-1").read() == {}


def test_reasons_are_explained_only_when_something_holds_the_clocks_down() -> None:
    assert reasons(0x1) == []
    assert reasons(None) is None
    assert explain({}) == ""
    assert explain({"held_down_by": [], "power_watts": 700}) == ""
    assert explain({"held_down_by": ["software thermal slowdown"], "temperature_celsius": 87}) == (
        "the GPU's clocks were held down: software thermal slowdown, temperature 87 degrees Celsius"
    )
