"""Read the GPUs' facts from NVML. Facts that a GPU or a driver does not support are omitted, and no fault."""

from __future__ import annotations

import ctypes
import json
import os
import time
from pathlib import Path
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
MOST_GPUS = 128
MOST_PROCESSES = 64
HEALTH_SECONDS = 4.0  # after which no further GPU is asked for its links
MOST_LINKS = 36  # NVML_NVLINK_MAX_LINKS
SPEED = 164  # NVML_FI_DEV_NVLINK_GET_SPEED, in MB/s
# Errors after which a link was trained again, or data was lost: NVML_FI_DEV_NVLINK_ERROR_DL_RECOVERY (up to NVLink 4),
# then ..._COUNT_RCV_ERRORS, ..._COUNT_LINK_RECOVERY_FAILED_EVENTS, ..._COUNT_LINK_RECOVERY_EVENTS (from NVLink 5 on)
FAULTS = (162, 208, 214, 215)
SM_CLOCK = 1  # NVML_CLOCK_SM
CORRECTED, UNCORRECTED, AGGREGATE = 0, 1, 1  # nvmlMemoryErrorType_t, and nvmlEccCounterType_t
KINDS = {  # nvmlValueType_t: the field of nvmlValue_t
    0: ctypes.c_double,
    1: ctypes.c_uint,
    2: ctypes.c_ulong,
    3: ctypes.c_ulonglong,
    4: ctypes.c_longlong,
    5: ctypes.c_int,
    6: ctypes.c_ushort,
}


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


class FieldValue(ctypes.Structure):
    """nvmlFieldValue_t; ``scope`` is the number of a link."""

    _fields_ = [
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("kind", ctypes.c_int),
        ("code", ctypes.c_int),
        ("value", ctypes.c_ubyte * 8),
    ]


def say(**what: object) -> None:
    """Print one line of the answer at once: the next call may be the last."""
    os.write(1, ("\nwheelproof: " + json.dumps(what) + "\n").encode())


def mapped_file(name: str) -> str:
    """The real path of the library loaded under this name."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    paths = [Path(line.split(maxsplit=5)[5]) for line in maps if "/" in line]
    return next((str(path) for path in paths if path.name.startswith(name)), "")


class Nvml:
    """The library. A missing function (of an older driver) counts as "not supported"."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL(LIBRARY)

    def code(self, function: str, *arguments: Any) -> int:
        """The return code of a function; 13 (NVML_ERROR_FUNCTION_NOT_FOUND) if it is missing."""
        say(at=function)
        found = getattr(self.library, function, None)
        return 13 if found is None else int(found(*arguments))

    def numbers(self, function: str, *arguments: Any, count: int = 1) -> list[int] | None:
        """The numbers that a function writes after its arguments; None when it says that it cannot."""
        values = [ctypes.c_uint() for _ in range(count)]
        code = self.code(function, *arguments, *(ctypes.byref(value) for value in values))
        return None if code else [value.value for value in values]

    def large(self, function: str, *arguments: Any) -> int | None:
        """The number of 64 bits that a function writes; None when it says that it cannot."""
        value = ctypes.c_ulonglong()
        return None if self.code(function, *arguments, ctypes.byref(value)) else value.value

    def string(self, function: str, *arguments: Any) -> str:
        """The string that a function writes; "" when it says that it cannot."""
        buffer = ctypes.create_string_buffer(96)
        failed = self.code(function, *arguments, buffer, len(buffer))
        return "" if failed else buffer.value.decode(errors="replace")


def gpu(nvml: Nvml, index: int) -> dict[str, Any]:
    """The facts that NVML reports of one GPU."""
    handle = ctypes.c_void_p()
    code = nvml.code("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle))
    if code:
        return {"index": index, "name": "", "error": code}
    facts: dict[str, Any] = {"index": index, "name": nvml.string("nvmlDeviceGetName", handle)}
    facts["uuid"] = nvml.string("nvmlDeviceGetUUID", handle)
    facts["vbios"] = nvml.string("nvmlDeviceGetVbiosVersion", handle)
    mode = nvml.numbers("nvmlDeviceGetComputeMode", handle)
    if mode is not None:
        facts["compute_mode"] = mode[0]
    facts.update(instances(nvml, handle))
    ecc = nvml.numbers("nvmlDeviceGetEccMode", handle, count=2)
    if ecc is not None:
        facts["ecc_enabled"] = bool(ecc[0])
    limit = nvml.numbers("nvmlDeviceGetEnforcedPowerLimit", handle)
    if limit is not None:
        facts["power_limit"] = limit[0]
    memory = Memory()
    if nvml.code("nvmlDeviceGetMemoryInfo", handle, ctypes.byref(memory)) == 0:
        facts.update(memory_total=memory.total, memory_free=memory.free)
    facts.update(fabric(nvml, handle))
    remapped = nvml.numbers("nvmlDeviceGetRemappedRows", handle, count=4)
    if remapped is not None:
        facts.update(rows_corrected=remapped[0], rows_uncorrected=remapped[1])
        facts.update(remap_pending=bool(remapped[2]), remap_failure=bool(remapped[3]))
    facts["processes"] = processes(nvml, handle)
    return facts


def fabric(nvml: Nvml, handle: ctypes.c_void_p) -> dict[str, Any]:
    """The GPU's place and health in its NVLink fabric, by the latest form that the driver knows."""
    for version, size in ((3, ctypes.sizeof(FabricInfo)), (2, FabricInfo.summary.offset)):
        info = FabricInfo(version=size | version << 24)
        if nvml.code("nvmlDeviceGetGpuFabricInfoV", handle, ctypes.byref(info)) == 0:
            facts = {
                "fabric_state": info.state,
                "fabric_health": info.health,
                "fabric_status": info.status,
                "fabric_clique": info.clique,
                "fabric_cluster": bytes(info.cluster).hex() if any(info.cluster) else "",
            }
            return {**facts, "fabric_summary": info.summary} if version == 3 else facts
    return {}


def health(nvml: Nvml, index: int) -> dict[str, Any]:
    """Further facts of one GPU; read last, since every call may hang."""
    handle = ctypes.c_void_p()
    if nvml.code("nvmlDeviceGetHandleByIndex_v2", index, ctypes.byref(handle)):
        return {}
    return {**links(nvml, handle), **state(nvml, handle)}


def links(nvml: Nvml, handle: ctypes.c_void_p) -> dict[str, int]:
    """How many NVLinks there are and are up, the speed of the slowest, and how many had faults."""
    up, total = [], 0
    for link in range(MOST_LINKS):
        active = nvml.numbers("nvmlDeviceGetNvLinkState", handle, link)
        if active is None:
            break
        total += 1
        if active[0]:
            up.append(link)
    if not total:
        return {}
    found = {"nvlinks": len(up), "nvlinks_total": total}
    wanted = [(field, link) for link in up for field in (SPEED, *FAULTS)]
    values = (FieldValue * max(1, len(wanted)))()
    for number, (field, link) in enumerate(wanted):
        values[number].field, values[number].scope = field, link
    if not wanted or nvml.code("nvmlDeviceGetFieldValues", handle, len(wanted), values):
        return found
    known = [
        (value.field, value.scope, number_in(value)) for value in values if value.code == 0 and value.kind in KINDS
    ]
    speeds = [speed for field, _, speed in known if field == SPEED and speed > 0]
    if speeds:
        found["nvlink_speed"] = int(min(speeds))
    faults = [(link, count) for field, link, count in known if field in FAULTS]
    if faults:
        found["nvlinks_faulty"] = len({link for link, count in faults if count > 0})
    return found


def number_in(value: FieldValue) -> float:
    """The number in a field, by the field's own type."""
    kind: Any = KINDS[value.kind]
    found: float = kind.from_buffer(value.value).value
    return found


def state(nvml: Nvml, handle: ctypes.c_void_p) -> dict[str, Any]:
    """PCIe, clocks, memory errors over the GPU's life, the firmware of its system processor."""
    found: dict[str, Any] = {}
    for name, numbers in (
        ("pcie_generation", nvml.numbers("nvmlDeviceGetMaxPcieLinkGeneration", handle)),
        ("pcie_width", nvml.numbers("nvmlDeviceGetCurrPcieLinkWidth", handle)),
        ("pcie_width_most", nvml.numbers("nvmlDeviceGetMaxPcieLinkWidth", handle)),
        ("sm_clock", nvml.numbers("nvmlDeviceGetMaxClockInfo", handle, SM_CLOCK)),
    ):
        if numbers is not None:
            found[name] = numbers[0]
    found["clock_reasons"] = nvml.large("nvmlDeviceGetCurrentClocksEventReasons", handle)
    if found["clock_reasons"] is None:  # its name before driver 535
        found["clock_reasons"] = nvml.large("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
    found["ecc_corrected"] = nvml.large("nvmlDeviceGetTotalEccErrors", handle, CORRECTED, AGGREGATE)
    found["ecc_uncorrected"] = nvml.large("nvmlDeviceGetTotalEccErrors", handle, UNCORRECTED, AGGREGATE)
    firmware = ctypes.create_string_buffer(64)  # NVML_GSP_FIRMWARE_VERSION_BUF_SIZE
    if nvml.code("nvmlDeviceGetGspFirmwareVersion", handle, firmware) == 0:
        found["gsp_firmware"] = firmware.value.decode(errors="replace")
    return {name: value for name, value in found.items() if value is not None}


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
    """The pids of processes that compute on it; processes of other containers are unknown."""
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
    started = time.monotonic()
    for index in range(min(count.value, MOST_GPUS)):
        if time.monotonic() - started > HEALTH_SECONDS:
            break  # a driver that is slow does not hang: the other GPUs' links stay unknown
        say(health={"index": index, **health(nvml, index)})


main()
