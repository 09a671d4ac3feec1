"""The readiness table: its oracle's reading of tools, the conclusions, and the comparison of an answer."""

from __future__ import annotations

from typing import Any

import pytest

from ci.oracle import comparison, members, page, summary

SECTIONS = """
  [Nr] Name              Type            Address          Off    Size   ES Flg Lk Inf Al
  [ 0]                   NULL            0000000000000000 000000 000000 00      0   0  0
  [14] __nv_relfatbin    PROGBITS        00000000000435b8 0435b8 42a440 00   A  0   0  8
  [15] .nvHRCE           PROGBITS        000000000046d9f8 46d9f8 000006 00   A  0   0  1
  [33] .nvFatBinSegment  PROGBITS        0000000001487af0 1486af0 0000a8 00  WA  0   0  8
  [41] .hip_fatbin       PROGBITS        0000000002000000 2000000 001000 00   A  0   0 4096
"""
LISTED = """ELF file    1: libx.so.1.sm_80.cubin
ELF file    2: libx.so.13.0.1.2.sm_100a.cubin
ELF file    3: libx.so.3.sm_80.cubin
PTX file    1: libx.so.1.sm_120.ptx
"""


def truth(*files: dict[str, Any], package: str = "torchcodec", machine: str = "x86_64") -> dict[str, Any]:
    return {"package": package, "machine": machine, "wheel": "torchcodec-1.0-py3-none-any.whl", "files": list(files)}


def library(path: str = "torchcodec/core.so", **fields: Any) -> dict[str, Any]:
    return {"path": path, "kind": "DYN", **fields}


def answer(**fields: Any) -> dict[str, Any]:
    return {
        "package": "torchcodec",
        "machine": "x86_64",
        "exit": 0,
        "file": "torchcodec-1.0-py3-none-any.whl",
        "version": "1.0",
        "headline": "CUDA 13.0",
        "verdict": "pass",
        "certainty": "exact",
        "accelerator": "cuda",
        "cuda": ["13.0"],
        "runs": {"H100": "native", "B200": "native"},
        "said": [],
        "bytes": 1_000_000,
        "seconds": 1.0,
        **fields,
    }


CUDA_13: dict[str, Any] = {
    "needed": ["libcudart.so.13"],
    "gpu_sections": {".nv_fatbin": 9},
    "sass": {"90": 1, "100": 1},
}


def test_sections_of_gpu_code_are_found_by_name_with_their_place_in_the_file() -> None:
    assert members.gpu_sections(SECTIONS) == [
        ("__nv_relfatbin", 0x435B8, 0x435B8 + 0x42A440),
        (".nvFatBinSegment", 0x1486AF0, 0x1486AF0 + 0xA8),
        (".hip_fatbin", 0x2000000, 0x2001000),
    ]


def test_what_cuobjdump_lists_is_counted_by_architecture() -> None:
    assert members.listed(LISTED) == ({"80": 2, "100a": 1}, {"120": 1})


@pytest.mark.parametrize(
    ("labels", "capability", "how"),
    [
        (["sass 80"], "8.6", "native"),
        (["sass 86"], "8.0", "none"),
        (["sass 100"], "10.3", "native"),
        (["sass 100a"], "10.3", "none"),
        (["sass 90a"], "9.0", "native"),
        (["sass 90", "ptx 90"], "10.0", "jit"),
        (["ptx 120"], "10.0", "none"),
        (["ptx 90a"], "10.0", "none"),
        ([], "9.0", "none"),
    ],
)
def test_code_runs_by_the_rules_of_the_programming_guide(labels: list[str], capability: str, how: str) -> None:
    assert summary.how_of(labels, capability) == how


def test_a_bundled_library_of_nvidia_says_nothing_about_the_package() -> None:
    nvjpeg = library("torchcodec.libs/libnvjpeg-ae5a5fd1.so.13.0.1", sass={"75": 1}, gpu_sections={".nv_fatbin": 9})

    facts = summary.of_row(truth(library(**CUDA_13), nvjpeg), ["7.5", "9.0"])

    assert facts.how == {"7.5": "none", "9.0": "native"}


def test_libraries_that_differ_are_mixed() -> None:
    facts = summary.of_row(truth(library("a.so", sass={"90a": 1}), library("b.so", sass={"100": 1})), ["9.0", "10.0"])

    assert facts.how == {"9.0": "mixed", "10.0": "mixed"}


def test_majors_of_cuda_come_from_sonames_also_where_these_have_other_numbers() -> None:
    needed = ["libcudart.so.12", "libcufft.so.12", "libcusparse.so.12", "libnvrtc.so.13"]

    assert summary.of_row(truth(library(needed=needed)), []).cuda == ("12", "13")


@pytest.mark.parametrize(
    ("changed", "outcome"),
    [
        ({}, "right"),
        ({"accelerator": "none"}, "wrong"),
        ({"accelerator": ""}, "undecided"),
        ({"cuda": []}, "undecided"),
        ({"cuda": ["12.8"]}, "wrong"),
        ({"runs": {"H100": "native", "B200": "none"}}, "wrong"),
        ({"runs": {"H100": "native"}}, "undecided"),
        ({"exit": 3}, "undecided"),
        ({"exit": 1}, "wrong"),
        ({"file": "torchcodec-0.9-py3-none-any.whl"}, "wrong"),
    ],
)
def test_an_answer_is_compared_with_each_part_of_the_truth(changed: dict[str, Any], outcome: str) -> None:
    assert comparison.judge(answer(**changed), truth(library(**CUDA_13))).outcome == outcome


def test_a_pass_without_code_for_a_gpu_is_wrong() -> None:
    only_hopper = library(**{**CUDA_13, "sass": {"90": 1}})
    given = answer(runs={"H100": "native", "B200": "none"})

    assert comparison.judge(given, truth(only_hopper)).outcome == "wrong"
    assert comparison.judge({**given, "exit": 1}, truth(only_hopper)).outcome == "right"


def test_a_silent_cpu_build_must_be_named() -> None:
    cpu, there = truth(library(needed=["libc.so.6"])), truth(library(**CUDA_13))
    given = answer(accelerator="none", cuda=[], runs={})

    assert comparison.judge(given, cpu, there).outcome == "wrong"
    assert comparison.judge({**given, "said": ["WHL203 fail: a CPU wheel"]}, cpu, there).outcome == "right"
    assert comparison.judge(given, cpu, cpu).outcome == "right"


def test_a_package_without_a_wheel_may_not_pass() -> None:
    nothing = {**truth(), "wheel": None}

    assert comparison.judge(answer(file="", exit=3), nothing).outcome == "right"
    assert comparison.judge(answer(), nothing).outcome == "wrong"


def test_the_page_has_a_row_for_each_answer_and_the_totals_of_the_check() -> None:
    rows = [answer(headline="CUDA 13.0, from one index; another offers 0.9"), answer(package="other", file="", exit=3)]
    judged = [comparison.Judgement("right"), comparison.Judgement("undecided", ("no truth",))]

    text = page.render(rows, judged, "abc1234")

    assert "**1 right, 0 wrong, 1 undecided (50.0%)**, of 2 wheels of 2 packages." in text
    assert "| torchcodec | 1.0 | CUDA 13.0 | yes | yes | pass | exact | 1.0 |" in text
    assert "- other on x86_64: undecided. no truth" in text
    assert comparison.exit_code(judged) == 3


def test_a_wheel_older_than_the_newest_source_archive_is_not_what_an_installer_takes() -> None:
    stale = {**truth(library(**CUDA_13)), "newest_source": "1.1"}

    assert comparison.judge(answer(), stale).outcome == "wrong"
    assert comparison.judge(answer(file="", exit=3), stale).outcome == "right"
    assert comparison.judge(answer(), {**stale, "newest_source": "1.0"}).outcome == "right"


def test_an_accelerator_that_was_decided_by_hand() -> None:
    compiles = {**truth(library()), "package": "taichi"}

    found = [comparison.judge(answer(package="taichi", accelerator=given), compiles).why for given in ("cuda", "none")]

    assert not any("accelerator" in why for why in found[0])
    assert any("accelerator: wheelproof says none" in why for why in found[1])
