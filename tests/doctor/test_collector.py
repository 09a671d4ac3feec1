"""The collector runs where wheelproof cannot: what its facts give is what the doctor says on the machine itself."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wheelproof
from tests.support.patience import wait_until
from tests.support.patients import NCCL, TORCH, Patient, nccl_wheel, torch_wheel
from tests.support.pythons import other_pythons
from wheelproof.doctor.collector.older_syntax import OLDEST
from wheelproof.doctor.collector.program import collector_program
from wheelproof.testing.stub_driver import build, variables

HERE = sys.version_info[:2]
PYTHONS = {HERE: sys.executable} | {version: path for version, path in other_pythons().items() if version >= OLDEST}
OTHERS = [version for version in PYTHONS if version in {min(PYTHONS), (3, 8), (3, 12), HERE}]
ENDS = list(dict.fromkeys((min(PYTHONS), max(PYTHONS))))  # for what takes longer
NEWER_SYNTAX = (ast.NamedExpr, ast.JoinedStr, ast.Match, ast.TryStar, ast.AsyncFunctionDef)

Break = Callable[[Patient], object]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("collector") / "collect.py"
    path.write_text(collector_program(), encoding="utf-8")
    return path


def carried(program: Path) -> Mapping[str, str]:
    """The files that the collector writes when it starts."""
    spec = importlib.util.spec_from_file_location("collect", program)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    files: dict[str, str] = module.FILES
    return files


def collect(
    program: Path, version: tuple[int, int], *arguments: str, environment: Mapping[str, str] | None = None
) -> str:
    """What the collector prints under this Python."""
    environment = dict(environment or os.environ)
    environment.pop("COVERAGE_PROCESS_START", None)
    run = subprocess.run(
        [PYTHONS[version], program, *arguments], capture_output=True, text=True, check=False, env=environment
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def diagnosed(wheelproof: Wheelproof, *arguments: str) -> dict[str, Any]:
    """The exit code, and what the report says of causes."""
    run = wheelproof("doctor", "--format", "json", *arguments)
    report = json.loads(run.out)
    (host,) = report["subjects"]
    names = ("root", "confidence", "consequences", "others", "unexplained", "harmless")
    fixes = {one["rule"]: one.get("fix") for one in host["results"] if one["outcome"] == "fail"}
    return {"status": run.status, "fixes": fixes, **{name: host["facts"][name] for name in names}}


def test_everything_is_in_the_syntax_of_the_oldest_python(program: Path) -> None:
    texts = {"collect.py": program.read_text(encoding="utf-8"), **carried(program)}
    for name, text in texts.items():
        if name.endswith(".py"):
            tree = ast.parse(text, name, feature_version=OLDEST)
            assert [node for node in ast.walk(tree) if isinstance(node, NEWER_SYNTAX)] == [], name


def test_nothing_is_imported_that_is_not_carried_or_standard(program: Path) -> None:
    files = carried(program)
    tops = {name.partition("/")[0].removesuffix(".py") for name in files} | sys.stdlib_module_names
    lazily = {"urllib3", "truststore"}  # of what reaches for an index, which is not called
    lazily |= {"torch", "triton"}  # of what is tried in a process of the other interpreter
    for name, text in files.items():
        for node in ast.walk(ast.parse(text)) if name.endswith(".py") else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert {one.partition(".")[0] for one in names} <= tops | lazily, name


def test_no_connection_is_made_and_nothing_is_left(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    watcher = (
        "import runpy, sys\n"
        "seen = []\n"
        "sys.addaudithook(lambda event, _: seen.append(event) if event.startswith(('socket.', 'urllib')) else None)\n"
        "sys.argv[0] = sys.argv[1]; del sys.argv[1]\n"
        "try:\n    runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit as end:\n    assert not end.code, end.code\n"
        "assert not seen, seen\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", watcher, program, "--python", sys.executable],
        capture_output=True,
        text=True,
        check=False,
    )

    assert run.returncode == 0, run.stderr
    assert list(tmp_path.iterdir()) == []


BROKEN: dict[str, Break] = {
    "nothing": lambda one: None,
    "a library is missing": lambda one: one.installed.remove(NCCL),
    "torch is gone": lambda one: one.installed.remove("torch/__init__.py"),
    "a start that hides the GPUs": lambda one: Path(one.installed.site_packages, "sitecustomize.py").write_text(
        "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\n"
    ),
    "an edited file": lambda one: Path(one.installed.site_packages, "torch/__init__.py").write_text(
        f"{TORCH}\nraise RuntimeError('edited')\n"
    ),
    "the interpreter leads to nothing": lambda one: relink(Path(one.python)),
    "a library is cut off": lambda one: Path(one.installed.site_packages, "torch/lib/libtorch_cpu.so").write_bytes(
        b"\x7fELF"
    ),
}


def relink(path: Path) -> None:
    path.unlink()
    path.symlink_to("/nowhere/python3")


@pytest.mark.parametrize("name", BROKEN)
def test_the_same_causes_as_the_doctor_there(wheelproof: Wheelproof, program: Path, tmp_path: Path, name: str) -> None:
    patient = Patient.make(tmp_path / "venv", torch_wheel(), nccl_wheel())
    BROKEN[name](patient)
    there = diagnosed(wheelproof, "--python", str(patient.folder))
    facts = tmp_path / "facts.json"
    for version in ENDS:
        facts.write_text(collect(program, version, "--python", str(patient.folder)))
        assert "unread" not in json.loads(facts.read_text())
        assert (version, diagnosed(wheelproof, "--facts", str(facts))) == (version, there)


def test_a_bare_machine(wheelproof: Wheelproof, program: Path, tmp_path: Path) -> None:
    there = diagnosed(wheelproof, "--python", sys.executable)
    facts = tmp_path / "facts.json"
    for version in OTHERS:
        facts.write_text(collect(program, version, "--python", sys.executable))
        assert (version, diagnosed(wheelproof, "--facts", str(facts))) == (version, there)


@pytest.mark.skipif((3, 6) not in PYTHONS, reason="needs Python 3.6")
def test_a_python_that_is_too_old_for_torch(wheelproof: Wheelproof, program: Path, tmp_path: Path) -> None:
    """As on RHEL 8, whose own Python runs the collector and is inspected, too."""
    facts, python = tmp_path / "facts.json", PYTHONS[3, 6]
    facts.write_text(collect(program, (3, 6), "--python", python))
    there = diagnosed(wheelproof, "--python", python)

    assert "DOC200" in there["fixes"]
    assert diagnosed(wheelproof, "--facts", str(facts)) == there


@pytest.mark.parametrize("version", OTHERS, ids=str)
def test_a_gpu_that_computes_is_proven_by_the_trial_alone(
    wheelproof: Wheelproof, program: Path, tmp_path: Path, version: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    patient = Patient.make(tmp_path / "venv")
    environment = variables(build(tmp_path / "driver"))
    monkeypatch.setattr(os, "environ", environment)
    tried, untried = tmp_path / "tried.json", tmp_path / "untried.json"
    tried.write_text(collect(program, version, "--python", patient.python, environment=environment))
    untried.write_text(collect(program, version, "--no-trial", "--python", patient.python, environment=environment))

    assert diagnosed(wheelproof, "--facts", str(tried)) == diagnosed(wheelproof, "--python", patient.python)
    assert wheelproof("doctor", "--facts", str(tried)).status == 0
    run = wheelproof("doctor", "--facts", str(untried))
    assert run.status == 3
    assert "torch was not tried: --no-trial was given" in run.out


def test_nothing_next_to_it_and_nothing_imported_before_is_meant(program: Path, tmp_path: Path) -> None:
    """A random.py in its folder, and an old packaging that a start-up file has imported."""
    (tmp_path / "collect.py").write_text(program.read_text(encoding="utf-8"), encoding="utf-8")
    for name in ("random.py", "packaging.py"):
        (tmp_path / name).write_text("raise SystemExit('mine')\n")
    start = tmp_path / "start"
    (start / "packaging").mkdir(parents=True)
    (start / "packaging" / "__init__.py").write_text("")
    (start / "sitecustomize.py").write_text("import packaging\n")
    environment = {**os.environ, "PYTHONPATH": str(start)}
    facts = json.loads(collect(tmp_path / "collect.py", HERE, "--python", sys.executable, environment=environment))

    assert "unread" not in facts


def test_it_runs_from_standard_input(program: Path) -> None:
    with program.open(encoding="utf-8") as text:
        run = subprocess.run([sys.executable, "-"], stdin=text, capture_output=True, text=True, check=False)
    assert (run.returncode, json.loads(run.stdout)["schema"]) == (0, "wheelproof.host/1"), run.stderr


def test_a_reader_that_goes_away_is_a_sentence(program: Path, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    run = subprocess.run(
        [sys.executable, program, "--python", sys.executable, "--no-trial"],
        stdout=writing,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        check=False,
    )
    os.close(writing)

    assert (run.returncode, list(tmp_path.iterdir())) == (3, [])
    assert "the facts cannot be written: [Errno 32] Broken pipe" in run.stderr
    assert "Traceback" not in run.stderr


def test_an_interrupted_collector_leaves_nothing(program: Path, tmp_path: Path) -> None:
    """SIGTERM comes while torch hangs."""
    patient = Patient.make(tmp_path / "venv", torch_wheel().add("torch/__init__.py", "import time\ntime.sleep(600)\n"))
    place = tmp_path / "tmp"
    place.mkdir()
    process = subprocess.Popen(
        [sys.executable, program, "--python", patient.python],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "TMPDIR": str(place)},
    )
    wait_until(lambda: list(place.glob("wheelproof-collect-*/wheelproof/doctor/inside/torch_import.py")))
    process.send_signal(signal.SIGTERM)

    assert process.wait(60) != 0
    assert list(place.iterdir()) == []


def test_names_and_tokens_stay_on_the_machine(program: Path, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "USER": "margarethe",
        "HOME": "/home/margarethe",
        "PIP_INDEX_URL": "https://margarethe:hunter2@wheels.corp.example/simple",
        "UV_INDEX_TOKEN": "hunter2",
        "LD_LIBRARY_PATH": "/home/margarethe/lib",
    }
    text = collect(program, HERE, "--no-trial", "--python", sys.executable, environment=environment)

    for secret in ("margarethe", "hunter2", "corp.example"):
        assert secret not in text
    assert "/home/USER/lib" in text


@pytest.mark.parametrize("option", [("--facts", "facts.json"), ("--python", sys.executable), ("--fix", "--yes")])
def test_a_program_is_no_diagnosis(wheelproof: Wheelproof, option: tuple[str, ...]) -> None:
    run = wheelproof("doctor", "--collector", *option)
    assert (run.status, f"--collector does not diagnose, so {option[0]} cannot be used with it" in run.err) == (2, True)


def test_the_command_writes_the_program(wheelproof: Wheelproof, program: Path) -> None:
    run = wheelproof("doctor", "--collector")
    assert (run.status, run.out) == (0, program.read_text(encoding="utf-8"))


@pytest.mark.skipif((2, 7) not in other_pythons(), reason="needs Python 2.7")
def test_a_python_that_is_too_old_says_so(program: Path) -> None:
    run = subprocess.run([other_pythons()[2, 7], program], capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert run.stderr.startswith("collect.py needs Python 3.6 or newer, and this is 2.7")
