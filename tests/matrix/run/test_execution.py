"""``matrix run`` for real on this host: uv installs a small torch, which is imported in an environment."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.matrix import CELL, HERE, OTHER, PYTHON, MatrixWorld, messages, steps_of, torch_wheel
from tests.support.patience import PATIENCE, in_time, wait_until
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index

CPU = "accelerator = 'cpu'"
KNOWN_CPU = "expect = { accelerator = 'cpu', reason = 'the index has no other' }"


@pytest.fixture
def index() -> Iterator[RangeServer]:
    with RangeServer({}) as server:
        yield server


@pytest.fixture
def world(tmp_path: Path, index: RangeServer) -> MatrixWorld:
    return MatrixWorld.create(tmp_path, index)


def test_a_cell_completes_every_step_and_a_second_run_keeps_it(index: RangeServer, world: MatrixWorld) -> None:
    index.files.update(simple_index(torch_wheel("cuda")))
    world.write()
    report = world.run()

    (cell,) = report["subjects"]
    assert (cell["id"], cell["verdict"], cell["headline"]) == (
        CELL,
        "pass",
        f"CUDA 13.0 (2.11.0+cu130), imported on {HERE}",
    )
    assert cell["facts"]["resolved"] == {"torch": "2.11.0"}
    assert cell["facts"]["imported"]["gpu_code"] == ["sm_80", "sm_90", "sm_100"]
    first = steps_of(report)
    assert list(first) == ["resolve", "verify", "install", "installed", "import"]
    assert not any(step["kept"] for step in first.values())

    requests = len(index.requests)
    second = steps_of(world.run())
    assert [name for name, step in second.items() if not step["kept"]] == ["install"]
    assert {name: step["started"] for name, step in second.items() if step["kept"]} == {
        name: step["started"] for name, step in first.items() if name != "install"
    }
    assert len(index.requests) == requests

    fresh = steps_of(world.run("--fresh"))
    assert not any(step["kept"] for step in fresh.values())


def test_the_index_is_queried_again_for_another_platform_and_after_an_hour(
    index: RangeServer, world: MatrixWorld
) -> None:
    index.files.update(simple_index(torch_wheel("cuda")))
    world.write()
    world.run("--work", "w")
    world.write("[[override]]\nselect = '*'\nglibc = '2.34'")  # for which the lock is the same
    again = steps_of(world.run("--work", "w"))
    assert [name for name, step in again.items() if not step["kept"]] == ["resolve", "verify", "install"]

    for record in (world.folder / "w" / CELL).glob("*.json"):
        told = json.loads(record.read_text(encoding="utf-8"))
        record.write_text(json.dumps({**told, "started": "2026-01-01T00:00:00Z"}), encoding="utf-8")
    later = steps_of(world.run("--work", "w"))
    assert [name for name, step in later.items() if not step["kept"]] == ["resolve", "verify", "install"]


def test_a_cpu_build_where_cuda_is_wanted_fails(index: RangeServer, world: MatrixWorld) -> None:
    index.files.update(simple_index(torch_wheel("cpu")))
    world.write()

    assert messages(world.run(status=1)) == [
        ("MTX101", "fail", "torch 2.11.0 is CPU only (2.11.0+cpu); the cell expects cuda")
    ]


def test_a_cpu_build_where_cuda_is_wanted_is_one_finding(index: RangeServer, world: MatrixWorld) -> None:
    """It has no code for the GPU, and brings no triton that could compile kernels: both follow from its build."""
    index.files.update(simple_index(torch_wheel("cpu")))
    world.write("gpu = ['GB200']\nsmoke = ['compile']\ncommand = 'false'")
    report = world.run("--select", "MTX,WHL6", status=1)

    assert [(rule, outcome) for rule, outcome, _ in messages(report)] == [("MTX101", "fail")]
    assert list(steps_of(report)) == ["resolve", "verify", "install", "installed", "import"]
    (finding,) = [result for result in report["subjects"][0]["results"] if result["outcome"] == "fail"]
    assert finding["fix"]["commands"] == [
        f"wheelproof verify torch==2.11.0 --platform {HERE} --python {PYTHON} --expect cuda"
    ]


def test_a_build_that_no_rule_judges_does_not_end_the_cell(index: RangeServer, world: MatrixWorld) -> None:
    index.files.update(simple_index(torch_wheel("cpu")))
    world.write("command = 'false'")
    report = world.run("--ignore", "MTX101", status=1)

    assert [(rule, outcome) for rule, outcome, _ in messages(report)] == [("MTX108", "fail")]


def test_what_is_known_passes_until_the_world_changes(index: RangeServer, world: MatrixWorld) -> None:
    index.files.update(simple_index(torch_wheel("cpu")))
    world.write(KNOWN_CPU)
    ((rule, outcome, message),) = messages(world.run())
    assert (rule, outcome) == ("MTX101", "fail")  # a note
    assert message.endswith(f"(declared in {world.folder}/matrix.toml: the index has no other)")

    index.files.update(simple_index(torch_wheel("cuda")))
    ((rule, outcome, message),) = messages(world.run("--fresh", status=1))
    assert (rule, outcome) == ("MTX102", "fail")
    assert message.startswith("`expect` is out of date: torch 2.11.0 is CUDA 13.0 (2.11.0+cu130), but ")
    assert message.endswith("matrix.toml expects cpu")


@pytest.mark.parametrize(
    ("then", "says"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("os.abort()", "the import exited with status 134"),
        ("raise SystemExit('no')", "SystemExit: no"),
    ],
)
def test_a_torch_that_cannot_be_imported_fails(index: RangeServer, world: MatrixWorld, then: str, says: str) -> None:
    index.files.update(simple_index(torch_wheel("cpu", then)))
    world.write(CPU)

    ((rule, outcome, message),) = messages(world.run(status=1))
    assert (rule, outcome) == ("MTX103", "fail")
    assert message.startswith(f"torch cannot be imported: {says}")


def test_another_build_than_the_wheel_shows_is_found_by_the_import(index: RangeServer, world: MatrixWorld) -> None:
    index.files.update(simple_index(torch_wheel("cuda", "version.cuda = None; __version__ = '2.11.0+cpu'")))
    world.write(CPU)

    assert messages(world.run(status=1)) == [
        ("MTX103", "fail", "accelerator: the cell expects cuda 13.0, but the import reports cpu"),
        ("MTX103", "fail", "torch: the cell expects 2.11.0+cu130, but the import reports 2.11.0+cpu"),
    ]


def test_a_cell_for_another_machine_is_judged_and_nothing_of_it_is_installed(
    index: RangeServer, world: MatrixWorld
) -> None:
    other, there = f"{OTHER}-py{PYTHON}-torch2.11.0", torch_wheel("cuda", machine=OTHER)
    index.files.update(simple_index(torch_wheel("cuda"), there))
    world.write(platforms=f'"{HERE}", "{OTHER}"')
    answer = subprocess.run(
        world.command("--jobs", "1"), env=world.environ, cwd=world.folder, capture_output=True, text=True, check=False
    )
    report = json.loads(answer.stdout)

    assert answer.returncode == 3
    assert messages(report) == []
    assert messages(report, other) == [
        ("MTX001", "error", f"preflight: the cell is for {OTHER}, but this host is {HERE}")
    ]
    assert list(steps_of(report, other)) == ["resolve", "verify", "preflight"]
    assert list(steps_of(report)) == ["resolve", "verify", "install", "installed", "import"]
    assert "note: 1 of 2 cells cannot run here and are skipped" in answer.stderr
    assert f"note: {other}: the cell is for {OTHER}, but this host is {HERE} (--executor docker)" in answer.stderr


def test_what_kernels_need_is_missed_before_anything_is_installed(index: RangeServer, world: MatrixWorld) -> None:
    index.files.update(simple_index(torch_wheel("cuda")))
    world.write("gpu = ['GB200']\nsmoke = ['compile', 'interpret']")
    report = world.run(status=3)

    assert messages(report) == [
        ("MTX001", "error", "preflight: the kernels need triton and numpy, which no installed package requires")
    ]
    assert list(steps_of(report)) == ["resolve", "verify", "preflight"]
    (finding,) = [result for result in report["subjects"][0]["results"] if result["outcome"] == "error"]
    assert finding["fix"]["summary"] == (
        'add it to the cell, in a version that fits torch: packages = ["triton", "numpy"]'
    )


def test_when_no_cell_can_run_here_that_is_reported_at_once(index: RangeServer, world: MatrixWorld) -> None:
    world.write(platforms=f'"{OTHER}"')
    answer = subprocess.run(
        world.command(), env=world.environ, cwd=world.folder, capture_output=True, text=True, check=False
    )

    assert (answer.returncode, answer.stdout) == (3, "")
    assert f"no cell can run here: the cell is for {OTHER}, but this host is {HERE}" in answer.stderr
    assert "hint: --executor docker" in answer.stderr
    assert index.requests == []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda cell: cell.touch(), f"the folder w/{CELL} cannot be made: File exists"),
        (lambda cell: (cell / "worker.log").mkdir(parents=True), f"the process of {CELL} cannot be started: "),
    ],
)
def test_a_work_folder_in_which_something_else_lies(
    world: MatrixWorld, make: Callable[[Path], object], message: str
) -> None:
    world.write()
    (world.folder / "w").mkdir()
    make(world.folder / "w" / CELL)
    command = world.command("--work", "w")
    answer = subprocess.run(command, env=world.environ, cwd=world.folder, capture_output=True, text=True, check=False)

    assert (answer.returncode, answer.stdout) == (3, "")
    assert f"wheelproof: error: {message}" in answer.stderr


def test_what_cannot_be_resolved_is_undecided_and_is_tried_again(index: RangeServer, world: MatrixWorld) -> None:
    world.write()
    report = world.run(status=3)
    assert [(rule, outcome) for rule, outcome, _ in messages(report)] == [("MTX001", "error")]
    assert list(steps_of(report)) == ["resolve"]

    index.files.update(simple_index(torch_wheel("cuda")))
    assert list(steps_of(world.run())) == ["resolve", "verify", "install", "installed", "import"]


def test_a_cell_ends_at_its_deadline_and_nothing_of_it_is_left(
    index: RangeServer, world: MatrixWorld, tmp_path: Path
) -> None:
    index.files.update(simple_index(torch_wheel("cpu", hanging(tmp_path))))

    def run(seconds: float) -> str:
        world.write(f"{CPU}\ndeadline = {seconds:g}")
        ((rule, outcome, message),) = messages(world.run(status=3))
        assert (rule, outcome) == ("MTX001", "error")
        return message.replace(f"{seconds:g} s", "N s")

    message = in_time(run, lambda _: (tmp_path / "hangs").exists(), deadline=4)
    assert message == "import: the cell timed out after N s"
    assert not list((tmp_path / "tmp").iterdir())
    assert not alive(tmp_path)


def hanging(folder: Path) -> str:
    """A torch that writes down its process and never comes back, the first time."""
    path, new = str(folder / "hangs"), str(folder / "hangs.new")
    told = f"open({new!r}, 'w').write(str(os.getpid())); os.rename({new!r}, {path!r}); time.sleep(9e9)"
    return f"if not os.path.exists({path!r}): {told}"


def alive(folder: Path) -> bool:
    return Path("/proc", (folder / "hangs").read_text(encoding="ascii")).exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_leaves_nothing_and_the_next_one_resumes(
    index: RangeServer, world: MatrixWorld, tmp_path: Path, number: signal.Signals
) -> None:
    index.files.update(simple_index(torch_wheel("cpu", hanging(tmp_path))))
    world.write(f"{CPU}\ndeadline = {PATIENCE + 60}")
    with subprocess.Popen(
        world.command(), env=world.environ, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        wait_until((tmp_path / "hangs").exists)
        run.send_signal(number)
        output, errors = run.communicate(timeout=PATIENCE)

    assert output == b""
    if number is signal.SIGKILL:
        wait_until(lambda: not alive(tmp_path))
    else:
        assert run.returncode == 130
        assert errors.splitlines()[-1] == b"wheelproof: interrupted"
        assert not alive(tmp_path)
    steps = steps_of(world.run())
    assert [name for name, step in steps.items() if not step["kept"]] == ["install", "import"]
    assert not list((tmp_path / "tmp").iterdir())


def test_two_runs_in_one_work_folder_do_not_mix(index: RangeServer, world: MatrixWorld, tmp_path: Path) -> None:
    index.files.update(simple_index(torch_wheel("cpu", hanging(tmp_path))))
    world.write(f"{CPU}\ndeadline = {PATIENCE + 60}")
    with subprocess.Popen(world.command("--work", "w"), env=world.environ, cwd=tmp_path) as first:
        wait_until((tmp_path / "hangs").exists)
        second = subprocess.run(
            world.command("--work", "w"), env=world.environ, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        first.send_signal(signal.SIGINT)

    assert second.returncode == 3
    assert f"another run uses the work folder w (process {first.pid})" in second.stderr


def test_a_process_of_a_cell_that_dies_is_undecided(index: RangeServer, world: MatrixWorld, tmp_path: Path) -> None:
    kill_worker = "os.kill(int(open(f'/proc/{os.getppid()}/stat').read().split()[0]), 9); time.sleep(60)"
    index.files.update(simple_index(torch_wheel("cpu", kill_worker)))
    world.write(CPU)

    assert messages(world.run(status=3)) == [("MTX001", "error", "process: its process was killed by signal 9")]
