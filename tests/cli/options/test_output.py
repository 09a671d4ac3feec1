"""The shared options, and how a report reaches its file."""

from __future__ import annotations

import io
import json
import os
import sys
from pathlib import Path

import pytest

from wheel_checks.errors import UsageError, WheelproofError
from wheel_checks.model import CheckResult, FailOn, Outcome, Report, Severity, Subject
from wheel_checks.report import FORMATS
from wheelproof.cli.options.output import CommandParser, OutputOptions, add_output_options, emit, open_output


def options_of(*arguments: str) -> OutputOptions:
    parser = CommandParser(prog="wheelproof judge", description="Judges.")
    add_output_options(parser)
    return OutputOptions.from_arguments(parser.parse(arguments))


def report_of(outcome: Outcome) -> Report:
    result = CheckResult("WHL001", "a wheel is a wheel", outcome, Severity.ERROR, "it is not")
    return Report("verify", "0.1.0", "2026-11-20T09:00:00Z", 0.1, (Subject("a.whl", "wheel", results=(result,)),))


@pytest.mark.parametrize("name", FORMATS)
def test_every_renderer_is_a_format(name: str) -> None:
    assert options_of("--format", name, "--also", f"{name}=x").reports == ((name, "-"), (name, "x"))


def test_the_defaults() -> None:
    assert options_of() == OutputOptions()


def test_every_shared_option() -> None:
    arguments = "--format=sarif --fail-on=never --select=A,B --select=C --ignore=D --offline -q -vv --no-color"
    arguments += " --also json=a.json,html=b=c.html --also github=d"
    assert options_of(*arguments.split()) == OutputOptions(
        format="sarif",
        also=(("json", "a.json"), ("html", "b=c.html"), ("github", "d")),
        fail_on=FailOn.NEVER,
        select=("A", "B", "C"),
        ignore=("D",),
        offline=True,
        quiet=True,
        verbose=2,
        color=False,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        ("--format", "yaml"),
        ("--fail-on", "note"),
        ("--select", "A,,B"),
        ("--also", "a.json"),
        ("--also", "yaml=a.yaml"),
        ("--also", "json="),
        ("--also", "json=-"),
    ],
)
def test_a_wrong_value_is_wrong_usage(arguments: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match=arguments[0]):
        options_of(*arguments)


@pytest.mark.parametrize("output", [".", "no-such-folder/report.json"])
def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="cannot be written; expected a file in an existing folder"):
        options_of("--output", output)
    with pytest.raises(UsageError, match="cannot be written; expected a file in an existing folder"):
        options_of("--also", f"json={output}")


@pytest.mark.parametrize(("outcome", "status"), [(Outcome.PASS, 0), (Outcome.FAIL, 1), (Outcome.ERROR, 3)])
def test_a_report_goes_to_its_file_and_its_verdict_to_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], outcome: Outcome, status: int
) -> None:
    file = tmp_path / "report.json"
    assert emit(report_of(outcome), options_of("--format", "json", "--output", str(file))) == status
    assert json.loads(file.read_text(encoding="utf-8"))["schema"] == "wheelproof.report/1"
    assert capsys.readouterr() == ("", "")
    assert list(tmp_path.iterdir()) == [file]


def test_one_run_writes_several_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, file = tmp_path / "page.md", tmp_path / "report.json"
    options = options_of("--format=github", "--also", f"markdown={page},json={file}")
    assert emit(report_of(Outcome.FAIL), options) == 1
    assert capsys.readouterr().out.startswith("::error file=a.whl,")
    assert page.read_text(encoding="utf-8").startswith("## \N{CROSS MARK} fail: wheelproof verify")
    assert json.loads(file.read_text(encoding="utf-8"))["summary"]["verdict"] == "fail"


@pytest.mark.parametrize("flag", ["--output", "--also"])
def test_a_report_is_not_written_through_a_link_that_leads_out_of_a_repository(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flag: str
) -> None:
    (tmp_path / "repo/.git").mkdir(parents=True)
    (tmp_path / "repo/folder").mkdir()
    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    monkeypatch.chdir(tmp_path / "repo/folder")
    Path("report.txt").symlink_to("../../mine.txt")
    Path("inner.txt").symlink_to("../inner.txt")
    Path("loop.txt").symlink_to("loop.txt")
    prefix = "text=" if flag == "--also" else ""
    with pytest.raises(UsageError, match=r"report\.txt is a link to .*mine\.txt, outside .*repo"):
        options_of(flag, f"{prefix}report.txt")
    with pytest.raises(UsageError), open_output("report.txt"):
        pass
    assert mine.read_text() == "mine"
    options_of(flag, f"{prefix}inner.txt")
    with open_output("inner.txt") as stream:
        stream.write("inner")
    assert Path("../inner.txt").read_text() == "inner"
    with open_output("loop.txt") as stream:  # leads nowhere, so that the report takes its place
        stream.write("kept")
    assert Path("loop.txt").read_text() == "kept"
    monkeypatch.chdir(tmp_path)
    Path("report.txt").symlink_to("mine.txt")
    with open_output("report.txt") as stream:  # no repository: the link is the user's
        stream.write("changed")
    assert mine.read_text() == "changed"


def test_standard_output_carries_the_report_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert emit(report_of(Outcome.PASS), options_of("--format", "json")) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["command"] == "verify"
    assert captured.err == ""


@pytest.mark.parametrize("flags", [("--color",), ("--no-color",), ()])
def test_the_text_report_is_colored_on_request(capsys: pytest.CaptureFixture[str], flags: tuple[str, ...]) -> None:
    assert emit(report_of(Outcome.FAIL), options_of(*flags)) == 1
    out = capsys.readouterr().out
    assert "a.whl" in out
    assert ("\x1b[" in out) == ("--color" in flags)


def test_quiet_and_verbose_reach_the_text_report(capsys: pytest.CaptureFixture[str]) -> None:
    lengths = []
    for flags in (["-q"], [], ["-vv"]):
        emit(report_of(Outcome.PASS), options_of(*flags))
        lengths.append(len(capsys.readouterr().out))
    assert lengths[0] < lengths[2]


def test_a_file_appears_complete_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "report.txt"
    file.write_text("the old report")

    def write_half() -> None:
        with open_output(str(file)) as stream:
            stream.write("half of the new rep")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert file.read_text() == "the old report"
    assert list(tmp_path.iterdir()) == [file]


def test_a_link_stays_a_link_and_permissions_stay(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    real.chmod(0o600)
    link.symlink_to(real)
    with open_output(str(link)) as stream:
        stream.write("né\udcff")
    assert link.is_symlink()
    assert real.read_bytes() == "né\\udcff".encode()
    assert real.stat().st_mode & 0o777 == 0o600


def test_what_is_no_regular_file_is_written_directly(tmp_path: Path) -> None:
    with open_output(os.devnull) as stream:
        stream.write("gone")
    assert Path(os.devnull).is_char_device()


def test_a_full_disk_is_one_sentence() -> None:
    with (
        pytest.raises(WheelproofError, match="could not be written to /dev/full: No space left"),
        open_output("/dev/full") as stream,
    ):
        stream.write("x")


def test_a_standard_output_that_cannot_change_its_encoding_is_used_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    with open_output("-") as opened:
        opened.write("text")
    assert stream.getvalue() == "text"
