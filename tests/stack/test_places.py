"""Findings of a stack are at the line of the file that brings the package in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder, torch_like

TORCH = torch_like("cpu", "2.10.0")
FILES = simple_index(
    WheelBuilder("app", "1.0").metadata(requires=["torch==2.10.0"]),
    WheelBuilder("other", "1.0"),
    TORCH,
)
TARGET = ("--platform", "aarch64", "--python", "3.12", "--gpu", "GB200")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judged(wheelproof: Wheelproof, *arguments: str, form: str = "json") -> str:
    with RangeServer(dict(FILES)) as server:
        run = wheelproof("stack", *arguments, "--index-url", server.url("/simple"), *TARGET, "--format", form)
    return str(run.out)


def places(text: str) -> dict[str, Any]:
    """The place of each failure by the name of its package and its rule."""
    subjects = json.loads(text)["subjects"]
    return {
        f"{subject['facts'].get('package', 'stack')} {result['rule']}": result.get("location")
        for subject in subjects
        for result in subject["results"]
        if result["outcome"] == "fail" and result["rule"].startswith("STK")
    }


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("other\ntorch==2.10.0\n", 2),
        ("# the server\n\nother\napp>=1\n", 4),
        ("app\ntorch>=2  # itself\n", 2),
        ("other ; python_version < '3'\n\\\n  app\n", 2),
    ],
    ids=["asked for", "required by another", "both", "joined lines"],
)
def test_the_line_of_a_requirements_file(wheelproof: Wheelproof, folder: Path, text: str, line: int) -> None:
    (folder / "requirements.txt").write_text(text)
    found = places(judged(wheelproof, "-r", "requirements.txt"))
    assert found["torch STK101"] == {"file": "requirements.txt", "line": line}


def test_a_file_that_another_includes(wheelproof: Wheelproof, folder: Path) -> None:
    (folder / "deps").mkdir()
    (folder / "requirements.txt").write_text("other\n-r deps/../deps/gpu.txt\n")
    (folder / "deps" / "gpu.txt").write_text("# GPU\napp\n")
    assert places(judged(wheelproof, "-r", "requirements.txt"))["torch STK101"] == {"file": "deps/gpu.txt", "line": 2}


def test_an_element_of_a_project(wheelproof: Wheelproof, folder: Path) -> None:
    (folder / "pyproject.toml").write_text('[project]\nname = "demo"\ndependencies = [\n  "other",\n  "app",\n]\n')
    assert places(judged(wheelproof, "pyproject.toml"))["torch STK101"] == {"file": "pyproject.toml", "line": 5}


def test_nothing_for_what_the_command_line_asks_for(wheelproof: Wheelproof, folder: Path) -> None:
    (folder / "requirements.txt").write_text("other\n")
    assert places(judged(wheelproof, "-r", "requirements.txt", "app"))["torch STK101"] is None


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("text", "requirements.txt:2"),
        ("markdown", "`requirements.txt:2`"),
        ("github", "::error file=requirements.txt,line=2,title=STK101 "),
        ("sarif", '"artifactLocation":{"uri":"requirements.txt"},"region":{"startLine":2}'),
        ("junit", 'file="requirements.txt" line="2"'),
        ("html", "requirements.txt:2"),
    ],
)
def test_every_format_shows_it(wheelproof: Wheelproof, folder: Path, form: str, shown: str) -> None:
    (folder / "requirements.txt").write_text("other\napp\n")
    text = judged(wheelproof, "-r", "requirements.txt", form=form)
    assert shown in (text if form != "sarif" else json.dumps(json.loads(text), separators=(",", ":")))
