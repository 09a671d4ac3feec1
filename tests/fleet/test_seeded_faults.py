"""A fleet with seeded faults: all of them are named, and nothing else is. `benchmarks/fleet.py` has the large one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Wheelproof
from tests.support.synthetic_fleet import documents, found_by, make_fleet, seed_faults


@pytest.mark.parametrize("seed", [1, 2])
def test_every_fault_is_named_and_nothing_else(wheelproof: Wheelproof, tmp_path: Path, seed: int) -> None:
    trays = make_fleet(18 * 6 * 4)
    faults = seed_faults(trays, 20, seed)
    (tmp_path / "hosts").write_text("\n".join(trays))
    (tmp_path / "all.jsonl").write_text("\n".join(text for _, _, text in documents(trays, faults, seed)))
    arguments = ("--expect-hosts", str(tmp_path / "hosts"), "--format", "json")
    run = wheelproof("report", "merge", str(tmp_path / "all.jsonl"), *arguments)

    named, false = found_by(json.loads(run.out), faults)
    assert false == []
    assert [fault.what for fault in faults if fault not in named] == []


def test_a_fleet_without_faults_has_no_finding(wheelproof: Wheelproof, tmp_path: Path) -> None:
    trays = make_fleet(18 * 6 * 3)
    (tmp_path / "all.jsonl").write_text("\n".join(text for _, _, text in documents(trays, [], 3)))
    run = wheelproof("report", "merge", str(tmp_path / "all.jsonl"))

    assert run.status == 0
    assert run.out.startswith("PASS  324 hosts: all alike, and none fails (")
