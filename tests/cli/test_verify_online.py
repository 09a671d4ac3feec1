"""The promises of the README on the real index: these read a few megabytes of real torch wheels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import html5lib
import jsonschema
import pytest
import xmlschema

from tests.conftest import Wheelproof
from tests.support.rendering import workflow_commands

pytestmark = pytest.mark.online

LARGEST = 5_000_000  # bytes read of one torch wheel of 500 MB, index page aside
MOST_REQUESTS = 30


def subjects_of(out: str) -> list[dict[str, Any]]:
    subjects: list[dict[str, Any]] = json.loads(out)["subjects"]
    return subjects


def test_torch_2_10_for_aarch64_is_cpu_only(wheelproof: Wheelproof) -> None:
    run = wheelproof("verify", "torch==2.10.0", "--platform", "aarch64", "--python", "3.12", "--expect", "cuda")
    assert run.status == 1
    assert "CPU only (2.10.0+cpu)" in run.out
    assert "pip install torch==2.11.0" in run.out


def test_torch_2_10_for_x86_64_is_cuda_12_8_of_build_3(wheelproof: Wheelproof) -> None:
    arguments = ("--platform", "x86_64", "--python", "3.12", "--expect", "cuda", "--format", "json")
    run = wheelproof("verify", "torch==2.10.0", *arguments)
    assert run.status == 0
    (subject,) = subjects_of(run.out)
    assert (subject["facts"]["cuda"], subject["facts"]["build"]) == ("12.8", "3")


def test_torch_2_11_is_cuda_13_on_both_machines_for_little(wheelproof: Wheelproof) -> None:
    arguments = ("--platform", "all", "--python", "3.12", "--expect", "cuda==13.0", "--format", "json")
    run = wheelproof("verify", "torch==2.11.0", *arguments)
    assert run.status == 0
    subjects = subjects_of(run.out)
    assert [(s["facts"]["machine"], s["facts"]["cuda"]) for s in subjects] == [("x86_64", "13.0"), ("aarch64", "13.0")]
    for subject in subjects:
        assert 0 < subject["facts"]["bytes_read"] < LARGEST
        assert 0 < subject["facts"]["requests"] <= MOST_REQUESTS


@pytest.mark.parametrize(
    ("requirement", "accelerator", "version"),
    [
        ("torchvision==0.29.1", "cuda", "13.0"),
        ("torchaudio==2.9.1", "cuda", "12.8"),
        ("triton==3.6.0", "cuda", ""),
        ("bitsandbytes==0.50.2", "cuda", ""),
        ("cupy-cuda13x==14.2.0", "cuda", "13"),
        ("jax-cuda12-pjrt==0.9.2", "cuda", "12"),
        ("nvidia-cuda-runtime==13.5.37", "cuda", "13"),
        ("onnxruntime-gpu==1.31.1", "cuda", "13"),
        ("jax-rocm60-plugin==0.5.0", "rocm", "6"),
        ("numpy==2.3.0", "none", ""),
    ],
)
def test_other_wheels_are_recognised_and_sound(
    wheelproof: Wheelproof, requirement: str, accelerator: str, version: str
) -> None:
    python = "3.11" if "rocm" in requirement else "3.12"
    arguments = (
        "--platform",
        "x86_64",
        "--python",
        python,
        "--select",
        "WHL",
        "--ignore",
        "WHL402",
        "--format",
        "json",
    )
    run = wheelproof("verify", requirement, *arguments)
    (subject,) = subjects_of(run.out)
    facts = subject["facts"]
    assert (facts["accelerator"], facts["accelerator_version"]) == (accelerator, version)
    assert run.status == 0, [r for r in subject["results"] if r["outcome"] in {"fail", "error"}]


DATA = Path(__file__).parents[1] / "data"
ANSWERS = [
    ("torch==2.10.0", "--platform", "aarch64", "--expect", "cuda"),
    ("torch==2.10.0", "--platform", "x86_64", "--expect", "cuda"),
    ("torch==2.11.0", "--platform", "all", "--expect", "cuda==13.0"),
    ("torch>=2.9,<2.12", "--platform", "all", "--all-files"),
]


@pytest.mark.parametrize("arguments", ANSWERS, ids=" ".join)
def test_real_reports_are_accepted_by_the_validators(wheelproof: Wheelproof, arguments: tuple[str, ...]) -> None:
    def answer(format: str) -> str:  # noqa: A002  # the option's own name
        return wheelproof("verify", *arguments, "--python", "3.12", "--format", format).out

    xmlschema.XMLSchema(next(DATA.glob("*.xsd"))).validate(answer("junit"))
    sarif = json.loads((DATA / "sarif-2.1.0.schema.json").read_text())
    jsonschema.Draft4Validator(sarif).validate(json.loads(answer("sarif")))
    html5lib.HTMLParser(strict=True).parse(answer("html"))
    answers = json.loads(answer("json"))["summary"]["answers"]
    *annotations, verdict = answer("github").splitlines()[len(answers) :]
    assert len(workflow_commands("\n".join(annotations))) == len(annotations)
    assert verdict.startswith("wheelproof verify: ")
