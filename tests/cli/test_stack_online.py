"""``wheelproof stack`` on the configured package index: the case of issue 3."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Wheelproof

pytestmark = pytest.mark.online
GRACE_BLACKWELL = ("--platform", "aarch64", "--python", "3.12", "--gpu", "GB200", "--format", "json")


@pytest.mark.parametrize(
    ("package", "torch", "expected"), [("vllm==0.19.0", "2.10.0", "cpu"), ("vllm==0.20.0", "2.11.0", "cuda")]
)
def test_the_torch_that_vllm_pins_on_aarch64(wheelproof: Wheelproof, package: str, torch: str, expected: str) -> None:
    report = json.loads(wheelproof("stack", package, *GRACE_BLACKWELL).out)
    (row,) = [row for row in report["subjects"][0]["facts"]["packages"] if row["package"] == "torch"]
    assert (row["version"], row["accelerator"]) == (torch, expected)
    messages = [
        r["message"]
        for s in report["subjects"]
        for r in s["results"]
        if r["rule"] == "STK101" and r["outcome"] == "fail"
    ]
    pinned = ["torch==2.10.0", "torchaudio==2.10.0", "torchvision==0.25.0"] if expected == "cpu" else []
    assert sorted(message.partition(";")[2].strip() for message in messages) == [
        f"vllm 0.19.0 pins {pin}" for pin in pinned
    ]
