"""The CUDA driver library, asked through a real library of the tests' own."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE, in_time, wait_until
from tests.support.probing import known, probe
from tests.support.stub_driver import build, variables
from wheel_checks.facts.host.error_codes import error_name, error_text
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.visible import read_selection
from wheel_checks.facts.host.log.symptoms import symptoms
from wheel_checks.facts.host.probes import CRASHED, HUNG, CudaProbe, TorchProbe
from wheel_checks.model import Unavailable
from wheel_checks.process import child as child_module
from wheel_checks.process.child import end_all
from wheelproof.doctor.children import Budget
from wheelproof.doctor.probes import dangerous
from wheelproof.doctor.probes.dangerous import Answers, read_dangerous

SECOND_GPU = "GPU-abc00001-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("driver"))


def cuda(driver: Path, **changed: str) -> CudaProbe:
    answer = probe(variables(driver, **changed)).cuda
    assert isinstance(answer, CudaProbe)
    return answer


def test_what_a_healthy_driver_tells(driver: Path) -> None:
    answer = cuda(driver, STUB_GPUS="2", STUB_CUDA_VERSION="12080", STUB_CAPABILITY="12.1", STUB_MEMORY="1024,512")

    assert (answer.code, answer.driver_cuda, answer.failed_at, answer.outcome) == (0, 12080, "", (0, 2))
    assert answer.library == str(driver / "libcuda.so.580.159.04")
    second = answer.gpus[1]
    assert (second.index, second.name, second.capability) == (1, "NVIDIA H200", (12, 1))
    assert (second.uuid, second.memory_total) == (SECOND_GPU, 1 << 30)
    assert symptoms(HostFacts(cuda=answer)) == ()


@pytest.mark.parametrize("code", [34, 100, 304, 802, 803, 804, 999])
def test_the_code_of_cuinit_is_reported(driver: Path, code: int) -> None:
    answer = cuda(driver, STUB_CUINIT=str(code))

    assert (answer.code, answer.gpus, answer.failed_at) == (code, (), "")
    assert answer.driver_cuda == (0 if code == 34 else 13000)  # a stub library does not even show its version
    assert symptoms(HostFacts(cuda=answer)) == (f"cuda:{code}",)


def test_a_call_after_cuinit_that_fails_is_named(driver: Path) -> None:
    answer = cuda(driver, STUB_COUNT="3")

    assert (answer.code, answer.failed_at) == (3, "cuDeviceGetCount")


@pytest.mark.parametrize(
    ("value", "devices"),
    [
        ("1", ["GPU-abc00001"]),
        ("2,0", ["GPU-abc00002", "GPU-abc00000"]),
        ("1,9,0", ["GPU-abc00001"]),
        ("GPU-abc00002", ["GPU-abc00002"]),
        ("0,0", None),
        ("GPU-abc", None),
        ("-1", None),
        ("", None),
    ],
)
def test_the_stub_reads_the_variable_as_the_facts_do(driver: Path, value: str, devices: list[str] | None) -> None:
    answer = cuda(driver, STUB_GPUS="3", CUDA_VISIBLE_DEVICES=value)
    selection = read_selection(value, [f"GPU-abc0000{number}-0000" for number in range(3)])

    assert answer.code == (0 if devices else 100)
    assert [gpu.uuid[:12] for gpu in answer.gpus] == (devices or [])
    assert selection.chosen == len(answer.gpus)


def test_a_crash_has_a_place(driver: Path) -> None:
    answer = cuda(driver, STUB_CRASH="cuInit")

    assert (answer.end.signal, answer.failed_at, answer.outcome) == ("SIGSEGV", "cuInit", (CRASHED, 0))
    assert answer.driver_cuda == 13000  # from an earlier query
    assert symptoms(HostFacts(cuda=answer)) == ("cuda:signal",)


def test_a_hang_ends_at_its_deadline(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(deadline: float) -> CudaProbe:
        monkeypatch.setattr(dangerous, "CUDA_SECONDS", deadline)
        monkeypatch.setattr(dangerous, "EXPERIMENT_SECONDS", deadline)
        return cuda(driver, STUB_HANG="cuInit")

    answer = in_time(ask, lambda answer: answer.failed_at == "cuInit" and answer.end.output)

    assert (answer.end.hang, answer.failed_at, answer.outcome) == (True, "cuInit", (HUNG, 0))
    assert answer.end.waits_in
    assert answer.end.output == "cuInit waits for the GPU"
    assert symptoms(HostFacts(cuda=answer)) == ("cuda:hang",)


def test_a_library_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(b"\x7fELF, or not" * 100)

    answer = cuda(tmp_path)

    assert answer.code == -1
    assert "libcuda.so.1" in answer.fault


def test_a_library_of_something_else(tmp_path: Path) -> None:
    build(tmp_path, only="nvml", version="")
    (tmp_path / "libnvidia-ml.so.1").rename(tmp_path / "libcuda.so.1")

    answer = cuda(tmp_path)

    assert answer.code == -1
    assert "cuDriverGetVersion" in answer.fault


def test_without_a_gpu_and_a_driver_there_is_nothing_to_ask_but_torch(tmp_path: Path) -> None:
    answers = probe(variables(tmp_path), gpu=False)

    assert [type(answer) for answer in (answers.nvml, answers.cuda, answers.kernel)] == [Unavailable] * 3
    assert isinstance(answers.torch, TorchProbe)
    assert not answers.torch.imported


def test_a_gpu_without_a_driver_is_an_answer(tmp_path: Path) -> None:
    assert symptoms(HostFacts(cuda=cuda(tmp_path))) == ("cuda:-1",)


def test_a_driver_without_a_sign_of_a_gpu_is_an_answer(driver: Path) -> None:
    answers = probe(variables(driver, STUB_CUINIT="100"), gpu=False)

    assert isinstance(answers.cuda, CudaProbe)
    assert answers.cuda.code == 100


def test_the_interpreter_under_diagnosis_asks(driver: Path, tmp_path: Path) -> None:
    """It finds a library where this process would not, as one does whose executable has a search path."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={driver} exec {sys.executable} "$@"\n', encoding="utf-8")
    python.chmod(0o755)

    answer = probe(variables(tmp_path), python=str(python)).cuda

    assert isinstance(answer, CudaProbe)
    assert answer.outcome == (0, 1)


@pytest.mark.parametrize("python", ["/nowhere/python", shutil.which("false") or "false"])
def test_an_interpreter_that_cannot_ask_is_stood_in_for(driver: Path, python: str) -> None:
    answer = probe(variables(driver), python=python).cuda

    assert isinstance(answer, CudaProbe)
    assert answer.outcome == (0, 1)


def test_what_a_library_prints_is_not_taken_for_an_answer(driver: Path, tmp_path: Path) -> None:
    """LD_PRELOAD of something that writes to standard output, without the end of a line, before everything else."""
    (tmp_path / "talks.c").write_text(
        '#include <unistd.h>\n__attribute__((constructor)) void talk(void) { write(1, "{\\"code\\": 7}", 11); }\n'
    )
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", tmp_path / "talks.so", tmp_path / "talks.c"], check=True)

    assert cuda(driver, LD_PRELOAD=str(tmp_path / "talks.so")).outcome == (0, 1)


def command_lines(pids: Iterable[int]) -> list[str]:
    found = []
    for pid in tuple(pids):
        with contextlib.suppress(OSError):
            found.append(Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8"))
    return found


def test_after_an_interruption_nothing_more_is_started(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    children = child_module._ours
    interrupted, late, add = threading.Event(), list[child_module.Child](), children.add

    def noting(child: child_module.Child) -> None:
        if interrupted.is_set():
            late.append(child)
        add(child)

    monkeypatch.setattr(children, "add", noting)
    hangs = variables(driver, STUB_HANG="cuInit", CUDA_VISIBLE_DEVICES="")
    answers: list[Answers] = []
    thread = threading.Thread(target=lambda: answers.append(probe(hangs, gpu=False)))
    thread.start()
    wait_until(lambda: any("cuda.py" in line for line in command_lines(children.children)))

    end_all()
    interrupted.set()

    thread.join(PATIENCE)
    assert late == []
    assert not isinstance(answers[0].cuda, Unavailable)
    assert answers[0].cuda.end.signal == "SIGKILL"
    assert answers[0].counterfactuals == ()


def test_nothing_of_another_root_is_run(driver: Path) -> None:
    answers = read_dangerous(known(), environment=variables(driver), budget=Budget(60), root="/mnt/image")

    assert answers.cuda == Unavailable("/mnt/image is not the running system, so nothing in it is run")


def test_without_time_nothing_is_started(driver: Path) -> None:
    answers = probe(variables(driver), seconds=0)

    assert {type(answer) for answer in (answers.nvml, answers.cuda, answers.torch)} == {Unavailable}
    assert answers.counterfactuals == ()


def test_codes_have_names_as_far_as_the_table_goes() -> None:
    assert error_text(100) == "100 (CUDA_ERROR_NO_DEVICE: no GPU is visible to this process)"
    assert error_text(18, "nvml").startswith("18 (NVML_ERROR_LIB_RM_VERSION_MISMATCH: ")
    assert error_text(-1) == "libcuda.so.1 cannot be loaded"
    assert (error_text(4242), error_name(4242)) == ("4242", "")
