"""``ci/develop.py``: every lane runs and counts, and no one's pip settings reach our environment."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ci import progress, system
from ci.develop import SetUpError, _call
from ci.lanes import HEAVY, Lane, Meanwhile, NotRun, kernels_of_today, matrix_lanes, mutant_lane, plan, run_lanes, tool
from kernels_smoke.suite import registry
from kernels_smoke.suite.cli import parser
from tests.support.patience import PATIENCE, wait_until

DEVELOP = Path(__file__).parents[2] / "ci" / "develop.py"


def test_a_failed_lane_fails_the_run_and_the_others_still_run(capfd: pytest.CaptureFixture[str]) -> None:
    ran: list[str] = []

    def lane(name: str, passes: bool) -> bool:
        ran.append(name)
        return passes

    assert run_lanes([("a", lambda: lane("a", False)), ("b", lambda: lane("b", True))]) == 1
    assert ran == ["a", "b"]
    out = capfd.readouterr().out
    assert "FAILED" in out.splitlines()[0]
    assert "passed" in out.splitlines()[1]
    assert "1 of 2 lanes failed" in out


def test_a_lane_that_cannot_run_is_named_and_fails_nothing(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")  # in CI it is red
    lanes: list[Lane] = [("a", lambda: True), ("matrix", lambda: NotRun("no Docker engine answers"))]
    assert run_lanes(lanes) == 0
    out = capfd.readouterr().out
    assert "NOT RUN: no Docker engine answers" in out
    assert out.endswith("1 of 2 lanes did NOT run\n1 lanes passed\n")


def test_a_strict_run_fails_when_a_lane_did_not_run() -> None:
    assert run_lanes([("a", lambda: True), ("matrix", lambda: NotRun("no engine"))], strict=True) == 1


def test_what_lacks_a_program_is_named_before_anything_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    text = plan("test", list(HEAVY), strict=False)
    assert (
        "NOT RUN: slurm: slurmctld, slurmd, sbatch not installed (Debian and Ubuntu: apt-get install slurm-wlm)" in text
    )
    assert "NOT RUN: compiler: gcc, cc, git, ps not installed" in text
    assert "minutes on two processors" in text
    assert "online" not in text.partition("NOT RUN")[2]
    for program in ("slurmctld", "slurmd", "sbatch"):
        (tmp_path / program).touch(mode=0o755)
    assert "slurm:" not in plan("test", list(HEAVY), strict=False)


def test_system_packages_are_installed_by_root_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    apt = tmp_path / "apt-get"
    apt.write_text(f"#!/bin/sh\necho $* >> {tmp_path}/calls\n")
    apt.chmod(0o755)
    monkeypatch.setattr("os.getuid", lambda: 1000)
    system.install(["slurm", "online"])
    assert not (tmp_path / "calls").exists()
    assert "not installed, which needs root and apt-get: slurm-wlm" in capsys.readouterr().err
    monkeypatch.setattr("os.getuid", lambda: 0)
    system.install(["slurm", "online"])
    update, install = (tmp_path / "calls").read_text().splitlines()
    assert update.startswith("update")
    assert install.split()[0] == "install"
    assert install.split()[-1] == "slurm-wlm"


def test_a_lane_that_cannot_run_hides_no_failure() -> None:
    assert run_lanes([("a", lambda: NotRun("no engine")), ("b", lambda: False)]) == 1


def test_the_matrix_is_not_run_without_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(system.NEEDS, "matrix", system.Need((), ()))
    ((_, lane),) = matrix_lanes("no Docker engine answers")
    assert lane() == NotRun("no Docker engine answers")


def test_lanes_that_all_pass(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_lanes([("a", lambda: True)]) == 0
    assert capfd.readouterr().out.endswith("1 lanes passed\n")


def test_pip_runs_without_the_settings_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", "elsewhere")
    monkeypatch.setenv("PIP_INDEX_URL", "https://example.org/simple")
    seen = (
        "import os, sys; sys.exit([*map(os.environ.get, ['PIP_FIND_LINKS', 'PIP_INDEX_URL'])] != [None, sys.argv[1]])"
    )
    _call([sys.executable, "-c", seen, "https://example.org/simple"], "the environment is not the expected one")


SAYS = "print('Collecting a==1\\nCollecting b==2\\nDownloading b-2.whl (9 MB)\\nWARNING: no such index', flush=True)\n"


def test_what_pip_installs_is_reported_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.01)
    more = tmp_path / "more"
    script = f"import os, time\n{SAYS}while not os.path.exists({str(more)!r}): time.sleep(0.01)\n"
    answers: list[int] = []

    def install() -> None:
        answers.append(progress.run_pip([sys.executable, "-c", script], os.environ, tmp_path, packages=3))

    thread = threading.Thread(target=install)
    thread.start()
    shown = wait_until(lambda: [line for line in capsys.readouterr().err.splitlines() if "Downloading" in line])
    more.touch()
    thread.join()

    assert shown[0].endswith(" s: 2 of 3 packages found; Downloading b-2.whl (9 MB)")
    assert answers == [0]


def test_the_size_of_what_is_installed_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.01)
    venv = tmp_path / ".venv-kernels"
    venv.mkdir()
    (venv / "libtorch.so").write_bytes(bytes(3_000_000))
    waits = "import pathlib, time\nwhile not pathlib.Path('more').exists(): time.sleep(0.01)\n"

    def install() -> None:
        progress.run_pip([sys.executable, "-c", waits], os.environ, tmp_path, into=venv)

    thread = threading.Thread(target=install)
    thread.start()
    shown = wait_until(lambda: capsys.readouterr().err)
    (tmp_path / "more").touch()
    thread.join()
    assert shown.splitlines()[0].endswith("; .venv-kernels has 3 MB")


def test_what_pip_said_last_is_shown_when_it_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fails = "import sys; print('Collecting a'); sys.exit('ERROR: no a')"
    assert progress.run_pip([sys.executable, "-c", fails], os.environ, tmp_path) == 1
    assert "ERROR: no a\n" in capsys.readouterr().err


def test_a_failed_set_up_says_what_to_do() -> None:
    with pytest.raises(SetUpError, match=r"failed \(install venv\)"):
        _call([sys.executable, "-c", "raise SystemExit(1)"], "install venv")


@pytest.mark.parametrize("arguments", [[], ["tset"], ["lint", "extra"], ["test", "extra"], ["heavy", "slurm", "extra"]])
def test_wrong_usage_is_2_and_sets_nothing_up(arguments: list[str]) -> None:
    child = subprocess.run([sys.executable, DEVELOP, *arguments], capture_output=True, check=False, timeout=PATIENCE)
    assert (child.returncode, child.stdout) == (2, b"")


def test_a_week_has_the_mutants_of_all_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str] = []
    for day in range(10, 17):
        monkeypatch.setattr("ci.lanes.time.time", lambda day=day: day * 24 * 3600.0)
        names += kernels_of_today()
    assert sorted(names) == sorted(entry.name for entry in registry.ENTRIES)


@pytest.mark.parametrize("verdict", [True, False, NotRun("no engine")])
def test_a_lane_that_ran_meanwhile_shows_what_it_printed(
    verdict: bool | NotRun, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ci.lanes.BIN", tmp_path)
    (tmp_path / "says").write_text("#!/bin/sh\necho said $1\n")
    (tmp_path / "says").chmod(0o755)

    def lane() -> bool | NotRun:
        assert tool("says", "it")
        return verdict

    began = Meanwhile(lane)
    assert capsys.readouterr().out == ""
    assert began() == verdict
    assert capsys.readouterr().out == "said it\n"
    assert began.seconds > 0


def test_a_lane_that_crashed_meanwhile_has_failed(capsys: pytest.CaptureFixture[str]) -> None:
    assert Meanwhile(lambda: bool(1 / 0))() is False
    assert "ZeroDivisionError" in capsys.readouterr().out


def test_the_mutants_of_all_kernels_that_are_named_are_run(monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(command: list[str]) -> bool:
        commands.append(command)
        return True

    monkeypatch.setattr("ci.lanes.in_kernels_venv", run)
    for names in (("norm", "fusion"), ()):
        _, lane = mutant_lane(*names)
        assert lane() is True
    parsed = [parser().parse_args(command[1:]) for command in commands]
    assert [(each.mutants, each.only) for each in parsed] == [(True, ["norm", "fusion"]), (True, [])]
