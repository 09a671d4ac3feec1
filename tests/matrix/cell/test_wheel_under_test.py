"""The library under test in a cell, for real: its wheel is installed, its modules import, its command succeeds."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.support.matrix import CELL, HERE, PYTHON, MatrixWorld, messages, steps_of, torch_wheel
from tests.support.range_server import RangeServer
from tests.support.simple_index import simple_index
from tests.support.wheels import WheelBuilder
from wheel_checks.errors import UsageError
from wheelproof.matrix.cell.wheel_under_test import with_requirement
from wheelproof.matrix.inside.import_modules import modules_of
from wheelproof.matrix.inside.run_command import reports_in
from wheelproof.matrix.model import Cell

BROKEN = "raise ImportError('broken on purpose')\n"


@pytest.fixture
def index() -> Iterator[RangeServer]:
    """An index with torch, and with a stranger's project ``mine``."""
    with RangeServer(simple_index(torch_wheel("cpu"), library("", "9.0"))) as server:
        yield server


@pytest.fixture
def world(tmp_path: Path, index: RangeServer) -> MatrixWorld:
    (tmp_path / "dist").mkdir()
    return MatrixWorld.create(tmp_path, index)


def library(code: str, version: str = "1.0") -> WheelBuilder:
    wheel = WheelBuilder("mine", version, "py3-none-any")
    wheel.add("mine/__init__.py", code)
    wheel.add("mine/command.py", "import sys\n\ndef main():\n    print('I am', sys.argv[1:])\n    return 4\n")
    wheel.dist_info_file("entry_points.txt", "[console_scripts]\nmine-tool = mine.command:main\n")
    return wheel


def cpu(*lines: str) -> str:
    return "\n".join(["accelerator = 'cpu'", *lines])


@pytest.mark.parametrize("key", ["wheel = 'dist/*.whl'", "packages = ['mine @ {url}']"])
def test_a_library_whose_import_raises_fails(index: RangeServer, world: MatrixWorld, key: str) -> None:
    wheel = library(BROKEN).write(world.folder / "dist")
    world.write(cpu(key.format(url=wheel.as_uri())))
    report = world.run(status=1)

    ((rule, outcome, message),) = messages(report)
    assert (rule, outcome) == ("MTX107", "fail")
    assert message.startswith("a module cannot be imported: mine: ImportError: broken on purpose")
    assert 'mine/__init__.py", line 1' in message
    assert not [request for request in index.requests if "mine" in request.path]  # the index has another one

    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (cell,) = report["subjects"]
    assert cell["facts"]["tested"] == [{"name": "mine", "version": "1.0", "file": wheel.name, "sha256": digest}]


def test_a_wheel_that_is_built_again_is_what_is_tested(world: MatrixWorld) -> None:
    library(BROKEN).write(world.folder / "dist")
    world.write(cpu("wheel = 'dist/*.whl'"))
    assert [rule for rule, _, _ in messages(world.run(status=1))] == ["MTX107"]

    library("").write(world.folder / "dist")
    report = world.run()
    assert messages(report) == []
    assert list(steps_of(report)) == ["resolve", "verify", "install", "installed", "import", "import-modules"]
    assert report["subjects"][0]["facts"]["modules"] == {"what": ["mine"], "error": ""}
    assert steps_of(world.run())["import-modules"]["kept"]


@pytest.mark.parametrize(
    ("modules", "says"),
    [
        ("['mine', 'mine.nothing']", "mine.nothing: ModuleNotFoundError: No module named 'mine.nothing'"),
        ("['mine.dies']", "exited with status 134: importing mine.dies"),
        ("['mine.leaves']", "mine.leaves: SystemExit: 0"),
    ],
)
def test_the_modules_that_must_import_can_be_named(world: MatrixWorld, modules: str, says: str) -> None:
    wheel = library("")
    wheel.add("mine/dies.py", "import os; os.abort()")
    wheel.add("mine/leaves.py", "raise SystemExit(0)")
    wheel.write(world.folder / "dist")
    world.write(cpu("wheel = 'dist/mine-1.0-py3-none-any.whl'", f"import = {modules}"))

    ((rule, outcome, message),) = messages(world.run(status=1))
    assert (rule, outcome) == ("MTX107", "fail")
    assert message.startswith(f"a module cannot be imported: {says}")


def test_what_a_distribution_offers_to_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel = library("")
    for name in (
        *("single.py", "fast.cpython-311-x86_64-linux-gnu.so", "space/part/__init__.py", "space/part/inner.py"),
        *("space/plain.py", "tests/test_it.py", "share/mine/example.py", "mine/data/x.txt", "mine/sub/__init__.py"),
        *("setup.py", "not-a-module.py", "mine.libs/libx.so"),
    ):
        wheel.add(name, "")
    with zipfile.ZipFile(io.BytesIO(wheel.build())) as archive:
        archive.extractall(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)

    assert modules_of("mine") == ["fast", "mine", "single", "space.part", "space.plain"]
    assert modules_of("not-installed") == []


def test_a_wheel_without_modules_has_proven_nothing(world: MatrixWorld) -> None:
    WheelBuilder("mine", "1.0", "py3-none-any").write(world.folder / "dist")
    world.write(cpu("wheel = 'dist/*.whl'"))
    assert messages(world.run(status=3)) == [
        ("MTX107", "error", "the wheel under test has no module, so nothing was imported")
    ]


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("python -c 'import mine, torch; print(mine.__file__)'", ""),
        ("python {project}/check.py && test ! -e {project}/missing", ""),
        (
            "python {project}/check.py; echo out; echo the reason >&2; exit 7",
            "it exited with status 7\nchecked\nout\nthe reason",
        ),
        ("mine-tool a b", "it exited with status 4\nI am ['a', 'b']"),
        ("kill -9 $$", "it was killed by signal 9"),
        ("no-such-program", "it exited with status 127"),
    ],
)
def test_the_command_of_a_cell(world: MatrixWorld, command: str, says: str) -> None:
    library("").write(world.folder / "dist")
    (world.folder / "check.py").write_text("print('checked', flush=True)\n", encoding="utf-8")
    world.write(cpu("wheel = 'dist/*.whl'", f'command = """{command}"""'))
    report = world.run(status=1 if says else 0)

    assert [(rule, outcome) for rule, outcome, _ in messages(report)] == ([("MTX108", "fail")] if says else [])
    assert all(message.startswith(f"the command failed: {says}") for _, _, message in messages(report))
    assert not steps_of(report)["command"]["kept"]


def test_the_tests_of_the_user_are_part_of_the_report(world: MatrixWorld) -> None:
    """Which failed, where the report is kept, and all of them in the JUnit format."""
    library("").write(world.folder / "dist")
    (world.folder / "report.xml").write_text(
        "<testsuites><testsuite name='mine'><testcase classname='tests.test_it' name='test_good' time='0.5'/>"
        "<testcase classname='tests.test_it' name='test_bad'><failure message='assert 1 == 2'/></testcase>"
        "</testsuite></testsuites>",
        encoding="utf-8",
    )
    keys = ["wheel = 'dist/*.whl'", "command = 'mkdir out; cp {project}/report.xml out; exit 1'", "junit = 'out/*.xml'"]
    world.write(cpu(*keys))
    report = world.run("--also", f"junit={world.folder}/all.xml", status=1)

    assert messages(report) == [
        (
            "MTX108",
            "fail",
            "the command failed: 1 of 2 tests failed: tests.test_it::test_bad; it exited with status 1",
        )
    ]
    (cell,) = report["subjects"]
    (tests,) = cell["facts"]["tests"]
    assert (tests["file"], tests["counts"]) == ("out/report.xml", {"passed": 1, "failed": 1, "error": 0, "skipped": 0})
    assert Path(tests["path"]).read_bytes() == (world.folder / "report.xml").read_bytes()
    (finding,) = [result for result in cell["results"] if result["outcome"] == "fail"]
    assert [(e["label"], e["value"]) for e in finding["evidence"]] == [
        ("tests.test_it::test_bad", "assert 1 == 2"),
        ("JUnit report", tests["path"]),
    ]

    written = ET.parse(world.folder / "all.xml").getroot()
    suite = written.findall("testsuite")[1]
    assert suite.get("name") == f"{cell['id']}: out/report.xml"
    assert [(c.get("classname"), c.get("name"), c.find("failure") is not None) for c in suite.iter("testcase")] == [
        (f"{cell['id']}.tests.test_it", "test_good", False),
        (f"{cell['id']}.tests.test_it", "test_bad", True),
    ]
    assert int(written.get("failures", "")) == 2

    world.write(cpu(*keys).replace("exit 1", "rm -r out"))
    report = world.run(status=3)
    assert messages(report) == [("MTX108", "error", "the command succeeded, but did not write out/*.xml")]
    assert not Path(tests["path"]).exists()  # it was of another run


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("ln -s /etc/passwd r.xml", "r.xml cannot be read: it is not a regular file"),
        ("touch r1.xml && mkdir r.xml", "r.xml cannot be read: it is not a regular file"),
        ("head -c 9000000 /dev/zero > r.xml", "r.xml cannot be read: it is larger than 8 MiB"),
        (
            "echo '<!DOCTYPE x><testsuite/>' > r.xml",
            "r.xml cannot be read: it has a document type, which a JUnit report does not need",
        ),
    ],
)
def test_a_report_that_is_none_proves_nothing(world: MatrixWorld, command: str, says: str) -> None:
    world.write(cpu(f'command = """{command}"""', "junit = 'r.xml'"))
    assert messages(world.run(status=3)) == [("MTX108", "error", f"the command succeeded, but {says}")]


def test_the_reports_of_a_cell_travel_with_its_record(world: MatrixWorld) -> None:
    (world.folder / "r.xml").write_text("<testsuite><testcase name='a'/></testsuite>", encoding="utf-8")
    world.write(cpu("command = 'cp {project}/r.xml .'", "junit = 'r.xml'"))
    (kept,) = world.run("--records", "records")["subjects"][0]["facts"]["tests"]
    report = json.loads((world.folder / "records" / f"{CELL}.json").read_text(encoding="utf-8"))

    (tests,) = report["subjects"][0]["facts"]["tests"]
    assert tests["path"] == f"{CELL}/command-1.xml"
    assert (world.folder / "records" / tests["path"]).read_bytes() == Path(kept["path"]).read_bytes()


def test_all_reports_together_are_bounded(tmp_path: Path) -> None:
    for number in range(70):
        (tmp_path / f"{number:02}.xml").write_bytes(b" " * (8 << 20 if number < 5 else 1))
    reports = reports_in(tmp_path, "*.xml")

    assert [report["file"] for report in reports] == [*(f"{number:02}.xml" for number in range(64)), "*.xml"]
    assert {report["file"]: report["fault"] for report in reports if "fault" in report} == {
        "04.xml": "the reports have more than 32 MiB together",
        **{f"{number:02}.xml": "the reports have more than 32 MiB together" for number in range(5, 64)},
        "*.xml": "70 files match, and 64 are read",
    }


def test_what_a_matrix_runs_holds_only_where_the_user_named_it(world: MatrixWorld) -> None:
    """The default is a file of the tree, which is anybody's."""
    matrix = world.write(cpu("command = 'touch {project}/ran'"))
    (world.folder / "ci").mkdir()
    matrix.rename(world.folder / "ci/matrix.toml")
    run = world.command()
    del run[run.index("--matrix") : run.index("--matrix") + 2]
    answer = subprocess.run(run, env=world.environ, cwd=world.folder, capture_output=True, text=True, check=False)

    assert (answer.returncode, answer.stdout) == (2, "")
    assert "ci/matrix.toml runs commands (keys command), but was found in this folder, not named" in answer.stderr
    assert "wheelproof matrix run --matrix ci/matrix.toml" in answer.stderr
    assert not (world.folder / "ran").exists()

    world.environ["WHEELPROOF_MATRIX"] = "ci/matrix.toml"  # the user's own configuration
    answer = subprocess.run(run, env=world.environ, cwd=world.folder, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert (world.folder / "ran").exists()


def cell(wheel: str, platform: str = HERE) -> Cell:
    return Cell("c", platform, PYTHON, "2.11.0", wheel=wheel)


def test_of_several_wheels_the_one_for_the_cell_is_tested(tmp_path: Path) -> None:
    tag = f"cp{PYTHON.replace('.', '')}"
    for machine in ("x86_64", "aarch64"):
        WheelBuilder("mine", "1.0", f"{tag}-{tag}-manylinux_2_28_{machine}").write(tmp_path)
    WheelBuilder("mine", "1.0", "cp38-cp38-manylinux_2_28_aarch64").write(tmp_path)
    for machine in ("x86_64", "aarch64"):
        file = tmp_path / f"mine-1.0-{tag}-{tag}-manylinux_2_28_{machine}.whl"
        assert with_requirement(cell("*.whl", machine), tmp_path).wheel == f"mine @ {file.as_uri()}"
        assert with_requirement(cell(f"{tmp_path}/*.whl", machine), Path("/")).wheel == f"mine @ {file.as_uri()}"


@pytest.mark.parametrize(
    "text",
    [
        "mine==1.0",
        "mine>=1; python_version > '3'",
        "mine==1.*",
        "mine @ file:///a/mine-1.0-py3-none-any.whl",
        "https://x.example/a/mine-1.0-py3-none-any.whl",
    ],
)
def test_a_requirement_and_a_url_need_no_file(tmp_path: Path, text: str) -> None:
    found = with_requirement(cell(text), tmp_path)
    assert found.under_test == ("mine",)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("none/*.whl", "no file matches wheel = 'none/*.whl'"),
        ("old*.whl", "can be installed"),
        ("*.whl", "means wheels of mine, old"),
        ("https://x.example/a/b.tar.gz", "names no wheel"),
        ("mine 1.0", "is not a requirement"),
    ],
)
def test_a_wheel_that_cannot_be_meant_is_reported_before_anything_is_installed(
    tmp_path: Path, text: str, says: str
) -> None:
    library("").write(tmp_path)
    WheelBuilder("old", "1.0", "cp38-cp38-win_amd64").write(tmp_path)
    with pytest.raises(UsageError, match=says.replace("*", r"\*")):
        with_requirement(cell(text), tmp_path)
