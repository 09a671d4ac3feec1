"""What compute-sanitizer says is read rightly. Its reports are real ones, shortened, of an H200 (CUDA 13, 2026-11)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernels_smoke.suite.sanitizer import checks as sanitizer
from kernels_smoke.suite.sanitizer.checks import ERRORS, LAUNCHED, NOT_ONE, reading

# Two lanes of one instruction, with copies of one elementthat wrote 40 and 39.
COPIES = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at _fused_qk_norm_rope_kernel+0x26f0 in heads.py:113
=========     and Write access at _fused_qk_norm_rope_kernel+0x26f0 in heads.py:113 [3 hazards]
=========
========= Error: Race reported between Write access at _fused_qk_norm_rope_kernel+0x2700 in heads.py:113
=========     and Write access at _fused_qk_norm_rope_kernel+0x2700 in heads.py:113 [3 hazards]
=========
every case was launched
========= RACECHECK SUMMARY: 2 hazards displayed (2 errors, 0 warnings)
"""
TORCH = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Read access at void at::native::reduce_kernel<(int)512, (int)1>(T3)+0xe830
=========     and Write access at void at::native::reduce_kernel<(int)512, (int)1>(T3)+0xe910 [704 hazards]
=========
every case was launched
========= RACECHECK SUMMARY: 1 hazards displayed (1 errors, 0 warnings)
"""
# The start of specialised warps in a kernel: line 183 is its `def`, 222 the call of warp_specialize.
HANDED_OVER = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Read access at _attend_prompts_kernel+0x2f0 in specialized_prompts.py:183
=========     and Write access at _attend_prompts_kernel+0xc4c0 in specialized_prompts.py:183 [179 hazards]
=========     and Write access at _attend_prompts_kernel+0x14230 in specialized_prompts.py:222 [238 hazards]
=========
hands over to its warps: _attend_prompts_kernel specialized_prompts.py:183
hands over to its warps: _attend_prompts_kernel specialized_prompts.py:222
every case was launched
========= RACECHECK SUMMARY: 1 hazards displayed (1 errors, 0 warnings)
"""
CLEAN = f"========= COMPUTE-SANITIZER\n{LAUNCHED}\n========= ERROR SUMMARY: 0 errors\n"


def test_nothing_found() -> None:
    assert reading("memcheck", CLEAN, 0) == {"outcome": "pass", "message": ""}


@pytest.mark.parametrize(
    "report", [COPIES, TORCH, HANDED_OVER], ids=["copies of one element", "a reduction of torch", "handed over"]
)
def test_races_that_do_not_count(report: str) -> None:
    assert reading("racecheck", report, ERRORS)["outcome"] == "pass"


@pytest.mark.parametrize(
    "race",
    [
        COPIES.replace("and Write access", "and Read access", 1),
        COPIES.replace("and Write access at _fused_qk_norm_rope_kernel+0x26f0", "and Write access at _other+0x26f0"),
        COPIES.replace("and Write access at _fused_qk_norm_rope_kernel+0x26f0", "and Write access at _fused+0x10"),
        TORCH.replace(
            "and Write access at void at::native::reduce_kernel<(int)512, (int)1>(T3)", "and Write access at _x"
        ),
        HANDED_OVER.replace("_attend_prompts_kernel+0x14230", "_other_kernel+0x14230"),
        HANDED_OVER.replace("hands over to its warps: ", "hands nothing over: "),
    ],
    ids=[
        "write and read",
        "two functions",
        "two instructions",
        "half of it ours",
        "another kernel",
        "no specialised warps",
    ],
)
def test_a_race_of_ours_counts_next_to_others_that_do_not(race: str) -> None:
    found = reading("racecheck", race, ERRORS)
    assert found["outcome"] == "wrong"
    assert found["message"] == "compute-sanitizer found 1 unordered accesses to shared memory"
    assert "Race reported" in found["evidence"]["compute-sanitizer"]


@pytest.mark.parametrize(
    "race",
    [
        HANDED_OVER.replace("specialized_prompts.py:222 [", "specialized_prompts.py:230 ["),
        HANDED_OVER.replace("0x2f0 in specialized_prompts.py:183", "0x2f0 in other.py:183"),
        HANDED_OVER.replace(" in specialized_prompts.py:183\n========= ", "\n========= "),
    ],
    ids=["a statement", "another file", "no line"],
)
def test_a_race_between_specialised_warps_is_not_decided(race: str) -> None:
    found = reading("racecheck", race, ERRORS)
    assert found["outcome"] == "skip"
    assert found["message"] == (
        "racecheck does not follow what orders the warps of _attend_prompts_kernel: 1 races are not decided"
    )
    another = COPIES.partition("every case")[0].replace("and Write", "and Read")
    with_another = race.replace(COPIES.splitlines()[0], another)
    with_another = with_another.replace("SUMMARY: 1 hazards displayed (1", "SUMMARY: 3 hazards displayed (3")
    assert reading("racecheck", with_another, ERRORS)["outcome"] == "wrong"


def test_a_bad_access_counts_in_a_kernel_of_torch_too() -> None:
    report = (
        "========= Invalid __global__ read of size 4 bytes\n=========     at void at::native::copy<float>(T1)+0x10\n"
        f"{LAUNCHED}\n========= ERROR SUMMARY: 1 error\n"
    )
    found = reading("memcheck", report, ERRORS)
    assert (found["outcome"], found["message"]) == ("wrong", "compute-sanitizer found 1 bad accesses")


@pytest.mark.parametrize(
    ("report", "status"),
    [
        (CLEAN.replace(LAUNCHED, ""), 0),  # nothing was launched, so there is nothing to find
        (CLEAN, 1),
        ("========= Error: Target application terminated before first instrumented API call\n", 255),
        ("", -9),
    ],
    ids=["the program ended early", "the program failed", "the checker failed", "the checker was killed"],
)
def test_without_a_whole_run_there_is_no_verdict(report: str, status: int) -> None:
    assert reading("memcheck", report, status)["outcome"] == "error"


def test_a_gpu_that_can_launch_nothing_of_a_kernel() -> None:
    found = reading("memcheck", CLEAN.replace(LAUNCHED, NOT_ONE), 0)
    assert found == {"outcome": "skip", "message": NOT_ONE}


def test_more_races_than_are_printed_are_not_all_harmless() -> None:
    many = COPIES.partition(LAUNCHED)[0] * 500 + f"{LAUNCHED}\n========= RACECHECK SUMMARY: 1000 hazards displayed\n"
    assert reading("racecheck", many, ERRORS)["outcome"] == "wrong"


def stub(folder: Path, script: str) -> None:
    """A compute-sanitizer on PATH that runs ``script`` instead of the program."""
    program = folder / "compute-sanitizer"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)


def records(**arguments: Any) -> list[dict[str, Any]]:
    """The records of the task for a kernel, without its plan."""
    emitted: list[dict[str, Any]] = []
    sanitizer.checks(emitted.append, kernels=["norm"], seed=1, **arguments)
    return [record for record in emitted if record["kind"] == "case"]


def test_every_kernel_meets_both_tools_and_torch_has_no_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    stub(
        tmp_path,
        f'echo "$2 $PYTORCH_NO_CUDA_MEMORY_CACHING" >> {log}; echo "{LAUNCHED}"; echo "ERROR SUMMARY: 0 errors"',
    )
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert [record["outcome"] for record in records()] == ["pass", "pass"]
    assert log.read_text() == "memcheck 1\nracecheck 1\n"
    assert [record["case"] for record in records(skip=[("norm", "compute-sanitizer memcheck")])] == [
        "compute-sanitizer racecheck"
    ]


def test_a_checker_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stub(tmp_path, "exec sleep 60")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(sanitizer, "SECONDS", 0.2)
    assert {record["message"] for record in records()} == {"compute-sanitizer took more than 0 s"}


def test_a_machine_without_the_checker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sanitizer, "FOLDERS", ())
    assert {record["outcome"] for record in records()} == {"skip"}
