"""Asks NVML about the GPUs. What a GPU or a driver does not support is left out, and is no fault."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
MOST_GPUS = 128
MOST_PROCESSES = 64


class Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class FabricInfo(ctypes.Structure):
    """nvmlGpuFabricInfo_v3_t; of version 2 without the summary, and shorter."""

    _fields_ = [
        ("version", ctypes.c_uint),
        ("cluster", ctypes.c_ubyte * 16),
        ("status", ctypes.c_int),
        ("clique", ctypes.c_uint),
        ("state", ctypes.c_ubyte),
        ("health", ctypes.c_uint),
        ("summary", ctypes.c_ubyte),
    ]


class Process(ctypes.Structure):
    """nvmlProcessInfo_v2_t."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class ConfidentialState(ctypes.Structure):
    """nvmlConfComputeSystemState_t."""

    _fields_ = [(name, ctypes.c_uint) for name in ("environment", "feature", "tools")]


def say(**what: object) -> None:
    """Print one line of the answer at once: the next call may be the last."""
    os.write(1, ("\nwheelproof: " + json.dumps(what) + "\n").encode())


def mapped_file(name: str) -> str:
    """The path of the library that was loaded under this name: the file behind its links."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    paths = [Path(line.split(maxsplit=5)[5]) for line in maps if "/" in line]
    return next((str(path) for path in paths if path.name.startswith(name)), "")


class Nvml:
    """The library. A function that it lacks (an older driver) is as good as one that says "not supported"."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(LIBRARY)

    def code(self, function: str, *arguments: Any) -> int:
        """What a function gives; 13 (NVML_ERROR_FUNCTION_NOT_FOUND) when the library lacks it."""
        say(at=function)
        found = getattr(self.library, function, None)
        return 13 if found is None else int(found(*arguments))

    def numbers(self, function: str, *arguments: Any, count: int = 1) -> list[int] | None:
        """The numbers that a function writes behind its arguments; None when it says that it cannot."""
        values = [ctypes.c_uint() for _ in range(count)]
        code = self.code(function, *arguments, *(ctypes.byref(value) for value in values))
        return None if code else [value.value for value in values]

    def string(self, function: str, *arguments: Any) -> str:
        """The string that a function writes; "" when it says that it cannot."""
        buffer = ctypes.create_string_buffer(96)
        failed = self.code(function, *arguments, buffer, len(buffer))
        return "" if failed else buffer.value.decode(errors="replace")


def gpu(nvml: Nvml, index: int) -> dict[str, Any]:
    """What NVML reports of one GPU."""
    handle = ctypes.c_void_p()
    code = nvml.code("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
    if code:
        return {"index": index, "name": "", "error": code}
    told: dict[str, Any] = {"index": index, "name": nvml.string("nvmlDeviceGetName", handle)}
    told["uuid"] = nvml.string("nvmlDeviceGetUUID", handle)
    told["vbios"] = nvml.string("nvmlDeviceGetVbiosVersion", handle)
    mode = nvml.numbers("nvmlDeviceGetComputeMode", handle)
    if mode is not None:
        told["compute_mode"] = mode[0]
    told.update(instances(nvml, handle))
    ecc = nvml.numbers("nvmlDeviceGetEccMode", handle, count=2)
    if ecc is not None:
        told["ecc_enabled"] = bool(ecc[0])
    limit = nvml.numbers("nvmlDeviceGetEnforcedPowerLimit", handle)
    if limit is not None:
        told["power_limit"] = limit[0]
    memory = Memory()
    if nvml.code("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory)) == 0:
        told.update(memory_total=memory.total, memory_free=memory.free)
    told.update(fabric(nvml, handle))
    remapped = nvml.numbers("nvmlDeviceGetRemappedRows", handle, count=4)
    if remapped is not None:
        told.update(remap_pending=bool(remapped[2]), remap_failure=bool(remapped[3]))
    told["processes"] = processes(nvml, handle)
    return told


def fabric(nvml: Nvml, handle: ctypes.c_void_p) -> dict[str, Any]:
    """The GPU's place and health in its NVLink fabric, by the newest form that the driver knows."""
    for version, size in ((3, ctypes.sizeof(FabricInfo)), (2, FabricInfo.summary.offset)):
        info = FabricInfo(version=size | version << 24)
        if nvml.code("nvmlDeviceGetGpuFabricInfoV", handle, ctypes.byref(info)) == 0:
            told = {
                "fabric_state": info.state,
                "fabric_health": info.health,
                "fabric_status": info.status,
                "fabric_clique": info.clique,
                "fabric_cluster": bytes(info.cluster).hex() if any(info.cluster) else "",
            }
            return {**told, "fabric_summary": info.summary} if version == 3 else told
    return {}


def instances(nvml: Nvml, handle: ctypes.c_void_p) -> dict[str, Any]:
    """Whether MIG is enabled, and how many MIG devices there are."""
    mode = nvml.numbers("nvmlDeviceGetMigMode", handle, count=2)
    if mode is None:
        return {}
    most = nvml.numbers("nvmlDeviceGetMaxMigDeviceCount", handle) if mode[0] else None
    instance = ctypes.c_void_p()
    found = sum(
        nvml.code("nvmlDeviceGetMigDeviceHandleByIndex", handle, index, ctypes.byref(instance)) == 0
        for index in range(most[0] if most else 0)
    )
    return {"mig_enabled": bool(mode[0]), "mig_devices": found}


def processes(nvml: Nvml, handle: ctypes.c_void_p) -> list[int]:
    """The pids of processes that compute on it; those of other containers are not known."""
    count, infos = ctypes.c_uint(MOST_PROCESSES), (Process * MOST_PROCESSES)()
    code = nvml.code("nvmlDeviceGetComputeRunningProcesses_v3", handle, ctypes.byref(count), infos)
    return [info.pid for info in infos[: count.value]] if code == 0 else []


def confidential(nvml: Nvml) -> dict[str, bool]:
    """Whether GPUs with confidential computing accept work; nothing when that feature is off."""
    state = ConfidentialState()
    if nvml.code("nvmlSystemGetConfComputeState", ctypes.byref(state)) or not state.feature:
        return {}
    ready = nvml.numbers("nvmlSystemGetConfComputeGpusReadyState")
    return {} if ready is None else {"confidential_ready": bool(ready[0])}


def main() -> None:
    """Load, initialize, count, describe."""
    say(at="dlopen")
    try:
        nvml = Nvml()
    except OSError as error:
        say(code=-1, fault=str(error))
        return
    say(library=mapped_file("libnvidia-ml.so"))
    code = nvml.code("nvmlInit_v2")
    if code:
        say(code=code)
        return
    say(driver_version=nvml.string("nvmlSystemGetDriverVersion"))
    count = ctypes.c_uint()
    code = nvml.code("nvmlDeviceGetCount_v2", ctypes.byref(count))
    if code:
        say(code=code, failed_at="nvmlDeviceGetCount_v2")
        return
    for index in range(min(count.value, MOST_GPUS)):
        say(gpu=gpu(nvml, index))
    say(code=0, **confidential(nvml))


main()
