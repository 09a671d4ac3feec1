"""``wheelproof verify --gpu``: on our own wheels."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.conftest import Wheelproof
from tests.support.elf import Elf
from tests.support.fatbin import fat_binary, section
from tests.support.wheels import WheelBuilder


@pytest.fixture
def wheel(tmp_path: Path) -> str:
    """The path of a wheel with code for H100 and B200."""
    library = Elf(contents={".nv_fatbin": section(fat_binary("sm_90", "sm_100"))}).build().data
    builder = WheelBuilder("demo_cu13", "1.0", "cp312-cp312-manylinux_2_28_x86_64").add("demo_cu13/_C_cuda.so", library)
    return str(builder.write(tmp_path))


def test_every_gpu_has_a_line_and_a_missing_one_fails(wheelproof: Wheelproof, wheel: str) -> None:
    good = wheelproof("verify", wheel, "--gpu", "H100,B300", "--select", "WHL6")
    bad = wheelproof("verify", wheel, "--gpu", "H100", "--gpu", "A100", "--select", "WHL6")

    assert good.status == 0
    assert "  H100 (9.0): runs natively (sm_90)\n  B300 (10.3): runs natively (sm_100)\n" in good.out
    assert bad.status == 1
    assert "no code for A100 (8.0) in demo_cu13/_C_cuda.so, which has sm_90, sm_100" in bad.out
    assert "fix: Use another release or index." in bad.out


def test_depth_gpu_lists_the_code_without_a_gpu(wheelproof: Wheelproof, wheel: str) -> None:
    run = wheelproof("verify", wheel, "--depth", "gpu", "--select", "WHL6", "--format", "json", "--offline")

    (subject,) = json.loads(run.out)["subjects"]
    assert subject["facts"]["gpu_code"]["sass"] == ["sm_90", "sm_100"]
    skipped = {result["rule"] for result in subject["results"] if result["outcome"] == "skip"}
    assert skipped == {f"WHL60{number}" for number in range(1, 9)}
    messages = {result["rule"]: result["message"] for result in subject["results"]}
    assert "--gpu GB200" in messages["WHL604"]
    assert "--driver 580" in messages["WHL605"]


def test_a_gpu_that_is_unknown_is_wrong_usage(wheelproof: Wheelproof, wheel: str) -> None:
    run = wheelproof("verify", wheel, "--gpu", "GB2000")

    assert run.status == 2
    assert "GB200" in run.err


def test_what_the_question_needs_is_read_at_any_depth(wheelproof: Wheelproof, tmp_path: Path) -> None:
    noise = random.Random(7).randbytes(5_000_000)  # no compressor shortens it
    library = Elf(contents={".nv_fatbin": section(fat_binary("sm_90")), ".rodata": noise}).build().data + noise
    builder = WheelBuilder("demo_cu13", "1.0", "cp312-cp312-manylinux_2_28_x86_64")
    path = builder.add("demo_cu13/_C_cuda.so", library).write(tmp_path)

    assert path.stat().st_size > 8 * 1024 * 1024
    assert wheelproof("verify", str(path), "--gpu", "H100", "--select", "WHL6").status == 0
    assert wheelproof("verify", str(path), "--gpu", "H100", "--select", "WHL6", "--depth", "gpu").status == 0
