"""The driver's answers, and every failure, with a libcuda.so.1 built for the purpose."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernels_smoke.suite import start
from kernels_smoke.suite.advice import shown
from kernels_smoke.suite.probes import driver as probes_driver
from kernels_smoke.suite.probes import driver_faults
from kernels_smoke.suite.probes import driver_program as driver

SOURCE = Path(__file__).with_name("stub_driver.c")
Ask = Callable[..., dict[str, Any]]

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc, which builds the stub of a driver")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stub as a driver's installation has it: libcuda.so.1 leads to a file with the version in its name."""
    folder = tmp_path_factory.mktemp("driver")
    built = folder / "libcuda.so.580.65.06"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", built, SOURCE], check=True, timeout=60)
    (folder / "libcuda.so.1").symlink_to(built.name)
    return built


@pytest.fixture
def ask(library: Path) -> Ask:
    """Ask the stub: ``ask(STUB_INIT="100")["probe"]``."""

    def with_settings(timeout: float = 20.0, folder: Path = library.parent, **settings: str) -> dict[str, Any]:
        return probes_driver.ask(timeout, os.environ | {"LD_LIBRARY_PATH": str(folder)} | settings)

    return with_settings


def test_a_driver_with_two_gpus(ask: Ask, library: Path) -> None:
    answer = ask()
    assert answer["probe"]["outcome"] == "pass"
    assert answer["probe"]["message"] == (
        "driver 580.65.06 runs CUDA up to 13.0: NVIDIA GB200 (sm_100), NVIDIA GB300 (sm_103)"
    )
    assert answer["driver"] == {"version": "580.65.06", "cuda": "13.0", "library": str(library)}
    assert answer["gpus"][1] == {
        "index": 1,
        "name": "NVIDIA GB300",
        "target": "sm_103",
        "memory_bytes": 180 << 30,
        "multiprocessors": 152,
        "shared_memory_bytes": 232448,
        "clock_mhz": 1965,
        "memory_clock_mhz": 3996,
        "compute_mode": "default",
        "uuid": "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1",
        "state": {},
    }


@pytest.mark.parametrize("code", sorted(driver_faults.FAULTS))
def test_every_code_has_its_meaning_and_its_fix(ask: Ask, code: int) -> None:
    fault = driver_faults.FAULTS[code]
    answer = ask(STUB_INIT=str(code))
    assert answer["gpus"] == []
    assert answer["probe"]["outcome"] == ("error" if code in {2, 34, 100} else "fail")
    assert fault.meaning in answer["probe"]["message"]
    assert f"returned {code})" in answer["probe"]["message"]
    assert answer["probe"]["evidence"]["error"] == fault.name
    assert answer["probe"]["fix"] == list(fault.fix)
    assert fault.fix


def test_the_codes_are_distinguished_by_what_they_say() -> None:
    faults = driver_faults.FAULTS.values()
    assert len({fault.meaning for fault in faults}) == len({fault.name for fault in faults}) == len(faults)


def test_a_code_that_is_not_in_the_table(ask: Ask) -> None:
    probe = ask(STUB_INIT="719")["probe"]
    assert probe["outcome"] == "fail"
    assert "returned 719" in probe["message"]
    assert probe["evidence"]["error"] == "CUDA error 719"


def test_a_mismatch_shows_the_version_of_the_library_that_was_loaded(ask: Ask) -> None:
    evidence = ask(STUB_INIT="803")["probe"]["evidence"]
    assert evidence["version of the library"] == "580.65.06"
    assert evidence["CUDA version"] == "13.0"


def test_a_driver_that_starts_and_has_no_gpu(ask: Ask) -> None:
    probe = ask(STUB_GPUS="0")["probe"]
    assert probe["outcome"] == "error"
    assert "there is no GPU here (cuDeviceGetCount returned 100)" in probe["message"]


@pytest.mark.parametrize("visible", ["", "-1"])
def test_hidden_gpus_are_not_missing_gpus(ask: Ask, visible: str) -> None:
    probe = ask(STUB_INIT="100", CUDA_VISIBLE_DEVICES=visible)["probe"]
    assert probe["outcome"] == "error"
    assert f"CUDA_VISIBLE_DEVICES={visible!r} hides every GPU" in probe["message"]
    assert [*map(shown, probe["fix"])] == ["unset CUDA_VISIBLE_DEVICES"]


def test_a_visible_gpu_that_is_not_there_is_missing_and_not_hidden(ask: Ask) -> None:
    if list(Path("/dev").glob("nvidia[0-9]*")):
        pytest.skip("this machine has a GPU")
    assert "there is no GPU here" in ask(STUB_INIT="100", CUDA_VISIBLE_DEVICES="0")["probe"]["message"]


def test_a_library_in_a_stubs_folder_is_a_stub_whatever_it_answers(ask: Ask, library: Path, tmp_path: Path) -> None:
    folder = tmp_path / "cuda" / "stubs"
    folder.mkdir(parents=True)
    shutil.copy(library, folder / "libcuda.so.1")
    probe = ask(folder=folder, STUB_INIT="100")["probe"]
    assert probe["outcome"] == "error"
    assert "the toolkit's stub" in probe["message"]


def test_a_prohibited_gpu(ask: Ask) -> None:
    answer = ask(STUB_MODE="2")
    assert answer["probe"]["outcome"] == "fail"
    assert "'prohibited'" in answer["probe"]["message"]
    assert answer["gpus"][0]["compute_mode"] == "prohibited"


def test_no_library(ask: Ask, tmp_path: Path) -> None:
    if _has_driver():
        pytest.skip("this machine has a driver")
    probe = ask(folder=tmp_path)["probe"]
    assert probe["outcome"] == "error"
    assert probe["message"] == "no NVIDIA driver: libcuda.so.1 is not found, and no NVIDIA kernel module is loaded"
    assert any("--gpus all" in shown(fix) for fix in probe["fix"])


def test_a_library_that_is_cut_off(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "libcuda.so.1").write_bytes(b"\x7fELF")
    probe = ask(folder=tmp_path)["probe"]
    assert probe["outcome"] == "fail"
    assert "cannot be loaded" in probe["message"]
    assert "file too short" in probe["message"]


def test_a_library_that_is_no_driver(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "empty.c").write_text("int nothing;")
    subprocess.run(["gcc", "-shared", "-o", tmp_path / "libcuda.so.1", tmp_path / "empty.c"], check=True, timeout=60)
    probe = ask(folder=tmp_path)["probe"]
    assert probe["outcome"] == "fail"
    assert "is not an NVIDIA driver" in probe["message"]
    assert "cuDriverGetVersion" in probe["message"]


def test_a_driver_that_hangs_is_left_at_the_deadline(ask: Ask) -> None:
    begun = time.monotonic()
    answer = ask(timeout=1.0, STUB_END="hang")
    assert time.monotonic() - begun < 5
    assert answer["gpus"] == []
    assert answer["probe"]["outcome"] == "fail"
    assert "was silent for 1 s" in answer["probe"]["message"]
    assert answer["probe"]["evidence"] == {"last words": "waiting for the GPU"}


def test_a_driver_that_takes_its_process_with_it(ask: Ask) -> None:
    probe = ask(STUB_END="crash")["probe"]
    assert probe["outcome"] == "fail"
    assert probe["message"] == "the process that asked the NVIDIA driver was killed by SIGABRT"


def test_device_files_that_may_not_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_faults, "DEVICES", tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    (tmp_path / "nvidia0").mkdir()  # even root cannot open a folder for writing
    (tmp_path / "nvidiactl").touch()
    fault = driver_faults.explain(100)
    assert fault.outcome == "fail"
    assert fault.meaning == f"this process may not open the GPU's device files: {tmp_path}/nvidia0: Is a directory"


def test_a_missing_device_file_for_unified_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_faults, "DEVICES", tmp_path)
    for name in ("nvidia0", "nvidiactl"):
        (tmp_path / name).touch()
    assert driver_faults.explain(999).meaning == "/dev/nvidia-uvm is missing"
    (tmp_path / "nvidia-uvm").touch()
    assert driver_faults.explain(999) == driver_faults.FAULTS[999]


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC 12",
            "535.183.01",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.65.06  Release Build  (root@host)",
            "580.65.06",
        ),
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  590.10  Tue\n", "590.10"),
        ("something else 580.65.06 \n", ""),
    ],
)
def test_the_version_of_the_kernel_module(text: str, version: str) -> None:
    assert driver.version_in(text) == version


def test_asking_is_cheap() -> None:
    listed = subprocess.run(
        [sys.executable, "-X", "importtime", *start.command("suite.probes.driver_program")[1:]],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stderr
    imported = {line.rpartition("|")[2].strip() for line in listed.splitlines()}
    assert "kernels_smoke.suite.probes.driver_faults" in imported
    assert imported.isdisjoint({"torch", "triton", "numpy", "subprocess", "asyncio"})


def _has_driver() -> bool:
    listed = subprocess.run(["ldconfig", "-p"], capture_output=True, text=True, check=False, timeout=60).stdout
    return "libcuda.so.1" in listed or bool(driver.module_version())
