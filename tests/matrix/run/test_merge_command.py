"""Cells that ran apart, put together: the report of `matrix merge` equals one machine's, except times."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.matrix import CELL, HERE, OTHER, PYTHON, MatrixWorld, messages, steps_of, torch_wheel, without_times
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index

CPU = "accelerator = 'cpu'"
AXES = f'[axes]\nplatform = ["{HERE}"]\npython = ["{PYTHON}"]\ntorch = ["2.11.0"]\n'
ONE, TWO = f"{CELL}-one", f"{CELL}-two"


@pytest.fixture
def index() -> Iterator[RangeServer]:
    with RangeServer(dict(simple_index(torch_wheel("cpu")))) as server:
        yield server


@pytest.fixture
def world(tmp_path: Path, index: RangeServer) -> MatrixWorld:
    world = MatrixWorld.create(tmp_path, index)
    write(world)
    return world


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MatrixWorld, Any]]:
    """A machine that has run the three cells and written their records, and its report."""
    with RangeServer(dict(simple_index(torch_wheel("cpu")))) as server:
        world = MatrixWorld.create(tmp_path_factory.mktemp("ran"), server)
        write(world)
        yield world, world.run("--records", "records")


@pytest.fixture
def done(tmp_path: Path, ran: tuple[MatrixWorld, Any]) -> MatrixWorld:
    """Its records on another machine, which has the matrix and nothing else."""
    folder = tmp_path / "elsewhere"
    shutil.copytree(ran[0].folder / "records", folder / "records")
    write(MatrixWorld(folder, {}))
    return MatrixWorld(folder, ran[0].environ | {"WHEELPROOF_CACHE_DIR": str(folder / ".cache")})


def write(world: MatrixWorld, more: str = "") -> None:
    """A matrix of three cells on this host."""
    included = "".join(
        f'[[include]]\nplatform = "{HERE}"\npython = "{PYTHON}"\ntorch = "2.11.0"\nname = "{name}"\n'
        for name in ("one", "two")
    )
    text = f"{AXES}\n[cell]\n{CPU}\n{more}\n{included}"
    (world.folder / "matrix.toml").write_text(text, encoding="utf-8")


def command(world: MatrixWorld, *arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "wheelproof", *arguments],
        env=world.environ,
        cwd=world.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr + done.stdout
    return done


def merged(world: MatrixWorld, *arguments: str, status: int = 0) -> Any:
    options = ("--matrix", str(world.folder / "matrix.toml"), "--select", "MTX", "--format", "json")
    return json.loads(command(world, "matrix", "merge", *arguments, *options, status=status).stdout)


def cells_of(report: Any) -> list[tuple[str, str]]:
    return [(subject["id"], subject["verdict"]) for subject in report["subjects"]]


def kept_cells(report: Any) -> set[str]:
    steps = {subject["id"]: subject["facts"]["steps"] for subject in report["subjects"]}
    return {cell for cell, told in steps.items() if all(step["kept"] for step in told)}


def change_record(world: MatrixWorld, change: Any, cell: str = ONE) -> None:
    path = world.folder / "records" / f"{cell}.json"
    document = json.loads(path.read_text())
    change(document["subjects"][0])
    path.write_text(json.dumps(document))


def test_cells_that_ran_apart_give_the_report_of_one_machine(world: MatrixWorld) -> None:
    whole = world.run("--work", "alone")
    for cell in (TWO, CELL, ONE):
        world.run("--cell", cell, "--records", "records")

    apart = merged(world, "records")
    assert without_times(apart) == without_times(whole)
    assert cells_of(apart) == [(CELL, "pass"), (ONE, "pass"), (TWO, "pass")]
    by_report = json.loads(command(world, "report", "merge", "records", "--select", "MTX", "--format", "json").stdout)
    assert without_times(by_report) == without_times(whole)


def test_a_merged_report_can_be_merged_again(done: MatrixWorld, ran: tuple[MatrixWorld, Any]) -> None:
    (done.folder / "whole.json").write_text(json.dumps(ran[1]))
    first = merged(done, "whole.json")
    (done.folder / "first.json").write_text(json.dumps(first))
    again = merged(done, "first.json", "records", f"records/{ONE}.json")

    assert without_times(again) == without_times(first)
    assert "replaced" not in json.dumps(again)


def test_the_cell_of_a_document_runs_on_a_machine_without_the_matrix(done: MatrixWorld) -> None:
    cells = command(done, "matrix", "list", "--matrix", "matrix.toml", "--format", "json").stdout
    (done.folder / "cells.json").write_text(cells)
    one = merged(done, "records", "--only", ONE)
    (done.folder / "matrix.toml").unlink()
    there = done.run("--matrix", "cells.json", "--cell", ONE)

    assert without_times(there, "cells.json") == without_times(one, str(done.folder / "matrix.toml"))


def test_a_cell_that_did_not_report_is_undecided_and_named(done: MatrixWorld) -> None:
    for name in (ONE, TWO):
        (done.folder / "records" / f"{name}.json").unlink()
    report = merged(done, "records", status=3)

    assert cells_of(report) == [(CELL, "pass"), (ONE, "undecided"), (TWO, "undecided")]
    assert messages(report, ONE) == [("MTX001", "error", "report: no report found for this cell")]
    (result,) = [r for r in report["subjects"][1]["results"] if r["outcome"] == "error"]
    assert result["fix"]["summary"] == f"wheelproof matrix run --cell {ONE}, and merge again"
    assert cells_of(merged(done, "records", "--only", CELL)) == [(CELL, "pass")]
    (done.folder / "nothing").mkdir()
    assert [verdict for _, verdict in cells_of(merged(done, "nothing", status=3))] == ["undecided"] * 3
    alone = json.loads(command(done, "report", "merge", "records", "--format", "json", status=3).stdout)
    assert [cell for cell, verdict in cells_of(alone) if verdict == "undecided"] == [ONE, TWO]


def test_a_report_of_another_version_of_the_matrix_is_refused(done: MatrixWorld) -> None:
    write(done, "glibc = '2.34'")
    refused = command(done, "matrix", "merge", "records", "--matrix", "matrix.toml", status=2)

    assert f"records/{CELL}.json cannot be merged: {ONE}, {TWO}, {CELL} were run for " in refused.stderr
    assert "which is not the current matrix.toml (digest " in refused.stderr
    change_record(done, lambda subject: subject["record"]["matrix"].update(digest="f" * 64))
    assert "cannot be merged" in command(done, "report", "merge", "records", status=2).stderr


def test_another_runner_is_no_other_matrix(done: MatrixWorld) -> None:
    write(done, "runner = ['mine']")

    assert cells_of(merged(done, "records")) == [(CELL, "pass"), (ONE, "pass"), (TWO, "pass")]


def test_of_a_cell_that_was_reported_twice_the_newer_report_counts(done: MatrixWorld, index: RangeServer) -> None:
    index.files.update(simple_index(torch_wheel("cuda")))
    other = MatrixWorld(done.folder, done.environ | {"UV_DEFAULT_INDEX": index.url("/simple/")})
    other.run("--cell", ONE, "--records", "b", status=1)

    for folders in (("records", "b"), ("b", "records")):
        report = merged(done, *folders, status=1)
        assert cells_of(report) == [(CELL, "pass"), (ONE, "fail"), (TWO, "pass")]
        (told,) = report["subjects"][1]["facts"]["replaced"]
        assert f"(b/{ONE}.json) counts, and not what ended at " in told
        assert told.endswith(f"(records/{ONE}.json)")
    text = command(done, "matrix", "merge", "records", "b", "--matrix", "matrix.toml", "--select", "MTX", status=1)
    assert f"{ONE}: it was reported twice" in text.stdout


def test_a_report_that_cannot_be_read_leaves_the_merge_undecided(done: MatrixWorld) -> None:
    path = done.folder / "records" / f"{ONE}.json"
    shutil.copy(path, done.folder / "records" / "another.json")
    path.write_bytes(path.read_bytes()[:500])
    report = merged(done, "records", status=3)

    assert [verdict for _, verdict in cells_of(report)] == ["pass", "pass", "pass", "undecided"]
    assert report["subjects"][-1]["id"] == f"records/{ONE}.json"


@pytest.mark.parametrize(
    "change",
    [
        lambda subject: subject["record"].pop("cell"),
        lambda subject: subject["record"]["cell"].update({"a-key-of-the-future": 1}),
        lambda subject: subject["record"]["cell"].update(id="../../etc"),
        lambda subject: subject["record"].update(schema="wheelproof.matrix-record/9"),
        lambda subject: subject["record"]["steps"][0].update(result={"packages": 7}),
        lambda subject: subject["record"]["steps"][-1].update(result={}),
    ],
)
def test_a_record_that_no_release_wrote_is_reported_in_a_sentence(done: MatrixWorld, change: Any) -> None:
    change_record(done, change)
    answer = command(done, "matrix", "merge", "records", "--matrix", "matrix.toml", status=3)

    assert "internal error" not in answer.stderr
    assert f"{ONE}.json" in answer.stdout


def test_a_run_goes_on_where_others_stopped(done: MatrixWorld, ran: tuple[MatrixWorld, Any]) -> None:
    (done.folder / "records" / f"{TWO}.json").unlink()
    resumed = done.run("--records", "records")

    assert kept_cells(resumed) == {CELL, ONE}
    assert without_times(resumed, str(done.folder)) == without_times(ran[1], str(ran[0].folder))
    assert without_times(merged(done, "records"), str(done.folder)) == without_times(ran[1], str(ran[0].folder))
    assert kept_cells(done.run("--records", "records", "--work", "w")) == {CELL, ONE, TWO}
    assert kept_cells(done.run("--records", "other", "--cell", ONE, "--fresh")) == set()
    assert [path.name for path in (done.folder / "other").glob("*.json")] == [f"{ONE}.json"]


def changed_cell(world: MatrixWorld, _: RangeServer) -> None:
    write(world, "glibc = '2.34'")


def changed_index(_: MatrixWorld, index: RangeServer) -> None:
    index.files.update(simple_index(torch_wheel("cpu", "a = 1")))


def undecided(world: MatrixWorld, _: RangeServer) -> None:
    change_record(world, lambda subject: subject["results"][0].update(outcome="error"))


@pytest.mark.parametrize("change", [changed_cell, changed_index, undecided])
def test_a_cell_whose_inputs_changed_is_run_again(done: MatrixWorld, index: RangeServer, change: Any) -> None:
    world = MatrixWorld(done.folder, done.environ | {"UV_DEFAULT_INDEX": index.url("/simple/")})
    change(world, index)

    assert kept_cells(world.run("--records", "records", "--cell", ONE)) == set()


def test_a_command_is_kept_while_the_project_is_the_same(world: MatrixWorld, tmp_path: Path) -> None:
    caches = {"WHEELPROOF_CACHE_DIR": ".cache", "UV_CACHE_DIR": ".uv", "TMPDIR": ".tmp"}
    (tmp_path / ".tmp").mkdir()
    project = MatrixWorld(tmp_path, world.environ | {name: str(tmp_path / place) for name, place in caches.items()})
    write(project, "command = 'sh {project}/test.sh'")
    test, arguments = tmp_path / "test.sh", ("--cell", CELL, "--records", "records")
    test.write_text("exit 0")
    project.run(*arguments)
    assert kept_cells(project.run(*arguments, "--work", ".w")) == {CELL}

    test.write_text("exit 1")
    assert [rule for rule, _, _ in messages(project.run(*arguments, status=1))] == ["MTX108"]
    assert kept_cells(project.run(*arguments, "--work", ".w", status=1)) == {CELL}  # it is decided: it failed


def test_what_cannot_be_resolved_elsewhere_spoils_no_record(done: MatrixWorld, index: RangeServer) -> None:
    path, before = done.folder / "records" / f"{ONE}.json", (done.folder / "records" / f"{ONE}.json").read_bytes()
    index.files.clear()
    world = MatrixWorld(done.folder, done.environ | {"UV_DEFAULT_INDEX": index.url("/simple/")})
    report = world.run("--cell", ONE, "--records", "records", status=3)

    assert [rule for rule, _, _ in messages(report, ONE)] == ["MTX001"]
    assert path.read_bytes() == before


def test_logs_travel_with_the_records(world: MatrixWorld) -> None:
    write(world, "command = 'echo in the log >&2; exit 1'")
    world.run("--cell", CELL, "--records", "records", status=1)
    (world.folder / "records").rename(world.folder / "moved")
    report = merged(world, "moved", "--only", CELL, status=1)

    log = steps_of(report)["command"]["log"]
    assert log == f"moved/{CELL}/command.log"
    assert "in the log" in (world.folder / log).read_text()


def test_an_id_that_no_cell_has(world: MatrixWorld) -> None:
    done = command(world, "matrix", "run", "--matrix", "matrix.toml", "--cell", f"{CELL}-on", status=2)

    assert f"matrix.toml has no cell {CELL}-on" in done.stderr
    assert f"did you mean {ONE}?" in done.stderr


def test_two_machines_share_a_cache_at_the_same_time(world: MatrixWorld) -> None:
    commands = [world.command("--cell", cell, "--records", "records") for cell in (CELL, ONE)]
    running = [
        subprocess.Popen(each, env=world.environ, cwd=world.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for each in commands
    ]
    ends = [(process.communicate()[1], process.returncode) for process in running]
    assert [status for _, status in ends] == [0, 0], ends


def test_a_cell_for_another_machine_is_kept_from_its_record(world: MatrixWorld, index: RangeServer) -> None:
    """It was run where it can run; here, where it cannot, its record is enough."""
    index.files.update(simple_index(torch_wheel("cpu"), torch_wheel("cpu", machine=OTHER)))
    other = f"{OTHER}-py{PYTHON}-torch2.11.0"
    world.write(CPU, platforms=f'"{HERE}", "{OTHER}"')
    path = world.folder / "records" / f"{other}.json"
    world.run("--records", "records", status=3)
    here = json.loads((world.folder / "records" / f"{CELL}.json").read_text())["subjects"][0]
    document = json.loads(path.read_text())
    steps = document["subjects"][0]["record"]["steps"]
    steps[-1] = {**here["record"]["steps"][-1]}  # as the other machine would have written it
    steps[-1]["result"] = json.loads(json.dumps(steps[-1]["result"]).replace(HERE, OTHER))
    document["subjects"][0]["results"] = []
    path.write_text(json.dumps(document))
    report = world.run("--records", "records")

    assert cells_of(report) == [(CELL, "pass"), (other, "pass")]
    assert kept_cells(report) == {CELL, other}
