"""``stack --against``: the changes between two states of a file, for a review."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder, torch_like

CUDA, CPU = torch_like("cuda", "2.11.0").metadata(requires=[]), torch_like("cpu", "2.10.0").metadata(requires=[])
X86 = WheelBuilder("native", "2.0", "cp312-cp312-manylinux_2_28_x86_64")
FILES = simple_index(
    CUDA,
    CPU,
    X86,
    WheelBuilder("native", "1.0"),
    WheelBuilder("other", "1.0"),
    WheelBuilder("other", "2.0"),
)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository, which is the current folder."""
    folder = tmp_path / "tree"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git("init", "--quiet", "--initial-branch=main")
    return folder


def git(*words: str) -> None:
    subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@example.org", *words], check=True)


def commit(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    git("add", "--all")
    git("commit", "--quiet", "--message", "x")


def compare(wheelproof: Wheelproof, *arguments: str, form: str = "json") -> tuple[int, str]:
    with RangeServer(dict(FILES)) as server:
        target = ["--platform", "aarch64", "--python", "3.12", "--index-url", server.url("/simple"), "--format", form]
        run = wheelproof("stack", *arguments, *target)
    assert run.out, run.err
    return run.status, str(run.out)


def changes(text: str) -> dict[str, tuple[str, str, str]]:
    """Of each package the version before and after, and what got worse."""
    [subject] = json.loads(text)["subjects"]
    rows: list[dict[str, Any]] = subject["facts"]["changes"]
    return {
        row["package"]: (
            (row["before"] or {}).get("version", ""),
            (row["after"] or {}).get("version", ""),
            row["worse"],
        )
        for row in rows
    }


@pytest.mark.parametrize(("more", "status"), [([], 0), (["--fail-on-change"], 1), (["--fail-on", "warning"], 1)])
def test_a_torch_that_becomes_a_cpu_build(wheelproof: Wheelproof, tree: Path, more: list[str], status: int) -> None:
    commit(tree / "requirements.txt", "other==1.0\ntorch==2.11.0\n")
    (tree / "requirements.txt").write_text("other==1.0\ntorch==2.10.0\n")
    code, out = compare(wheelproof, "-r", "requirements.txt", "--against", "HEAD", *more)
    assert (code, changes(out)) == (status, {"torch": ("2.11.0", "2.10.0", "CUDA 13.0 -> CPU only")})
    report = json.loads(out)
    assert report["summary"]["answers"][0]["text"] == "torch on aarch64: CUDA 13.0 -> CPU only"
    [result] = [r for s in report["subjects"] for r in s["results"]]
    assert (result["rule"], result["outcome"]) == ("STK123", "fail")
    assert result["location"] == {"file": "requirements.txt", "line": 2}


def test_the_comment_of_a_review(wheelproof: Wheelproof, tree: Path) -> None:
    commit(tree / "requirements.txt", "other==1.0\ntorch==2.11.0\n")
    (tree / "requirements.txt").write_text("other==2.0\ntorch==2.10.0\n")
    _, out = compare(wheelproof, "-r", "requirements.txt", "--against", "main", form="markdown")
    assert out.startswith("**torch on aarch64: CUDA 13.0 -&gt; CPU only**")
    rows = [line.replace("\\", "").replace("&gt;", ">") for line in out.splitlines() if line.startswith("| ")]
    assert "| package | before | after | accelerator | cuda |" in rows
    assert "| torch | 2.11.0 | 2.10.0 | CUDA -> CPU only | 13.0 -> none |" in rows
    assert any(row.startswith("| other | 1.0 | 2.0 |") for row in rows)


def test_what_gets_better_and_what_failed_before_is_no_fault(wheelproof: Wheelproof, tree: Path) -> None:
    commit(tree / "requirements.txt", "native==2.0\ntorch==2.10.0\n")
    (tree / "requirements.txt").write_text("native==2.0\ntorch==2.11.0\n")
    code, out = compare(wheelproof, "-r", "requirements.txt", "--against", "HEAD", "--fail-on-change")
    assert (code, changes(out)) == (0, {"torch": ("2.10.0", "2.11.0", "")})
    text = json.loads(out)["summary"]["answers"][0]["text"]
    assert text == "torch on aarch64: 2.10.0 (CPU only) -> 2.11.0 (CUDA 13.0)"


def test_a_package_that_loses_its_file(wheelproof: Wheelproof, tree: Path) -> None:
    commit(tree / "requirements.txt", "native==1.0\n")
    (tree / "requirements.txt").write_text("native==2.0\n")
    code, out = compare(wheelproof, "-r", "requirements.txt", "--against", "HEAD", "--fail-on-change")
    assert (code, changes(out)) == (1, {"native": ("1.0", "2.0", "a wheel -> no file")})


def test_nothing_changes(wheelproof: Wheelproof, tree: Path) -> None:
    commit(tree / "requirements.txt", "other==1.0\n")
    code, out = compare(wheelproof, "-r", "requirements.txt", "--against", "HEAD", "--fail-on-change")
    assert (code, changes(out)) == (0, {})
    assert json.loads(out)["summary"]["answers"][0]["text"] == "nothing changes on aarch64"


def test_a_file_that_is_new_and_files_that_are_included(wheelproof: Wheelproof, tree: Path) -> None:
    commit(tree / "deps" / "base.txt", "torch==2.11.0\n")
    commit(tree / "deps" / "all.txt", "-r base.txt\nother\n")
    (tree / "deps" / "base.txt").write_text("torch==2.10.0\n")
    _, out = compare(wheelproof, "-r", "deps/all.txt", "--against", "HEAD")
    assert changes(out) == {"torch": ("2.11.0", "2.10.0", "CUDA 13.0 -> CPU only")}
    _, out = compare(wheelproof, "-r", "deps/all.txt", "--against", "HEAD~1")
    assert changes(out)["other"] == ("", "2.0", "")


def test_another_file(wheelproof: Wheelproof, tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("torch==2.11.0\n")
    (tmp_path / "new.txt").write_text("torch==2.10.0\n")
    _, out = compare(wheelproof, "-r", str(tmp_path / "new.txt"), "--against", str(tmp_path / "old.txt"))
    assert changes(out) == {"torch": ("2.11.0", "2.10.0", "CUDA 13.0 -> CPU only")}


def test_nothing_of_the_repository_is_executed(wheelproof: Wheelproof, tree: Path) -> None:
    marker = tree / "executed"
    script = tree / "script.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    script.chmod(0o755)
    commit(tree / "requirements.txt", "other==1.0\n")
    (tree / ".gitattributes").write_text("* diff=evil filter=evil\n")
    for key in ("core.fsmonitor", "core.pager", "diff.evil.textconv", "filter.evil.smudge", "core.sshCommand"):
        git("config", key, str(script))
    hooks = tree / "hooks"
    hooks.mkdir()
    for hook in ("post-checkout", "reference-transaction", "pre-auto-gc"):
        (hooks / hook).write_text(script.read_text())
        (hooks / hook).chmod(0o755)
    git("config", "core.hooksPath", str(hooks))
    marker.unlink(missing_ok=True)
    code, _ = compare(wheelproof, "-r", "requirements.txt", "--against", "HEAD")
    assert (code, marker.exists()) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--against", "no-such-branch"], "is neither a file nor a commit of the repository"),
        (["--against", "--output=x"], "is neither a file nor a commit of the repository"),
        (["--against", "."], ". is a folder"),
        (["--fail-on-change"], "requires --against"),
        (["other", "--against", "HEAD"], "--against compares one file"),
    ],
)
def test_what_cannot_be_compared(wheelproof: Wheelproof, tree: Path, arguments: list[str], message: str) -> None:
    commit(tree / "requirements.txt", "other==1.0\n")
    if arguments[-1].startswith("--output"):
        arguments = [f"--against={arguments[-1]}"]
    run = wheelproof("stack", "-r", "requirements.txt", "--platform", "aarch64", "--python", "3.12", *arguments)
    assert run.status == 2
    assert message in run.err
