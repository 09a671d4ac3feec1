"""``ci/check.py``: changes, the base, and the checks that run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ci import check

ROOT = Path(__file__).parents[2]


def git(repository: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *arguments]
    return subprocess.run(command, cwd=repository, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with two commits on main."""
    git(tmp_path, "init", "-q", "-b", "main")
    for name in ("first.py", "second.py"):
        (tmp_path / name).write_text("")
        git(tmp_path, "add", name)
        git(tmp_path, "commit", "-q", "-m", f"Add {name}")
    monkeypatch.setattr(check, "ROOT", tmp_path)
    return tmp_path


def test_on_main_the_last_commit_is_the_change(repository: Path) -> None:
    assert check.default_base() == "HEAD~"
    assert check.changed_files("HEAD~") == ["second.py"]


def test_on_main_what_is_not_committed_comes_first(repository: Path) -> None:
    (repository / "first.py").write_text("a = 1\n")
    (repository / "new.py").write_text("")  # untracked
    (repository / "staged.py").write_text("")
    git(repository, "add", "staged.py")
    assert check.default_base() == "HEAD"
    assert check.changed_files("HEAD") == ["first.py", "new.py", "staged.py"]


def test_on_a_branch_all_since_it_left_main_is_the_change(repository: Path) -> None:
    left = git(repository, "rev-parse", "HEAD")
    git(repository, "switch", "-q", "-c", "work")
    git(repository, "rm", "-q", "first.py")
    git(repository, "commit", "-q", "-m", "Remove it")
    (repository / "new.py").write_text("")
    assert check.default_base() == left[:12]
    assert check.changed_files(check.default_base()) == ["first.py", "new.py"]


def test_an_unknown_base_is_named(repository: Path) -> None:
    with pytest.raises(SystemExit, match="there is no commit 'nowhere'"):
        check.changed_files("nowhere")


def test_a_change_brings_the_lanes_that_judge_it() -> None:
    def names(*changed: str) -> list[str]:
        return [name for name, _ in check.further_lanes(changed)]

    assert names("action.yml") == ["zizmor", "check-jsonschema"]
    assert names("docs/index.md") == ["documentation"]
    assert names("pyproject.toml") == ["import-linter"]
    assert names("kernels_smoke/norm/cases.py", "tests/kernels/test_rotary.py") == ["mutants"]
    assert names("wheel_checks/model.py") == []
    assert check.families(["kernels_smoke/norm/cases.py", "tests/kernels/test_rotary.py"]) == ["norm", "rotary"]


def run(tmp_path: Path, tests: dict[str, float], *, names: tuple[str, ...] = (), seconds: float | None = None) -> str:
    """What pytest prints of the tests of a small file that ``ci.nearest`` lets through."""
    (tmp_path / "test_it.py").write_text(
        "import pytest\n"
        "def test_far(): pass\n"
        "def test_near(): pass\n"
        "def test_elsewhere(): pass\n"
        "@pytest.mark.parametrize('case', ['WHL101 fails', 'WHL999 fails'])\n"
        "def test_rule(case): pass\n"
        "@pytest.mark.online\n"
        "def test_slow(): pass\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = online\n")
    plan = {"tests": {f"test_it.py::{name}": far for name, far in tests.items()}, "names": names, "seconds": seconds}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    command = [sys.executable, "-m", "pytest", "-v", "-p", "ci.nearest", "-p", "no:cacheprovider"]
    command += [
        "--rootdir",
        str(tmp_path),
        "-c",
        str(tmp_path / "pytest.ini"),
        "--nearest",
        str(tmp_path / "plan.json"),
    ]
    done = subprocess.run([*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout


def test_the_nearest_test_runs_first_and_what_nothing_reaches_not_at_all(tmp_path: Path) -> None:
    out = run(tmp_path, {"test_far": 3.0, "test_near": 1.0})
    assert out.index("test_near PASSED") < out.index("test_far PASSED")
    assert "test_elsewhere" not in out


def test_a_case_that_is_named_after_the_change_comes_first(tmp_path: Path) -> None:
    out = run(tmp_path, {"test_near": 1.0, "test_rule": 2.0}, names=("WHL999",))
    places = [out.index(text) for text in ("[WHL999 fails] PASSED", "test_near PASSED", "[WHL101 fails] PASSED")]
    assert places == sorted(places)


def test_no_test_is_begun_when_the_time_is_over_but_those_of_the_change_itself(tmp_path: Path) -> None:
    out = run(tmp_path, {"test_near": 0.0, "test_far": 3.0, "test_rule": 3.0}, seconds=0)
    assert "test_near PASSED" in out
    assert "test_far" not in out
    assert "NOT RUN within 0 s, --all runs them: 3 tests that are further away: test_it.py (3)" in out


def test_a_slow_lane_runs_when_the_change_is_next_to_it(tmp_path: Path) -> None:
    assert "test_slow" in run(tmp_path, {"test_slow": 1.0, "test_near": 1.0})
    assert "test_slow" not in run(tmp_path, {"test_slow": 2.0, "test_near": 1.0})
