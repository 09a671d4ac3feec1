"""``wheelproof.verify``, ``stack`` and ``doctor.diagnose`` as a program calls them."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import wheelproof
from tests.support.patience import PATIENCE
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks import Finding, Outcome, Severity, UsageError, Verdict, WheelFacts, need, registry, rule
from wheel_checks.catalogue import all_rules
from wheelproof import Options, doctor

LOCK = Path(__file__).parents[1] / "data/locks/pythons.uv.lock"
GRACE = Path(__file__).parents[2] / "docs/files/grace.json"


@pytest.fixture
def index() -> Iterator[str]:
    with RangeServer(simple_index(torch_like("cpu", "2.10.0", "aarch64"), WheelBuilder())) as server:
        yield server.url("/simple")


@pytest.fixture(autouse=True)
def _handlers_stay(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No call of the library changes how a signal is handled."""
    changed: list[int] = []
    real = signal.signal

    def noted(number: int, handler: Any) -> Any:
        changed.append(number)
        return real(number, handler)

    monkeypatch.setattr(signal, "signal", noted)
    yield
    assert not changed


def test_verify_gives_the_report_of_the_command(index: str) -> None:
    options = Options(platform="aarch64", python="3.12", expect="cuda", gpu="GB200", index_url=index)
    report = wheelproof.verify("torch==2.10.0", options)

    assert (report.command, report.verdict, report.exit_code) == ("verify", Verdict.FAIL, 1)
    assert report.answers[0].line.startswith("torch 2.10.0 for aarch64 is not a build for cuda")
    failed = {result.rule for subject in report.subjects for result in subject.results if result.outcome == "fail"}
    assert {"WHL201", "WHL301"} & failed


def test_verify_takes_paths_several_targets_and_depth_full(tmp_path: Path) -> None:
    one, other = (WheelBuilder(name).write(tmp_path) for name in ("demo", "more"))

    report = wheelproof.verify([one, str(other)], Options(depth="full", offline=True, no_index=True))

    assert report.verdict is Verdict.PASS
    assert [subject.id for subject in report.subjects] == [one.name, other.name]


def test_a_target_that_cannot_be_read_is_undecided_and_no_exception(tmp_path: Path) -> None:
    report = wheelproof.verify(tmp_path / "missing-1.0-py3-none-any.whl")

    assert (report.verdict, report.exit_code) == (Verdict.UNDECIDED, 3)


def test_stack(index: str) -> None:
    report = wheelproof.stack("torch==2.10.0", Options(platform="aarch64", python="3.12", gpu="GB200", index_url=index))

    assert (report.command, report.verdict) == ("stack", Verdict.FAIL)
    assert report.answers[0].sentence == "does not run on GB200"


def test_stack_of_a_lock_file(index: str) -> None:
    report = wheelproof.stack(LOCK, Options(platform="x86_64", python="3.12", no_index=True, offline=True))

    assert report.subjects[0].facts["lock"]["name"] == LOCK.name


def test_diagnose_of_saved_facts_and_of_this_host() -> None:
    saved = doctor.diagnose(facts=GRACE)
    assert saved.root is not None
    assert saved.root.rule.startswith("DOC")

    here = doctor.diagnose(python=sys.executable, expect="cpu", timeout=PATIENCE)
    assert isinstance(here, doctor.Diagnosis)


@pytest.mark.parametrize(
    ("target", "arguments", "sentence"),
    [
        ([], {}, "nothing to check; expected a target"),
        ("demo", {"depth": "deep"}, "'deep' is not a depth; expected one of quick, links, gpu, full"),
        ("demo", {"fail_on": "note"}, "fail_on='note' is not a severity; expected one of error, warning, never"),
        ("demo", {"gpu": "GB2000"}, "GB2000"),
        ("demo", {"expect": "cudda"}, "cudda"),
        ("demo", {"select": "NOPE"}, "no rule starts with 'NOPE'"),
        ("demo", {"platform": "sparc"}, "sparc"),
        ("torch=2", {}, "'torch=2' is not a file, folder, URL or requirement"),
    ],
)
def test_wrong_arguments_are_an_exception_with_a_sentence(
    target: str | list[str], arguments: dict[str, str], sentence: str
) -> None:
    with pytest.raises(UsageError) as raised:
        wheelproof.verify(target, Options(offline=True, **arguments))  # type: ignore[arg-type]  # wrong ones

    assert sentence in str(raised.value)


def test_calls_in_threads_do_not_disturb_each_other(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    wheels = [WheelBuilder(f"demo{number}").write(tmp_path) for number in range(4)]

    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda wheel: wheelproof.verify(wheel, Options(depth="links", no_index=True)), wheels))

    assert [report.subjects[0].id for report in reports] == [wheel.name for wheel in wheels]
    assert {report.verdict for report in reports} == {Verdict.PASS}
    assert capfd.readouterr() == ("", "")
    assert threading.active_count() == 1


def test_a_rule_of_the_program_itself_judges_in_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    all_rules()  # ours are registered now, and not later into the copy
    monkeypatch.setattr(registry, "_RULES", dict(registry._RULES))

    @rule("ACME001", "wheels are ours", Severity.WARNING, why="Policy.", example="demo", fix="Rename it.")
    def ours(wheel: WheelFacts, _: object) -> Iterator[Finding]:
        name = need(wheel.name).distribution
        if name != "acme":
            yield Finding(f"{name} is not ours")

    report = wheelproof.verify(WheelBuilder().write(tmp_path), Options(select="ACME"))

    (result,) = report.subjects[0].results
    assert (result.rule, result.outcome, result.message) == ("ACME001", Outcome.FAIL, "demo is not ours")


def test_an_interrupt_reaches_the_caller_and_leaves_no_child() -> None:
    """SIGINT while a child of the library runs is KeyboardInterrupt in the caller's code, as anywhere else."""
    program = """
import os, signal, sys, threading
from wheel_checks.process.interrupts import left_alone
from wheel_checks.process.child import run
def interrupt(_chunk):
    os.kill(os.getpid(), signal.SIGINT)
try:
    with left_alone():
        run([sys.executable, "-c", "import os; print(os.getpid(), flush=True); __import__('time').sleep(600)"],
            sinks={1: lambda chunk: (print(chunk.decode().strip(), flush=True), interrupt(chunk))})
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=PATIENCE, check=True)
    child, sentence = done.stdout.splitlines()

    assert sentence == "interrupted"
    assert not Path(f"/proc/{child}/stat").exists()
