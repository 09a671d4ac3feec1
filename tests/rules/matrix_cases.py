"""MTX001 to MTX108: the steps of a cell of a matrix, judged."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tests.rules.case import NOTE, Case
from tests.support.smoke import case, compiled, document, parsed, probe
from wheel_checks.facts.kernels.facts import SmokeDocument
from wheel_checks.facts.matrix import Build, CellFacts, ImportProof, Step, TestsRun, Tried, machine_code
from wheel_checks.facts.wheel.expectations import parse_expectation
from wheel_checks.formats.junit import JUnitCase
from wheel_checks.model import Unavailable

CUDA, CPU = Build("cuda", "13.0", "2.11.0+cu130"), Build("cpu", "", "2.11.0+cpu")
CODE = ("sm_80", "sm_90", "sm_100")


def proof(build: Build = CUDA, machine: str = "aarch64", python: str = "3.12.4") -> ImportProof:
    return ImportProof(machine, python, build, CODE if build.accelerator == "cuda" else (), "3.6.0")


def cell(build: Build = CUDA, *, known: str = "", **facts: Any) -> CellFacts:
    """A cell for CUDA on aarch64 in which the wheel and the import show ``build``."""
    told: dict[str, Any] = {
        "wheel": build,
        "imported": proof(build),
        "known": parse_expectation(known) if known else None,
        "reason": "there is no other" if known else "",
        "source": "ci/matrix.toml",
        "targets": ("sm_90", "sm_103"),
    }
    return CellFacts(
        "aarch64-py3.12-torch2.11.0", "aarch64", "3.12", "2.11.0", parse_expectation("cuda>=13"), **(told | facts)
    )


def made(
    *digests: tuple[str, str], triton: str = "3.6.0", machine: str = "aarch64", targets: Sequence[str] = ("sm_100",)
) -> SmokeDocument:
    """A compilation of kernels: pairs of a kernel and the sha256 of its code, the same for every target."""
    records = [compiled(kernel, target) | {"sha256": digest} for target in targets for kernel, digest in digests]
    versions = {"machine": machine, "triton": {"version": triton}}
    return parsed(document(mode="compile", compiled=records, environment={"executable": "/py", **versions}))


def beside(*digests: tuple[str, str], there: SmokeDocument) -> CellFacts:
    return cell(smoke={"compile": made(*digests)}, reference="x86_64-cell", reference_code=machine_code(there))


GOOD = JUnitCase("test_all", "tests.test_norm")
BAD = JUnitCase("test_rows", "tests.test_norm", "failed", "assert 1 == 2\nE  more")
BROKEN = JUnitCase("test_columns", "tests.test_norm", "error")
SKIPPED_ONE = JUnitCase("test_gpu", "tests.test_norm", "skipped", "no GPU")


def ran(*cases: JUnitCase, error: str = "", unnamed: int = 0, fault: str = "") -> CellFacts:
    """A cell whose command wrote a report of these tests."""
    report = TestsRun("report.xml", "/w/command-1.xml", cases, unnamed, fault)
    steps = (Step("command", log="/w/command.log"),)
    return cell(command=Tried(("pytest",), error), junit="report.xml", tests=(report,), steps=steps)


CASES = [
    Case(
        "MTX101",
        "a CPU build",
        partial(cell, CPU),
        ("torch 2.11.0 is CPU only (2.11.0+cpu); the cell expects cuda>=13",),
        evidence=("CPU only (2.11.0+cpu)",),
    ),
    Case(
        "MTX101",
        "an older CUDA",
        partial(cell, Build("cuda", "12.8", "2.11.0+cu128")),
        ("torch 2.11.0 is CUDA 12.8 (2.11.0+cu128); the cell expects cuda>=13",),
    ),
    Case(
        "MTX101",
        "a CPU build that is known",
        partial(cell, CPU, known="cpu"),
        (
            "torch 2.11.0 is CPU only (2.11.0+cpu); the cell expects cuda>=13 (declared in ci/matrix.toml: there is "
            "no other)",
        ),
        NOTE,
    ),
    Case("MTX101", "the CUDA build that is wanted", cell),
    Case("MTX101", "a wheel that fits, not imported", partial(cell, imported=Unavailable("no emulation"))),
    Case(
        "MTX102",
        "a CUDA build where a CPU build is known",
        partial(cell, known="cpu"),
        ("`expect` is out of date: torch 2.11.0 is CUDA 13.0 (2.11.0+cu130), but ci/matrix.toml expects cpu",),
        evidence=("there is no other", "CUDA 13.0 (2.11.0+cu130)"),
    ),
    Case(
        "MTX102",
        "a CPU build where an older CUDA is known",
        partial(cell, CPU, known="cuda==12.8"),
        ("`expect` is out of date: torch 2.11.0 is CPU only (2.11.0+cpu), but ci/matrix.toml expects cuda==12.8",),
    ),
    Case("MTX102", "the CPU build that is known", partial(cell, CPU, known="cpu")),
    Case(
        "MTX103",
        "the import is of another machine, Python and build",
        partial(cell, imported=proof(CPU, "x86_64", "3.11.2")),
        (
            "machine: the cell expects aarch64, but the import reports x86_64",
            "Python: the cell expects 3.12, but the import reports 3.11",
            "accelerator: the cell expects cuda 13.0, but the import reports cpu",
            "torch: the cell expects 2.11.0+cu130, but the import reports 2.11.0+cpu",
        ),
    ),
    Case(
        "MTX103",
        "torch cannot be imported",
        partial(cell, imported=Unavailable("no"), import_error="OSError: libcudart.so.13"),
        ("torch cannot be imported: OSError: libcudart.so.13",),
    ),
    Case("MTX103", "another patch Python release", partial(cell, imported=proof(python="3.12.9"))),
    Case(
        "MTX104",
        "no code for a GPU",
        partial(cell, targets=("sm_90", "sm_120", "gfx942")),
        ("torch 2.11.0+cu130 has no code for sm_120",),
        evidence=("sm_80 sm_90 sm_100",),
    ),
    Case("MTX104", "code of the same major version", cell),
    Case(
        "MTX105",
        "a kernel does not compile, another case is wrong, a probe fails",
        lambda: cell(
            smoke={
                "compile": parsed(
                    document(mode="compile", compiled=[compiled("mm", "sm_103", "fail", message="ptxas fatal")])
                ),
                "interpret": parsed(
                    document(
                        probes=[probe("interpreter", "fail", "no numpy")],
                        cases=[case("norm", "plain", "wrong", "off by 0.1"), case("norm", "odd")],
                    )
                ),
            }
        ),
        (
            "compile: mm / plain: _mm for sm_103: fail: ptxas fatal",
            "interpret: interpreter: fail: no numpy",
            "interpret: norm / plain: wrong: off by 0.1",
        ),
    ),
    Case(
        "MTX105",
        "all is right, one case is skipped, and no kernel depends on a probe",
        lambda: cell(
            smoke={
                "interpret": parsed(
                    document(
                        probes=[probe("triton", "fail", "another release", evidence={"severity": "warning"})],
                        cases=[case("norm"), case("mm", outcome="skip")],
                    )
                )
            }
        ),
    ),
    Case(
        "MTX106",
        "one of two kernels differs",
        lambda: beside(("mm", "aa"), ("norm", "bb"), there=made(("mm", "aa"), ("norm", "cc"))),
        ("1 of 2 functions differ from those of x86_64-cell: norm for sm_100",),
        evidence=("bb",),
    ),
    Case(
        "MTX106",
        "each has a kernel that the other lacks",
        lambda: beside(("mm", "aa"), ("norm", "bb"), there=made(("mm", "aa"), ("sum", "cc"))),
        (
            "1 function compiled only here: norm for sm_100",
            "1 function compiled only in x86_64-cell: sum for sm_100",
        ),
    ),
    Case(
        "MTX106",
        "a function of which only the other one got code",
        lambda: beside(("mm", ""), ("norm", "bb"), there=made(("mm", "aa"), ("norm", "bb"))),
        ("1 function compiled only in x86_64-cell: mm for sm_100",),
    ),
    Case(
        "MTX106",
        "the other one compiles for a further GPU",
        lambda: beside(("mm", "aa"), there=made(("mm", "aa"), targets=("sm_90", "sm_100"))),
    ),
    Case(
        "MTX107",
        "a module of the library raises",
        partial(
            cell,
            modules=Tried(("mine",), "mine: ImportError: broken on purpose"),
            steps=(Step("import-modules", log="/w/import-modules.log"),),
        ),
        ("a module cannot be imported: mine: ImportError: broken on purpose",),
        evidence=("/w/import-modules.log",),
    ),
    Case("MTX107", "every module can be imported", partial(cell, modules=Tried(("mine",)))),
    Case(
        "MTX108",
        "the command fails",
        partial(
            cell, command=Tried(("pytest",), "it exited with status 1"), steps=(Step("command", log="/w/command.log"),)
        ),
        ("the command failed: it exited with status 1",),
        evidence=("/w/command.log",),
    ),
    Case("MTX108", "the command succeeds", partial(cell, command=Tried(("pytest",)))),
    Case(
        "MTX108",
        "tests fail",
        partial(ran, GOOD, BAD, BROKEN, error="it exited with status 1\nFAILED"),
        (
            "the command failed: 2 of 3 tests failed: tests.test_norm::test_rows, tests.test_norm::test_columns; "
            "it exited with status 1\nFAILED",
        ),
        evidence=("assert 1 == 2", "error", "/w/command-1.xml", "/w/command.log"),
    ),
    Case(
        "MTX108",
        "tests fail, and the command does not say so",
        partial(ran, GOOD, BAD),
        ("the command failed: 1 of 2 tests failed: tests.test_norm::test_rows; its exit code is 0",),
    ),
    Case(
        "MTX108",
        "a suite counts a failure that no test has",
        partial(ran, GOOD, unnamed=1),
        ("the command failed: 1 of 2 tests failed; its exit code is 0",),
    ),
    Case("MTX108", "tests pass, and one is skipped", partial(ran, GOOD, SKIPPED_ONE)),
    Case(
        "MTX108",
        "every test is skipped",
        partial(ran, SKIPPED_ONE, SKIPPED_ONE),
        ("the command succeeded, but all of 2 tests were skipped",),
        undecided=True,
    ),
    Case("MTX108", "there is no test", ran, ("the command succeeded, but no test was run",), undecided=True),
    Case(
        "MTX108",
        "the report is not there",
        partial(cell, command=Tried(("pytest",)), junit="report.xml"),
        ("the command succeeded, but did not write report.xml",),
        undecided=True,
    ),
    Case(
        "MTX108",
        "the report cannot be read",
        partial(ran, GOOD, fault="it is not XML: line 1"),
        ("the command succeeded, but report.xml cannot be read: it is not XML: line 1",),
        undecided=True,
    ),
    Case(
        "MTX106",
        "all is equal",
        lambda: beside(("mm", "aa"), ("norm", "bb"), there=made(("norm", "bb"), ("mm", "aa"))),
    ),
]
