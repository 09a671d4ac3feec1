"""Every GPU of a node is tried and named, and a fault of one does not hide the others. No GPU is needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kernels_smoke.suite.compiling.warm_cache import Marks
from kernels_smoke.suite.processes.crew import End, Job, next_job
from kernels_smoke.suite.report import text
from kernels_smoke.suite.run import stages as course
from kernels_smoke.suite.run.gpus import chosen
from kernels_smoke.suite.run.jobs import Options

WELL = End(0, hang=False, words="")
DIED = End(-11, hang=False, words="Segmentation fault")
RATES = {"kind": "calibration", "bandwidth": 4.25e12, "bf16": 750e12, "fp8": 1500e12}

Record = dict[str, Any]
Script = Callable[[Job], Iterable[Record]]  # the records of a job; raises interrupts, or DeathErrorError


class DeathError(Exception):
    """The child of the job ends badly."""


def gpu(index: int, uuid: str = "", **fields: Any) -> dict[str, Any]:
    known = {"index": index, "name": "NVIDIA H200", "uuid": uuid or f"GPU-{'abcd'[index]}", "target": "sm_90"}
    return known | {"compute_mode": "default", "state": {}} | fields


def answer(*gpus: dict[str, Any], listed: Iterable[dict[str, Any]] = ()) -> dict[str, Any]:
    probe = {"kind": "probe", "name": "driver", "outcome": "pass", "message": ""}
    return {"driver": {"version": "580"}, "gpus": list(gpus), "listed": list(listed), "probe": probe}


class Node:
    """A node with these GPUs, whose children say what ``script`` yields. ``alone`` are the jobs of runs of one job."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, script: Script, *gpus: dict[str, Any]) -> None:
        self.script = script
        self.jobs: list[Job] = []
        self.alone: list[Job] = []
        monkeypatch.setattr(course, "Crew", lambda *_arguments: self)
        monkeypatch.setattr("kernels_smoke.suite.probes.driver.ask", lambda *_arguments: answer(*gpus))
        for module in ("on_gpus", "timing_jobs", "cold_run"):
            monkeypatch.setattr(f"kernels_smoke.suite.run.{module}.processors", lambda: 16)
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def __enter__(self) -> Node:
        return self

    def __exit__(self, *_error: object) -> None:
        pass

    def wait_until_ready(self) -> dict[str, Any]:
        return {"torch": {"version": "2.11.0", "cuda": "13.0", "hip": ""}, "triton": {"version": "3.6.0"}, "faults": {}}

    def run(self, jobs: Iterable[Job], *, at_once: int, in_lane: int = 0) -> None:
        waiting = deque(jobs)
        if at_once == 1:
            self.alone += waiting
        while (job := next_job(waiting, [], in_lane)) is not None:
            self.jobs.append(job)
            end = WELL
            try:
                for record in self.script(job):
                    job.on_record(record)
            except DeathError:
                end = DIED
            waiting.extendleft(job.on_end(end))


def visible(job: Job) -> str:
    return job.environment.get("CUDA_VISIBLE_DEVICES", "")


def healthy(job: Job) -> Iterator[Record]:
    """One case for each kernel, one timed run for each, rates of an H200."""
    if job.task == "speed.speeds:speeds" and not job.arguments["calibration"]:
        yield dict(RATES)
    for kernel in job.arguments.get("kernels", ()):
        if job.task == "correctness.tasks:cases":
            yield {"kind": "plan", "items": [(kernel, "plain")]}
            yield {"kind": "begin", "kernel": kernel, "case": "plain"}
            yield {"kind": "case", "kernel": kernel, "case": "plain", "outcome": "pass", "message": "", "outputs": {}}
        if job.task == "speed.speeds:speeds":
            yield {"kind": "speed", "kernel": kernel, "case": "large", "outcome": "pass", "message": ""}


def outcomes(report: Mapping[str, Any], kind: str, uuid: str) -> list[str]:
    return [record["outcome"] for record in report[kind] if record.get("gpu") == uuid]


def test_each_gpu_runs_everything_in_children_that_see_it_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(monkeypatch, healthy, gpu(0), gpu(1))
    report = course.run(Options(level="full", only=("fused_add_rms_norm", "newton_schulz", "muon_step")))

    assert (report["verdict"], report["message"]) == (
        "pass",
        "2 GPUs: 3 kernels correct in 6 cases, 6 of 6 within their bars",
    )
    for uuid in ("GPU-a", "GPU-b"):
        assert outcomes(report, "cases", uuid) == outcomes(report, "speeds", uuid) == ["pass"] * 3
    cases = [visible(job) for job in node.jobs if job.task == "correctness.tasks:cases"]
    assert sorted(cases) == ["GPU-a", "GPU-a", "GPU-b", "GPU-b"]
    assert [reading["gpu"] for reading in report["readings"]] == ["GPU-a", "GPU-b"]
    assert [visible(job) for job in node.jobs if job.arguments.get("names") == ["nccl"]] == ["GPU-a,GPU-b"]
    first, *rates = text(report).splitlines()[:3]
    assert "2 x NVIDIA H200" in first
    assert rates == [f"      GPU {n} (NVIDIA H200, GPU-{'ab'[n]}): 4.25 TB/s, 750 TF bf16, 1500 TF fp8" for n in (0, 1)]


@pytest.mark.parametrize(
    ("outcome", "timed"), [("skip", ["newton_schulz", "muon_step"]), ("wrong", ["muon_step"]), ("error", ["muon_step"])]
)
def test_a_kernel_is_timed_unless_a_case_of_it_is_wrong(
    monkeypatch: pytest.MonkeyPatch, outcome: str, timed: list[str]
) -> None:
    def script(job: Job) -> Iterator[Record]:
        for record in healthy(job):
            yield record
            if record["kind"] == "case" and record["kernel"] == "newton_schulz":
                yield {**record, "kind": "begin", "case": "far"}
                yield {**record, "case": "far", "outcome": outcome, "message": "why"}

    Node(monkeypatch, script, gpu(0))
    report = course.run(Options(level="full", only=("newton_schulz", "muon_step")))
    assert [record["kernel"] for record in report["speeds"]] == timed


def test_a_child_that_dies_on_one_gpu_is_an_error_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def script(job: Job) -> Iterator[Record]:
        if job.task == "correctness.tasks:cases" and visible(job) == "GPU-b" and not job.arguments["skip"]:
            yield {"kind": "plan", "items": [("fused_add_rms_norm", "plain"), ("fused_add_rms_norm", "wide")]}
            yield {"kind": "begin", "kernel": "fused_add_rms_norm", "case": "plain"}
            raise DeathError
        yield from healthy(job)

    Node(monkeypatch, script, gpu(0), gpu(1))
    report = course.run(Options(only=("fused_add_rms_norm",)))

    assert outcomes(report, "cases", "GPU-a") == ["pass"]
    assert "crash" in outcomes(report, "cases", "GPU-b")
    assert report["verdict"] == "fail"
    assert "on GPU-b: crash: the process that ran it: it was killed by SIGSEGV" in report["message"]
    assert "CRASH  fused_add_rms_norm / plain on GPU 1 (NVIDIA H200, GPU-b): the process that ran it" in text(report)


def test_what_is_slow_next_to_other_gpus_is_timed_alone_and_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def script(job: Job) -> Iterator[Record]:
        for record in healthy(job):
            busy = record["kind"] == "speed" and visible(job) == "GPU-b" and not job.arguments["only"]
            yield record | ({"outcome": "slow"} if busy else {})

    node = Node(monkeypatch, script, gpu(0), gpu(1))
    report = course.run(Options(level="full", only=("fused_add_rms_norm",)))

    assert outcomes(report, "speeds", "GPU-a") == outcomes(report, "speeds", "GPU-b") == ["pass"]
    (again,) = [job for job in node.alone if job.task == "speed.speeds:speeds"]
    assert (visible(again), again.arguments["only"]) == ("GPU-b", [["fused_add_rms_norm", "large"]])


def test_cuda_that_does_not_start_on_one_gpu_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def script(job: Job) -> Iterator[Record]:
        if job.task == "probes.probing:basic" and job.arguments["part"] == "gpu" and visible(job) == "GPU-b":
            yield {"kind": "probe", "name": "cuda_init", "outcome": "fail", "message": "it is lost"}
        yield from healthy(job)

    Node(monkeypatch, script, gpu(0), gpu(1))
    report = course.run(Options(level="full", only=("fused_add_rms_norm",)))

    assert outcomes(report, "speeds", "GPU-a") == ["pass"]
    assert outcomes(report, "speeds", "GPU-b") == outcomes(report, "cases", "GPU-b") == []
    assert report["message"] == "cuda_init on GPU-b: fail: it is lost"


def test_a_prohibited_gpu_is_named_and_the_other_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    Node(monkeypatch, healthy, gpu(0), gpu(1, compute_mode="prohibited"))
    report = course.run(Options(only=("fused_add_rms_norm",)))

    assert outcomes(report, "cases", "GPU-a") == ["pass"]
    assert (report["verdict"], [run["gpu"] for run in report["readings"]]) == ("fail", ["GPU-a"])
    assert "GPU 1 (NVIDIA H200, GPU-b) is in the compute mode 'prohibited'" in report["message"]
    assert "fix: sudo nvidia-smi -i GPU-b --compute-mode=DEFAULT" in text(report)


def test_one_gpu_of_one_needs_no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(monkeypatch, healthy, gpu(0))
    course.run(Options(only=("fused_add_rms_norm",)))
    assert {visible(job) for job in node.jobs} == {""}


def test_a_gpu_that_was_requested_and_is_missing_is_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    Node(monkeypatch, healthy, gpu(0), gpu(1))
    report = course.run(Options(only=("fused_add_rms_norm",), gpus=("1", "7")))

    assert outcomes(report, "cases", "GPU-b") == ["pass"]
    assert [entry["index"] for entry in report["environment"]["gpus"]] == [1]
    assert report["verdict"] == "undecided"
    assert "GPU 7 could not be tried: CUDA sees 0 (GPU-a), 1 (GPU-b)" in report["message"]


def test_a_gpu_is_named_by_its_uuid_or_the_beginning_of_one() -> None:
    seen = answer(gpu(0, "GPU-1234"), gpu(1, "GPU-1299"))
    assert [each["index"] for each in chosen(seen, ["GPU-129"], lambda _: {}, {})[0]] == [1]
    found, missing = chosen(seen, ["GPU-12"], lambda _: {}, {})
    assert found == []
    assert missing[0]["message"] == "GPU GPU-12 could not be tried: 2 begin so"


def test_a_gpu_that_nvml_lists_and_cuda_does_not_see_is_missing() -> None:
    listed = [{"index": n, "uuid": uuid, "instances": []} for n, uuid in enumerate(["GPU-a", "", "GPU-c"])]
    found, missing = chosen(answer(gpu(0), listed=listed), [], lambda _: {}, {})
    assert [each["uuid"] for each in found] == ["GPU-a"]
    assert [(probe["outcome"], probe["message"]) for probe in missing] == [
        ("error", "GPU number 1 of NVML, which is lost could not be tried: NVML lists it, and CUDA does not see it"),
        ("error", "GPU number 2 of NVML (GPU-c) could not be tried: NVML lists it, and CUDA does not see it"),
    ]
    assert chosen(answer(gpu(0), listed=listed), [], lambda _: {}, {"CUDA_VISIBLE_DEVICES": "0"})[1] == []


def test_every_instance_of_a_gpu_with_mig_is_requested_by_itself() -> None:
    whole, first, second = gpu(1, "GPU-b"), "MIG-1", "MIG-2"
    listed = [
        {"index": 0, "uuid": "GPU-a", "instances": [first, second]},
        {"index": 1, "uuid": "GPU-b", "instances": []},
    ]

    def ask(environment: Mapping[str, str]) -> dict[str, Any]:
        uuid = environment["CUDA_VISIBLE_DEVICES"]
        return answer(*([gpu(0, uuid, name="NVIDIA H200 MIG 1g.18gb")] if uuid == first else []))

    found, missing = chosen(answer(gpu(0, "MIG-1"), whole, listed=listed), [], ask, {})
    assert [(each["index"], each["uuid"]) for each in found] == [(1, "GPU-b"), (0, "MIG-1")]
    assert [probe["message"] for probe in missing] == ["GPU MIG-2 could not be tried: CUDA does not open it"]
    found, missing = chosen(answer(gpu(0, "MIG-1")), ["MIG-1", "MIG-2"], ask, {})
    assert [each["uuid"] for each in found] == ["MIG-1"]
    assert len(missing) == 1


def test_children_use_no_nvlink_multicast_unless_the_user_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, str]] = []
    node = Node(monkeypatch, healthy, gpu(0))

    def crew(environment: dict[str, str], *_rest: object) -> Node:
        seen.append(environment)
        return node

    monkeypatch.setattr(course, "Crew", crew)
    monkeypatch.setenv("NCCL_NVLS_ENABLE", "1")
    monkeypatch.delenv("NVSHMEM_DISABLE_NVLS", raising=False)
    course.run(Options(only=("fused_add_rms_norm",)))
    assert (seen[0]["NCCL_NVLS_ENABLE"], seen[0]["NVSHMEM_DISABLE_NVLS"]) == ("1", "1")
    assert seen[0]["TORCH_SYMM_MEM_DISABLE_MULTICAST"] == "1"


def test_what_is_interrupted_reports_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    def script(job: Job) -> Iterator[Record]:
        if job.task == "speed.rates:rates":
            raise course.Stopped("SIGTERM")
        yield from healthy(job)

    Node(monkeypatch, script, gpu(0))
    report = course.run(Options(level="full", only=("fused_add_rms_norm",)))

    assert outcomes(report, "cases", "GPU-a") == outcomes(report, "speeds", "GPU-a") == ["pass"]
    assert (report["verdict"], report["partial"]) == ("undecided", "interrupted by SIGTERM")
    assert text(report).startswith("UNDECIDED  NVIDIA H200, torch 2.11.0, triton 3.6.0: partial, interrupted by")


def test_on_one_gpu_with_an_empty_cache_kernels_are_timed_while_cases_are_compiled(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("kernels_smoke.suite.run.on_gpus.marks", lambda *_arguments: Marks(tmp_path, "digest"))

    def script(job: Job) -> Iterator[Record]:
        for record in healthy(job):
            wrong = record["kind"] == "case" and record["kernel"] == "qk_clip"
            yield record | ({"outcome": "wrong"} if wrong else {})

    node = Node(monkeypatch, script, gpu(0))
    report = course.run(Options(level="full", only=("fused_add_rms_norm", "qk_clip")))

    order = [(job.task.partition(":")[2], job.arguments.get("part", "")) for job in node.jobs]
    compiled, timed = order.index(("precompile", "timed")), order.index(("speeds", ""))
    assert compiled < timed < order.index(("cases", ""))
    assert ("precompile", "timed") not in order[timed:]
    assert [record["kernel"] for record in report["speeds"]] == ["fused_add_rms_norm"]  # qk_clip is wrong
    assert not node.alone or all(job.task != "speed.speeds:speeds" for job in node.alone)


def test_lanes_hold_jobs_back_and_let_others_pass() -> None:
    def job(lane: str) -> Job:
        return Job("task", {}, 1.0, lambda _record: None, lane=lane)

    waiting = deque([job("a"), job("a"), job("b"), job("")])
    taken = [next_job(waiting, [job("a")], 1) for _ in range(3)]
    assert [each.lane if each else None for each in taken] == ["b", "", None]
    assert next_job(waiting, [job("a")], 0) is not None
