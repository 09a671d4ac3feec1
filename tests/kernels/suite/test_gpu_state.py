"""What NVML says of GPUs, of their instances and of who uses them: with a library that replaces it."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from kernels_smoke.suite.cli import Progress
from kernels_smoke.suite.speed import gpu_state
from kernels_smoke.suite.speed.gpu_state import Monitor, listed

OK, NOT_SUPPORTED, GPU_IS_LOST = 0, 3, 15


class Library:
    """An NVML of three GPUs: one with two MIG instances, a lost one, and one used by two processes."""

    def nvmlDeviceGetCount_v2(self, count: Any) -> int:  # noqa: N802  # the names of NVML
        count._obj.value = 3
        return OK

    def nvmlDeviceGetHandleByIndex_v2(self, index: int, device: Any) -> int:  # noqa: N802
        device._obj.value = index + 1
        return GPU_IS_LOST if index == 1 else OK

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: Any, index: int, instance: Any) -> int:  # noqa: N802
        instance._obj.value = 100 + index
        return OK if device.value == 1 and index < 2 else NOT_SUPPORTED

    def nvmlDeviceGetUUID(self, device: Any, uuid: Any, _length: int) -> int:  # noqa: N802
        uuid.value = (f"MIG-{device.value}" if device.value >= 100 else f"GPU-{device.value}").encode()
        return OK

    def nvmlDeviceGetComputeRunningProcesses_v3(self, _device: Any, count: Any, infos: Any) -> int:  # noqa: N802
        count._obj.value = 2
        infos[0].pid, infos[0].memory = 4242, 12 << 30
        infos[1].pid, infos[1].memory = 7, 2**64 - 1  # not known
        return OK

    def nvmlSystemGetProcessName(self, pid: int, name: Any, _length: int) -> int:  # noqa: N802
        name.value = b"python"
        return OK if pid == 4242 else NOT_SUPPORTED

    def nvmlDeviceGetMemoryInfo(self, _device: Any, memory: Any) -> int:  # noqa: N802
        memory._obj.used = 13 << 30
        return OK


def test_lost_gpus_and_instances_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_state, "_opened", Library)
    assert listed() == [
        {"index": 0, "uuid": "GPU-1", "instances": ["MIG-100", "MIG-101"]},
        {"index": 1, "uuid": "", "instances": []},
        {"index": 2, "uuid": "GPU-3", "instances": []},
    ]


def test_without_nvml_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_state, "_opened", lambda: None)
    assert (listed(), Monitor.open("GPU-1").users(), Monitor.open("GPU-1").read()) == ([], {}, {})


def test_who_uses_a_gpu_is_named_and_what_this_driver_does_not_tell_is_missing() -> None:
    monitor = Monitor(Library(), ctypes.c_void_p(3))
    assert monitor.users() == {
        "processes": [
            {"pid": 4242, "name": "python", "memory_bytes": 12 << 30},
            {"pid": 7, "name": "", "memory_bytes": None},
        ],
        "memory_used_bytes": 13 << 30,
    }
    assert [process["pid"] for process in monitor.users(ours={4242})["processes"]] == [7]


class NewerLibrary(Library):
    """A library that reports memory reserved by the driver."""

    def nvmlDeviceGetMemoryInfo_v2(self, _device: Any, memory: Any) -> int:  # noqa: N802  # as above
        assert memory._obj.version == 0x02000028
        memory._obj.used = 3 << 20
        return OK


def test_what_the_driver_keeps_for_itself_is_no_use() -> None:
    assert Monitor(NewerLibrary(), ctypes.c_void_p(3)).users()["memory_used_bytes"] == 3 << 20


def test_each_mutant_is_reported_as_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    progress = Progress(each=True)
    progress({"kind": "probe", "name": "torch", "outcome": "pass"})
    progress({"kind": "mutant", "kernel": "norm", "mutant": "dead", "outcome": "caught", "caught_by": "wide"})
    assert capsys.readouterr().err == "caught   norm / dead: wide\n"
