"""The NVIDIA driver as it answers: by ctypes alone, in its own process.

A driver can hang, and can take the process with it. So ``driver.py`` starts this module as a program, with a
deadline: it calls the driver and prints one JSON object, what :func:`answer` returns.

Functions, attributes and codes are those of the CUDA driver API reference (cuda.h of CUDA 13.0).
"""

import contextlib
import ctypes
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from kernels_smoke.suite.advice import command, docker_run
from kernels_smoke.suite.probes.answer import Answer, record
from kernels_smoke.suite.probes.driver_faults import DEVICES, explain
from kernels_smoke.suite.speed.gpu_state import Monitor, listed

LIBRARY = "libcuda.so.1"
KERNEL_MODULE = Path("/proc/driver/nvidia/version")
LIBRARIES = (
    docker_run("--gpus", "all", "-e", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"),
    "on the machine itself: install the driver's libraries (libnvidia-compute), then sudo ldconfig",
)
NO_DRIVER = (
    docker_run("--gpus", "all", note="in a container, with the NVIDIA container toolkit on the machine"),
    "on the machine itself: install the NVIDIA driver, then reboot",
    "without a GPU: python -m kernels_smoke --device interpret, or --compile-only --target sm_90",
)
BUSY = 10  # percent
SAMPLED = 1.5  # seconds: NVML counts the work of the last one at most (nvmlDeviceGetUtilizationRates)
COMPUTE_MODES = {0: "default", 2: "prohibited", 3: "exclusive process"}  # CUcomputemode


@dataclass(frozen=True)
class Driver:
    """``version`` is that of the kernel module (580.159.04), ``cuda`` the newest CUDA that it runs (13.0)."""

    version: str
    cuda: str
    library: str


@dataclass(frozen=True)
class Gpu:
    """One GPU, numbered as CUDA does, after CUDA_VISIBLE_DEVICES. Clocks are the greatest, not the present ones.

    ``uuid`` begins with ``GPU-``, or with ``MIG-`` for an instance of one. ``state`` is what NVML says of the GPU and
    of those who use it, before this suite does; empty where it says nothing.
    """

    index: int
    name: str
    target: str
    memory_bytes: int
    multiprocessors: int
    shared_memory_bytes: int
    clock_mhz: int
    memory_clock_mhz: int
    compute_mode: str
    uuid: str
    state: Mapping[str, Any] = field(default_factory=dict)


class DriverError(Exception):
    """``function`` returned ``code``, which is not CUDA_SUCCESS."""

    def __init__(self, function: str, code: int) -> None:
        super().__init__(f"{function} returned {code}")
        self.function = function
        self.code = code


def answers() -> Iterator[dict[str, Any]]:
    """``{"driver": ... or None, "gpus": [...], "probe": record, "listed": [...]}``, as the document holds them.

    First as CUDA's driver answers, then with what NVML adds: the states of the GPUs, and which there are (``listed``).
    """
    begun = time.monotonic()
    driver, gpus, found = _inquire()
    said = {
        "driver": asdict(driver) if driver else None,
        "gpus": [asdict(gpu) for gpu in gpus],
        "probe": record("driver", found, time.monotonic() - begun),
        "listed": [],
    }
    yield said
    stated = [asdict(replace(gpu, state=state)) for gpu, state in zip(gpus, _states(gpus), strict=True)]
    yield said | {"gpus": stated, "listed": listed()}


def _states(gpus: Sequence[Gpu]) -> list[dict[str, Any]]:
    """What NVML says of each. Where one is busy all are asked again: what has just ended counts for a second."""
    monitors = [Monitor.open(gpu.uuid) for gpu in gpus]
    users = [monitor.users() for monitor in monitors]
    if any(each.get("utilization_percent", 0) >= BUSY for each in users):
        time.sleep(SAMPLED)
        users = [monitor.users() for monitor in monitors]
    return [monitor.read() | each for monitor, each in zip(monitors, users, strict=True)]


def _inquire() -> tuple[Driver | None, list[Gpu], Answer]:
    try:
        library = ctypes.CDLL(LIBRARY)
    except OSError as error:
        return None, [], _without_library(str(error))
    path = loaded_library()
    driver = Driver(module_version() or _version_in_name(path), "", path)
    try:
        driver = Driver(driver.version, _cuda_version(library), path)
        _call(library, "cuInit", 0)
        gpus = [_gpu(library, index) for index in range(_count(library))]
    except DriverError as error:
        return driver, [], _failed(error, driver)
    except AttributeError as error:  # ctypes found no such function
        fix = ("find out who put it before the driver's own: LD_LIBRARY_PATH, or /etc/ld.so.conf.d",)
        return driver, [], Answer("fail", f"{path} is not an NVIDIA driver: {error}", _evidence(driver), fix)
    if all(gpu.compute_mode == "prohibited" for gpu in gpus):
        message = f"the first GPU, {gpus[0].name}, is in the compute mode 'prohibited': nothing may run on it"
        mode = (command("sudo", "nvidia-smi", "-i", "0", "--compute-mode=DEFAULT"),)
        return driver, gpus, Answer("fail", message, _evidence(driver), mode)
    names = ", ".join(f"{gpu.name} ({gpu.target})" for gpu in gpus)
    message = f"driver {driver.version or 'of unknown version'} runs CUDA up to {driver.cuda}: {names}"
    return driver, gpus, Answer("pass", message, _evidence(driver))


def _without_library(error: str) -> Answer:
    evidence = {"loading": error, "kernel module": module_version() or "none"}
    if "No such file" not in error:
        message = f"{LIBRARY} is there and cannot be loaded: {error}"
        return Answer("fail", message, evidence, ("reinstall the NVIDIA driver's user libraries (libnvidia-compute)",))
    if module_version():
        message = f"the NVIDIA kernel module runs, but its library {LIBRARY} is not found: a container without it?"
        return Answer("error", message, evidence, LIBRARIES)
    message = f"no NVIDIA driver: {LIBRARY} is not found, and no NVIDIA kernel module is loaded"
    return Answer("error", message, evidence, NO_DRIVER)


def _failed(error: DriverError, driver: Driver) -> Answer:
    fault = explain(34 if "/stubs/" in driver.library else error.code)  # stubs of old toolkits answer something else
    message = f"the NVIDIA driver does not start: {fault.meaning} ({error.function} returned {error.code})"
    return Answer(fault.outcome, message, {"error": fault.name, **_evidence(driver)}, fault.fix)


def _evidence(driver: Driver) -> dict[str, str]:
    evidence = {
        "library": driver.library,
        "version of the library": _version_in_name(driver.library) or "not in its name",
        "version of the kernel module": module_version() or "unknown",
        "CUDA version": driver.cuda,
        "device files": ", ".join(sorted(path.name for path in DEVICES.glob("nvidia*"))) or "none",
    }
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        evidence["CUDA_VISIBLE_DEVICES"] = visible
    return evidence


def loaded_library() -> str:
    """The file from which this process has the driver's library, with links resolved; "" when it has none."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:  # noqa: PTH123  # one file of /proc
        return next((line.split(maxsplit=5)[5].strip() for line in maps if "/libcuda.so" in line), "")


def module_version() -> str:
    """The version of the loaded NVIDIA kernel module; "" if there isn't one."""
    with contextlib.suppress(OSError):
        return version_in(KERNEL_MODULE.read_text(encoding="utf-8"))
    return ""


def version_in(text: str) -> str:
    """The version in the text of ``KERNEL_MODULE``: ``NVRM version: NVIDIA UNIX ... Kernel Module  580.65.06  ...``."""
    found = re.search(r"^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s", text, re.MULTILINE)
    return found[1] if found else ""


def _version_in_name(library: str) -> str:
    """``libcuda.so.580.65.06`` is the file to which libcuda.so.1 leads."""
    found = re.search(r"\.so\.(\d+\.\d+(?:\.\d+)?)$", library)
    return found[1] if found else ""


def _call(library: ctypes.CDLL, function: str, *arguments: Any) -> None:
    code = getattr(library, function)(*arguments)
    if code:
        raise DriverError(function, code)


def _cuda_version(library: ctypes.CDLL) -> str:
    """``13.0``. This function needs no cuInit, but that of a stub library fails."""
    number = ctypes.c_int()
    _call(library, "cuDriverGetVersion", ctypes.byref(number))
    return f"{number.value // 1000}.{number.value % 1000 // 10}"


def _count(library: ctypes.CDLL) -> int:
    count = ctypes.c_int()
    _call(library, "cuDeviceGetCount", ctypes.byref(count))
    if not count.value:
        raise DriverError("cuDeviceGetCount", 100)
    return count.value


def _gpu(library: ctypes.CDLL, index: int) -> Gpu:
    device, memory = ctypes.c_int(), ctypes.c_size_t()
    name, uuid = ctypes.create_string_buffer(256), (ctypes.c_ubyte * 16)()
    _call(library, "cuDeviceGet", ctypes.byref(device), index)
    _call(library, "cuDeviceGetName", name, len(name), device)
    _call(library, "cuDeviceTotalMem_v2", ctypes.byref(memory), device)
    _call(library, "cuDeviceGetUuid_v2", uuid, device)

    def attribute(number: int) -> int:
        value = ctypes.c_int()
        _call(library, "cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    digits, said = bytes(uuid).hex(), name.value.decode(errors="replace")
    kind = "MIG" if " MIG " in said else "GPU"
    mode = attribute(20)  # CU_DEVICE_ATTRIBUTE_COMPUTE_MODE
    return Gpu(
        index=index,
        name=said,
        target=f"sm_{attribute(75)}{attribute(76)}",  # ..._COMPUTE_CAPABILITY_MAJOR, _MINOR
        memory_bytes=memory.value,
        multiprocessors=attribute(16),  # ..._MULTIPROCESSOR_COUNT
        shared_memory_bytes=attribute(97),  # ..._MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        clock_mhz=attribute(13) // 1000,  # ..._CLOCK_RATE, in kHz
        memory_clock_mhz=attribute(36) // 1000,  # ..._MEMORY_CLOCK_RATE, in kHz
        compute_mode=COMPUTE_MODES.get(mode, str(mode)),
        uuid=f"{kind}-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}",
    )


if __name__ == "__main__":
    for said in answers():
        print(json.dumps(said), flush=True)  # noqa: T201  # this program's answer; the last line counts
