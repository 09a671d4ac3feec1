"""The GitHub Action in another project's repository: its steps as a runner runs them, annotations, summary, outputs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from ci import action
from tests.support.github_runner import ActionRun, Runner
from tests.support.pairs import wheel_for
from tests.support.patience import PATIENCE
from tests.support.wheels import torch_like
from wheel_checks.report import schema

ROOT = Path(__file__).parents[2]
RELEASE = """\
project = "torch"
pythons = ["3.12"]

[[platform]]
name = "x86_64"
tags = ["manylinux_2_28_x86_64"]
accelerator = "cuda"
"""


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    """A job that has checked out another project."""
    workspace, temporary = tmp_path / "their project", tmp_path / "runner temp"
    workspace.mkdir()
    temporary.mkdir()
    subprocess.run(["git", "init", "--quiet", workspace], check=True)
    return Runner(workspace, temporary)


@pytest.fixture
def installed(runner: Runner) -> Runner:
    """The same job after a step that has installed wheelproof from this checkout, with this Python."""
    place = action._place({"RUNNER_TEMP": str(runner.temporary)})
    (place / "bin").mkdir(parents=True)
    (place / "bin/python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (place / "bin/python").chmod(0o755)
    (place / "installed").touch()
    return runner


def uses(runner: Runner, command: str, arguments: str = "", **more: str) -> ActionRun:
    return runner.uses(ROOT, command=command, arguments=arguments, python=sys.executable, **more)


def test_a_pin_becomes_an_annotation_a_summary_and_outputs(installed: Runner) -> None:
    (installed.workspace / "requirements.txt").write_text("numpy\ntorch==2.10.0\n")

    run = uses(installed, "pins check", "--installed none")

    assert run.status == 1
    assert (run.outputs["verdict"], run.outputs["exit-code"]) == ("fail", "1")
    (annotation,) = run.commands
    assert annotation.startswith("::error file=requirements.txt,line=2,")
    assert "torch==2.10.0" in annotation
    assert run.summary.startswith("## \N{CROSS MARK} fail: wheelproof pins check")
    report = json.loads(Path(run.outputs["report"]).read_text(encoding="utf-8"))
    jsonschema.validate(report, schema())
    assert report["command"] == "pins check"
    assert "FAIL" in run.log, "the log has the report for people, too"


def test_a_project_without_such_a_pin_passes(installed: Runner) -> None:
    (installed.workspace / "requirements.txt").write_text("numpy\n")
    run = uses(installed, "pins check", "requirements.txt --installed none")
    assert (run.status, run.outputs["verdict"], run.outputs["exit-code"], run.commands) == (0, "pass", "0", [])


def test_wheels_are_verified_before_the_upload(installed: Runner) -> None:
    torch_like("cpu", "2.10.0", machine="aarch64").write(installed.workspace)
    run = uses(installed, "verify", "--expect cuda  # what it must be\n'.'")
    assert run.outputs["verdict"] == "fail"
    assert any("WHL201" in command for command in run.commands)


def test_the_summary_of_a_release_says_whether_it_may_be_uploaded(installed: Runner) -> None:
    torch_like("cuda", "2.11.0", machine="x86_64").write(installed.workspace)
    (installed.workspace / "release.toml").write_text(RELEASE)
    run = uses(installed, "release", ". --expect release.toml")
    assert run.outputs["verdict"] == "pass", run.log
    assert run.summary.splitlines()[0] == "## may be uploaded"


def test_the_summary_of_a_comparison_has_its_tables(installed: Runner) -> None:
    one, other = (wheel_for(machine).write(installed.workspace).name for machine in ("aarch64", "x86_64"))
    run = uses(installed, "diff", f"{one} {other}")
    assert run.status == 0, run.log
    assert "Same on both sides: 1 Python file." in run.summary


@pytest.mark.parametrize(("command", "arguments"), [("verfy", ""), ("verify", "--expct cuda"), ("verify", "")])
def test_wrong_usage_is_2_and_has_no_report(installed: Runner, command: str, arguments: str) -> None:
    run = uses(installed, command, arguments)
    assert run.status == 2
    assert (run.outputs["verdict"], run.outputs["exit-code"], run.outputs["report"]) == ("", "2", "")
    assert run.commands == ["::error title=wheelproof::wrong usage (exit code 2): the log of this step says why"]


def test_the_checkout_of_the_job_is_obeyed_whoever_owns_it(installed: Runner) -> None:
    run = uses(installed, "verify", "--show-config")
    assert f"safe-directory = ['{installed.workspace}']  # environment variable" in run.log


def test_what_cannot_be_checked_is_3_and_not_a_finding(installed: Runner) -> None:
    run = uses(installed, "verify", "no-such-file.whl")
    assert (run.status, run.outputs["exit-code"]) == (3, "3")
    assert run.outputs["verdict"] in {"", "undecided"}


def test_no_shell_sees_the_inputs(installed: Runner) -> None:
    evil = "$(touch pwned) `touch pwned` ; touch pwned && touch pwned | touch pwned > pwned ${{ github.token }}"
    for command, arguments in (("verify", evil), (evil, "")):
        assert uses(installed, command, arguments).outputs["verdict"] == ""
    assert not (installed.workspace / "pwned").exists()


def test_what_the_log_quotes_is_no_command_of_the_runner(installed: Runner) -> None:
    (installed.workspace / "log.txt").write_text("RuntimeError: No CUDA GPUs are available ##[error]forged\n")
    run = uses(installed, "explain", "log.txt --format json --output -")
    assert run.outputs["verdict"] == "fail"
    assert "[error]forged" in run.log
    assert "##[" not in run.log
    assert run.commands
    assert all(line.startswith("::error file=") for line in run.commands), "only wheelproof's own annotations"


def test_inputs_that_are_no_words(installed: Runner) -> None:
    run = uses(installed, "verify", "'torch")
    assert run.status == 3
    assert run.commands == ["::error title=wheelproof::the input `arguments` is badly quoted: No closing quotation"]
    assert uses(installed, " ").commands == ["::error title=wheelproof::the input `command` is empty"]


def test_an_old_python_is_named(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 12))
    assert action.main(["install"], {"RUNNER_TEMP": str(runner.temporary)}) == 3
    assert "run actions/setup-python before this action" in capsys.readouterr().out


def test_a_python_without_pip_makes_an_environment_with_pip(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(action, "find_spec", lambda _name: None)
    monkeypatch.setattr(action, "_call", lambda command, _hint: commands.append(list(command)))
    place = action._place({"RUNNER_TEMP": str(runner.temporary)})
    place.mkdir()

    assert action.main(["install"], {"RUNNER_TEMP": str(runner.temporary)}) == 0
    assert commands[0] == [sys.executable, "-m", "venv", "--clear", str(place)]
    assert all(command[:4] == [str(place / "bin/python"), "-I", "-m", "pip"] for command in commands[1:])


def test_outside_of_a_runner_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert action.main(["run"], {}) == 3
    assert "RUNNER_TEMP is not set" in capsys.readouterr().out
    assert action.main([], {}) == 2


@pytest.mark.online
def test_from_its_own_source_with_pinned_dependencies(runner: Runner) -> None:
    (runner.workspace / "requirements.txt").write_text("torch>=2.7\n")
    first = uses(runner, "pins check", "--installed none")
    assert (first.outputs["verdict"], first.status) == ("fail", 1), first.log
    second = uses(runner, "pins check", "--installed none --fail-on never")
    assert (second.outputs["verdict"], second.status) == ("pass", 0)
    assert "Install wheelproof" in first.log
    assert "Install wheelproof" not in second.log, "a job that uses it twice installs it once"


@pytest.mark.online
def test_a_second_job_takes_the_environment_from_the_cache(runner: Runner, tmp_path: Path) -> None:
    (runner.workspace / "requirements.txt").write_text("torch==2.10.0\n")
    cached = replace(runner, cache=tmp_path / "cache")
    first = uses(cached, "pins check", "--installed none")
    assert first.status == 1
    assert "Install wheelproof" in first.log
    assert len(list((tmp_path / "cache").iterdir())) == 1
    shutil.rmtree(cached.temporary)
    cached.temporary.mkdir()

    second = uses(cached, "pins check", "--installed none")

    assert (second.status, second.outputs["verdict"]) == (1, "fail")
    assert "Install wheelproof" not in second.log


def key_of(runner: Runner, **environment: str) -> str:
    output = runner.temporary / "output"
    output.unlink(missing_ok=True)
    assert (
        action.main(["name"], {"RUNNER_TEMP": str(runner.temporary), "GITHUB_OUTPUT": str(output), **environment}) == 0
    )
    found = dict(line.split("=", 1) for line in output.read_text().splitlines())
    assert Path(found["path"]).parent == runner.temporary
    return found["key"]


def test_the_key_of_the_cache_changes_with_what_is_installed(runner: Runner, tmp_path: Path) -> None:
    wheel = tmp_path / "wheelproof-0.1.0-py3-none-any.whl"
    keys = [key_of(runner), key_of(runner, ImageOS="ubuntu26"), key_of(runner, INPUT_VERSION="wheelproof==0.1.0")]
    for content in (b"one", b"two"):
        wheel.write_bytes(content)
        keys.append(key_of(runner, INPUT_VERSION=str(wheel)))
    assert len(set(keys)) == 5
    assert all(re.fullmatch(r"wheelproof-linux-[a-z0-9_]+-[0-9a-f]{32}", key) for key in keys)
    assert key_of(runner) == keys[0]


@pytest.mark.parametrize(
    "version", ["wheelproof", "wheelproof>=0.1", "wheelproof==0.*", "wheelproof @ https://x.test/w.whl"]
)
def test_what_names_no_version_is_not_kept(runner: Runner, version: str) -> None:
    assert key_of(runner, INPUT_VERSION=version) == ""


def test_an_environment_whose_python_is_gone_is_made_again(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    place = action._place({"RUNNER_TEMP": str(runner.temporary)})
    (place / "bin").mkdir(parents=True)
    (place / "bin/python").symlink_to(runner.temporary / "gone")
    (place / "installed").touch()
    commands: list[list[str]] = []
    monkeypatch.setattr(action, "_call", lambda command, hint: commands.append(list(command)))
    assert action.main(["install"], {"RUNNER_TEMP": str(runner.temporary)}) == 0
    assert commands[0][1:3] == ["-m", "venv"]


@pytest.mark.online
def test_a_wheel_of_it(runner: Runner) -> None:
    dist = runner.workspace / "dist"
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(dist), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True, timeout=PATIENCE)
    (wheel,) = dist.glob("*.whl")
    run = uses(runner, "verify", "dist", version=f"dist/{wheel.name}")
    assert (run.outputs["verdict"], run.status) == ("pass", 0), run.log


@pytest.mark.online
def test_a_version_that_is_not_there(runner: Runner) -> None:
    run = uses(runner, "verify", "dist", version="wheelproof==0.0.0.dev0")
    assert run.status == 3
    assert run.commands[-1].startswith("::error title=wheelproof::`")
    assert "the input `version` is one requirement or file for pip" in run.commands[-1]
    again = uses(runner, "verify", "dist", version="-r requirements.txt")
    assert again.status == 3, "an option of pip is not a requirement"
