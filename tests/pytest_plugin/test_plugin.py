"""The pytest plug-in in a small project, whose Python has a small torch that asks a driver of stubs."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE
from tests.support.patients import Patient, nccl_wheel, torch_wheel, triton_wheel
from tests.support.stub_driver import build, variables
from wheelproof.pytest_plugin.gpu_session import Needs, needs_of, parse_expected

ROOT = Path(__file__).parents[2]
PROPERTIES = """

class _Properties:
    name, major, minor, total_memory = "NVIDIA H200", 9, 0, 150 * 10**9


def get_device_properties(number):
    return _Properties
"""
TESTS = """
import pytest


def test_plain():
    pass


@pytest.mark.gpu
@pytest.mark.parametrize("number", [1])
def test_marked_by_a_marker_of_the_project(number):
    pass


@pytest.mark.gpu(count=1)
def test_marked():
    pass


@pytest.mark.gpu(min_sm=90, memory="40 GB")
def test_hopper():
    pass


@pytest.mark.gpu(count=2)
def test_two():
    raise AssertionError("it must not run")


def test_fixtures(accelerator, gpu):
    assert (accelerator.name, accelerator.version, accelerator.device) == ("cuda", "13.0", "cuda")
    assert (gpu.index, gpu.name, gpu.sm) == (0, "NVIDIA H200", 90)
"""


@dataclass(frozen=True)
class Project:
    """A folder with tests, and the environment that runs them."""

    folder: Path
    python: str
    driver: Path

    def pytest(self, *arguments: str, **changed: str) -> subprocess.CompletedProcess[str]:
        environment = variables(self.driver, **changed)
        command = [
            self.python,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:hypothesispytest",
            "-rs",
            *arguments,
        ]
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False, timeout=PATIENCE
        )


def make_project(folder: Path, build_of_torch: str) -> Project:
    wheels = (torch_wheel(build=build_of_torch), *((nccl_wheel(), triton_wheel()) if build_of_torch != "cpu" else ()))
    patient = Patient.make(folder / "venv", *wheels)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    with (site / "torch/cuda/__init__.py").open("a") as file:
        file.write(PROPERTIES)
    # pytest and wheelproof are found after the environment's own packages
    places = (sysconfig.get_paths()["purelib"], ROOT / "tools", ROOT)
    (site / "pytest_and_wheelproof.pth").write_text("".join(f"{place}\n" for place in places))
    (folder / "project").mkdir()
    (folder / "project/test_it.py").write_text(TESTS)
    return Project(folder / "project", patient.python, build(folder / "driver"))


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("cuda"), "cu130")


@pytest.fixture(scope="module")
def cpu(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return make_project(tmp_path_factory.mktemp("cpu"), "cpu")


def test_without_options_tests_run_and_markers_say_what_is_missing(cuda: Project) -> None:
    done = cuda.pytest()

    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 passed, 1 skipped" in done.stdout
    assert "needs 2 GPUs; here is NVIDIA H200 (sm_90, 150 GB)" in done.stdout


def test_without_a_gpu_they_are_skipped_where_nothing_was_expected(cuda: Project, cpu: Project) -> None:
    no_gpu = cuda.pytest(STUB_GPUS="0")
    assert "2 passed, 4 skipped" in no_gpu.stdout
    assert "needs 1 GPU: torch 2.11.0+cu130 sees no GPU" in no_gpu.stdout

    assert "needs 1 GPU with sm_90 or newer and 40 GB: torch 2.11.0+cpu is a CPU build" in cpu.pytest().stdout


def test_a_cpu_build_where_cuda_is_expected_ends_the_session_at_once(cpu: Project) -> None:
    done = cpu.pytest("--gpu-expect", "cuda==13.0,H200")

    assert done.returncode == 1
    assert "wheelproof: torch 2.11.0+cpu is a build for cpu; expected cuda==13.0" in done.stderr + done.stdout
    assert "fix: " in done.stdout + done.stderr
    assert "collected" not in done.stdout
    assert "passed" not in done.stdout


def test_another_toolkit_or_another_gpu_than_expected(cuda: Project) -> None:
    toolkit = cuda.pytest("--gpu-expect", "cuda==12.8")
    assert toolkit.returncode == 1
    assert "torch 2.11.0+cu130 is a build for cuda 13.0; expected cuda==12.8" in toolkit.stdout + toolkit.stderr

    product = cuda.pytest("--gpu-expect", "cuda==13.0, 4 x GB200")
    assert product.returncode == 1
    assert "expected: 4 x GB200; found: NVIDIA H200" in product.stdout + product.stderr


def test_a_gpu_that_is_missing(cuda: Project) -> None:
    done = cuda.pytest("--gpu-expect", "cuda", STUB_CUINIT="100", STUB_GPUS="0")

    assert done.returncode in (1, 3)
    assert re.search(r"wheelproof: .*", done.stdout + done.stderr)
    assert "passed" not in done.stdout


def test_as_expected_the_tests_run(cuda: Project, cpu: Project) -> None:
    done = cuda.pytest("--gpu-expect", "cuda>=13,<14,H200")
    assert "5 passed, 1 skipped" in done.stdout, done.stdout + done.stderr

    on_cpu = cpu.pytest("--gpu-expect", "cpu")
    assert "2 passed, 4 skipped" in on_cpu.stdout, on_cpu.stdout + on_cpu.stderr


def test_under_xdist_the_host_is_examined_once(cuda: Project) -> None:
    wrong = cuda.pytest("-n", "2", "--gpu-expect", "cuda==12.8")
    assert wrong.returncode == 1
    assert wrong.stderr.count("is a build for cuda 13.0") == 1
    assert "workers" not in wrong.stdout

    assert "5 passed, 1 skipped" in cuda.pytest("-n", "2", "--gpu-expect", "cuda==13.0").stdout


def test_kernels_that_cannot_run_end_the_session(cuda: Project) -> None:
    done = cuda.pytest("--gpu-smoke", "quick")

    assert done.returncode in (1, 3)
    assert "the kernels of `wheelproof smoke --level quick` did not pass" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("cudda", "cudda"),
        ("cuda,rocm", "names two torch builds"),
        ("H100,H200", "names two kinds of GPUs"),
        ("cpu,H200", "requires both a CPU and a GPU"),
        (",", "--gpu-expect is empty"),
    ],
)
def test_an_expectation_that_means_nothing_is_wrong_usage(cuda: Project, text: str, sentence: str) -> None:
    done = cuda.pytest("--gpu-expect", text)

    assert done.returncode == 4
    assert sentence in done.stdout + done.stderr


def test_what_a_marker_may_say() -> None:
    assert needs_of((), {"min_sm": 90, "memory": "40 GB", "count": 2}) == Needs(2, 90, 40 * 10**9)
    for arguments, options in (((2,), {}), ((), {"sm": 90}), ((), {"memory": "lots"}), ((), {"count": 0})):
        with pytest.raises(ValueError, match="the marker gpu "):
            needs_of(arguments, options)


def test_parts_of_an_expectation() -> None:
    expected = parse_expected("cuda>=12.8, <14, 2 x GB200")
    assert (str(expected.build), str(expected.host)) == ("cuda<14,>=12.8", "2 x GB200")
    assert str(parse_expected("H100").host) == "H100"


def test_the_plugin_costs_nothing_when_it_is_not_used() -> None:
    load = "import pytest, sys; before = set(sys.modules); import wheelproof.pytest_plugin"
    program = f"{load}; print(set(sys.modules) - before)"
    loaded = subprocess.check_output([sys.executable, "-c", program], text=True)

    assert set(re.findall(r"'([\w.]+)'", loaded)) <= {"wheelproof", "wheelproof.pytest_plugin"}
