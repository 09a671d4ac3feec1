"""``wheelproof doctor`` as a user runs it: real environments, real children, drivers of stubs, saved hosts."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.conftest import Run, Wheelproof
from tests.support.environments import Installed, library
from tests.support.hosts import cuda_fails, healthy, hgx, with_cpu_torch, with_variables, without_gpu
from tests.support.patience import PATIENCE, wait_until
from tests.support.patients import NCCL, TORCH, Patient, nccl_wheel, torch_wheel
from tests.support.stub_driver import build, variables
from wheel_checks.facts.host.codec import to_json
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.probes import Counterfactual, TorchProbe
from wheel_checks.facts.host.software import Installed as InstalledFacts
from wheel_checks.model import Unavailable
from wheel_checks.report import FORMATS, schema
from wheelproof.doctor.reading import Request, read_host


def saved(folder: Path, facts: HostFacts) -> str:
    file = folder / "facts.json"
    file.write_text(json.dumps(to_json(facts)))
    return str(file)


def hidden() -> HostFacts:
    """CUDA_VISIBLE_DEVICES is empty, and CUDA works without it."""
    proof = Counterfactual("CUDA_VISIBLE_DEVICES", "", before=(100, 0), after=(0, 1))
    facts = with_variables(cuda_fails(healthy(), 100), CUDA_VISIBLE_DEVICES="")
    return replace(facts, counterfactuals=(proof,))


def diagnosis(run: Run) -> dict[str, Any]:
    report = json.loads(run.out)
    jsonschema.validate(report, schema())
    facts: dict[str, Any] = report["subjects"][0]["facts"]
    return facts


# --- Saved hosts


def test_a_healthy_host_gets_one_screen(wheelproof: Wheelproof, tmp_path: Path) -> None:
    run = wheelproof("doctor", "--facts", saved(tmp_path, healthy()))

    assert run.status == 0
    lines = run.out.splitlines()
    assert lines[0] == "torch 2.11.0+cu130 computes and Triton compiles on NVIDIA H200"
    assert lines[1].startswith("PASS  NVIDIA H200 (9.0), driver 580.159.04, torch 2.11.0+cu130, Python 3.12")
    assert len(lines) < 25


def test_a_cause_with_its_proof_and_its_fix(wheelproof: Wheelproof, tmp_path: Path) -> None:
    run = wheelproof("doctor", "--facts", saved(tmp_path, hidden()))

    assert run.status == 1
    first, *rest = run.out.splitlines()
    assert first.startswith(
        "torch does not see the GPU (cuInit gives 100, CUDA_ERROR_NO_DEVICE): CUDA_VISIBLE_DEVICES is empty"
    )
    assert len(rest) < 24
    assert any(line.startswith("  error  DOC601  CUDA_VISIBLE_DEVICES is empty") for line in rest)
    assert any("without CUDA_VISIBLE_DEVICES:  cuInit 0, 1 device (with it: 100)" in line for line in rest)
    assert "        unset CUDA_VISIBLE_DEVICES" in rest
    assert rest[-1] == "Afterwards: wheelproof doctor --python /opt/env/bin/python"


def test_the_diagnosis_for_programs(wheelproof: Wheelproof, tmp_path: Path) -> None:
    shown = diagnosis(wheelproof("doctor", "--facts", saved(tmp_path, hidden()), "--format", "json"))

    assert (shown["root"], shown["catalogue"], shown["confidence"]) == ("DOC601", "F01", "proven")
    assert shown["symptoms"] == ["cuda:100", "torch:unavailable", "torch:init"]
    assert shown["unexplained"] == shown["consequences"] == shown["others"] == []
    assert {"label": "without CUDA_VISIBLE_DEVICES", "value": "cuInit 0, 1 device (with it: 100)"}.items() <= next(
        item for item in shown["proof"] if item["label"].startswith("without")
    ).items()
    assert shown["versions"]["torch"] == "2.11.0+cu130 (CUDA 13.0)"


def test_what_nothing_explains_is_undecided(wheelproof: Wheelproof, tmp_path: Path) -> None:
    run = wheelproof("doctor", "--facts", saved(tmp_path, cuda_fails(healthy(), 719)))

    assert run.status == 3
    assert "not checked  DOC000  cuInit gives 719, CUDA_ERROR_LAUNCH_FAILED; no known cause explains it" in run.out
    assert "wheelproof doctor --save-facts facts.json" in run.out


def test_without_a_gpu_nothing_is_proven_unless_a_cpu_is_expected(wheelproof: Wheelproof, tmp_path: Path) -> None:
    tried = with_cpu_torch(healthy()).torch
    assert isinstance(tried, TorchProbe)
    facts = replace(without_gpu(with_cpu_torch(healthy())), torch=replace(tried, computes_on_cpu=""))
    name = saved(tmp_path, facts)
    plain, cpu, gpu = (
        wheelproof("doctor", "--facts", name, *wanted) for wanted in ((), ("--expect", "cpu"), ("--expect", "gpu"))
    )

    assert (plain.status, cpu.status, gpu.status) == (3, 0, 1)
    assert plain.out.startswith(
        "not proven that torch computes on a GPU: the GPU here is Intel's, and torch 2.11.0+cpu"
    )
    assert cpu.out.startswith("torch 2.11.0+cpu computes on the CPU, as expected\n")
    assert "DOC003  expected: GPU; found: no GPU" in gpu.out


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ("gpu", 0),
        ("H200", 0),
        ("1 x H200", 0),
        ("2 x H200", 1),
        ("GB200", 1),
        ("8xH100", 1),
        ("1 gpu", 0),
        ("cuda", 0),
        ("rocm", 1),
        ("xpu", 1),
        ("sm_90", 0),
        ("gfx942", 1),
    ],
)
def test_a_host_is_held_against_what_is_expected_of_it(
    wheelproof: Wheelproof, tmp_path: Path, wanted: str, status: int
) -> None:
    run = wheelproof("doctor", "--facts", saved(tmp_path, healthy()), "--expect", wanted)

    assert run.status == status
    assert ("DOC003" in run.out) == bool(status)


@pytest.mark.parametrize("wanted", ["0 x gpu", "cpu cpu", "2 x cpu", " ", "4 x", "H9000"])
def test_what_cannot_be_expected(wheelproof: Wheelproof, tmp_path: Path, wanted: str) -> None:
    assert wheelproof("doctor", "--facts", saved(tmp_path, healthy()), "--expect", wanted).status == 2


def test_a_gpu_that_torch_was_not_tried_on_is_not_proven(wheelproof: Wheelproof, tmp_path: Path) -> None:
    facts = hgx()
    assert isinstance(facts.torch, TorchProbe)
    runs = [
        wheelproof("doctor", "--facts", saved(tmp_path, replace(facts, torch=replace(facts.torch, computed=computed))))
        for computed in (8, 3)
    ]

    assert [run.status for run in runs] == [0, 3]
    assert runs[0].out.startswith("torch 2.11.0+cu130 computes and Triton compiles on 8 x NVIDIA H200\n")
    assert runs[1].out.startswith("not proven that torch 2.11.0+cu130 computes on 8 x NVIDIA H200: computed on 3 of 8")


@pytest.mark.parametrize("selection", [("--select", "DOC5"), ("--ignore", "DOC601")])
def test_a_cause_that_is_not_shown_passes_nothing(
    wheelproof: Wheelproof, tmp_path: Path, selection: tuple[str, str]
) -> None:
    run = wheelproof("doctor", "--facts", saved(tmp_path, hidden()), *selection)

    assert run.status == 3
    assert "DOC601" not in run.out


def test_kernels_are_not_run_where_a_cpu_is_expected(wheelproof: Wheelproof) -> None:
    assert wheelproof("doctor", "--expect", "cpu", "--full").status == 2


def test_no_rule_passes_on_what_is_not_there(wheelproof: Wheelproof, tmp_path: Path) -> None:
    facts = healthy()
    assert isinstance(facts.installed, InstalledFacts)
    bare = replace(without_gpu(facts), installed=replace(facts.installed, torch=None), torch=Unavailable("no torch"))
    run = wheelproof("doctor", "--facts", saved(tmp_path, bare), "--format", "json")
    outcomes = {result["rule"]: result["outcome"] for result in json.loads(run.out)["subjects"][0]["results"]}

    assert run.status == 1
    assert (outcomes["DOC002"], outcomes["DOC102"], outcomes["DOC205"], outcomes["DOC303"]) == (
        "fail",
        "skip",
        "skip",
        "skip",
    )


def test_a_torch_without_metadata_is_not_installed(wheelproof: Wheelproof, tmp_path: Path) -> None:
    facts = healthy()
    assert isinstance(facts.installed, InstalledFacts)
    run = wheelproof(
        "doctor", "--facts", saved(tmp_path, replace(facts, installed=replace(facts.installed, torch=None)))
    )

    assert run.status == 1
    assert "has no metadata: for pip and uv it is not installed" in run.out


def test_what_was_not_read_leaves_it_undecided(wheelproof: Wheelproof, tmp_path: Path) -> None:
    facts = healthy(unread={"pci": "--timeout expired"})
    run = wheelproof("doctor", "--facts", saved(tmp_path, facts))

    assert run.status == 3
    assert "not checked  DOC001  the section pci was not read: --timeout expired" in run.out


def test_all_facts_with_v(wheelproof: Wheelproof, tmp_path: Path) -> None:
    name = saved(tmp_path, healthy())

    assert "driver.version_line" not in wheelproof("doctor", "--facts", name).out
    assert "NVRM version: NVIDIA UNIX Open Kernel Module" in wheelproof("doctor", "--facts", name, "-v").out


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_names_the_cause(wheelproof: Wheelproof, tmp_path: Path, format: str) -> None:  # noqa: A002
    run = wheelproof("doctor", "--facts", saved(tmp_path, hidden()), "--format", format)

    assert run.status == 1
    assert "CUDA_VISIBLE_DEVICES" in run.out


def test_rules_that_are_not_shown_still_count_in_the_diagnosis(wheelproof: Wheelproof, tmp_path: Path) -> None:
    run = wheelproof("doctor", "--facts", saved(tmp_path, hidden()), "--ignore", "DOC6", "--format", "json")

    assert run.status == 3  # the deciding rule is not shown
    assert diagnosis(run)["root"] == "DOC601"
    assert "DOC601" not in {result["rule"] for result in json.loads(run.out)["subjects"][0]["results"]}


def test_saved_facts_give_the_same_diagnosis_elsewhere(wheelproof: Wheelproof, tmp_path: Path) -> None:
    first = wheelproof("doctor", "--facts", saved(tmp_path, hidden()), "--save-facts", "again.json", "--format", "json")
    second = wheelproof("doctor", "--facts", "again.json", "--format", "json")

    assert diagnosis(first)["root"] == diagnosis(second)["root"] == "DOC601"
    assert "GPU-0e1f2a3b" not in Path("again.json").read_text()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ("{}", "these are no facts of a host: the schema is None"),
        ('{"schema": "wheelproof.host/2"}', "the schema is 'wheelproof.host/2'"),
        ('{"schema": "wheelproof.host/1", "gpu": 1}', "the facts of the host: gpu is not a known key"),
        ('{"schema": "wheelproof.host/1", "pci": [1]}', "the facts of the host: pci[0] is 1\n  expected: an object"),
        ('{"schema": "wheelproof.host/1", "limits": {}}', "limits.memlock_bytes is missing; expected a whole number"),
        (
            '{"schema": "wheelproof.host/1", "pci": [{"unavailable": "x"}]}',
            "pci[0].unavailable is not a known key",
        ),
    ],
)
def test_a_file_that_holds_no_facts(wheelproof: Wheelproof, tmp_path: Path, content: str, says: str) -> None:
    (tmp_path / "facts.json").write_text(content)
    run = wheelproof("doctor", "--facts", str(tmp_path / "facts.json"))

    assert run.status == 3
    assert says in run.err
    assert "Traceback" not in run.err


def test_a_file_that_is_not_there(wheelproof: Wheelproof) -> None:
    run = wheelproof("doctor", "--facts", "nothing.json")

    assert (run.status, run.out) == (3, "")
    assert "there is no nothing.json" in run.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--facts", "x", "--fix", "--yes"], "--fix acts on this host, but --facts names another"),
        (["--root", "..", "--full"], "--full acts on this host, but --root names another"),
        (["--facts", "x", "--python", "y"], "--facts replaces a host"),
        (["--root", "nowhere"], "--root nowhere is not a folder"),
        (["--python", "nowhere/python"], "there is no nowhere/python"),
        (["--timeout", "0"], "--timeout 0 is not a valid timeout"),
        (["--timeout", "nan"], "--timeout nan is not a valid timeout"),
        (["--timeout", "inf"], "--timeout inf is not a valid timeout"),
        (["--yes"], "--yes requires --fix"),
        (["--fix"], "--fix asks before it changes anything, but standard input is not a terminal"),
    ],
)
def test_options_that_do_not_go_together(
    wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    run = wheelproof("doctor", *arguments)

    assert (run.status, run.out) == (2, "")
    assert says in run.err


# --- Real environments and stub drivers


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Patient:
    return Patient.make(tmp_path_factory.mktemp("patient") / "venv")


def examined(patient: Patient, environment: dict[str, str], *options: str) -> tuple[int, dict[str, Any]]:
    """The exit code of the command, and the diagnosis."""
    command = [sys.executable, "-m", "wheelproof", "doctor", "--python", patient.python, "--format", "json", *options]
    done = subprocess.run(
        command, check=False, env=environment, cwd=patient.folder, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.stdout, done.stderr
    return done.returncode, diagnosis(Run(done.returncode, done.stdout, done.stderr))


@pytest.mark.parametrize(
    ("changed", "root", "confidence"),
    [
        ({"CUDA_VISIBLE_DEVICES": ""}, "DOC601", "proven"),
        ({"CUDA_VISIBLE_DEVICES": "7"}, "DOC602", "proven"),
        ({"STUB_CUINIT": "804"}, "DOC313", "proven"),
        ({"STUB_CUDA_VERSION": "12080"}, "DOC105", "certain"),
    ],
)
def test_the_right_cause(patient: Patient, driver: Path, changed: dict[str, str], root: str, confidence: str) -> None:
    status, shown = examined(patient, variables(driver, **changed))

    assert (status, shown["root"], shown["confidence"]) == (1, root, confidence)


def test_a_driver_that_hangs_is_named_in_time(patient: Patient, driver: Path) -> None:
    status, shown = examined(patient, variables(driver, STUB_HANG="cuInit"), "--timeout", "8")

    assert (status, shown["root"]) == (1, "DOC318")


@pytest.mark.parametrize(
    ("number", "status", "message"),
    [(signal.SIGINT, 130, "wheelproof: interrupted"), (signal.SIGTERM, 143, ""), (signal.SIGKILL, -9, "")],
)
def test_an_interrupted_doctor_leaves_nothing_behind(
    patient: Patient, driver: Path, number: int, status: int, message: str
) -> None:
    environment = variables(driver, STUB_HANG="cuInit", STUB_MARK=str(driver))
    command = [sys.executable, "-m", "wheelproof", "doctor", "--python", patient.python]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_until(lambda: len(marked(str(driver))) > 1)
        process.send_signal(number)
        _, errors = process.communicate(timeout=PATIENCE)

    assert (process.returncode, errors.decode().strip()) == (status, message)
    wait_until(lambda: not marked(str(driver)))


def marked(mark: str) -> list[str]:
    """The processes that were started with this variable."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if f"STUB_MARK={mark}".encode() in (folder / "environ").read_bytes():
                found.append(folder.name)
    return found


def test_a_driver_that_crashes_crashes_nothing_else(patient: Patient, driver: Path) -> None:
    status, shown = examined(patient, variables(driver, STUB_CRASH="cuInit"))

    assert status in {0, 1, 3}  # depending on this host: no GPU is no fault if there cannot be one
    assert "cuda:signal" in shown["symptoms"]


def test_a_library_that_was_deleted_is_mended_for_real(tmp_path: Path, driver: Path) -> None:
    """--fix runs the command, in which a real uv takes the wheel from a folder; then the finding is gone."""
    patient = Patient.make(tmp_path / "venv")
    patient.installed.remove(NCCL)
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    nccl_wheel().write(wheels)
    environment = variables(
        driver, UV_FIND_LINKS=str(wheels), UV_NO_INDEX="1", UV_OFFLINE="1", UV_CACHE_DIR=str(tmp_path / "cache")
    )

    broken, shown = examined(patient, environment)
    mended, after = examined(patient, environment, "--fix", "--yes")

    assert broken == 1
    assert "DOC202" in {shown["root"], *shown["others"]}
    assert "DOC202" not in {after["root"], *after["others"]}
    assert (patient.installed.site_packages / NCCL).is_file()
    assert mended in {0, 1}


class Terminal(io.StringIO):
    """A terminal at which someone has typed."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("typed", ["n\n", "", "maybe\n"])
def test_fix_asks_before_it_runs_anything(
    wheelproof: Wheelproof, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    patient = Patient.make(tmp_path / "venv")
    patient.installed.remove(NCCL)
    nccl_wheel().write(tmp_path)
    for name, value in {"UV_FIND_LINKS": str(tmp_path), "UV_NO_INDEX": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    run = wheelproof("doctor", "--python", patient.python, "--fix")

    assert "Nothing was changed." in run.out
    assert f"the plan for {patient.folder} (+ added, - removed, ~ replaced):" in run.err
    assert "  ~ nvidia-nccl-cu13 2.28.9, the same files again" in run.err
    assert run.err.endswith("change it? [y/N] ")


BROKEN: dict[str, Callable[[Patient], object]] = {
    "nothing": lambda one: None,
    "a library is missing": lambda one: one.installed.remove(NCCL),
    "torch is gone": lambda one: one.installed.remove("torch/__init__.py"),
    "a start that hides the GPUs": lambda one: one.installed.write(
        "sitecustomize.py", "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = ''\n"
    ),
    "an edited file": lambda one: one.installed.write("torch/__init__.py", f"{TORCH}\nraise RuntimeError('edited')\n"),
    "the interpreter leads to nothing": lambda one: break_links(one.folder),
    "a library is cut off": lambda one: one.installed.write("torch/lib/libtorch_cpu.so", b"\x7fELF"),
}


def break_links(folder: Path) -> None:
    for link in folder.glob("bin/python*"):
        link.unlink()
        link.symlink_to("/nowhere/python3")


@pytest.mark.parametrize("name", BROKEN)
def test_facts_saved_on_a_host_give_the_same_diagnosis_elsewhere(
    wheelproof: Wheelproof, tmp_path: Path, driver: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    patient = Patient.make(tmp_path / "venv")
    BROKEN[name](patient)
    for variable, value in variables(driver).items():
        monkeypatch.setenv(variable, value)
    host = ("--python", str(patient.folder), "--save-facts", "facts.json")
    there, here = (wheelproof("doctor", "--format", "json", *options) for options in (host, ("--facts", "facts.json")))

    assert (there.status == 0) == (name == "nothing")
    assert (here.status, diagnosis(here), fixes(here)) == (there.status, diagnosis(there), fixes(there))


def fixes(run: Run) -> dict[str, Any]:
    results = json.loads(run.out)["subjects"][0]["results"]
    return {result["rule"]: result.get("fix") for result in results if result["outcome"] == "fail"}


def test_names_and_tokens_are_not_saved(wheelproof: Wheelproof, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "USER": "margarethe",
        "HOME": "/home/margarethe",
        "PIP_INDEX_URL": "https://margarethe:hunter2@wheels.corp.example/simple",
        "UV_INDEX_TOKEN": "hunter2",
        "LD_LIBRARY_PATH": "/home/margarethe/lib",
    }.items():
        monkeypatch.setenv(name, value)
    wheelproof("doctor", "--python", sys.executable, "--save-facts", "facts.json")
    text = Path("facts.json").read_text()

    for secret in ("margarethe", "hunter2", "corp.example"):
        assert secret not in text
    assert "/home/USER/lib" in text


def test_what_fix_may_not_run_is_reported(patient: Patient, driver: Path) -> None:
    command = [sys.executable, "-m", "wheelproof", "doctor", "--python", patient.python, "--fix", "--yes"]
    environment = variables(driver, CUDA_VISIBLE_DEVICES="")
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True, timeout=PATIENCE)

    assert done.returncode == 1
    reason = "it sets something in your shell: unset CUDA_VISIBLE_DEVICES"
    assert f"--fix does not run the fix of DOC601: {reason}" in done.stdout


def test_this_machine_can_be_examined(wheelproof: Wheelproof) -> None:
    run = wheelproof("doctor", "--python", sys.executable, "--format", "json")

    assert run.status in {0, 1, 3}
    assert diagnosis(run)["versions"]["Python"].startswith(".".join(map(str, sys.version_info[:3])))


def test_an_interpreter_that_was_requested_and_does_not_run_leaves_it_undecided(
    wheelproof: Wheelproof, tmp_path: Path
) -> None:
    (tmp_path / "python").write_text("no program")
    (tmp_path / "python").chmod(0o755)
    run = wheelproof("doctor", "--python", str(tmp_path / "python"))

    assert run.status == 3
    assert "DOC001  the section interpreter was not read" in run.out


def test_a_grace_host_with_the_wheel_for_the_cpu_by_its_files(wheelproof: Wheelproof, tmp_path: Path) -> None:
    """What `pip install torch==2.10.0` gave on aarch64, laid out as a file system that does not run."""
    files = {
        "etc/os-release": "ID=ubuntu\nPRETTY_NAME=Ubuntu 24.04\n",
        "proc/version": "Linux version 6.8.0-1028-nvidia-64k (buildd@bos03-arm64-015) (aarch64-linux-gnu-gcc-13) #31\n",
        "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.159.04  Release\n",
        "sys/module/nvidia/version": "580.159.04\n",
        "sys/bus/pci/devices/0009:01:00.0/vendor": "0x10de\n",
        "sys/bus/pci/devices/0009:01:00.0/device": "0x2342\n",
        "sys/bus/pci/devices/0009:01:00.0/class": "0x030200\n",
        "opt/venv/pyvenv.cfg": "home = /usr/bin\nversion = 3.12.3\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "usr").mkdir()
    (tmp_path / "opt/venv/bin").mkdir()
    (tmp_path / "opt/venv/bin/python3").write_bytes(library(machine="aarch64"))
    site = Installed(tmp_path / "opt/venv", "lib/python3.12/site-packages", installer="pip")
    site.install(torch_wheel("2.10.0", "cpu", machine="aarch64", python="cp312"))
    run = wheelproof("doctor", "--root", str(tmp_path), "--format", "json")
    shown = diagnosis(run)

    assert (run.status, shown["root"], shown["catalogue"], shown["confidence"]) == (1, "DOC101", "A01", "certain")
    (root,) = (r for r in json.loads(run.out)["subjects"][0]["results"] if r["rule"] == "DOC101")
    assert "torch" in root["fix"]["commands"][0]


def test_nothing_is_read_of_this_machine_when_another_root_is_named(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    facts = read_host(Request(root=str(tmp_path)), os.environ)

    assert facts.variables == {}
    assert facts.unread == {}
