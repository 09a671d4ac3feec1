"""The verdict of a run's records, and the jobs that may run in parallel: neither needs torch."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kernels_smoke.suite import registry
from kernels_smoke.suite.cli import parser
from kernels_smoke.suite.compiling.warm_cache import Marks
from kernels_smoke.suite.processes.crew import End, Job
from kernels_smoke.suite.run.gpus import GpuRun
from kernels_smoke.suite.run.jobs import Options, groups
from kernels_smoke.suite.run.on_gpus import GROUPS, judge
from kernels_smoke.suite.run.plan import Document
from kernels_smoke.suite.run.units import judging
from kernels_smoke.suite.verdict import verdict

COMPILES = "compiling.compilations:precompile"  # the only task without the GPU
PROBE = {"kind": "probe", "name": "driver", "outcome": "pass", "message": ""}
NO_FP8 = {"kind": "case", "kernel": "scaled_mm", "case": "c", "outcome": "skip", "message": "this GPU has no fp8"}
RIGHT = {"kind": "case", "kernel": "mul_sum_add", "case": "c", "outcome": "pass", "message": ""}


def document_of(*records: dict[str, Any]) -> Document:
    document = Document()
    for record in records:
        document.add(dict(record))
    return document


def test_probes_alone_prove_no_kernel() -> None:
    assert verdict(document_of(PROBE)) == {"verdict": "undecided", "message": "no kernel was checked"}


def test_skipped_cases_are_no_pass() -> None:
    found = verdict(document_of(PROBE, NO_FP8, NO_FP8))
    assert found["verdict"] == "undecided"
    assert found["message"] == "scaled_mm / c: skip: this GPU has no fp8 (and 1 more)"


def test_only_what_passed_is_counted() -> None:
    speed = {"kind": "speed", "kernel": "mul_sum_add", "case": "s", "outcome": "pass", "message": ""}
    found = verdict(document_of(PROBE, NO_FP8, RIGHT, speed, speed | {"outcome": "skip"}))
    assert found == {"verdict": "pass", "message": "1 kernel correct in 1 case, 1 of 1 within their bars"}


def test_what_only_the_allowance_excuses_is_not_within_its_bar() -> None:
    speed = {"kind": "speed", "kernel": "mul_sum_add", "case": "s", "outcome": "pass", "message": "", "bar_met": True}
    message = verdict(document_of(PROBE, RIGHT, speed, speed | {"bar_met": False}))["message"]
    assert message == "1 kernel correct in 1 case, 1 of 2 within their bars, 1 within the allowance for noise"


def test_kernels_are_put_together_so_that_all_children_have_about_as_much_to_do() -> None:
    options = Options(level="full")
    alone, together = groups(options, registry.ENTRIES), groups(options, registry.ENTRIES, 4)
    assert len(alone) == len({entry.family for entry in registry.ENTRIES})
    assert sorted(entry.name for members in together.values() for entry in members) == sorted(
        entry.name for entry in registry.ENTRIES
    )
    seconds = [sum(map(judging, members)) for members in together.values()]
    assert len(seconds) == 4
    assert max(seconds) < 1.2 * min(seconds)


def test_several_gpus_are_counted_and_the_one_that_is_wrong_is_named() -> None:
    wrong = RIGHT | {"outcome": "wrong", "message": "far off", "gpu": "GPU-b"}
    assert verdict(document_of(RIGHT), 2)["message"] == "2 GPUs: 1 kernel correct in 1 case"
    assert verdict(document_of(RIGHT, wrong), 2)["message"] == "mul_sum_add / c on GPU-b: wrong: far off"


class Crew:
    """Notes which tasks may run at the same time, and ends each job at once."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[str], int, int]] = []

    def run(self, jobs: Iterable[Job], *, at_once: int, in_lane: int = 0) -> None:
        waiting, tasks = list(jobs), []
        while waiting:
            job = waiting.pop(0)
            tasks.append(job.task)
            waiting.extend(job.on_end(End(0, hang=False, words="")))
        self.calls.append((tasks, at_once, in_lane))


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
def test_nothing_runs_next_to_a_child_that_has_an_exclusive_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, warm: bool, exclusive: bool
) -> None:
    options, entries, kept = Options(level="full"), registry.ENTRIES, Marks(tmp_path, "digest")
    monkeypatch.setattr("kernels_smoke.suite.run.on_gpus.marks", lambda *_arguments: kept)
    if warm:
        kept.leave([entry.name for entry in entries], "full")
    gpu = {"index": 0, "name": "NVIDIA H200", "uuid": "GPU-a", "target": "sm_90"}
    gpu |= {"compute_mode": "exclusive process" if exclusive else "default"}
    crew = Crew()
    judge(options, crew, entries, Document(), [GpuRun(gpu, Document())], [])  # type: ignore[arg-type]  # a double of the crew
    ran = [task for tasks, *_ in crew.calls for task in tasks]
    children = GROUPS if warm else len({entry.family for entry in entries})
    assert ran.count("correctness.tasks:cases") == children
    assert ran.count("probes.probing:heavy") == 3
    assert (COMPILES in ran) != warm
    on_gpu = [in_lane for tasks, at_once, in_lane in crew.calls if at_once > 1 and set(tasks) - {COMPILES}]
    assert all(in_lane == 1 for in_lane in on_gpu) if exclusive else 0 in on_gpu


@pytest.mark.parametrize(
    ("uuids", "only", "noted"),
    [
        (["GPU-a", "GPU-b"], "", ["GPU-a", "GPU-b"]),
        (["GPU-a"], "", []),
        (["GPU-a", "MIG-b"], "", []),
        (["GPU-a", "GPU-b"], "rotary", []),
    ],
)
def test_on_several_gpus_the_all_reduce_is_not_run_across_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uuids: list[str], only: str, noted: list[str]
) -> None:
    monkeypatch.setattr("kernels_smoke.suite.run.on_gpus.marks", lambda *_arguments: Marks(tmp_path, "digest"))
    gpu = {"index": 0, "name": "NVIDIA H200", "target": "sm_90", "compute_mode": "default"}
    runs = [GpuRun(gpu | {"uuid": uuid}, Document(), alone=len(uuids) == 1) for uuid in uuids]
    entries = registry.select((only,) if only else ())
    judge(Options(level="full"), Crew(), entries, Document(), runs, [])  # type: ignore[arg-type]  # a double of the crew
    found = {run.uuid: record for run in runs for record in run.document.cases}
    assert list(found) == noted
    for record in found.values():
        assert (record["kernel"], record["outcome"]) == ("all_reduce_add_rms_norm", "not run across GPUs")
        assert verdict(document_of(RIGHT, record), 2)["verdict"] == "undecided"


def test_only_may_be_repeated() -> None:
    assert parser().parse_args(["--only", "norm,fusion", "--only", "scaled_mm"]).only == ["norm", "fusion", "scaled_mm"]
    assert parser().parse_args([]).only == []
