"""What `docs/diff.md` shows, on the real index: a few megabytes of real torch wheels."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Wheelproof

pytestmark = pytest.mark.online

LARGEST = 25_000_000  # bytes read of both wheels and the index page; 7 MB are symbol versions that decide (WHL503)


def test_torch_2_11_differs_where_it_is_known_to(wheelproof: Wheelproof) -> None:
    run = wheelproof("diff", "torch==2.11.0", "--platform", "aarch64,x86_64", "--python", "3.12", "--format", "json")

    assert run.status == 0
    report = json.loads(run.out)
    (subject,) = report["subjects"]
    assert 0 < report["summary"]["bytes_read"] < LARGEST
    found = [(r["rule"], r["message"]) for r in subject["results"] if r["outcome"] == "fail"]
    assert found == [
        ("REL206", "torch/lib/libtorch_cuda_linalg.so is 70.5 times as large for x86_64 as for aarch64"),
        (
            "REL207",
            "4 libraries need different libraries on the two sides: libgomp.so.1, libcublas.so.13, libcusparse.so.12",
        ),
    ]
    assert subject["facts"]["differences"]["requirements"] == []
    assert subject["facts"]["differences"]["native_files"]["only_a"]["count"] == 7


def test_torch_2_10_has_cuda_for_one_architecture_alone(wheelproof: Wheelproof) -> None:
    arguments = ("--platform", "aarch64,x86_64", "--python", "3.12", "--depth", "quick")
    run = wheelproof("diff", "torch==2.10.0", *arguments)

    assert run.status == 1
    assert "REL201  aarch64 is CPU only, but x86_64 is CUDA 12.8" in run.out
