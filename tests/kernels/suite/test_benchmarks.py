"""The benchmarks of the kernels: their children, their tables, the functions that ours are compared with."""

from __future__ import annotations

import json
import math
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from benchmarks.comparison_report import Measurements, document, geometric_mean, markdown, mean_table, means
from benchmarks.experiments.of_kernel import generated
from benchmarks.experiments_report import Repeated
from benchmarks.experiments_report import markdown as experiments_markdown
from benchmarks.forked import OVER, Child, Ended, Job, in_turn, messages, summary, turn
from benchmarks.goals import goals_table
from benchmarks.gpu_lock import Gpu
from benchmarks.merging import merged, runs_table
from benchmarks.mutants import Catches
from benchmarks.mutants import lines as mutants_lines
from benchmarks.roofline import picture
from benchmarks.seeds import FAMILIES, hear, load
from benchmarks.shapes import HELION, MODELS
from benchmarks.tails import Tail
from benchmarks.tolerances import keep, kept, lines
from kernels_smoke.suite import registry
from tests.support.torch_worker import PYTHON, ROOT, found

# Python 3.12 and newer warn of a fork in a process with threads, such as a test runner; the child only reports.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


# Children


def sent(function: Callable[..., object], *arguments: Any, timeout: float = 20.0) -> list[Any]:
    """The messages of one child."""
    return [message for _, message in messages([Job("one", function, arguments)], at_once=1, timeout=timeout)]


def count(connection: Connection, most: int) -> None:
    for number in range(most):
        connection.send(number)


def fail(connection: Connection) -> None:
    connection.send("so far")
    raise ValueError("first\nsecond\n\nthe reason\n")


def die(connection: Connection) -> None:
    connection.send("so far")
    os.kill(os.getpid(), signal.SIGKILL)


def leave(_connection: Connection) -> None:
    os._exit(3)


def sleep(_connection: Connection) -> None:
    time.sleep(60)


def echo(connection: Connection) -> None:
    connection.send("ready")
    connection.send(connection.recv())


def test_what_a_child_says_arrives_and_its_end_comes_last() -> None:
    assert sent(count, 3) == [0, 1, 2, Ended("")]


def test_an_exception_a_signal_and_an_exit_are_distinguished() -> None:
    assert sent(fail) == ["so far", Ended("ValueError: first ... the reason")]
    assert sent(die) == ["so far", Ended("killed by SIGKILL")]
    assert sent(leave) == [Ended("ended with exit code 3")]


def test_a_silent_child_is_killed_and_the_others_go_on() -> None:
    jobs = [Job("silent", sleep), Job("counting", count, (2,))]
    ends = {c.job.name: m.fault for c, m in messages(jobs, at_once=2, timeout=0.5) if isinstance(m, Ended)}
    assert ends == {"silent": "killed after 0 s of silence", "counting": ""}


def test_a_child_can_be_continued() -> None:
    heard: list[object] = []

    def listen(child: Child, message: object) -> None:
        heard.append(message)
        if message == "ready":
            child.tell("go")

    for child, message in messages([Job("one", echo)], at_once=1, timeout=20.0):
        listen(child, message)
    assert heard == ["ready", "go", Ended("")]


def ask_for_turns(connection: Connection, log: str) -> None:
    for _ in range(2):
        with turn(connection):
            connection.send(len(Path(log).read_text()))
            time.sleep(0.2)
            connection.send(len(Path(log).read_text()))


def write_on(_connection: Connection, log: str) -> None:
    for _ in range(400):
        with Path(log).open("a") as file:
            file.write("x")
        time.sleep(0.005)


def test_whoever_has_its_turn_is_the_only_child_that_runs(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    jobs = [Job("writing", write_on, (str(log),)), *(Job(name, ask_for_turns, (str(log),)) for name in ("a", "b"))]
    heard = [(c.job.name, m) for c, m in in_turn(jobs, at_once=3, timeout=20.0)]
    for name in ("a", "b"):
        before, after, over, *again, end = [message for child, message in heard if child == name]
        assert (before, over, end) == (after, OVER, Ended(""))
        assert again[0] == again[1]
    assert len(log.read_text()) == 400
    assert ("writing", Ended("")) in heard


def test_what_runs_when_the_time_is_up_is_killed_and_nothing_else_begins() -> None:
    jobs = [Job("slow", sleep), Job("waiting", count, (2,))]
    heard = [(c.job.name, m) for c, m in in_turn(jobs, at_once=1, timeout=20.0, until=time.monotonic() + 0.3)]
    assert heard == [("slow", Ended("killed when the time was up"))]


def test_whoever_is_stopped_ends_with_the_run_that_is_killed(tmp_path: Path) -> None:
    code = """
import os, sys, time
from pathlib import Path
from benchmarks.forked import Job, in_turn, turn

def stopped(connection):
    Path(sys.argv[1]).write_text(str(os.getpid()))
    time.sleep(60)

def timing(connection):
    while not Path(sys.argv[1]).exists():
        time.sleep(0.05)
    with turn(connection):
        print("timing", flush=True)
        time.sleep(60)

list(in_turn([Job("stopped", stopped), Job("timing", timing)], at_once=2, timeout=60.0))
"""
    noted = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", code, noted], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    assert parent.stdout.readline() == "timing\n"
    parent.kill()
    parent.wait()
    status = Path(f"/proc/{noted.read_text()}/stat")
    until = time.monotonic() + 20
    while status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < until
        time.sleep(0.05)
    parent.stdout.close()


def use(connection: Connection, gpu: Gpu, *, alone: bool) -> None:
    with gpu.alone() if alone else gpu.shared():
        begun = time.monotonic()
        time.sleep(0.2)
        ended = time.monotonic()
    connection.send((begun, ended, alone))


def die_with(connection: Connection, gpu: Gpu) -> None:
    with gpu.alone():
        connection.send("has it")
        os.kill(os.getpid(), signal.SIGKILL)


def test_the_gpu_is_shared_or_had_alone_and_a_child_that_dies_gives_it_back(tmp_path: Path) -> None:
    gpu = Gpu(str(tmp_path))
    uses = [partial(use, alone=alone) for alone in (False, True, False)]
    jobs = [Job("dies", die_with, (gpu,)), *(Job(str(number), each, (gpu,)) for number, each in enumerate(uses))]
    used = [message for _, message in messages(jobs, at_once=4, timeout=20.0) if isinstance(message, tuple)]
    ((begun, ended, _),) = [each for each in used if each[2]]
    assert len(used) == 3
    assert all(other[1] <= begun or ended <= other[0] for other in used if not other[2])


def test_a_summary_is_one_line_and_not_endless() -> None:
    assert summary(RuntimeError("")) == "RuntimeError: without a word"
    assert len(summary(RuntimeError("x" * 1000 + "\n" + "y" * 1000))) < 420


# Tables


def measured(*records: dict[str, Any]) -> Measurements:
    """What children that sent ``records`` leave."""
    versions = {"torch": "2.11.0", "triton": "3.6.0", "liger-kernel": "not installed"}
    results = Measurements(
        {"device": "NVIDIA H200", "date": "2026-11-20", "versions": versions},
        {"bandwidth": 4e12, "bf16": 7e14, "fp8": 1.5e15},
    )
    for each in records:
        results.add(each)
    return results


def record(
    implementation: str, microseconds: float | None, shape: str = "16384 x 4096", fault: str = "", **more: Any
) -> dict[str, Any]:
    """The record of one implementation."""
    facts = {"table": "suite", "kernel": "fused_add_rms_norm", "shape": shape, "fault": fault, "note": "", "called": {}}
    work = {"floor_microseconds": 100.0, "bytes": 400_000_000, "flops": 0, "unit": "bf16", "bar": 1.1, "versus": ""}
    return {**facts, "implementation": implementation, "microseconds": microseconds, **work, **more}


def test_the_suites_table_shows_each_time_and_how_many_times_as_long_it_takes_as_ours() -> None:
    results = measured(
        record("ours", 105.0), record("eager", 945.0), record("torch.compile", 126.0),
        record("FLA", 140.0), record("Liger", 115.5),
    )  # fmt: skip
    row = next(line for line in markdown(results).splitlines() if line.startswith("| fused_add_rms_norm"))
    assert row.endswith("| 16384 x 4096 | 105.0 | 100.0 | 1.05 | 945.0 (9.00x) | 126.0 (1.20x) | Liger 115.5 (1.10x) |")


def test_a_call_is_shown_as_called_next_to_those_of_the_others() -> None:
    results = measured(
        record("ours", 3.0, "1 x 4096", table="small", called={"plain": 8.14, "plan": 3.9, "graph": 2.5}),
        record("eager", 20.0, "1 x 4096", table="small", called={"plain": 61.0}),
        record("Liger", 3.1, "1 x 4096", table="small", called={"plain": 12.0, "graph": 2.6}),
        record("ours", 105.0),
    )
    report = markdown(results)
    assert "| 1 x 4096 | 8.1 | 3.9 | 2.5 | 61.0 / - | - | Liger 12.0 / 2.6 |" in report
    assert report.count("fused_add_rms_norm") == 2  # the large shape is in the suite's table alone


def test_a_peer_that_fails_is_named_and_the_rest_of_its_row_stands() -> None:
    results = measured(record("ours", 105.0), record("Liger", None, fault="ModuleNotFoundError: No module named 'x'"))
    results.ended("fused_add_rms_norm", "killed by SIGSEGV")
    report = markdown(results)
    assert "| 105.0 | 100.0 | 1.05 | - | - | - |" in report
    assert "- fused_add_rms_norm, 16384 x 4096, Liger: ModuleNotFoundError: No module named 'x'" in report
    assert "- fused_add_rms_norm: its process: killed by SIGSEGV" in report


def test_helions_means_are_geometric_and_over_the_shapes_that_were_timed() -> None:
    name = "per_token_group_fp8_quant"
    results = measured(
        *(
            record(implementation, microseconds, shape, table="helion", kernel=name)
            for shape, ours, compiled in (("a", 10.0, 20.0), ("b", 10.0, 5.0), ("c", 10.0, 30.0))
            for implementation, microseconds in (("ours", ours), ("torch.compile", compiled))
        ),
        record("ours", 10.0, "d", table="helion", kernel=name),
        record("torch.compile", None, "d", "not compiled: the time was up", table="helion", kernel=name),
    )
    (mean,) = means(results)
    assert mean.ours == pytest.approx((2.0 * 0.5 * 3.0) ** (1 / 3))
    assert mean.helion == 1.423  # the seed's table 2, H100
    assert "| per_token_group_fp8_quant | 1.442x | 0.50x | 3.00x | 3 | 1.423x |" in mean_table(results)


def test_a_geometric_mean_of_one_is_that_one() -> None:
    assert geometric_mean([1.25]) == pytest.approx(1.25)


def test_the_picture_is_drawn_of_what_there_is_and_of_nothing() -> None:
    results = measured(record("ours", 150.0))
    assert document(results)["speeds"][0]["outcome"] == "slow"  # the bar is 110
    assert "fused_add_rms_norm · 16384 x 4096" in picture(document(results))
    ET.fromstring(picture(document(measured())))


def test_what_is_kept_as_json_can_be_read_again() -> None:
    kept = json.loads(json.dumps(measured(record("ours", 105.0), record("eager", 945.0)).as_json()))
    assert kept["rows"][0]["times"] == {"ours": 105.0, "eager": 945.0}


def test_runs_become_one_in_which_the_later_counts_and_each_names_its_control(tmp_path: Path) -> None:
    first = measured(record("ours", 105.0), record("eager", None, fault="killed"), record("eager", 945.0, shape="b"))
    first.left = [("suite", "mul_sum_add", "a"), ("suite", "sin_and_cos", "b")]
    second = measured(record("ours", 103.0), record("eager", 900.0), record("ours", 9.0, "a", kernel="mul_sum_add"))
    second.calibration["bandwidth"] = 5e12
    helion = measured(
        record("ours", 10.0, "a", table="helion", kernel="per_token_group_fp8_quant"),
        record("torch.compile", 15.0, "a", table="helion", kernel="per_token_group_fp8_quant"),
    )
    contents = (first.as_json(), second.as_json(), {"experiments": [], "helion": helion.as_json()})
    paths = [tmp_path / f"{number}.json" for number in range(3)]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(json.dumps(content))
    runs, both = merged(paths)
    table = runs_table(runs).splitlines()
    assert table[2].endswith("| 4.00 | 700 | 1500 | 105.0 | 1.050 |")
    assert table[3].endswith("| 5.00 | 700 | 1500 | 103.0 | 1.030 |")
    assert table[4].endswith("| - | - |")
    report = markdown(both)
    assert "| 16384 x 4096 | 103.0 | 100.0 | 1.03 | 900.0 (8.74x) |" in report
    assert "Measured in 3 runs, in the median: 4.00 TB/s" in report
    assert "measured in 3 runs, in the median: 4.00 TB/s" in picture(document(both))
    assert "killed" not in report  # the later run has it
    assert both.left == [("suite", "sin_and_cos", "b")]
    assert [mean.kernel for mean in means(both)] == ["per_token_group_fp8_quant"]
    paths[2].write_text(json.dumps({"experiments": [], "helion": None}))
    with pytest.raises(ValueError, match="has no comparison over the shapes of Helion"):
        merged(paths)


@pytest.mark.parametrize("text", ['"device": "H100"', '"torch": "2.12.0"'])
def test_runs_of_another_gpu_or_torch_are_not_merged(tmp_path: Path, text: str) -> None:
    run = measured(record("ours", 3.0, "1 x 4096"))
    environment = {"device": "H200", "versions": {"torch": "2.11.0", "triton": "3.6.0"}} | {"date": "2026-11-27"}
    content = json.dumps(run.as_json() | {"environment": environment})
    name = text.partition(":")[0]
    changed = re.sub(rf'{name}: "[^"]*"', text, content)
    paths = [tmp_path / "one.json", tmp_path / "other.json"]
    for path, written in zip(paths, (content, changed), strict=True):
        path.write_text(written)
    merged([paths[0], paths[0]])
    with pytest.raises(ValueError, match=r"other.json is of .*, and the first of H200, torch 2.11.0, triton 3.6.0"):
        merged(paths)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"rows": [', "is not a report of kernels.py or seeds.py: JSONDecodeError"),
        ('{"rows": []}', "is not a report of kernels.py or seeds.py: KeyError"),
        ('{"experiments": [], "helion": null}', "has no comparison over the shapes of Helion"),
    ],
)
def test_a_file_that_is_no_report_cannot_be_merged(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "kernels.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(f"{path} {why}")):
        merged([path])


def test_whether_a_goal_is_met_follows_from_what_was_measured() -> None:
    called = {"ours": {"plain": 8.0, "plan": 5.5}, "eager": {"plain": 9.0}, "torch.compile": {"plain": 7.0}}
    results = measured(
        *(
            record(name, microseconds, "8192 x 24576, K 4096", kernel="scaled_mm_blockwise")
            for name, microseconds in (("ours", 120.0), ("torch", 100.0))
        ),
        record("ours", 3.0, "1 x 4096", table="small", called={"plain": 19.0, "plan": 5.5}),
        record("ours", 60.5, "1,000,000 of 0 to 32", kernel="simplex_projection"),
        *(
            record(name, 3.0, shape, table="small", kernel="newton_schulz", called=called[name])
            for name in called
            for shape in ("2048 x 2048", "1024 x 4096")
        ),
        record("ours", 10.0, "a", table="helion", kernel="per_token_group_fp8_quant"),
        record("torch.compile", 15.0, "a", table="helion", kernel="per_token_group_fp8_quant"),
    )
    rows = dict(line.strip("| ").split(" | ", 1) for line in goals_table(results).splitlines()[2:])
    met = {name.partition(",")[0]: row.rpartition("| ")[2] for name, row in rows.items() if "not measured" not in row}
    assert met == {
        "scaled_mm_blockwise": "yes: 1.20, not the stretch",
        "fused_add_rms_norm": "no",  # the plan takes more than 5.4
        "simplex_projection": "no",
        "newton_schulz": "no: 1.14",
    }
    assert rows["simplex_projection, 1,000,000 of 0 to 32"] == "102 | 60.5 | - | 60 | no"
    assert "yes / not measured / not measured" in goals_table(results)


def test_helions_kernels_are_ours_and_its_shapes_are_those_of_the_models() -> None:
    assert set(HELION) <= {entry.name for entry in registry.ENTRIES}
    qwen3_32b = MODELS[-1]
    assert HELION["silu_and_mul_per_block_quant"].shape(qwen3_32b, 16) == {"rows": 16, "width": 25600}
    shape = HELION["fused_qk_norm_rope"].shape(qwen3_32b, 16)
    query, key = shape["heads"]
    assert (query + 2 * key) * shape["head_dim"] == 10240  # the columns of its qkv projection, table 1


# With torch


@pytest.mark.kernels
def test_every_kernel_with_a_speed_has_an_eager_function_that_computes_the_same() -> None:
    script = """
from benchmarks.comparison import _difference
from benchmarks.eager import EAGER
from benchmarks.shapes import helion_speeds, small_speeds, speeds_of
from kernels_smoke.suite import registry
from kernels_smoke.suite.correctness.draw import Draw

faults = []
for entry in registry.ENTRIES:
    kernel = registry.load(entry)
    for speed in speeds_of(kernel, tiny=True):
        inputs = kernel.inputs(Draw(1, "cpu"), **speed.shape)
        fault = _difference(EAGER[kernel.name](inputs), kernel.reference(inputs))
        faults += [f"{kernel.name}: {fault}"] if fault else []
    for speed in (*kernel.speeds, *small_speeds(kernel), *helion_speeds(kernel, tiny=False)):
        kernel.outputs(kernel.inputs(Draw(1, "meta"), **speed.shape))  # the arguments are those of its cases
answer(faults)
"""
    assert found(script) == []


@pytest.mark.kernels
def test_a_child_computes_what_its_parent_computed_before() -> None:
    script = """
import torch
from benchmarks.forked import Job, messages
from benchmarks.kernels import import_torch

def compute(*_):
    return (torch.ones(2**21) * 2.0).sum()

import_torch()
compute()
answer([child.job.name + message.fault for child, message in messages([Job("ok", compute)], at_once=1, timeout=20.0)])
"""
    assert found(script) == ["ok"]


@pytest.mark.kernels
def test_results_of_another_function_are_recognised() -> None:
    script = """
import torch
from benchmarks.comparison import _difference
x = torch.randn(4, 8)
answer([
    _difference({"x": x}, {"x": x}),
    _difference({"x": (x[:, :2], x[:, 2:6])}, {"x": x}),
    _difference({"x": x * 1.2}, {"x": x}),
    _difference({"x": x.t()}, {"x": x}),
    _difference({"x": x * float("nan")}, {"x": x}),
])
"""
    same, columns, scaled, turned, poisoned = found(script)
    assert (same, columns) == ("", "")
    assert scaled == "computes something else: x differs by 0.2"
    assert turned == "x is (8, 4) instead of (4, 4)"
    assert "nan" in poisoned


@pytest.mark.kernels
def test_what_tunes_itself_compiles_first_and_is_timed_with_the_gpu_alone() -> None:
    script = """
import contextlib
from benchmarks import comparison
from triton import Config
from triton.runtime.autotuner import Autotuner

log = []

class Function:
    arg_names = ["x"]
    fn = staticmethod(lambda x: None)

    def run(self, x, *, num_warps, **options):
        log.append(num_warps)

class Gpu:
    @contextlib.contextmanager
    def alone(self):
        log.append("alone")
        yield

def time(call, quantiles):
    call()
    log.append("timed")
    return [float(16 - log[-2])] * len(quantiles)

comparison.quick_benchmark = time
tuner = Autotuner(Function(), ["x"], [Config({}, num_warps=each) for each in (2, 8, 4)], ["x"], None, None)
comparison._compile(lambda: tuner.run(1), Gpu())
tuner.run(1)
answer(log)
"""
    compiled, timed = [2, 8, 4, 2], ["alone", 2, "timed", 8, "timed", 4, "timed", 8]
    assert found(script) == [*compiled, *timed, 8]


def run(*arguments: str) -> str:
    """The output of a benchmark, run as its usage says."""
    done = subprocess.run(
        [PYTHON, *arguments], cwd=ROOT, capture_output=True, text=True,
        check=False, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.kernels
def test_the_comparison_runs_every_step_in_the_interpreter(tmp_path: Path) -> None:
    report = run(
        "benchmarks/kernels.py", "--device", "cpu", "--tiny",
        "--only", "mul_sum_add,dynamic_per_token_scaled_fp8_quant", "--output", str(tmp_path),
    )  # fmt: skip
    for start in ("| mul_sum_add |", "| dynamic_per_token_scaled_fp8_quant |"):
        assert start in report
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kernels.json", "kernels.md", "kernels.svg"]
    rows = json.loads((tmp_path / "kernels.json").read_text())["rows"]
    assert all({"ours", "eager", "torch.compile"} <= set(row["times"]) for row in rows)
    again = subprocess.run(
        [sys.executable, "benchmarks/kernels.py", "--merge", tmp_path / "kernels.json"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "| mul_sum_add |" in again.stdout


@pytest.mark.kernels
def test_products_are_compared_by_projection_and_in_the_mean() -> None:
    report = run("benchmarks/products.py", "--device", "cpu", "--tokens", "1")
    assert "scaled_mm: " in report
    assert "(the document, against CUTLASS on an H100: 0.957)" in report
    assert report.count("| Qwen3-1.7B | 64 x 48 |") == 2


@pytest.mark.kernels
def test_two_ranks_with_half_of_the_columns_each_find_the_dual_of_one() -> None:
    assert "dual ascent over 2 ranks: the dual of one" in run("benchmarks/ranks.py", "--device", "cpu")


@pytest.mark.kernels
def test_tuning_runs_every_step_in_the_interpreter(tmp_path: Path) -> None:
    output = tmp_path / "tuned.json"
    report = run(
        "benchmarks/tune.py", "--device", "cpu", "--only", "dynamic_per_token_scaled_fp8_quant", "--limit", "2",
        "--output", str(output),
    )  # fmt: skip
    assert "present: Configuration(" in report
    assert len([trial for trial in json.loads(output.read_text()) if trial["microseconds"]]) >= 2


@pytest.mark.kernels
def test_a_candidate_that_raises_or_dies_is_a_line_with_the_reason() -> None:
    script = """
import os
from benchmarks import tune
from benchmarks.shapes import speeds_of
from kernels_smoke.fusion import mul_sum_add as module
from kernels_smoke.suite import registry

kernel = registry.load(registry.entry("mul_sum_add"))
(speed,) = speeds_of(kernel, tiny=True)

class Dies:
    def __getattr__(self, name):
        os.abort()

class Raises:
    def __getattr__(self, name):
        raise RuntimeError("out of resource: shared memory")

good = module.configure(127)
trials = [tune.Trial(kernel.name, speed.name)]
trials += [tune.Trial(kernel.name, speed.name, made, type(made).__name__) for made in (Dies(), Raises(), good)]
tune.time_all(trials, "cpu")
answer([[trial.candidate.split("(")[0], bool(trial.microseconds), trial.fault] for trial in trials])
"""
    present, dies, raises, good = found(script)
    assert present == ["present: Configuration", True, ""]
    assert dies == ["Dies", False, "killed by SIGABRT"]
    assert raises == ["Raises", False, "RuntimeError: out of resource: shared memory"]
    assert good == ["Configuration", True, ""]


@pytest.mark.kernels
def test_every_candidate_of_a_kernel_that_works_in_place_starts_from_the_same_inputs() -> None:
    script = """
from benchmarks import tune
from benchmarks.shapes import speeds_of
from kernels_smoke.fusion import fused_gate_sigmoid_mul_add as module
from kernels_smoke.suite import registry

kernel = registry.load(registry.entry("fused_gate_sigmoid_mul_add"))
(speed,) = speeds_of(kernel, tiny=True)
good = module.configure(127)
trials = [tune.Trial(kernel.name, speed.name)]
trials += [tune.Trial(kernel.name, speed.name, good, str(number)) for number in range(2)]
tune.time_all(trials, "cpu")
answer([trial.fault for trial in trials])
"""
    assert found(script) == ["", "", ""]


# Tolerances


def test_a_tolerance_that_was_missed_is_shown_with_the_seed_that_missed_it() -> None:
    case = Tail()
    case.add([0.2, 1.1], ["seed 7: out: relative error 0.02"])
    first, *others = lines("newton_schulz", {"65 x 1": case})
    assert first == "newton_schulz: 2 runs of 1 cases; nearest: 1.10 65 x 1"
    assert others == ["  missed in 1 of 2 runs: 65 x 1: seed 7: out: relative error 0.02"]


def test_the_tail_of_what_was_measured_gives_the_probability_of_what_was_not() -> None:
    chance = random.Random(20261126)
    exponential, bounded, few = Tail(), Tail(), Tail()
    for _ in range(10):
        exponential.add([0.5 + chance.expovariate(20) for _ in range(1000)], [])
        bounded.add([0.95 * chance.random() for _ in range(1000)], [])
    few.add([0.9] * 5, [])
    assert math.exp(-10) / 20 < exponential.probability() < 20 * math.exp(-10)
    assert math.exp(-10) < exponential.upper_bound() < 100 * math.exp(-10)
    assert bounded.upper_bound() < 1e-6
    assert (few.is_fitted, few.upper_bound()) == (False, 0.0)
    exponential.add([1.2], ["seed 1: out: far"])
    assert exponential.probability() >= 1 / 10_001


def test_tails_are_kept_from_one_run_to_the_next(tmp_path: Path) -> None:
    case = Tail()
    case.add([0.1, 0.3], [], 0.5)
    keep(tmp_path / "a" / "state.json", {"norm": {"plain": case}})
    assert kept(tmp_path / "a" / "state.json") == {"norm": {"plain": case}}
    assert kept(tmp_path / "none.json") == {}


@pytest.mark.kernels
def test_tolerances_are_measured_with_one_seed_after_another_and_go_on_where_they_ended(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    options = ("--device", "cpu", "--only", "mul_sum_add", "--level", "quick", "--state", str(state))
    report = run("benchmarks/tolerances.py", *options, "--seeds", "2", "--close-seeds", "2")
    runs, cases = re.match(r"mul_sum_add: (\d+) runs of (\d+) cases; nearest: 0\.\d\d ", report).groups()  # type: ignore[union-attr]  # the test
    assert int(runs) == 2 * int(cases)
    assert "  missed in" not in report
    assert report.endswith("nothing is left to run\n")
    again = run("benchmarks/tolerances.py", *options, "--seeds", "3", "--close-seeds", "3")
    assert again.startswith(f"mul_sum_add: {3 * int(cases)} runs of {cases} cases")


# Mutants


def test_a_mutant_that_a_seed_did_not_show_is_named_with_that_seed_and_one_that_hangs_by_a_thread_too() -> None:
    sure, unsure = Catches(), Catches()
    for seed, by in enumerate(("65 x 1", "1 x 5", "65 x 1")):
        sure.add(seed, {"outcome": "caught", "caught_by": "65 x 1", "message": "out: 1 of 5 elements differ"})
        unsure.add(seed, {"outcome": "caught", "caught_by": by, "message": "out: 1 of 5 elements differ"})
    first, *others = mutants_lines("newton_schulz", ["a", "b"], 3, {"a": sure, "b": unsure})
    assert first == "newton_schulz: 2 mutants, 3 seeds: all caught"
    assert others == ["  b: first caught by 65 x 1 (2), 1 x 5 (1)"]
    unsure.add(3, {"outcome": "missed", "message": "every case passed"})
    first, left, missed, *_ = mutants_lines("newton_schulz", ["a", "b", "c"], 4, {"a": sure, "b": unsure})
    assert (first, left) == ("newton_schulz: 3 mutants, 4 seeds: 1 not always caught", "  not run: c")
    first, *_ = mutants_lines("newton_schulz", ["a", "c"], 3, {"a": sure})
    assert first == "newton_schulz: 2 mutants, 3 seeds: not all run"
    assert missed == "  missed with 1 seeds (3): b: missed: every case passed"


@pytest.mark.kernels
def test_mutants_are_run_with_one_seed_after_another() -> None:
    report = run("benchmarks/mutants.py", "--device", "cpu", "--only", "mul_sum_add", "--seeds", "2")
    mutants, seeds = re.match(r"mul_sum_add: (\d+) mutants, (\d+) seeds: all caught", report).groups()  # type: ignore[union-attr]  # the test
    assert int(seeds) == 2
    script = """
from kernels_smoke.suite import registry

kernel = registry.load(registry.entry("mul_sum_add"))
answer([len(kernel.mutants), sum("interpret" in mutant.where for mutant in kernel.mutants)])
"""
    of_all, can_show = found(script)
    assert int(mutants) == can_show < of_all


# The documents' experiments


def test_experiments_are_reported_with_their_ratios_and_what_is_not_there() -> None:
    repeated = Repeated("attention", "twice as fast", "dense", "137 GF")
    for variant, microseconds, fault in (("ours", 50.0, ""), ("dense", 100.0, ""), ("FLA", None, "No module 'fla'")):
        hear(repeated, {"variant": variant, "microseconds": microseconds, "note": "", "fault": fault})
    around = {"device": "NVIDIA H200", "date": "2026-11-22", "versions": {"torch": "2.11.0"}}
    report = experiments_markdown([repeated], around, 60.0)
    for row in (
        "| ours | 50.0 | 2.00x |",
        "| dense | 100.0 | baseline |",
        "| FLA | - | - | not available: No module 'fla' |",
    ):
        assert row in report


def test_inductors_kernels_and_the_products_that_it_calls_are_named() -> None:
    code = "async_compile.triton('x', '''\ndef triton_poi_fused_add_mul_0(a):\n''')\nextern_kernels.mm(a, b, out=c)\n"
    assert generated(code) == "triton_poi_fused_add_mul_0, mm (cuBLAS)"


def test_an_experiment_whose_process_dies_is_a_row() -> None:
    repeated = Repeated("attention", "", "dense", "")
    hear(repeated, Ended("killed by SIGKILL"))
    assert repeated.faults == {"the experiment": "killed by SIGKILL"}


def test_every_experiment_has_its_baseline_among_its_variants() -> None:
    experiments = [experiment for family in FAMILIES for experiment in load(family)]
    assert len({experiment.name for experiment in experiments}) == len(experiments) >= 15
    for experiment in experiments:
        assert experiment.baseline in experiment.variants
        assert experiment.without_graph <= set(experiment.variants)
