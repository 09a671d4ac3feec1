"""Where the packages of a cell are from, for real: torch by specifier, latest and nightly, indexes, folders, limits."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.matrix import CELL, HERE, PYTHON, MatrixWorld, messages, steps_of, torch_wheel
from tests.support.range_server import RangeServer, fail
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder
from wheel_checks.errors import UsageError
from wheelproof.matrix.cell.package_sources import with_urls
from wheelproof.matrix.model import Cell

CPU = "accelerator = 'cpu'"


@pytest.fixture
def index() -> Iterator[RangeServer]:
    """The configured index: torch 2.10.0, 2.11.0 and a release candidate, and a helper in two versions."""
    torches = [torch_wheel("cpu", version=version) for version in ("2.10.0", "2.11.0", "2.12.0rc1")]
    helpers = [WheelBuilder("helper", version, "py3-none-any") for version in ("1.0", "2.0")]
    with RangeServer(simple_index(*torches, *helpers)) as server:
        yield server


@pytest.fixture
def other() -> Iterator[RangeServer]:
    """Another index: a nightly torch, one with a local version, and an older helper."""
    torches = [torch_wheel("cpu", version=version) for version in ("2.11.0+cpu", "2.12.0.dev20261101+cpu")]
    with RangeServer(simple_index(*torches, WheelBuilder("helper", "0.5", "py3-none-any"))) as server:
        yield server


@pytest.fixture
def world(tmp_path: Path, index: RangeServer) -> MatrixWorld:
    return MatrixWorld.create(tmp_path, index)


def host(server: RangeServer) -> str:
    return server.url("").rstrip("/")


def resolved(report: Any) -> dict[str, str]:
    (cell,) = report["subjects"]
    versions: dict[str, str] = cell["facts"]["resolved"]
    return versions


@pytest.mark.parametrize(
    ("torch", "keys", "version"),
    [
        (">=2.10", "", "2.11.0"),
        ("<2.11", "", "2.10.0"),
        ("latest", "", "2.11.0"),
        ("latest", "pre = true", "2.12.0rc1"),
        ("latest", "constraints = ['torch<2.11']", "2.10.0"),
        ("==2.*", "constraints = ['limits.txt']", "2.10.0"),
    ],
)
def test_what_is_requested_of_torch_becomes_a_version(world: MatrixWorld, torch: str, keys: str, version: str) -> None:
    (world.folder / "limits.txt").write_text("# not the latest\ntorch<2.11  # yet\n", encoding="utf-8")
    world.write(f"{CPU}\n{keys}", torch=torch)
    report = world.run()

    (cell,) = report["subjects"]
    assert cell["id"].startswith(f"{HERE}-py{PYTHON}-torch-")
    assert (cell["facts"]["asked"], cell["facts"]["torch"]) == (torch, version)
    assert resolved(report) == {"torch": version}
    assert cell["facts"]["imported"]["build"]["version"] == f"{version}+cpu"


def test_the_latest_torch_is_not_replaced_by_one_that_something_else_requires(
    world: MatrixWorld, index: RangeServer
) -> None:
    old = WheelBuilder("oldie", "1.0", "py3-none-any").metadata(requires=["torch<2.11"])
    index.files.update(simple_index(old, torch_wheel("cpu", version="2.10.0"), torch_wheel("cpu")))
    world.write(f"{CPU}\npackages = ['oldie']", torch="latest")

    ((rule, outcome, message),) = messages(world.run(status=3), CELL.replace("torch2.11.0", "torch-latest"))
    assert (rule, outcome) == ("MTX001", "error")
    assert "oldie" in message
    assert "torch==2.11.0" in message


@pytest.mark.parametrize(
    ("torch", "key", "versions"),
    [
        ("nightly", "index", {"torch": "2.12.0.dev20261101+cpu", "helper": "0.5"}),
        ("nightly", "torch-index", {"torch": "2.12.0.dev20261101+cpu", "helper": "2.0"}),
        ("latest", "torch-index", {"torch": "2.11.0+cpu", "helper": "2.0"}),
        ("2.11.0+cpu", "torch-index", {"torch": "2.11.0+cpu", "helper": "2.0"}),
    ],
)
def test_the_indexes_of_a_cell(
    world: MatrixWorld, other: RangeServer, torch: str, key: str, versions: dict[str, str]
) -> None:
    """``index`` comes first for every package, ``torch-index`` is only for torch."""
    world.write(f"{CPU}\npackages = ['helper']\n{key} = '{other.url('/simple/')}'", torch=torch)
    report = world.run("--trust-index", host(other))

    assert resolved(report) == versions
    assert report["subjects"][0]["facts"]["imported"]["build"]["version"] == versions["torch"]


def test_an_index_that_only_the_matrix_names_is_not_contacted(world: MatrixWorld, other: RangeServer) -> None:
    for key in ("index", "torch-index", "find-links"):
        world.write(f"{CPU}\n{key} = '{other.url('/simple/')}'")
        ((rule, outcome, message),) = messages(world.run(status=3))
        assert (rule, outcome) == ("MTX001", "error")
        assert f"{other.url('/simple/')} (the matrix); only the tree names it, so it was not contacted" in message
    assert other.requests == []


def test_an_index_without_a_nightly_torch_is_reported(world: MatrixWorld, index: RangeServer) -> None:
    world.write(f"{CPU}\nindex = '{index.url('/simple/')}'", torch="nightly")
    ((_, outcome, message),) = messages(world.run(status=3), CELL.replace("torch2.11.0", "torch-nightly"))
    assert (outcome, message) == (
        "error",
        "resolve: no index of the cell has a nightly torch for it; the latest that they have is 2.12.0rc1",
    )


def test_a_server_that_fails_for_a_while_is_queried_again(world: MatrixWorld, index: RangeServer) -> None:
    world.environ["UV_HTTP_RETRIES"] = "0"
    index.behave = (fail(503, times=1),)
    world.write(f"{CPU}\nretries = 2")
    report = world.run()
    assert steps_of(report)["resolve"]["attempts"] == 3  # the page, then the METADATA

    index.behave = (fail(404),)
    ((_, _, message),) = messages(world.run("--fresh", status=3))
    assert message.startswith("resolve: ")
    assert "attempts" not in steps_of(report)["verify"]


def test_a_folder_of_wheels(world: MatrixWorld) -> None:
    (world.folder / "dist").mkdir()
    WheelBuilder("helper", "3.0", "py3-none-any").write(world.folder / "dist")
    world.write(f"{CPU}\npackages = ['helper']\nfind-links = ['dist']")
    assert resolved(world.run()) == {"torch": "2.11.0", "helper": "3.0"}

    WheelBuilder("helper", "3.1", "py3-none-any").write(world.folder / "dist")
    report = world.run()
    assert resolved(report)["helper"] == "3.1"
    assert not steps_of(report)["resolve"]["kept"]


def test_an_index_in_a_folder(world: MatrixWorld) -> None:
    for name, content in simple_index(torch_wheel("cpu", version="2.13.0")).items():
        path = world.folder / "local" / name.lstrip("/")
        path = path / "index.html" if name.endswith("/") else path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.body)
    world.write(f"{CPU}\nindex = 'local/simple'", torch="latest")
    assert resolved(world.run()) == {"torch": "2.13.0"}


def test_a_matrix_of_the_tree_names_no_place(world: MatrixWorld) -> None:
    (world.folder / "ci").mkdir()
    world.write(f"{CPU}\nfind-links = ['dist']\nenv = {{ LD_PRELOAD = '/x.so' }}").rename(
        world.folder / "ci/matrix.toml"
    )
    run = world.command()
    del run[run.index("--matrix") : run.index("--matrix") + 2]
    answer = subprocess.run(run, env=world.environ, cwd=world.folder, capture_output=True, text=True, check=False)

    assert (answer.returncode, answer.stdout) == (2, "")
    assert "ci/matrix.toml runs commands (keys find-links and env), but was found in this folder" in answer.stderr


def test_what_runs_in_a_cell_sees_its_variables(world: MatrixWorld) -> None:
    world.write(
        f"""{CPU}\nenv = {{ MINE = "a b" }}\npackages = ['helper']
command = 'test "$MINE" = "a b" && python -c "import os, torch; assert os.environ[\\"MINE\\"] == \\"a b\\""'"""
    )
    first = steps_of(world.run())
    world.write(f"{CPU}\nenv = {{ MINE = 'c' }}\npackages = ['helper']\ncommand = 'test $MINE = c'")
    second = steps_of(world.run())
    assert not first["import"]["kept"]
    assert not second["import"]["kept"]
    assert second["resolve"]["kept"]


def test_a_step_ends_at_its_timeout(world: MatrixWorld) -> None:
    world.write(f"{CPU}\ntimeout = 5\ncommand = 'echo begun; sleep 600'")
    ((rule, outcome, message),) = messages(world.run(status=3))
    assert (rule, outcome, message) == ("MTX001", "error", "command: the step timed out after 5 s")


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"find_links": ("nothing",)}, "find-links names 'nothing', which does not exist"),
        ({"index": ("./nothing",)}, "index names './nothing', which does not exist"),
        ({"constraints": ("nothing.txt",)}, "nothing.txt cannot be read: No such file"),
        ({"constraints": ("bad.txt",)}, "constraints: bad.txt:1 is not a requirement: 'a b c'"),
    ],
)
def test_a_place_that_is_not_there_is_reported_before_anything_is_installed(
    tmp_path: Path, keys: dict[str, Any], says: str
) -> None:
    (tmp_path / "bad.txt").write_text("a b c\n", encoding="utf-8")
    with pytest.raises(UsageError, match=says):
        with_urls(Cell("c", HERE, PYTHON, "2.11.0", **keys), tmp_path)
