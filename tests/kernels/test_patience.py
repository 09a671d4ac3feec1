"""Cases that find too little memory, while other children of the suite may hold it."""

from __future__ import annotations

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
    """What the runs of cases come to, in turn; the list is consumed."""
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


@pytest.mark.parametrize("said", ["CUDA out of memory. Tried to allocate 4.00 GiB", "CUBLAS_STATUS_ALLOC_FAILED when"])
def test_what_says_that_there_is_too_little_memory(said: str) -> None:
    failure = tasks._failure(RuntimeError(said))  # what decides it
    assert failure["outcome"] == "error"
    assert failure["message"].startswith(NO_MEMORY)
