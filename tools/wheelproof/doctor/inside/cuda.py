"""List the devices of CUDA's driver library, without a context: an exclusive GPU stays free."""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path
from typing import Any

LIBRARY = "libcuda.so.1"
CAPABILITY = (75, 76)  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, ..._MINOR
MOST_DEVICES = 128


def say(**what: object) -> None:
    """Print one line of the answer at once: the next call may be the last."""
    os.write(1, ("\nwheelproof: " + json.dumps(what) + "\n").encode())


def mapped_file(name: str) -> str:
    """The real path of the library loaded under this name."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    paths = [Path(line.split(maxsplit=5)[5]) for line in maps if "/" in line]
    return next((str(path) for path in paths if path.name.startswith(name)), "")


def call(library: ctypes.CDLL, function: str, *arguments: Any) -> bool:
    """Call a function of the library after saying so; True when it gave 0. Any other code ends the answer."""
    say(at=function)
    code: int = getattr(library, function)(*arguments)
    if code:
        say(code=code, failed_at="" if function == "cuInit" else function)
    return code == 0


def device(cuda: ctypes.CDLL, index: int) -> dict[str, Any] | None:
    """The facts that CUDA reports of one device."""
    handle, value, size = ctypes.c_int(), ctypes.c_int(), ctypes.c_size_t()
    if not call(cuda, "cuDeviceGet", ctypes.byref(handle), index):
        return None
    name, uuid = ctypes.create_string_buffer(256), (ctypes.c_ubyte * 16)()
    capability: list[int] = []
    cuda.cuDeviceGetName(name, len(name), handle)
    for attribute in CAPABILITY:
        cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, handle)
        capability.append(value.value)
    facts: dict[str, Any] = {"index": index, "name": name.value.decode(errors="replace"), "capability": capability}
    get_uuid = getattr(cuda, "cuDeviceGetUuid_v2", None) or getattr(cuda, "cuDeviceGetUuid", None)
    if get_uuid and get_uuid(uuid, handle) == 0:
        digits = bytes(uuid).hex()
        facts["uuid"] = "GPU-" + "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    if cuda.cuDeviceTotalMem_v2(ctypes.byref(size), handle) == 0:
        facts["memory_total"] = size.value
    return facts


def main() -> None:
    """Load, initialize, count, describe."""
    say(at="dlopen")
    try:
        cuda = ctypes.CDLL(LIBRARY)
    except OSError as error:
        say(code=-1, fault=str(error))
        return
    say(library=mapped_file("libcuda.so"))
    version, count = ctypes.c_int(), ctypes.c_int()
    try:
        say(at="cuDriverGetVersion")
        if cuda.cuDriverGetVersion(ctypes.byref(version)) == 0:  # answers before cuInit; a stub library does not
            say(driver_cuda=version.value)
        if call(cuda, "cuInit", 0) and call(cuda, "cuDeviceGetCount", ctypes.byref(count)):
            for index in range(min(count.value, MOST_DEVICES)):
                facts = device(cuda, index)
                if facts is None:
                    return
                say(gpu=facts)
            say(code=0)
    except AttributeError as error:  # a library that is not CUDA's
        say(code=-1, fault=str(error))


main()
