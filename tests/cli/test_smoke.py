"""``wheelproof smoke`` as a user runs it, over interpreters that pretend, and over a real one when there is one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Run, Wheelproof
from tests.support.patience import in_time
from tests.support.rendering import formats_for_people
from tests.support.smoke import (
    CALIBRATION,
    ENVIRONMENT,
    H200,
    case,
    compiled,
    document,
    fake_interpreter,
    fault,
    mutant,
    prints,
    probe,
    speed,
)
from wheel_checks.report import FORMATS, schema

REAL = os.environ.get("WHEELPROOF_KERNELS_PYTHON", "")  # read before the test's own environment is cleaned

HEALTHY = document(
    calibration=CALIBRATION,
    probes=[probe("torch"), probe("driver"), probe("nccl", "skip", "there is one GPU")],
    cases=[case("fused_add_rms_norm"), case("fused_add_rms_norm", "strided"), case("scaled_mm")],
    speeds=[
        speed("fused_add_rms_norm"),
        speed(
            "scaled_mm", "8192", versus="cuBLAS", peer_microseconds=144.4, ratio=0.9, bar=1.11, bytes=0, flops=10**12
        ),
        speed("scaled_mm", "16", ratio=1.12, bar_met=False),
    ],
)
SLOW = "200.0 us instead of at most 151.3: 1.60 times the floor (125.0 us)"
INSTALL_GCC = {"argv": ["apt-get", "install", "gcc"]}
SICK = document(
    verdict="fail",
    calibration=CALIBRATION,
    probes=[
        probe("torch"),
        probe(
            "c_compiler",
            "fail",
            "there is no C compiler",
            fix=[{"argv": ["apt-get", "install", "gcc"]}],
            evidence={"CC": "not set"},
        ),
    ],
    cases=[
        case("fused_add_rms_norm"),
        case("scaled_mm", "plain", "wrong", "out: relative error 0.12 instead of at most 0.004"),
        case("scaled_mm", "big", "crash", "the process that ran it: it was killed by SIGSEGV"),
        case("mul_add_sigmoid", "plain", "skip", "no reason"),
    ],
    speeds=[speed("fused_add_rms_norm", outcome="slow", message=SLOW, microseconds=200.0, ratio=1.6)],
)

SICK_TEXT = """\
FAIL  NVIDIA H200, torch 2.11.0+cu130, triton 3.6.0: 1 of 2 kernels correct, 0 of 1 within their bars \
(4.27 TB/s, 746 TF bf16, 1,536 TF fp8)

PYTHON
  NVIDIA H200, torch 2.11.0+cu130, triton 3.6.0
  error  KRN108  there is no C compiler
      CC:  not set
      fix: run this:
        apt-get install gcc
  14 skipped, 2 passed

fused_add_rms_norm
  1 case, 1.60 of the floor
  error  KRN301  16384x4096: 200.0 us instead of at most 151.3: 1.60 times the floor (125.0 us)
      memory:  2.68 TB/s  536,870,912 bytes
      fix: Repeat it while the GPU is idle and cool:
        REPLAY --only fused_add_rms_norm --seed 123 --python PYTHON
  1 skipped, 4 passed

scaled_mm
  2 cases
  error  KRN201  1 of 2 cases wrong: plain
      plain:  out: relative error 0.12 instead of at most 0.004
      fix: Repeat it alone, with the same inputs:
        REPLAY --only scaled_mm --seed 123 --python PYTHON
  error  KRN202  1 of 2 cases crashed: big
      big:  the process that ran it: it was killed by SIGSEGV
      fix: Repeat it alone, with the same inputs:
        REPLAY --only scaled_mm --seed 123 --python PYTHON
  2 skipped, 2 passed

Kernels, and their times compared to the limits of this GPU
kernel              cases         timed run      us  floor us  of floor  ratio  bar            verdict
fused_add_rms_norm  1             16384x4096  200.0     125.0       62%   1.60  1.10 of floor  slow
mul_add_sigmoid     0, 1 skipped                                                               skipped
scaled_mm           0 of 2                                                                     wrong, crash

skipped: mul_add_sigmoid: no reason
seed 123; the same inputs again: REPLAY --seed 123 --python PYTHON
"""


@pytest.fixture
def smoke(wheelproof: Wheelproof, tmp_path: Path) -> Any:
    """Run the command with an interpreter that runs this script."""

    def run(script: str, *options: str) -> Run:
        return wheelproof("smoke", "--python", fake_interpreter(tmp_path, script), *options)

    return run


def first_line(run: Run) -> str:
    return re.sub(r" \([\d.]+ s\)$", "", run.out.splitlines()[0])


def test_a_healthy_machine(smoke: Any, tmp_path: Path) -> None:
    run = smoke(prints(HEALTHY), "--level", "full")

    assert run.status == 0
    assert first_line(run) == (
        "PASS  NVIDIA H200, torch 2.11.0+cu130, triton 3.6.0: 2 kernels correct, 2 of 3 within their bars, "
        "1 within the allowance for noise (4.27 TB/s, 746 TF bf16, 1,536 TF fp8)"
    )
    assert [re.split(r"  +", line) for line in run.out.splitlines() if line.startswith(("fused", "scaled"))] == [
        ["fused_add_rms_norm", "2", "16384x4096", "130.0", "125.0", "96%", "1.04", "1.10 of floor", "pass"],
        ["scaled_mm", "1", "8192", "130.0", "125.0", "96%", "0.90", "1.11 of cuBLAS", "pass"],
        ["scaled_mm", "1", "16", "130.0", "125.0", "96%", "1.12", "1.10 of floor", "above the bar"],
    ]
    assert run.out.splitlines()[-2:] == [
        "skipped: nccl: there is one GPU",
        "seed 123; the same inputs again: wheelproof smoke --device cuda --level full --seed 123 "
        f"--python {tmp_path}/python-of-the-test",
    ]
    assert run.err == f"note: running the kernels with {tmp_path}/python-of-the-test: asked for\n"


def test_a_sick_one_tells_each_finding_with_its_fix(smoke: Any, tmp_path: Path) -> None:
    run = smoke(prints(SICK), "--level", "full")
    text = re.sub(r" \([\d.]+ s\)\n", "\n", run.out, count=1).replace(f"{tmp_path}/python-of-the-test", "PYTHON")

    assert run.status == 1
    assert text.replace("wheelproof smoke --device cuda --level full", "REPLAY") == SICK_TEXT


def test_quiet_is_the_verdict_alone(smoke: Any) -> None:
    run = smoke(prints(HEALTHY), "-q")

    assert (run.status, run.out.count("\n"), run.err) == (0, 1, "")
    assert run.out.startswith("PASS  NVIDIA H200")


def test_a_compilation_shows_the_machine_code_of_each_target(smoke: Any) -> None:
    lacking = fault("unsupported", "sm_80 has no fp8 (e4m3) arithmetic")
    records = [
        *(compiled(name, target) for target in ("sm_90", "sm_100") for name in ("norm", "scaled_mm")),
        compiled("scaled_mm", "sm_100", function="_reduce", registers=255, instructions=["UTCHMMA"]),
        compiled("norm", "sm_80", instructions=[]),
        compiled("scaled_mm", "sm_80", "skip", [lacking], registers=None, spill_bytes=None, shared_bytes=None),
    ]
    values = document(mode="compile", device="none", environment=ENVIRONMENT | {"gpus": []}, compiled=records)
    run = smoke(prints(values), "--compile-only", "--target", "GB200,H100,sm_80")

    assert run.status == 0
    assert first_line(run) == (
        "PASS  torch 2.11.0+cu130, triton 3.6.0: sm_100: 2 of 2 compile; sm_90: 2 of 2 compile; "
        "sm_80: 1 of 2 compile, 1 cannot or in part"
    )
    assert (
        "note  KRN406  scaled_mm cannot run on the target, at least in part: sm_80 has no fp8 (e4m3) arithmetic"
        in run.out
    )
    rows = [re.split(r"  +", line) for line in run.out.splitlines() if line.startswith("sm_1")]
    assert rows == [
        ["sm_100", "norm", "1", "64", "0", "49,152", "HGMMA", "pass"],
        ["sm_100", "scaled_mm", "2", "255", "0", "49,152", "HGMMA, UTCHMMA", "pass"],
    ]
    assert "--compile-only --target sm_100,sm_90,sm_80" in run.out.splitlines()[-1]


MUTANTS = document(
    mode="mutants",
    device="interpret",
    mutants=[
        mutant("scale", "_scale: no mask of load(x), line 3"),
        mutant("scale", "_scale: columns < width leaves one out, line 3"),
        mutant("scale", "_scale: no mask of store(out), line 4", "missed", "every case passed"),
        mutant("scale", "_scale: no tl.debug_barrier(), line 5", "skip", "the interpreter has no threads"),
        mutant("gemm", "all", "skip", "it is not written in Triton, so no mutant of it can be made"),
    ],
    families=[
        {
            "source": "/x/mine.py",
            "label": "/x/mine.py",
            "family": "mine",
            "kernels": [{"name": "scale", "triton": True}, {"name": "gemm", "triton": False}],
        }
    ],
)


def test_mutants_are_scored_and_what_is_missed_is_a_warning(smoke: Any, tmp_path: Path) -> None:
    run = smoke(prints(MUTANTS), "--device", "interpret", "--mutants", "--kernels", "mine.py")
    rows = [re.split(r"  +", line) for line in run.out.splitlines() if line.startswith(("scale  ", "gemm  "))]

    assert run.status == 0
    assert first_line(run) == (
        "PASS  Triton's interpreter, torch 2.11.0+cu130, triton 3.6.0: 2 of 3 mutants of 1 kernel caught"
    )
    assert "warning  KRN205  1 of 4 automatic mutants missed: _scale: no mask of store(out), line 4" in run.out
    assert rows == [["gemm", "0", "0"], ["scale", "2", "3", "67%", "_scale: no mask of store(out), line 4"]]
    assert "skipped: gemm: it is not written in Triton, so no mutant of it can be made" in run.out
    assert "from /x/mine.py: scale, gemm" in run.out
    assert f"--kernels {tmp_path}/project/mine.py --mutants --seed 123" in run.out.splitlines()[-1]
    facts = json.loads(smoke(prints(MUTANTS), "--mutants", "--format", "json").out)["subjects"]
    assert (facts[2]["facts"]["caught"], facts[2]["facts"]["judged"]) == (2, 3)
    assert facts[0]["facts"]["families"][0]["source"] == "/x/mine.py"


def test_a_file_of_kernels_that_cannot_be_used_is_undecided(smoke: Any) -> None:
    broken = probe("kernels /x/mine.py", "error", "/x/mine.py cannot be imported: NameError: name 'tl' (line 3)")
    run = smoke(prints(HEALTHY | {"probes": [broken], "verdict": "undecided"}), "--kernels", "/x/mine.py")

    assert run.status == 3
    assert "not checked  KRN115  /x/mine.py cannot be imported: NameError: name 'tl' (line 3)" in run.out


PASSED_ON = "output.write_text(json.dumps({**%r, 'message': ' '.join(options)})); sys.exit(3)" % document(  # noqa: UP031  # braces
    verdict="undecided"
)


def test_only_the_user_says_which_files_of_kernels_are_run(
    smoke: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Named files are executed: the configuration of a tree cannot name them, and the user's not relatively."""
    tree, own = tmp_path / "project/wheelproof.toml", tmp_path / "own.toml"
    tree.write_text('[smoke]\nkernels = ["/tree.py"]\nplugins = true\n')
    refused = smoke(PASSED_ON)
    assert "/tree.py" not in refused.out
    assert "--plugins" not in refused.out
    assert "smoke.kernels" in refused.err

    own.write_text('[smoke]\nkernels = ["/mine.py", "pkg.kernels:LIST", "~/at_home.py"]\n')
    monkeypatch.setenv("HOME", "/home/me")
    named = smoke(PASSED_ON, "--config", str(own))
    assert "--kernels /mine.py --kernels pkg.kernels:LIST --kernels /home/me/at_home.py" in named.out.splitlines()[0]
    own.write_text('[smoke]\nkernels = "smoke_kernels.py"\n')
    relative = smoke(PASSED_ON, "--config", str(own))
    assert relative.status == 2
    assert (
        f"smoke.kernels in {own}: smoke_kernels.py is a relative path, which depends on the current folder"
        in relative.err
    )


def test_the_json_report_has_every_figure_and_fits_its_schema(smoke: Any) -> None:
    run = smoke(prints(SICK), "--level", "full", "--format", "json")
    report = json.loads(run.out)

    jsonschema.validate(report, schema(), format_checker=jsonschema.FormatChecker())
    installation, norm, _, mm = report["subjects"]
    assert (installation["kind"], installation["facts"]["seed"]) == ("installation", 123)
    assert installation["facts"]["probes"] == {"torch": "pass", "c_compiler": "fail"}
    assert installation["facts"]["calibration"]["bandwidth"] == 4.27e12
    assert (norm["id"], norm["facts"]["speeds"][0]["time"]) == ("fused_add_rms_norm", 200.0)
    assert mm["facts"]["cases"][0]["outputs"][0]["tolerance"] == 2.5e-3
    failed = {r["rule"] for s in report["subjects"] for r in s["results"] if r["outcome"] == "fail"}
    assert failed == {"KRN108", "KRN201", "KRN202", "KRN301"}


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_names_what_is_wrong(smoke: Any, format: str) -> None:  # noqa: A002  # the option's own name
    run = smoke(prints(SICK), "--format", format)

    assert run.status == 1
    assert "KRN201" in run.out
    assert "1 of 2 cases wrong: plain" in run.out


def test_markdown_has_the_table(smoke: Any) -> None:
    run = smoke(prints(HEALTHY), "--format", "markdown")

    assert "| fused_add_rms_norm | 2 | 16384x4096 | 130.0 | 125.0 | 96% | 1.04 | 1.10 of floor | pass |\n" in run.out
    assert "0 bytes read" not in run.out


TWO_GPUS = ENVIRONMENT | {"gpus": [H200, H200 | {"index": 1, "uuid": "GPU-1"}]}


def test_of_several_gpus_each_is_named_and_one_that_is_wrong_hides_no_other(smoke: Any) -> None:
    first, second = H200["uuid"], "GPU-1"
    values = document(
        verdict="fail",
        environment=TWO_GPUS,
        calibration=CALIBRATION,
        readings=[
            {"gpu": first, "calibration": CALIBRATION},
            {"gpu": second, "calibration": CALIBRATION | {"bandwidth": 1.88e12}},
        ],
        probes=[
            probe("gpus", "error", "GPU 7 could not be tried: CUDA sees 0 and 1"),
            probe("cublas", "fail", "a product is wrong", gpu=second),
        ],
        cases=[case("norm", gpu=first), case("norm", "plain", "wrong", "far off", gpu=second)],
        speeds=[speed("norm", gpu=first), speed("norm", outcome="slow", message=SLOW, ratio=1.6, gpu=second)],
    )
    run = smoke(prints(values, 1), "--level", "full", "--gpus", "0,1,7")

    assert run.status == 1
    assert first_line(run) == (
        "FAIL  2 x NVIDIA H200, torch 2.11.0+cu130, triton 3.6.0: 0 of 1 kernel correct on each of 2 GPUs, "
        "1 of 2 within their bars"
    )
    rows = [re.split(r"  +", line.strip()) for line in run.out.splitlines()]
    assert [
        ["0", "NVIDIA H200", first, "1 of 1", "1 of 1", "4.27 TB/s, 746 TF bf16, 1,536 TF fp8"],
        ["1", "NVIDIA H200", second, "0 of 1", "0 of 1", "1.88 TB/s, 746 TF bf16, 1,536 TF fp8"],
    ] == [row for row in rows if row[1:2] == ["NVIDIA H200"]]
    assert ["norm", "1 of 2", "16384x4096", "130.0", "125.0", "96%", "1.60", "1.10 of floor", "wrong, slow"] in rows
    assert "KRN501  1.88 TB/s, 44 % of the rate of an H200 (4.25)" in run.out
    assert "\nnorm on GPU 1\n" in run.out
    assert "KRN114  GPU 7 could not be tried: CUDA sees 0 and 1" in run.out
    assert "KRN106  GPU 1 (NVIDIA H200, GPU-1): a product is wrong" in run.out
    assert "--only norm --gpus GPU-1 --seed 123" in run.out
    report = json.loads(smoke(prints(values, 1), "--level", "full", "--format", "json").out)
    assert [(subject["id"], subject["verdict"]) for subject in report["subjects"][1:]] == [
        (f"GPU 0 (NVIDIA H200, {first})", "pass"),
        ("GPU 1 (NVIDIA H200, GPU-1)", "fail"),
        ("norm on GPU 0", "pass"),
        ("norm on GPU 1", "fail"),
    ]


def test_on_two_gpus_a_kernel_that_was_not_run_across_them_does_not_pass(smoke: Any) -> None:
    gpus = (H200["uuid"], "GPU-1")
    right = [case(name, "2 ranks", gpu=gpu) for name in ("all_reduce", "norm") for gpu in gpus]
    alone = [case("all_reduce", "2 GPUs", "not run across GPUs", "all ranks on one GPU", gpu=gpu) for gpu in gpus]
    values = document(verdict="undecided", environment=TWO_GPUS, cases=[*right, *alone])
    run = smoke(prints(values, 3), "--level", "full")

    assert run.status == 3
    assert first_line(run).startswith("UNDECIDED  2 x NVIDIA H200")
    assert "1 of 2 kernels correct on each of 2 GPUs" in first_line(run)
    rows = [re.split(r"  +", line.strip()) for line in run.out.splitlines()]
    assert ["all_reduce", "2 of 4", "not run across GPUs"] in rows
    assert ["norm", "2", "pass"] in rows
    report = json.loads(smoke(prints(values, 3), "--level", "full", "--format", "json").out)
    verdicts = {subject["id"]: subject["verdict"] for subject in report["subjects"]}
    assert verdicts["all_reduce on GPU 0"] == "undecided"
    assert verdicts["norm on GPU 0"] == "pass"
    assert "1 of 2 cases not run across GPUs: 2 GPUs" in {
        r["message"] for s in report["subjects"] for r in s["results"]
    }


def test_rates_of_nodes_are_compared_by_a_merge(smoke: Any, wheelproof: Wheelproof, tmp_path: Path) -> None:
    files = []
    for number, bandwidth in enumerate((4.25e12, 4.27e12, 3.5e12, 4.26e12)):
        reading = {"gpu": H200["uuid"], "calibration": CALIBRATION | {"bandwidth": bandwidth}}
        files.append(tmp_path / f"node{number}.json")
        files[-1].write_text(smoke(prints(HEALTHY | {"readings": [reading]}), "--format", "json").out)
    merged = wheelproof("report", "merge", *map(str, files))

    message = "node2 is slower than the others: smoke: GPU 0 copy at 82 % of the median of 4 hosts"
    assert message in merged.out
    assert "smoke: rate of" not in merged.out  # as a fact that differs


def test_copies_calls_and_sustained_load_are_in_the_report(smoke: Any) -> None:
    rates: dict[str, Any] = {"host_to_device": 55.2e9, "device_to_host": 54.1e9, "device_to_device": 2.1e12}
    rates["launch_microseconds"] = {"norm": 14.2, "muon": 210.4}
    soak = {"asked_seconds": 60, "first": 750e12, "last": 702e12, "lowest": 700e12, "fall": 0.064, "compared": 58}
    reading = {"gpu": H200["uuid"], "calibration": CALIBRATION, "rates": rates, "soak": soak | {"wrong": 0}}
    run = smoke(prints(HEALTHY | {"readings": [reading]}), "--level", "full", "--soak", "60")

    assert run.status == 0
    assert (
        "measured: host to GPU 55.2 GB/s, GPU to host 54.1 GB/s, a call from Python takes 14 us (norm) to 210 us "
        "(muon), 60 s of load: from 750 to 702 TF bf16, 58 of 58 right"
    ) in run.out
    assert "--level full --soak 60 --seed 123" in run.out


def test_mutants_are_spread_over_gpus_of_which_none_is_judged(smoke: Any) -> None:
    found = [mutant("norm", "no epsilon", "caught"), mutant("norm", "no mask", "caught")]
    values = document(mode="mutants", environment=TWO_GPUS, mutants=found, readings=[{"gpu": H200["uuid"]}])
    run = smoke(prints(values), "--mutants", "--only", "norm")

    assert run.status == 0
    assert "2 of 2 mutants of 1 kernel caught" in run.out
    assert "none ran" not in run.out
    assert "on GPU" not in run.out


PARTIAL = HEALTHY | {"partial": "the suite has not ended", "verdict": "undecided"}


@pytest.mark.parametrize("format", FORMATS)
def test_a_suite_that_dies_leaves_a_partial_report_in_every_format(smoke: Any, format: str) -> None:  # noqa: A002  # the option's own name
    script = prints(PARTIAL).replace("sys.exit(0)", "os.kill(os.getpid(), signal.SIGKILL)")
    run = smoke(script, "--level", "full", "--format", format, "--select", "KRN2")
    why = "the suite was killed by SIGKILL"
    assert run.status == 3
    assert f"the report is partial: {why}" in run.out
    if format == "text":
        assert first_line(run).startswith(f"UNDECIDED  NVIDIA H200, torch 2.11.0+cu130, triton 3.6.0: partial, {why}: ")


def test_at_its_deadline_the_suite_leaves_what_it_has(smoke: Any) -> None:
    def run(deadline: float) -> Run:
        script = prints(PARTIAL).replace("sys.exit(0)", "time.sleep(3600)")
        found: Run = smoke(script, "--level", "full", "--deadline", f"{deadline:g}")
        return found

    ended = in_time(run, lambda run: "partial" in run.out)
    assert ended.status == 3
    assert "KRN001  the report is partial: stopped at the deadline of " in ended.out


def test_what_the_level_leaves_out_is_in_the_report(smoke: Any) -> None:
    left_out = [
        {"kind": "left_out", "kernel": "muon_step", "cases": [], "level": "full", "at": 0.1},
        {"kind": "left_out", "kernel": "scaled_mm", "cases": ["one", "two"], "level": "full", "at": 2.0},
        {"kind": "left_out", "kernel": "scaled_mm", "cases": ["three"], "level": "deep", "at": 2.0},
    ]
    script = prints(HEALTHY | {"level": "quick", "left_out": left_out})
    sentences = [
        "omitted at level quick, run by --level full: all cases of muon_step; 2 cases of 1 other kernel",
        "omitted at level quick, run by --level deep: 1 case of 1 kernel",
    ]
    for format in set(formats_for_people()) - {"github"}:  # noqa: A001  # its annotations are findings alone
        assert [sentence for sentence in sentences if sentence not in smoke(script, "--format", format).out] == []
    installation = json.loads(smoke(script, "--format", "json").out)["subjects"][0]
    assert installation["facts"]["left_out"][1] == {"kernel": "scaled_mm", "level": "full", "cases": ["one", "two"]}


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("sys.stderr.write('no module'); sys.exit(1)", "the suite exited with code 1, without a report"),
        ("os.abort()", "the suite was killed by SIGABRT, without a report"),
        ("output.write_text('[1, 2')", "the suite's report is not valid JSON: Expecting"),
        ('output.write_text(\'{"schema": "x/9"}\')', "the suite's report is of the form 'x/9'; expected"),
    ],
)
@pytest.mark.parametrize("selected", [(), ("--select", "KRN2")])
def test_a_suite_without_a_report_is_undecided(
    smoke: Any, script: str, message: str, selected: tuple[str, ...]
) -> None:
    run = smoke(script, *selected)

    assert run.status == 3
    assert run.out.startswith("UNDECIDED  ")
    assert f"not checked  KRN001  {message}" in run.out


def test_a_suite_that_never_ends_is_undecided(smoke: Any) -> None:
    run = smoke("time.sleep(3600)", "--deadline", "0.5")

    assert run.status == 3
    assert "not checked  KRN001  the suite did not finish within 0.5 s, and was killed" in run.out


def test_last_words_are_evidence(smoke: Any) -> None:
    run = smoke("sys.stderr.write('one\\n\\x1b[31mtwo\\n'); sys.exit(1)")

    assert "last words:   one\n      last words:   \\x1b[31mtwo\n" in run.out


def test_a_verdict_that_no_record_explains_is_undecided(smoke: Any) -> None:
    run = smoke(prints(document(verdict="undecided", message="nothing was checked"), 3))

    assert run.status == 3
    assert first_line(run) == "UNDECIDED  NVIDIA H200, torch 2.11.0+cu130, triton 3.6.0: nothing was checked"


def test_a_kernel_that_is_unknown_is_wrong_usage(smoke: Any) -> None:
    run = smoke("sys.stderr.write('usage: x\\npython -m kernels_smoke: error: no kernel is called q\\n'); sys.exit(2)")

    assert run.status == 2
    assert run.err.endswith("wheelproof: error: no kernel is called q\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "sm_90"], "--target requires --compile-only"),
        (["--compile-only"], "--compile-only requires --target"),
        (["--compile-only", "--target", "MI300Y"], "unknown GPU 'MI300Y'"),
        (["--compile-only", "--target", "sm_90", "--device", "interpret"], "--compile-only cannot be combined with"),
        (["--deadline", "0"], "--deadline 0 is not a valid timeout"),
        (["--level", "thorough"], "argument --level: invalid choice"),
        (["--kernels", "-x"], "argument --kernels: expected one argument"),
        (["--kernels=-x"], "--kernels -x names no kernels"),
        (["--kernels", "my-kernels"], "--kernels my-kernels names no kernels"),
        (["--compile-only", "--target", "sm_90", "--mutants"], "--compile-only cannot be combined with"),
        (["--select", "KRN9"], "no rule starts with 'KRN9'"),
    ],
)
def test_wrong_usage_is_reported_before_anything_runs(smoke: Any, options: list[str], message: str) -> None:
    run = smoke("pathlib.Path('ran').touch()", *options)

    assert run.status == 2
    assert message in run.err
    assert not Path("ran").exists()


def test_without_torch_it_says_where_it_looked(wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "PATH"):
        monkeypatch.delenv(name, raising=False)
    run = wheelproof("smoke")

    assert (run.status, run.out) == (3, "")
    assert run.err.startswith(f"wheelproof: error: torch is missing: {sys.executable} has none\n")
    assert "--python PATH" in run.err
    assert f"wheelproof doctor --python {sys.executable}" in run.err


def test_nothing_of_torch_and_of_the_kernels_is_imported_here(tmp_path: Path) -> None:
    python = fake_interpreter(tmp_path, prints(HEALTHY))
    program = (
        "import sys\nfrom wheelproof.cli.main import main\n"
        f"status = main(['smoke', '--python', {python!r}, '--format', 'json'])\n"
        "print(status, *sys.modules, file=sys.stderr)"
    )
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    status, *modules = child.stderr.splitlines()[-1].split()

    assert status == "0"
    assert not {"torch", "triton", "kernels_smoke", "numpy", "urllib3"} & set(modules)


@pytest.mark.kernels
def test_a_real_run_in_the_interpreter(wheelproof: Wheelproof) -> None:
    run = wheelproof("smoke", "--python", REAL, "--device", "interpret", "--only", "fused_add_rms_norm", "--seed", "7")

    assert run.status == 0, run.out
    assert "PASS  Triton's interpreter, torch " in run.out
    assert "seed 7; the same inputs again: wheelproof smoke --device interpret --level quick" in run.out


@pytest.mark.kernels
def test_a_real_kernel_that_is_wrong(wheelproof: Wheelproof) -> None:
    run = wheelproof("smoke", "--python", REAL, "--device", "interpret", "--only", "is_wrong")

    assert run.status == 1
    assert "error  KRN201  2 of 2 cases wrong" in run.out


@pytest.mark.kernels
def test_a_real_compilation(wheelproof: Wheelproof) -> None:
    run = wheelproof("smoke", "--python", REAL, "--compile-only", "--target", "GB200", "--only", "fused_add_rms_norm")

    assert run.status == 0, run.out
    assert re.search(r"^sm_100 +fused_add_rms_norm +\d+ +\d+ +0 +[\d,]+ +pass$", run.out, re.MULTILINE)


@pytest.mark.kernels
def test_a_real_name_that_is_unknown(wheelproof: Wheelproof) -> None:
    run = wheelproof("smoke", "--python", REAL, "--device", "interpret", "--only", "no_such_kernel")

    assert run.status == 2
    assert "no_such_kernel" in run.err
