"""Cases without enough memory, which other children of the suite may use."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from kernels_smoke.suite import registry
from kernels_smoke.suite.correctness import tasks
from kernels_smoke.suite.correctness.tasks import NO_MEMORY

KERNEL = registry.load(registry.ENTRIES[0])
FULL, RIGHT = {"outcome": "error", "message": f"{NO_MEMORY}: 4 GiB"}, {"outcome": "pass", "message": ""}


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The results of cases in turn; the list is consumed."""
    coming: list[dict[str, Any]] = []
    monkeypatch.setattr(tasks, "run", lambda *_: coming.pop(0))
    monkeypatch.setattr(tasks, "PAUSE", 0.0)
    monkeypatch.setattr(tasks, "TRIES", 3)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    return coming


def tried(count: int) -> Iterator[str]:
    """The outcomes of the first cases of a kernel."""
    records: list[dict[str, Any]] = []
    names = [[KERNEL.name, case.name] for case in KERNEL.cases[count:]]
    tasks.cases(records.append, kernels=[KERNEL.name], level="full", device="cuda", seed=1, skip=names)
    yield from (record["outcome"] for record in records if record["kind"] == "case")


def test_a_case_is_tried_again_until_there_is_memory(results: list[dict[str, Any]]) -> None:
    results += [FULL, FULL, RIGHT]
    assert list(tried(1)) == ["pass"]
    assert not results


def test_a_child_that_waited_in_vain_does_not_wait_again(results: list[dict[str, Any]]) -> None:
    results += [FULL] * 4 + [FULL]
    assert list(tried(2)) == ["error", "error"]
    assert not results


def test_a_mutant_waits_for_the_memory_of_the_others(results: list[dict[str, Any]]) -> None:
    results += [FULL, FULL, {"outcome": "wrong", "message": "out: relative error 0.1"}]
    module = importlib.import_module(KERNEL.module)
    found, crashed = tasks.caught(lambda _: None, KERNEL, module, "cuda", 1)
    assert (found["outcome"], found["message"], crashed) == ("caught", "out: relative error 0.1", False)


def test_the_kernel_itself_waits_for_memory_before_its_mutants_are_tried(results: list[dict[str, Any]]) -> None:
    cases = [case for case in KERNEL.cases if "cuda" in case.where and case.level != "deep"]
    results += [FULL, FULL] + [RIGHT] * len(cases)
    assert tasks.fault_of(lambda _: None, KERNEL, "cuda", 1) == ""
    assert not results


def test_what_a_child_keeps_of_the_memory_is_limited(
    results: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    reserved, given_back = [tasks.KEPT, tasks.KEPT + 1], []
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda: reserved.pop(0))
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: given_back.append(len(reserved)))
    results += [RIGHT, RIGHT]
    assert list(tried(2)) == ["pass", "pass"]
    assert given_back == [0]  # after the second case alone


def test_a_crash_is_reported_though_cuda_answers_nothing_afterwards(
    results: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer() -> int:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(torch.cuda, "memory_reserved", answer)
    results += [{"outcome": "crash", "message": "an illegal memory access"}]
    assert list(tried(1)) == ["crash"]


@pytest.mark.parametrize(
    "message", ["CUDA out of memory. Tried to allocate 4.00 GiB", "CUBLAS_STATUS_ALLOC_FAILED when"]
)
def test_what_says_that_there_is_too_little_memory(message: str) -> None:
    failure = tasks._failure(RuntimeError(message))  # the deciding code
    assert failure["outcome"] == "error"
    assert failure["message"].startswith(NO_MEMORY)
