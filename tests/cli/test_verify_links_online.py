"""The link closure of real wheels from the real index: all that torch loads is there, for few bytes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Wheelproof

pytestmark = pytest.mark.online

LARGEST = 20_000_000  # bytes, index pages included: 16.5 MB on aarch64, 18.7 MB on x86_64 where no wheel is at hand
UNSATISFIED = {"driver", "system", "optional"}  # statuses without a wheel


def subject_of(wheelproof: Wheelproof, requirement: str, platform: str, *arguments: str) -> tuple[int, dict[str, Any]]:
    target = ("--platform", platform, "--python", "3.12", "--depth", "links", "--format", "json")
    run = wheelproof("verify", requirement, *target, *arguments)
    report: dict[str, Any] = json.loads(run.out)
    return run.status, report


@pytest.mark.parametrize("platform", ["aarch64", "x86_64"])
def test_torch_loads_with_what_it_requires(
    wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch, platform: str
) -> None:
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)  # wheels on this host would cost nothing
    status, report = subject_of(wheelproof, "torch==2.11.0", platform)

    (subject,) = report["subjects"]
    links = subject["facts"]["links"]
    assert status == 0, [result for result in subject["results"] if result["outcome"] in {"fail", "error"}]
    assert report["summary"]["bytes_read"] < LARGEST
    statuses = {need["status"] for need in links["needs"]}
    assert statuses <= {"resolved", "preload", *UNSATISFIED}
    assert all(need["wheel"] for need in links["needs"] if need["status"] not in UNSATISFIED)
    assert {need["needs"] for need in links["needs"] if need["status"] == "driver"} == {"libcuda.so.1"}
    brought = {need["needs"]: need["wheel"].partition("-")[0] for need in links["needs"]}
    assert brought["libnccl.so.2"] == "nvidia_nccl_cu13"
    assert brought["libcublas.so.13"] == "nvidia_cublas"
    assert links["absent"] == []
    assert not [path for path in links["unread"] if path.startswith("torch/")]


def test_the_loader_that_torchvision_brings_to_aarch64_is_found(wheelproof: Wheelproof) -> None:
    status, report = subject_of(wheelproof, "torchvision==0.29.1", "aarch64", "--select", "WHL505")

    assert status == 0
    (result,) = [r for r in report["subjects"][0]["results"] if r["rule"] == "WHL505"]
    assert (result["severity"], result["location"]["member"]) == (
        "warning",
        "torchvision.libs/ld-linux-aarch64.5cbc5e90.so.1",
    )


@pytest.mark.parametrize("requirement", ["numpy==2.3.0", "triton==3.6.0", "nvidia-nccl-cu13==2.28.9"])
@pytest.mark.parametrize("platform", ["aarch64", "x86_64"])
def test_sound_wheels_pass(wheelproof: Wheelproof, requirement: str, platform: str) -> None:
    status, report = subject_of(wheelproof, requirement, platform, "--select", "WHL5")

    assert status == 0, report
    assert not [r for r in report["subjects"][0]["results"] if r["severity"] == "error" and r["outcome"] == "fail"]
