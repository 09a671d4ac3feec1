"""JUnit reports of runners: their tests, and the refusals of hostile ones."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from wheel_checks.errors import FormatError
from wheel_checks.formats.junit import LARGEST, MOST_CASES, JUnitCase, parse_junit

TESTS = """\
import pytest

def test_good(): pass
def test_bad(): assert 1 == 2, "the reason"
@pytest.mark.skip(reason="no GPU")
def test_skipped(): pass
@pytest.mark.parametrize("n", [3])
def test_error(n, no_such_fixture): pass
@pytest.fixture
def late():
    yield
    raise RuntimeError("at the end")
def test_late(late): pass
"""


def test_what_pytest_writes(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "--junitxml=report.xml",
        "-c",
        "/dev/null",
    ]
    subprocess.run([*command, "test_it.py"], cwd=tmp_path, capture_output=True, check=False)

    report = parse_junit((tmp_path / "report.xml").read_bytes())
    assert {(case.label, case.outcome) for case in report.cases} == {
        ("test_it::test_good", "passed"),
        ("test_it::test_bad", "failed"),
        ("test_it::test_skipped", "skipped"),
        ("test_it::test_error[3]", "error"),
        ("test_it::test_late", "error"),
    }
    messages = {case.name: case.message for case in report.cases}
    assert "the reason" in messages["test_bad"]
    assert messages["test_skipped"] == "no GPU"
    assert report.unnamed == 0


@pytest.mark.parametrize(
    ("text", "cases", "unnamed"),
    [
        ("<testsuites/>", (), 0),
        ("<testsuite><testcase name='a' time='1,234.5'/></testsuite>", (JUnitCase("a", seconds=1234.5),), 0),
        ("<testsuite><testcase time='nan'/></testsuite>", (JUnitCase(""),), 0),
        (
            "<testsuites><testsuite><testsuite><testcase name='a' classname='b'><failure>  why\n</failure></testcase>"
            "</testsuite></testsuite></testsuites>",
            (JUnitCase("a", "b", "failed", "why"),),
            0,
        ),
        (
            "<testsuite><testcase name='a'><skipped message='s'/><error message='e'/><system-out>x</system-out>"
            "<properties><error message='none'/></properties></testcase></testsuite>",
            (JUnitCase("a", "", "error", "e"),),
            0,
        ),
        (
            "<testsuites><testsuite tests='3' failures='1' errors='1'><testcase name='a'/></testsuite></testsuites>",
            (JUnitCase("a"),),
            2,
        ),
        (
            "<testsuite failures='1'><testsuite failures='1'><testcase name='a'><failure message='m'/></testcase>"
            "</testsuite></testsuite>",
            (JUnitCase("a", "", "failed", "m"),),
            0,
        ),
        (
            "<testsuites><testsuite disabled='1'><testcase name='a' status='notrun' result='suppressed'/>"
            "<testcase name='b' status='run'/></testsuite></testsuites>",
            (JUnitCase("a", "", "skipped"), JUnitCase("b")),
            0,
        ),
        ("<testsuite failures='-1' errors='999999999999'/>", (), 0),
        ("<?xml version='1.0' encoding='utf-16'?><testsuite/>".encode("utf-16").decode("latin-1"), (), 0),
    ],
)
def test_what_other_runners_write(text: str, cases: tuple[JUnitCase, ...], unnamed: int) -> None:
    report = parse_junit(text.encode("latin-1"))
    assert (report.cases, report.unnamed) == (cases, unnamed)


LAUGHS = "<!DOCTYPE t [<!ENTITY a 'ha'>" + "".join(
    f"<!ENTITY {chr(98 + n)} '{f'&{chr(97 + n)};' * 10}'>" for n in range(12)
)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (f"{LAUGHS}]><testsuite><testcase name='&m;'/></testsuite>".encode(), "it has a document type"),
        (b"<!DOCTYPE t SYSTEM 'file:///etc/passwd'><testsuite/>", "it has a document type"),
        (b"<testsuite><testcase name='&m;'/></testsuite>", "it is not XML: undefined entity"),
        (b"<html/>", "its first element is 'html'; expected testsuites or testsuite"),
        (b"<testsuite><testcase", "it is not XML: unclosed token"),
        (b"", "it is not XML: no element found"),
        (b"\x00\xff", "it is not XML: "),
        (b"<?xml version='1.0' encoding='no-such'?><testsuite/>", "it is not XML: "),
        (b"<testsuite>" * 40, "nested more than 32 levels deep"),
        (b"<testsuite>" + b"<testcase/>" * (MOST_CASES + 1), "it has more than 20,000 tests"),
        (b"<testsuite>" + b" " * LARGEST, "it is larger than 8 MiB"),
    ],
)
def test_what_is_no_report_is_refused(data: bytes, says: str) -> None:
    with pytest.raises(FormatError, match=says):
        parse_junit(data)


def test_what_a_report_holds_is_bounded() -> None:
    long = b"x" * (LARGEST // 4)
    data = b"<testsuite><testcase name='%s'><failure>%s</failure></testcase></testsuite>" % (long, long)
    tracemalloc.start()
    (case,) = parse_junit(data).cases
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (len(case.name), len(case.message)) == (400, 2000)
    assert peak < 4 * LARGEST
