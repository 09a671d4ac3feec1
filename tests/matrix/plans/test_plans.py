"""``matrix plan``: the files are valid by the schemas of their engines, and their commands exist and work."""

from __future__ import annotations

import importlib
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]  # it comes without types
import pytest
import yaml

from tests.conftest import Wheelproof
from tests.support.patience import PATIENCE
from wheel_checks.data import load
from wheelproof.cli.matrix.group import SUBCOMMANDS
from wheelproof.cli.matrix.plan import ENGINES
from wheelproof.cli.options.output import make_parser
from wheelproof.matrix import plans
from wheelproof.matrix.plans.yaml import Commented, to_yaml

ROOT = Path(__file__).parents[3]
TOOLS = Path(sys.executable).parent
SCHEMAS = {  # with the options of check-jsonschema's own hooks
    "github": "vendor.github-workflows",
    "gitlab": "vendor.gitlab-ci --data-transform gitlab-ci --regex-variant nonunicode",
}
MATRIX = """
[axes]
platform = ["x86_64", "aarch64"]
python = ["3.12", "3.13"]
torch = ["2.11.0"]

[cell]
wheel = "dist/*.whl"
command = "python -m pytest {project}/tests -k 'not slow'"
deadline = 1000

[[include]]
platform = "x86_64"
python = "3.13"
torch = "2.11.0"
name = "h100"
smoke = ["cuda"]

[runners]
gpu = ["self-hosted", "gpu"]
"""
IDS = [
    "x86_64-py3.12-torch2.11.0",
    "x86_64-py3.13-torch2.11.0",
    "aarch64-py3.12-torch2.11.0",
    "aarch64-py3.13-torch2.11.0",
    "x86_64-py3.13-torch2.11.0-h100",
]
RUNNERS = {
    "kubernetes": ("--runner", "gpu=nvidia.com/gpu.product=NVIDIA-H100-80GB-HBM3"),
    "slurm": ("--runner", "gpu=partition=gpu,gpu=h100"),
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a matrix of five cells; ``wheelproof`` writes down how it is called."""
    (tmp_path / "ci").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "ci/matrix.toml").write_text(MATRIX)
    script = tmp_path / "bin" / "wheelproof"
    script.write_text('#!/bin/sh\necho "$@" >> "$CALLS"\nexit "${STATUS:-0}"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def plan(wheelproof: Wheelproof, engine: str, *arguments: str) -> str:
    run = wheelproof("matrix", "plan", "--to", engine, *RUNNERS.get(engine, ()), *arguments)
    assert run.status == 0, run.err
    return run.out


def calls(project: Path) -> list[str]:
    path = project / "calls"
    found = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return found


def check(*command: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=PATIENCE)


def test_every_engine_that_is_offered_has_a_writer() -> None:
    assert set(plans.ENGINES) == set(ENGINES)


@pytest.mark.parametrize(("engine", "schema"), SCHEMAS.items())
def test_a_file_is_valid_by_the_schema_of_its_engine(
    wheelproof: Wheelproof, project: Path, engine: str, schema: str
) -> None:
    file = project / f"{engine}.yml"
    file.write_text(plan(wheelproof, engine))
    done = check(str(TOOLS / "check-jsonschema"), "--builtin-schema", *schema.split(), str(file))

    assert done.returncode == 0, done.stdout + done.stderr
    words = file.read_text()
    assert all(cell in words for cell in IDS)
    assert "--matrix ci/matrix.toml --also json=wheelproof.json" in words


def test_the_workflow_is_pinned_safe_and_reusable(wheelproof: Wheelproof, project: Path) -> None:
    file = project / "github.yml"
    file.write_text(plan(wheelproof, "github"))
    done = check(str(TOOLS / "zizmor"), "--offline", "--strict-collection", str(file))
    assert done.returncode == 0, done.stdout + done.stderr

    workflow = yaml.safe_load(file.read_text())
    assert set(workflow["on"]) == {"workflow_call", "workflow_dispatch"}
    runners = {entry["id"]: entry["runner"] for entry in workflow["jobs"]["cell"]["strategy"]["matrix"]["include"]}
    assert runners == {
        **{cell: ["ubuntu-24.04"] for cell in IDS[:2]},
        **{cell: ["ubuntu-24.04-arm"] for cell in IDS[2:4]},
        IDS[4]: ["self-hosted", "gpu"],
    }
    pinned = (ROOT / ".github/workflows").glob("*.yml")
    ours = "\n".join(path.read_text() for path in pinned)
    for action in load("engines")["actions"]:
        if f"{action['name']}@" in ours:
            assert f"{action['name']}@{action['commit']} # {action['version']}" in ours


def test_the_verdict_of_the_workflow_is_that_of_the_merge(wheelproof: Wheelproof, project: Path) -> None:
    steps = yaml.safe_load(plan(wheelproof, "github"))["jobs"]["merge"]["steps"]
    (script,) = [step["run"] for step in steps if step.get("id") == "merge"]
    (project / "wheelproof/bin").mkdir(parents=True)
    (project / "bin/wheelproof").rename(project / "wheelproof/bin/wheelproof")
    for status, verdict in ((0, "pass"), (1, "fail"), (2, "undecided"), (3, "undecided")):
        output = project / f"output-{status}"
        environment = {**os.environ, "RUNNER_TEMP": str(project), "GITHUB_OUTPUT": str(output), "STATUS": str(status)}
        done = subprocess.run(["bash", "-e", "-c", script], env=environment, check=False, timeout=PATIENCE)
        assert (done.returncode, output.read_text()) == (status, f"verdict={verdict}\n")


def documents(text: str) -> list[dict[str, Any]]:
    return [*yaml.safe_load_all(text)]


def test_kubernetes_knows_every_field(wheelproof: Wheelproof, project: Path) -> None:
    objects = documents(plan(wheelproof, "kubernetes"))
    for document in objects:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)

    jobs = {each["metadata"]["name"]: each["spec"] for each in objects if each["kind"] == "Job"}
    assert {name: spec.get("completions") for name, spec in jobs.items()} == {
        "wheelproof-x86-64-1": 1,
        "wheelproof-x86-64-2": 1,
        "wheelproof-aarch64-1": 1,
        "wheelproof-aarch64-2": 1,
        "wheelproof-x86-64-gpu-1": 1,
        "wheelproof-merge": None,
    }
    gpu = jobs["wheelproof-x86-64-gpu-1"]["template"]["spec"]
    assert gpu["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert gpu["nodeSelector"] == {
        "kubernetes.io/arch": "amd64",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    }
    misspelt = {**objects[2], "spec": {**objects[2]["spec"], "completion": 2}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(misspelt, kubernetes_validate.latest_version(), strict=True)


def test_the_cells_of_the_config_map_are_the_matrix(wheelproof: Wheelproof, project: Path) -> None:
    (held,) = [each["data"] for each in documents(plan(wheelproof, "kubernetes")) if each["kind"] == "ConfigMap"]
    (project / "cells.json").write_text(held["matrix.json"])
    listed = [
        wheelproof("matrix", "list", "--matrix", name, "--format", "json").out
        for name in ("ci/matrix.toml", "cells.json")
    ]

    assert listed[0] == listed[1]
    assert [cell["id"] for cell in json.loads(listed[0])["cells"]] == IDS


@pytest.mark.parametrize(("status", "written", "ends"), [(0, True, 0), (1, True, 0), (3, True, 0), (3, False, 3)])
def test_a_pod_fails_only_when_it_has_no_report(
    wheelproof: Wheelproof, project: Path, status: int, written: bool, ends: int
) -> None:
    job = documents(plan(wheelproof, "kubernetes", "--only", "*py3.12*"))[2]
    (container,) = job["spec"]["template"]["spec"]["containers"]
    script = container["args"][0].replace("/records", str(project / "records"))
    script = script.replace("/tmp/wheelproof/bin/wheelproof", "wheelproof").replace("python3 -m venv", "true")
    script = script.replace('"/tmp/wheelproof/bin/pip"', "true")
    (project / "records").mkdir()
    if written:
        (project / "records" / f"{IDS[0]}.json").touch()
    environment = {**os.environ, "JOB_COMPLETION_INDEX": "0", "STATUS": str(status)}
    done = subprocess.run([*container["command"], script], env=environment, check=False, timeout=PATIENCE)

    assert done.returncode == ends
    assert calls(project) == [
        f"matrix run --matrix /cells/matrix.json --executor venv --cell {IDS[0]} --records {project}/records"
    ]


@pytest.mark.parametrize("arguments", [(), ("3",)])
def test_the_script_runs_every_cell_and_merges(
    wheelproof: Wheelproof, project: Path, arguments: tuple[str, ...]
) -> None:
    script = project / "cells.sh"
    script.write_text(plan(wheelproof, "shell"))
    assert check("sh", str(script), *arguments).returncode == 0

    *cells, merge = calls(project)
    assert sorted(cells) == sorted(
        f"matrix run --matrix ci/matrix.toml --executor docker --cell {cell} --records wheelproof-records --quiet"
        for cell in IDS
    )
    assert merge == "matrix merge wheelproof-records --matrix ci/matrix.toml"


def test_the_exit_code_of_the_script_is_that_of_the_merge(
    wheelproof: Wheelproof, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = project / "cells.sh"
    script.write_text(plan(wheelproof, "shell"))
    monkeypatch.setenv("STATUS", "1")
    assert check("sh", str(script)).returncode == 1
    assert len(calls(project)) == len(IDS) + 1, "a cell that fails ends no other"


def test_a_task_of_the_array_runs_its_cell(
    wheelproof: Wheelproof, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = project / "cells.sbatch"
    script.write_text(plan(wheelproof, "slurm"))
    for number, cell in enumerate(IDS):
        monkeypatch.setenv("SLURM_ARRAY_TASK_ID", str(number))
        assert check("sh", str(script)).returncode == 0
        (call,) = calls(project)
        assert call.split()[-3:] == [cell, "--records", "wheelproof-records"]
    assert check("sh", str(script), "merge").returncode == 0
    assert calls(project) == ["matrix merge wheelproof-records --matrix ci/matrix.toml"]


def test_the_arrays_are_submitted_by_kind_of_machine(wheelproof: Wheelproof, project: Path) -> None:
    sbatch = project / "bin" / "sbatch"
    sbatch.write_text('#!/bin/sh\necho "$@" >> "$CALLS"\nn=$(wc -l < "$CALLS"); echo "$n;cluster"\n')
    sbatch.chmod(0o755)
    script = project / "cells.sbatch"
    script.write_text(plan(wheelproof, "slurm"))
    assert check("sh", str(script)).returncode == 0
    assert calls(project) == [
        f"--parsable --array=0-1 --constraint=x86_64 {script}",
        f"--parsable --array=2-3 --constraint=aarch64 {script}",
        f"--parsable --array=4 --partition=gpu --constraint=h100 --gpus=1 {script}",
        f"--array=0 --dependency=afterany:1:2:3 --time=15 --output=wheelproof-merge-%A.log {script} merge",
    ]


def scripts(value: Any) -> list[str]:
    """Every text in a document."""
    if isinstance(value, str):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for part in parts for text in scripts(part)]


@pytest.mark.parametrize("engine", ENGINES)
def test_every_command_of_ours_exists(wheelproof: Wheelproof, project: Path, engine: str) -> None:
    text = plan(wheelproof, engine, "--only", "*py3.13*")
    texts = [text] if engine in {"slurm", "shell"} else scripts(documents(text))
    lines = [line for each in texts for line in each.splitlines() if not line.startswith("#")]
    found = []
    for _, matrix, words in (line.partition("matrix ") for line in lines):
        if matrix and words.startswith(("run ", "merge ")):
            name, *arguments = shlex.split(words.partition(" ||")[0].removesuffix(" ;;"))
            module, summary = SUBCOMMANDS[name]
            parsed = make_parser(f"matrix {name}", summary, importlib.import_module(module)).parse(arguments)
            found.append((name, parsed.only))
    assert ("run", []) in found
    assert ("merge", ["*py3.13*"]) in found


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--to", "github", "--runner", "arm=me"), "--runner arm=me is not a KEY=LABEL"),
        (("--to", "github", "--runner", "gpu="), "--runner gpu= is not a KEY=LABEL"),
        (("--to", "github", "--matrix", "{project}/ci/matrix.toml"), "is not a path below the project"),
        (("--to", "shell", "--only", "nothing"), "no cell of ci/matrix.toml matches 'nothing'"),
    ],
)
def test_a_plan_that_cannot_be_made(
    wheelproof: Wheelproof, project: Path, arguments: tuple[str, ...], says: str
) -> None:
    run = wheelproof("matrix", "plan", *(word.replace("{project}", str(project)) for word in arguments))

    assert (run.status, run.out) == (2, "")
    assert says in run.err


def test_a_cell_without_a_runner_is_named(wheelproof: Wheelproof, project: Path) -> None:
    (project / "ci/matrix.toml").write_text(MATRIX.partition("[runners]")[0])
    run = wheelproof("matrix", "plan", "--to", "github")

    assert (run.status, run.out) == (2, "")
    assert f"no runner of github is known for {IDS[4]}" in run.err
    assert "expected: --runner gpu=LABEL, or gpu = [...] in [runners] of ci/matrix.toml" in run.err


@pytest.mark.parametrize("python", ["3.10", "3.13t"])
@pytest.mark.parametrize("engine", ["gitlab", "kubernetes"])
def test_a_cell_without_an_image_is_named(wheelproof: Wheelproof, project: Path, engine: str, python: str) -> None:
    (project / "ci/matrix.toml").write_text(f'[axes]\nplatform=["x86_64"]\npython=["{python}"]\ntorch=["2.11.0"]\n')
    run = wheelproof("matrix", "plan", "--to", engine)
    assert run.status == 2
    assert f"x86_64-py{python}-torch2.11.0 needs an image" in run.err


@pytest.mark.parametrize(
    "value",
    [
        {
            "a": "x",
            "no": "on",
            "n": None,
            "empty": "",
            "number": "3.10",
            "sign": "- x",
            "colon": "a: b",
            "hash": "a #b",
        },
        {
            "end": "a:",
            "date": "2026-11-26",
            "octal": "0o7",
            "quote": 'it\'s "so"',
            "lines": "a\n\n  b\n",
            "cut": "a\nb",
        },
        {"list": ["a, b", "[c]", "yes", 1, True, None], "long": ["x" * 50, {"a": ["b"]}], "nothing": [], "none": {}},
        {"nested": {"a": {"b": [{"c": "d", "e": {"f": "g"}}]}}, "é": "ü\t", "tilde": "~", "at": "@x", "sha": "1e5"},
    ],
)
def test_what_is_written_is_what_yaml_reads(value: Any) -> None:
    assert yaml.safe_load(to_yaml(value)) == value


def test_a_comment_stands_behind_its_value() -> None:
    assert to_yaml({"uses": Commented("a@b", "v1")}) == "uses: a@b # v1\n"
