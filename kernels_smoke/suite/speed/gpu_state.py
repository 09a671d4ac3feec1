"""Read a GPU's state from NVML: clocks, power, temperature, reasons for lower clocks, and other users.

NVML, the library of nvidia-smi, is called by ctypes: it comes with the driver. Functions and constants: NVML API
Reference Guide, "Device Queries" and "NvmlClocksEventReasons".
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
SUCCESS = 0
MOST_GPUS, MOST_INSTANCES, MOST_PROCESSES = 128, 16, 64
SM_CLOCK, MEMORY_CLOCK = 1, 2  # nvmlClockType_t
GPU_TEMPERATURE = 0  # nvmlTemperatureSensors_t

# Bits of nvmlDeviceGetCurrentClocksThrottleReasons. 0x1 (idle) is omitted: a GPU between two kernels is not a finding.
REASONS = {
    0x2: "application clocks are set",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "synchronised with a slower GPU",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake of the server",
    0x100: "display clocks are set",
}


class _Memory(ctypes.Structure):
    """nvmlMemory_t."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class _MemoryV2(ctypes.Structure):
    """nvmlMemory_v2_t, whose ``used`` excludes memory reserved by the driver."""

    _fields_ = [
        ("version", ctypes.c_uint),
        *((name, ctypes.c_ulonglong) for name in ("total", "reserved", "free", "used")),
    ]


class _Process(ctypes.Structure):
    """nvmlProcessInfo_v2_t."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class _Utilization(ctypes.Structure):
    """nvmlUtilization_t, in percent of the last sample period."""

    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


@dataclass(frozen=True)
class Monitor:
    """One GPU as NVML answers for it. ``open`` makes one; without NVML it knows nothing, and says so by ``{}``."""

    library: Any = None
    device: Any = None

    @classmethod
    def open(cls, uuid: str) -> Monitor:
        """The monitor of the GPU ``uuid`` (``GPU-...``). Not of a number: CUDA_VISIBLE_DEVICES changes CUDA's alone."""
        library, device = _opened(), ctypes.c_void_p()
        try:
            if library is None or library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(device)) != SUCCESS:
                return cls()
        except AttributeError:  # the library is too old to have the function
            return cls()
        return cls(library, device)

    def read(self) -> dict[str, Any]:
        """The current state: ``sm_clock_mhz``, ``power_watts``, ``held_down_by`` (reasons in words) and so on.

        Values that this GPU or driver does not report are missing.
        """
        if self.library is None:
            return {}
        state = {
            "sm_clock_mhz": self._ask("nvmlDeviceGetClockInfo", SM_CLOCK),
            "sm_clock_limit_mhz": self._ask("nvmlDeviceGetMaxClockInfo", SM_CLOCK),
            "memory_clock_mhz": self._ask("nvmlDeviceGetClockInfo", MEMORY_CLOCK),
            "temperature_celsius": self._ask("nvmlDeviceGetTemperature", GPU_TEMPERATURE),
            "power_watts": _watts(self._ask("nvmlDeviceGetPowerUsage")),
            "power_limit_watts": _watts(self._ask("nvmlDeviceGetEnforcedPowerLimit")),
            "power_default_watts": _watts(self._ask("nvmlDeviceGetPowerManagementDefaultLimit")),
            "held_down_by": reasons(self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)),
        }
        return {name: value for name, value in state.items() if value is not None}

    def users(self, ours: Collection[int] = ()) -> dict[str, Any]:
        """Who else uses the GPU: ``processes`` (pid, name, memory_bytes), and how much of it is used.

        The ``utilization_percent`` of the last moments, and ``memory_used_bytes``; unknown values are missing.
        Processes with the numbers ``ours`` are omitted. In a container NVML hides other containers' processes, but
        counts their memory and work.
        """
        if self.library is None:
            return {}
        found: dict[str, Any] = {}
        count, infos = ctypes.c_uint(MOST_PROCESSES), (_Process * MOST_PROCESSES)()
        if self._call("nvmlDeviceGetComputeRunningProcesses_v3", ctypes.byref(count), infos):
            others = [info for info in infos[: count.value] if info.pid not in ours]
            found["processes"] = [self._process(info) for info in others]
        utilization, memory, newer = _Utilization(), _Memory(), _MemoryV2()
        newer.version = ctypes.sizeof(_MemoryV2) | 2 << 24
        if self._call("nvmlDeviceGetUtilizationRates", ctypes.byref(utilization)):
            found["utilization_percent"] = utilization.gpu
        if self._call("nvmlDeviceGetMemoryInfo_v2", ctypes.byref(newer)):
            found["memory_used_bytes"] = newer.used
        elif self._call("nvmlDeviceGetMemoryInfo", ctypes.byref(memory)):
            found["memory_used_bytes"] = memory.used
        return found

    def _process(self, info: _Process) -> dict[str, Any]:
        name = ctypes.create_string_buffer(256)
        try:
            known = self.library.nvmlSystemGetProcessName(info.pid, name, len(name)) == SUCCESS
        except AttributeError:
            known = False
        memory = info.memory if info.memory < 1 << 63 else None  # NVML_VALUE_NOT_AVAILABLE
        return {"pid": info.pid, "name": name.value.decode(errors="replace") if known else "", "memory_bytes": memory}

    def _call(self, function: str, *arguments: Any) -> bool:
        try:
            return int(getattr(self.library, function)(self.device, *arguments)) == SUCCESS
        except AttributeError:
            return False

    def _ask(self, function: str, *selectors: int, kind: Any = ctypes.c_uint) -> int | None:
        answer = kind()
        try:
            status = getattr(self.library, function)(self.device, *selectors, ctypes.byref(answer))
        except AttributeError:  # the driver is too old, or too new, for it
            return None
        return int(answer.value) if status == SUCCESS else None


def listed() -> list[dict[str, Any]]:
    """The GPUs that NVML lists: ``index``, ``uuid`` ("" for a lost one) and the UUIDs of its ``instances`` (MIG).

    Empty where NVML does not answer. CUDA_VISIBLE_DEVICES has no effect on NVML.
    """
    library, count = _opened(), ctypes.c_uint()
    if library is None or library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != SUCCESS:
        return []
    return [_listed(library, index) for index in range(min(count.value, MOST_GPUS))]


def _opened() -> Any:
    try:
        library = ctypes.CDLL(LIBRARY)
        return library if library.nvmlInit_v2() == SUCCESS else None
    except (OSError, AttributeError):  # no library, or no NVML
        return None


def _listed(library: Any, index: int) -> dict[str, Any]:
    device, instance = ctypes.c_void_p(), ctypes.c_void_p()
    if library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device)) != SUCCESS:
        return {"index": index, "uuid": "", "instances": []}
    instances = []
    for number in range(MOST_INSTANCES if hasattr(library, "nvmlDeviceGetMigDeviceHandleByIndex") else 0):
        if library.nvmlDeviceGetMigDeviceHandleByIndex(device, number, ctypes.byref(instance)) != SUCCESS:
            break
        instances.append(_uuid(library, instance))
    return {"index": index, "uuid": _uuid(library, device), "instances": instances}


def _uuid(library: Any, device: ctypes.c_void_p) -> str:
    uuid = ctypes.create_string_buffer(96)
    return uuid.value.decode() if library.nvmlDeviceGetUUID(device, uuid, len(uuid)) == SUCCESS else ""


def reasons(bits: int | None) -> list[str] | None:
    """The reasons that ``bits`` name, in words; None when they are unknown."""
    return None if bits is None else [words for bit, words in REASONS.items() if bits & bit]


def describe(state: Mapping[str, Any]) -> str:
    """The state in one line; empty when nothing is known."""
    parts = []
    for label, value, limit, unit in (
        ("SM clock", "sm_clock_mhz", "sm_clock_limit_mhz", "MHz"),
        ("memory clock", "memory_clock_mhz", "", "MHz"),
        ("power", "power_watts", "power_limit_watts", "W"),
        ("temperature", "temperature_celsius", "", "degrees Celsius"),
    ):
        if value in state:
            of = f" of {state[limit]}" if limit in state else ""
            parts.append(f"{label} {state[value]}{of} {unit}")
    return ", ".join(parts)


def explain(state: Mapping[str, Any]) -> str:
    """A clause with the reason for lower clocks; "" without one, or if unknown."""
    if not state.get("held_down_by"):
        return ""
    return f"the GPU's clocks were held down: {', '.join(filter(None, (*state['held_down_by'], describe(state))))}"


def _watts(milliwatts: int | None) -> int | None:
    return None if milliwatts is None else round(milliwatts / 1000)
