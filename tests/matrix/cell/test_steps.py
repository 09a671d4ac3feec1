"""A step's result is kept for the same inputs, and only for these; a file that cannot be read is done again."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from wheel_checks.errors import DeadlineError, NetworkError, SourceError
from wheel_checks.process.child import Ended
from wheelproof.matrix.cell import steps as steps_module
from wheelproof.matrix.cell.steps import Steps, digest_of_files, read_record
from wheelproof.matrix.cell.trees import ABANDONED, UNUSED, Lock, Trees


def take(folder: Path, run: str, inputs: Any, result: Any, **options: Any) -> Any:
    """The result of the step "look", which gives ``result`` when it is not kept."""
    keep_for = options.pop("keep_for", 3600.0)
    return Steps(folder, run, 60.0, **options).take("look", inputs, lambda: {"is": result}, keep_for=keep_for)


def test_a_result_is_kept_for_the_same_inputs(tmp_path: Path) -> None:
    assert take(tmp_path, "a", ["x"], 1) == {"is": 1}
    assert take(tmp_path, "b", ["x"], 2) == {"is": 1}
    record = read_record(tmp_path / "look.json")
    assert record is not None
    assert (record.run, record.kept) == ("b", True)

    assert take(tmp_path, "c", ["y"], 3) == {"is": 3}
    assert take(tmp_path, "d", ["y"], 4, keep_for=0) == {"is": 4}
    assert take(tmp_path, "e", ["y"], 5, fresh=True) == {"is": 5}


@pytest.mark.parametrize(
    ("report", "kept"),
    [
        ({"verdict": "fail"}, True),
        ({"verdict": "undecided"}, False),  # of the suite of kernels
        ({"summary": {"verdict": "pass", "error": 0}}, True),  # of `wheelproof verify`
        ({"summary": {"verdict": "undecided", "error": 1}}, False),
        ({"summary": {"verdict": "undecided", "error": 0}}, True),  # no rule that was selected says anything
        ({"error": "the import exited with status 134"}, False),
    ],
)
def test_what_decided_nothing_is_not_kept(tmp_path: Path, report: dict[str, Any], kept: bool) -> None:
    Steps(tmp_path, "a", 60.0).take("look", [], lambda: report)

    assert take(tmp_path, "b", [], 2) == (report if kept else {"is": 2})


@pytest.mark.parametrize(
    ("kind", "retries", "failures", "attempts", "failed"),
    [
        (NetworkError, 0, 1, 1, True),
        (NetworkError, 2, 2, 3, False),
        (NetworkError, 2, 3, 3, True),
        (SourceError, 2, 1, 1, True),
        (DeadlineError, 2, 1, 1, True),
    ],
)
def test_only_what_the_network_failed_is_tried_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: type[SourceError],
    retries: int,
    failures: int,
    attempts: int,
    failed: bool,
) -> None:
    monkeypatch.setattr(steps_module, "FIRST_PAUSE", 0.001)
    left = [kind("no answer")] * failures

    def work() -> dict[str, Any]:
        if left:
            raise left.pop()
        return {"is": 1}

    steps = Steps(tmp_path, "a", 60.0, retries=retries)
    assert (steps.take("look", [], work) is None) is failed
    record = read_record(tmp_path / "look.json")
    assert record is not None
    assert (record.attempts, bool(record.failure)) == (attempts, failed)


def test_a_fresh_run_does_a_step_once(tmp_path: Path) -> None:
    assert take(tmp_path, "a", ["x"], 1, fresh=True) == {"is": 1}
    assert take(tmp_path, "a", ["x"], 2, fresh=True) == {"is": 1}
    assert take(tmp_path, "b", ["x"], 3, fresh=True) == {"is": 3}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: text.replace("wheelproof.matrix-step/1", "wheelproof.matrix-step/0"),
        lambda text: text.replace('"started": "2', '"started": "x'),
        lambda text: text.replace('"seconds"', '"hours"'),
        lambda text: "[" * 100_000,
    ],
)
def test_a_record_that_cannot_be_read_is_made_again(tmp_path: Path, spoil: Any) -> None:
    take(tmp_path, "a", [], 1)
    path = tmp_path / "look.json"
    path.write_text(spoil(path.read_text(encoding="utf-8")), encoding="utf-8")

    assert take(tmp_path, "b", [], 2) == {"is": 2}


def test_what_failed_is_reported_and_tried_again(tmp_path: Path) -> None:
    def fail() -> dict[str, Any]:
        raise SourceError("the index is down", expected="an answer", hint="wait")

    assert Steps(tmp_path, "a", 60.0).take("look", [], fail) is None
    record = read_record(tmp_path / "look.json")
    assert record is not None
    assert (record.failure, record.hint) == ("the index is down; expected an answer", "wait")
    assert take(tmp_path, "b", [], 1) == {"is": 1}


def test_after_a_step_that_took_all_the_time_no_other_is_begun(tmp_path: Path) -> None:
    def slow() -> dict[str, Any]:
        raise DeadlineError("too late")

    begun: list[str] = []
    steps = Steps(tmp_path, "a", 0.0, heard=begun.append)
    assert steps.take("first", [], slow) is None
    assert steps.take("second", [], dict) is None
    assert begun == ["first"]
    with pytest.raises(DeadlineError, match="the cell timed out after 0 s"):
        _ = steps.left


@pytest.mark.parametrize(
    ("ended", "output", "message"),
    [
        (Ended(1, 0.1), "{}", "it exited with status 1: first no space left"),
        (Ended(0, 0.1), "", "it exited with status 0 and wrote no report"),
        (Ended(0, 0.1), '{"no": "schema"}', "it exited with status 0 and wrote no report"),
        (Ended(137, 9.9, timed_out=True), "", "the cell timed out after 60 s"),
    ],
)
def test_a_command_without_a_report_is_reported_with_its_last_words(
    tmp_path: Path, ended: Ended, output: str, message: str
) -> None:
    steps = Steps(tmp_path, "a", 60.0)
    steps.file("look", "log").write_text("first\nno space\nleft\n", encoding="utf-8")
    steps.file("look", "out").write_text(output, encoding="utf-8")

    with pytest.raises(SourceError, match=message):
        steps.document("look", ended, (0,))


def test_a_digest_of_files_sees_names_and_contents_of_code(tmp_path: Path) -> None:
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "a.py").write_text("1", encoding="utf-8")
    before = digest_of_files([folder])
    (folder / "a.pyc").write_bytes(b"compiled")
    assert digest_of_files([folder]) == before
    (folder / "b.toml").write_text("", encoding="utf-8")
    assert digest_of_files([folder]) != before


def test_a_lock_goes_into_a_record_and_back() -> None:
    lock = Lock({"torch": ("2.11.0", ("aa", "bb")), "filelock": ("3.0", ("cc",))})

    again = Lock.from_json(json.loads(json.dumps(lock.as_json())))
    assert (again.digest, again.versions) == (lock.digest, {"torch": "2.11.0", "filelock": "3.0"})
    assert lock.requirements() == "filelock==3.0 --hash=sha256:cc\ntorch==2.11.0 --hash=sha256:aa --hash=sha256:bb\n"
    assert Lock({"torch": ("2.11.0", ("aa",))}).digest != lock.digest


def test_trees_that_were_not_used_for_a_month_are_removed(tmp_path: Path) -> None:
    now = time.time()
    for name, age in (("old", UNUSED + 60), ("new", UNUSED - 60)):
        (tmp_path / name / "torch").mkdir(parents=True)
        (tmp_path / f"{name}.pycache").mkdir()
        (tmp_path / f"{name}.lock").touch()
        os.utime(tmp_path / name, (now - age, now - age))

    for name, age in (("new.partial-1", ABANDONED + 60), ("new.partial-2", 0)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (now - age, now - age))

    assert Trees(tmp_path).prune(now) == ("old",)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "new.lock", "new.partial-2", "new.pycache"]
    assert Trees(tmp_path / "nowhere").prune(now) == ()
