"""NVML, asked through a real library of the tests' own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE, in_time
from tests.support.probing import probe
from tests.support.stub_driver import build, variables
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.log.symptoms import symptoms
from wheel_checks.facts.host.probes import NvmlProbe
from wheel_checks.model import Unavailable
from wheelproof.doctor.probes import dangerous
from wheelproof.doctor.probes.dangerous import Answers

GPU = "GPU-abc00000-0000-4000-8000-000000000000"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("driver"))


def nvml(driver: Path, **changed: str) -> NvmlProbe:
    answer = probe(variables(driver, PYTHONPATH="", **changed)).nvml
    assert isinstance(answer, NvmlProbe)
    return answer


def test_what_a_healthy_gpu_tells(driver: Path) -> None:
    answer = nvml(driver, STUB_MEMORY="143771,143000", STUB_PROCESSES="4711,4712")

    assert (answer.code, answer.driver_version) == (0, "580.159.04")
    assert answer.library == str(driver / "libnvidia-ml.so.580.159.04")
    (gpu,) = answer.gpus
    assert (gpu.name, gpu.uuid, gpu.compute_mode, gpu.error) == ("NVIDIA H200", GPU, 0, 0)
    assert (gpu.memory_total, gpu.memory_free) == (143771 << 20, 143000 << 20)
    assert (gpu.mig_enabled, gpu.mig_devices, gpu.fabric_state) == (False, 0, 0)
    assert (gpu.remap_pending, gpu.remap_failure, gpu.processes) == (False, False, (4711, 4712))
    assert (gpu.vbios, gpu.ecc_enabled, gpu.power_limit) == ("96.00.A5.00.01", True, 700_000)
    assert answer.confidential_ready is None


def test_states_of_gpus(driver: Path) -> None:
    answer = nvml(
        driver,
        STUB_GPUS="2",
        STUB_COMPUTE_MODE="3",
        STUB_MIG="1,2",
        STUB_FABRIC="2,170",
        STUB_REMAP="1,1",
        STUB_CONFIDENTIAL="1,0",
    )

    for gpu in answer.gpus:
        assert (gpu.compute_mode, gpu.mig_enabled, gpu.mig_devices) == (3, True, 2)
        assert (gpu.fabric_state, gpu.fabric_health) == (2, 170)
        assert (gpu.remap_pending, gpu.remap_failure) == (True, True)
    assert len(answer.gpus) == 2
    assert answer.confidential_ready is False


def test_the_fabric_by_the_newest_form_that_the_driver_knows(driver: Path) -> None:
    (old,) = nvml(driver, STUB_FABRIC="3,170").gpus
    (new,) = nvml(driver, STUB_FABRIC="3,20906", STUB_FABRIC_SUMMARY="1").gpus

    assert (old.fabric_health, old.fabric_summary, old.fabric_status) == (0xAA, None, 0)
    assert (new.fabric_state, new.fabric_health, new.fabric_summary) == (3, 0x51AA, 1)
    assert (new.fabric_clique, new.fabric_cluster) == (5, "00" * 15 + "07")


def test_links_clocks_errors_and_firmware(driver: Path) -> None:
    answer = nvml(
        driver,
        STUB_NVLINK="17,18,26562,2",
        STUB_PCIE="5,8,16",
        STUB_CLOCK="1980",
        STUB_CLOCK_REASONS="65",
        STUB_ECC_ERRORS="12,3",
        STUB_REMAP="0,0,4,1",
        STUB_GSP="580.159.04",
    )

    (gpu,) = answer.gpus
    assert (gpu.nvlinks, gpu.nvlinks_total, gpu.nvlink_speed, gpu.nvlinks_faulty) == (17, 18, 26562, 2)
    assert (gpu.pcie_generation, gpu.pcie_width, gpu.pcie_width_most) == (5, 8, 16)
    assert (gpu.sm_clock, gpu.clock_reasons) == (1980, 65)
    assert (gpu.ecc_corrected, gpu.ecc_uncorrected) == (12, 3)
    assert (gpu.rows_corrected, gpu.rows_uncorrected) == (4, 1)
    assert gpu.gsp_firmware == "580.159.04"


def test_a_gpu_whose_links_are_all_down(driver: Path) -> None:
    (gpu,) = nvml(driver, STUB_NVLINK="0,18,0,0").gpus

    assert (gpu.nvlinks, gpu.nvlinks_total, gpu.nvlink_speed, gpu.nvlinks_faulty) == (0, 18, None, None)


def test_a_hang_in_a_call_about_links_costs_no_other_fact(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(deadline: float) -> Answers:
        monkeypatch.setattr(dangerous, "NVML_SECONDS", deadline)
        return probe(variables(driver, STUB_HANG="nvmlDeviceGetNvLinkState", STUB_NVLINK="18,18,1,0"), seconds=PATIENCE)

    answers = in_time(ask, lambda answers: isinstance(answers.nvml, NvmlProbe) and "Link" in answers.nvml.failed_at)
    assert isinstance(answers.nvml, NvmlProbe)
    assert (answers.nvml.end.hang, answers.nvml.code) == (True, 0)
    assert [(gpu.vbios, gpu.nvlinks) for gpu in answers.nvml.gpus] == [("96.00.A5.00.01", None)]


def test_a_driver_that_is_slow_about_links_does_not_hang(driver: Path) -> None:
    answer = nvml(driver, STUB_GPUS="2", STUB_SLOW="nvmlDeviceGetNvLinkState", STUB_NVLINK="1,1,50000,0")

    assert (answer.end.hang, answer.code) == (False, 0)
    assert [(gpu.vbios, gpu.nvlinks) for gpu in answer.gpus] == [("96.00.A5.00.01", 1), ("96.00.A5.00.01", None)]


def test_what_is_not_supported_is_none_and_no_fault(driver: Path) -> None:
    answer = nvml(driver, STUB_MEMORY="unsupported", STUB_MIG="unsupported", STUB_REMAP="unsupported")

    (gpu,) = answer.gpus
    assert (answer.code, gpu.error) == (0, 0)
    assert (gpu.memory_total, gpu.mig_enabled, gpu.remap_pending) == (None, None, None)


def test_a_gpu_that_is_lost_hides_no_other(driver: Path) -> None:
    answer = nvml(driver, STUB_GPUS="3", STUB_LOST="1")

    assert [gpu.error for gpu in answer.gpus] == [0, 15, 0]
    assert answer.code == 0


@pytest.mark.parametrize("code", [9, 18, 999])
def test_the_code_of_nvml_is_reported(driver: Path, code: int) -> None:
    answer = nvml(driver, STUB_NVML=str(code))

    assert (answer.code, answer.gpus) == (code, ())
    assert symptoms(HostFacts(nvml=answer)) == (f"nvml:{code}",)


def test_a_crash_has_a_place(driver: Path) -> None:
    answer = nvml(driver, STUB_CRASH="nvmlInit")

    assert (answer.end.signal, answer.failed_at) == ("SIGSEGV", "nvmlInit_v2")
    assert symptoms(HostFacts(nvml=answer)) == ("nvml:signal",)


def test_a_hang_ends_at_its_deadline_and_costs_nobody_else(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(deadline: float) -> Answers:
        monkeypatch.setattr(dangerous, "NVML_SECONDS", deadline)
        return probe(variables(driver, STUB_HANG="nvmlDeviceGetCount"), seconds=PATIENCE)

    answers = in_time(ask, lambda answers: isinstance(answers.nvml, NvmlProbe) and "Count" in answers.nvml.failed_at)

    assert isinstance(answers.nvml, NvmlProbe)
    assert (answers.nvml.end.hang, answers.nvml.failed_at) == (True, "nvmlDeviceGetCount_v2")
    assert answers.nvml.driver_version == "580.159.04"  # from an earlier query
    assert not isinstance(answers.cuda, Unavailable)
    assert answers.cuda.outcome == (0, 1)


def test_a_library_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_bytes(b"not a library")

    answer = nvml(tmp_path)

    assert answer.code == -1
    assert "file too short" in answer.fault or "invalid ELF header" in answer.fault


def test_a_library_of_something_else(tmp_path: Path) -> None:
    build(tmp_path / "driver", only="cuda")
    os.link(tmp_path / "driver" / "libcuda.so.580.159.04", tmp_path / "libnvidia-ml.so.1")

    answer = nvml(tmp_path)

    assert answer.code == 13  # NVML_ERROR_FUNCTION_NOT_FOUND


def test_a_gpu_without_a_driver(tmp_path: Path) -> None:
    answers = probe(variables(tmp_path))

    assert isinstance(answers.nvml, NvmlProbe)
    assert answers.nvml.code == -1
    assert "No such file" in answers.nvml.fault
