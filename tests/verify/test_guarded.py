"""``verify --installed`` of an environment with a guard: its front programs are known, and no copies of them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.guarded_world import GuardedWorld, Index
from wheel_checks.model import CheckResult, Outcome
from wheelproof.reporting import Selection
from wheelproof.verifying.installed import Place, verify_installed
from wheelproof.wheels.model import Judgement


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> GuardedWorld:
    folder = tmp_path_factory.mktemp("guarded")
    world = GuardedWorld.create(folder / "world", Index.create(folder))
    done = world.guard("--install", "--yes")
    assert done.status == 0, done.words
    return world


def found(world: GuardedWorld) -> list[str]:
    report = verify_installed(Place(str(world.venv)), Judgement(selection=Selection(select=("SEC",))), {})
    results: list[CheckResult] = [result for subject in report.subjects for result in subject.results]
    return [result.message for result in results if result.outcome is Outcome.FAIL]


def test_what_the_guard_writes_is_known(guarded: GuardedWorld) -> None:
    assert b"torch-guard" in (guarded.venv / "bin/pip").read_bytes()
    assert found(guarded) == []


def test_a_changed_front_program_is_not(guarded: GuardedWorld) -> None:
    front = guarded.venv / "bin/pip"
    before = front.read_bytes()
    front.write_bytes(before + b"# one line more\n")
    try:
        assert found(guarded) == ["bin/pip of pip is a script that no installer writes"]
    finally:
        front.write_bytes(before)


def test_a_receipt_that_names_another_program_makes_it_no_guard(guarded: GuardedWorld) -> None:
    evil, receipt = guarded.venv / "bin/pip3", guarded.venv / "share/torch-guard/receipt.json"
    before, kept = evil.read_bytes(), receipt.read_text()
    text = b'#!/bin/sh\nexec /opt/evil "$@"\n'
    evil.write_bytes(text)
    receipt.write_text(json.dumps(_naming(json.loads(kept), evil, text)))
    try:
        assert found(guarded) == ["bin/pip3 of pip is a script that no installer writes"]
    finally:
        evil.write_bytes(before)
        receipt.write_text(kept)


def _naming(receipt: dict[str, Any], path: Path, content: bytes) -> dict[str, Any]:
    """The receipt with the right hash of a program that the guard has not written."""
    entries = [entry for entry in receipt["files"] if entry["path"] != str(path)]
    digest = hashlib.sha256(content).hexdigest()
    return {**receipt, "files": [*entries, {"path": str(path), "role": "front", "sha256": digest, "kept": ""}]}
