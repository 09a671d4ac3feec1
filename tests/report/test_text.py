from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from tests.support import reports
from tests.support.rendering import rendered
from wheel_checks.commands import Command
from wheel_checks.model import Fix, Outcome, Verdict
from wheel_checks.report import render

GOLDEN = """\
FAIL  3 wheels: 3 findings (2 errors, 1 warning), 1 not checked, 2 skipped, 3 passed (0.41 s, 1.2 MB read in 3 requests)

torch-2.10.0-cp312-cp312-manylinux_2_28_aarch64.whl
  CPU only
  error  WHL301  a member climbs out of the wheel  ../evil.py:3
  error  WHL101  expected CUDA, but this is a CPU wheel (2.10.0+cpu)
      members:       no CUDA library among 12,204 members  central directory
      version.py:    2.10.0+cpu  torch/version.py
      requirements:  none of nvidia's is active on aarch64  torch-2.10.0.dist-info/METADATA
      fix: ask for the first release with CUDA on aarch64
        pip install 'torch>=2.11'
  1 skipped, 1 passed

torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl
  CUDA 13.0
  warning  WHL501  the wheel is 419.7 MB, above the limit of 400 MB
      size:  419,731,115 bytes
  1 skipped, 1 passed

torch-2.11.0-cp312-cp312-manylinux_2_28_x86_64.whl
  CUDA 13.0
  not checked  WHL601  the check itself crashed; please report this as a bug
      exception:  KeyError: 'x'  siblings.py:12 in check
  1 passed
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def xterm(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal that can show colours, whatever the tests run in."""
    monkeypatch.setenv("TERM", "xterm-256color")


def on_a_terminal(**options: object) -> str:
    stream = Terminal()
    render(reports.mixed(), stream, "text", **options)
    return stream.getvalue()


def test_the_whole_report() -> None:
    assert rendered(reports.mixed(), "text") == GOLDEN


def test_one_wheel_is_named_in_the_first_line() -> None:
    first = rendered(reports.passing(), "text").splitlines()[0]
    assert first == (
        "PASS  torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl, CUDA 13.0: 1 skipped, 1 passed"
        " (0.41 s, 1.2 MB read in 3 requests)"
    )


def test_quiet_leaves_the_verdict_line() -> None:
    assert rendered(reports.mixed(), "text", quiet=True) == GOLDEN.splitlines(keepends=True)[0]


def test_nothing_judged_is_undecided() -> None:
    assert rendered(reports.empty(), "text") == "UNDECIDED  nothing: no checks (0.02 s, 0 bytes read)\n"


def test_verbose_lists_skips_and_passes_and_twice_the_facts() -> None:
    once = rendered(reports.passing(), "text", verbose=1)
    assert "  skipped  WHL401  RECORD was not read (--depth links reads it)\n  passed   WHL001  Names agree\n" in once
    assert "sha256" not in once
    assert re.search(
        r"^  certainty\.accelerator: +exact$", rendered(reports.passing(), "text", verbose=2), re.MULTILINE
    )


def test_many_wheels_become_a_table_behind_the_details_of_those_that_do_not_pass() -> None:
    report = reports.forty()
    lines = rendered(report, "text").splitlines()
    table = next(
        i for i, line in enumerate(lines) if line.split() == ["file", "version", "accelerator", "size", "verdict"]
    )
    worst = [subject.id for subject in report.subjects if report.verdict_of(subject) is not Verdict.PASS]
    assert worst
    assert all(lines.index(name) < table for name in worst)
    wheel = "torch-2.11.0-cp312-cp312-manylinux_2_28_aarch64.whl"
    assert [line.split() for line in lines if line.startswith(wheel)] == [
        [wheel, "2.11.0", "CUDA", "13.0", "541.0", "MB", "PASS"]
    ]
    assert sum(line.endswith("UNDECIDED") for line in lines) == 1
    assert lines.count("torch-2.10.0-cp312-cp312-manylinux_2_28_aarch64.whl") == 1
    assert lines.count(wheel) == 0


@pytest.mark.parametrize("indexes", [("https://one.example", "https://two.example"), ("https://one.example",) * 2])
def test_the_table_of_many_names_the_indexes_where_there_are_several(indexes: tuple[str, str]) -> None:
    many = reports.forty()
    subjects = [replace(s, facts={**s.facts, "index": indexes[n % 2]}) for n, s in enumerate(many.subjects)]
    text = rendered(replace(many, subjects=tuple(subjects)), "text")
    assert len(re.findall(r"https://one\.example +\w+\n", text)) == (20 if len(set(indexes)) > 1 else 0)


@pytest.mark.usefixtures("xterm")
def test_colour_only_on_a_terminal_that_wants_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" in on_a_terminal()
    assert "\x1b[" not in on_a_terminal(color=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in on_a_terminal()
    assert "\x1b[" in on_a_terminal(color=True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" not in rendered(reports.mixed(), "text")


@pytest.mark.usefixtures("xterm")
def test_colour_changes_no_word() -> None:
    coloured = rendered(reports.mixed(), "text", color=True)
    plain = "\n".join(line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", coloured).split("\n"))
    assert plain == GOLDEN


def test_a_narrow_terminal_wraps_sentences_but_never_commands() -> None:
    command = "pip install " + " ".join(f"torch=={minor}" for minor in range(30))
    finding = reports.result(
        outcome=Outcome.FAIL, message="word " * 40, fix=Fix("do this", (Command(tuple(command.split())),))
    )
    text = rendered(reports.report(reports.wheel(results=(finding,))), "text", width=60)
    lines = text.splitlines()
    assert f"        {command}" in lines
    assert all(len(line) <= 60 for line in lines[2:] if command not in line)


def test_hostile_strings_are_shown_not_obeyed() -> None:
    text = rendered(reports.hostile(), "text", color=True, verbose=2)
    assert "\\x1b[31mred\\x1b[0m [bold]x[/bold]" in text
    assert set(re.findall(r"\x1b\[[^m]*m", text)) <= {
        f"\x1b[{code}m" for code in ("0", "1", "2", "32", "35", "1;31", "1;35")
    }


OWN = """\
PASS  GPU, torch 2.11.0: 2 kernels correct (0.41 s)

scaled_mm
  9 cases
  warning  WHL501  the wheel is 419.7 MB, above the limit of 400 MB
      size:  419,731,115 bytes

GPU, torch 2.11.0: 2 kernels correct
kernel                                   us
norm                                  130.0
GPU, torch 2.11.0: 2 kernels correct    5.1

GPU, torch 2.11.0: 2 kernels correct
"""


def test_an_overview_of_its_own_stands_behind_the_findings() -> None:
    assert rendered(reports.own_overview(), "text") == OWN
    assert rendered(reports.own_overview(), "text", quiet=True) == OWN.splitlines(keepends=True)[0]


def test_verbose_shows_the_subjects_without_findings_too() -> None:
    assert "\nnorm\n  12 cases\n  passed  WHL001  Names agree\n" in rendered(reports.own_overview(), "text", verbose=1)


def test_hostile_strings_of_an_overview_are_shown_not_obeyed() -> None:
    text = rendered(reports.own_overview(reports.HOSTILE), "text")
    assert "\x1b" not in text
    assert text.count("\\x1b[31mred") == 4
