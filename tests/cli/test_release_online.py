"""The promises of issue and manual on the real index: torch 2.10.0 stops, 2.11.0 ships."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import Wheelproof

pytestmark = pytest.mark.online

EXPECT = str(Path(__file__).parents[2] / "ci" / "release" / "torch.toml")


def test_torch_2_10_stops_as_aarch64_is_cpu_only(wheelproof: Wheelproof) -> None:
    run = wheelproof("release", "torch==2.10.0", "--expect", EXPECT, "--format", "json")

    assert run.status == 1
    whole, *files = json.loads(run.out)["subjects"]
    cpu = [
        subject["id"]
        for subject in files
        for result in subject["results"]
        if (result["rule"], result["outcome"]) == ("REL103", "fail")
    ]
    assert len(cpu) == 7
    assert all(name.endswith("manylinux_2_28_aarch64.whl") for name in cpu)
    messages = [result["message"] for result in whole["results"] if result["outcome"] == "fail"]
    assert "x86_64 is CUDA 12.8 while aarch64 is CPU only" in messages


def test_torch_2_11_ships(wheelproof: Wheelproof) -> None:
    run = wheelproof("release", "torch==2.11.0", "--expect", EXPECT)

    assert run.status == 0, run.out
    assert run.out.startswith("may be uploaded\nSHIP  torch 2.11.0: 28 of 28 cells filled by 28 files\n")
