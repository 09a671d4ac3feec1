"""What a GPU is doing while it is timed: clocks, power, temperature, and what holds its clocks down.

Asked of NVML, the library behind nvidia-smi, through ctypes: it comes with the driver, and needs no package. Functions
and constants: NVML API Reference Guide, "Device Queries" and "NvmlClocksEventReasons".
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

LIBRARY = "libnvidia-ml.so.1"
SUCCESS = 0
SM_CLOCK, MEMORY_CLOCK = 1, 2  # nvmlClockType_t
GPU_TEMPERATURE = 0  # nvmlTemperatureSensors_t

# Bits of nvmlDeviceGetCurrentClocksThrottleReasons. 0x1 (idle) is left out: a GPU between two kernels is no finding.
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


@dataclass(frozen=True)
class Monitor:
    """One GPU as NVML answers for it. ``open`` makes one; without NVML it knows nothing, and says so by ``{}``."""

    library: Any = None
    device: Any = None

    @classmethod
    def open(cls, uuid: str) -> Monitor:
        """The monitor of the GPU ``uuid`` (``GPU-...``). Not of a number: CUDA_VISIBLE_DEVICES changes CUDA's alone."""
        try:
            library = ctypes.CDLL(LIBRARY)
            device = ctypes.c_void_p()
            if library.nvmlInit_v2() != SUCCESS:
                return cls()
            if library.nvmlDeviceGetHandleByUUID(uuid.encode(), ctypes.byref(device)) != SUCCESS:
                return cls()
        except (OSError, AttributeError):  # no library, or one too old to have the function
            return cls()
        return cls(library, device)

    def read(self) -> dict[str, Any]:
        """What is known now: ``sm_clock_mhz``, ``power_watts``, ``held_down_by`` (reasons in words) and so on.

        What this GPU or this driver does not tell is missing.
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
            "held_down_by": reasons(self._ask("nvmlDeviceGetCurrentClocksThrottleReasons", kind=ctypes.c_ulonglong)),
        }
        return {name: value for name, value in state.items() if value is not None}

    def _ask(self, function: str, *selectors: int, kind: Any = ctypes.c_uint) -> int | None:
        answer = kind()
        try:
            status = getattr(self.library, function)(self.device, *selectors, ctypes.byref(answer))
        except AttributeError:  # the driver is too old, or too new, for it
            return None
        return int(answer.value) if status == SUCCESS else None


def reasons(bits: int | None) -> list[str] | None:
    """The reasons that ``bits`` name, in words; None when they are not known."""
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
    """One clause that says what holds the clocks down; empty when nothing does, or nothing is known."""
    if not state.get("held_down_by"):
        return ""
    return f"the GPU's clocks were held down: {', '.join(filter(None, (*state['held_down_by'], describe(state))))}"


def _watts(milliwatts: int | None) -> int | None:
    return None if milliwatts is None else round(milliwatts / 1000)
