"""The kernel's side of NVIDIA's driver: modules, /proc/driver/nvidia, and what the kernel's log says."""

import os
import re
from pathlib import Path

from wheel_checks.facts.host.gpu import KernelDriver
from wheelproof.doctor.probes.files import first_line, found_in, names_in, text_of

_MODULES: tuple[str, ...] = (
    "nvidia",
    "nvidia_uvm",
    "nvidia_modeset",
    "nvidia_drm",
    "nvidia_peermem",
    "nouveau",
    "nova_core",
    "vfio_pci",
)
_MODULES += ("ib_umad", "ib_uverbs", "mlx5_ib", "mlx5_core")
_OPEN = "Open Kernel Module"
_PLACES = (
    "updates/dkms",
    "updates",
    "extra",
    "kernel/drivers/video",
    "kernel/nvidia-*",
    "extra/nvidia*",
    "weak-updates/nvidia",
)
_TELLING = re.compile(r"NVRM|Xid|nvidia|nouveau|Key was rejected|module verification", re.IGNORECASE)
_XID = re.compile(r"NVRM: Xid \(PCI:[0-9a-fA-F:.]+\): (\d{1,4})\b")
_MOST_LINES = 40
_LOGS = ("var/log/kern.log", "var/log/dmesg", "var/log/syslog", "var/log/messages")
_KMSG_BYTES = 8192  # of one record of /dev/kmsg
_KMSG_RECORDS = 20_000


def read_driver(root: str = "/") -> KernelDriver:
    """What the files below ``root`` show. In a container most of it is the host's."""
    top = Path(root)
    devices = (line.split() for line in text_of(top / "proc/devices", 65536).splitlines())
    line = first_line(top / "proc/driver/nvidia/version")
    parameters = text_of(top / "proc/driver/nvidia/params", 16384)
    mode = found_in(parameters, r"^DeviceFileMode:\s*(\d+)")
    log = _log(top)
    return KernelDriver(
        version=first_line(top / "sys/module/nvidia/version") or found_in(line, r"\b(\d{3}\.\d+(?:\.\d+)?)\b"),
        open=(_OPEN in line) if line else None,
        version_line=line,
        modules=tuple(name for name in _MODULES if (top / "sys/module" / name).is_dir()),
        built_for=tuple(_built_for(top)),
        gpus=len(names_in(top / "proc/driver/nvidia/gpus")),
        majors=tuple(parts[1] for parts in devices if len(parts) == 2 and "nvidia" in parts[1]),
        device_file_mode=f"0{int(mode):o}" if mode else "",
        kernel_messages=tuple([line[-400:] for line in log or () if _TELLING.search(line)][-_MOST_LINES:]),
        xids=None if log is None else tuple(sorted({int(found[1]) for line in log if (found := _XID.search(line))})),
    )


def _built_for(top: Path) -> list[str]:
    """The kernel releases for which an nvidia.ko is where installers put it (compressed or not)."""
    modules = top / "lib/modules"
    return [
        release
        for release in names_in(modules, 64)
        if any(next(iter((modules / release).glob(f"{place}/nvidia.ko*")), None) for place in _PLACES)
    ]


def _log(top: Path) -> list[str] | None:
    """The lines of the kernel's ring buffer, or of a log file; None when neither may be read."""
    lines = _ring_buffer(top / "dev/kmsg") if top == Path("/") else []
    for path in _LOGS:
        if not lines:
            lines = text_of(top / path).splitlines()
    return lines or None


def _ring_buffer(path: Path) -> list[str]:
    """The messages of /dev/kmsg, one record a read; it never waits."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return []
    lines = []
    try:
        for _ in range(_KMSG_RECORDS):
            if not (record := os.read(descriptor, _KMSG_BYTES)):
                break
            lines.append(record.decode(errors="replace").partition(";")[2].splitlines()[0])
    except (OSError, IndexError):  # EAGAIN at the end; EPIPE when records were overwritten meanwhile
        pass
    finally:
        os.close(descriptor)
    return lines
