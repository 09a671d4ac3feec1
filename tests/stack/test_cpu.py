"""A torch for the CPU: a fault where a GPU is wanted, else a note where nothing asks for the CPU."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.conftest import Wheelproof
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.wheels import torch_like

FILES = {
    path.replace("/simple/", f"/{index}/simple/").replace("/files/", f"/{index}/files/"): file
    for index in ("whl/cpu", "all")
    for path, file in simple_index(torch_like("cpu", "2.10.0").metadata(requires=[])).items()
}


@pytest.mark.parametrize(
    ("index", "more", "status", "severities"),
    [
        ("all", [], 0, ["note"]),
        ("all", ["--gpu", "GB200"], 1, ["error"]),
        ("all", ["--expect", "cuda"], 1, ["error"]),
        ("all", ["--expect", "cuda==13.0"], 1, ["error"]),
        ("all", ["--expect", "cpu"], 0, []),
        ("whl/cpu", [], 0, []),
        ("whl/cpu", ["--gpu", "GB200"], 1, ["error"]),
    ],
)
def test_who_asks_for_the_cpu(
    wheelproof: Wheelproof, index: str, more: list[str], status: int, severities: list[str]
) -> None:
    with RangeServer(dict(FILES)) as server:
        url = server.url(f"/{index}/simple")
        target = ["--platform", "aarch64", "--python", "3.12", "--format", "json"]
        run = wheelproof("stack", "torch", "--index-url", url, *target, *more)
    assert run.out, run.err
    assert (run.status, severities_of(json.loads(run.out))) == (status, severities)


def severities_of(report: dict[str, Any]) -> list[str]:
    """The severities of failed results of the two rules about it."""
    results = [result for subject in report["subjects"] for result in subject["results"]]
    return [
        result["severity"]
        for result in results
        if result["outcome"] in ("fail", "error") and result["rule"] in ("STK101", "STK122")
    ]
