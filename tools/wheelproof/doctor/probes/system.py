"""The operating system, its C library, firmware and memory."""

import os
import pwd
import re
from pathlib import Path

from wheel_checks.facts.host.machine import System
from wheel_checks.sources.regular_file import read_start
from wheelproof.doctor.probes.files import first_line, found_in, group_name, names_in, text_of

_EFI = "sys/firmware/efi/efivars"
_MUSL = ("lib/ld-musl-x86_64.so.1", "lib/ld-musl-aarch64.so.1")


def read_system(root: str = "/") -> System:
    """The system below ``root``. On a fake root the kernel's release and machine are those of its proc/version."""
    top, here = Path(root), root == "/"
    version = text_of(top / "proc/version", 4096)
    release = os.uname().release if here else found_in(version, r"\ALinux version (\S+)")
    about = _os_release(top)
    memory = text_of(top / "proc/meminfo", 16384)
    return System(
        machine=os.uname().machine if here else first_line(top / "machine") or os.uname().machine,
        kernel=release,
        os_id=about.get("ID", ""),
        os_name=about.get("PRETTY_NAME", ""),
        libc=_libc(top, here=here),
        # A fake root says it in a line of proc/meminfo that a real one has not.
        page_size=os.sysconf("SC_PAGESIZE") if here else _kilobytes(memory, "PageSize") or 4096,
        tegra=first_line(top / "etc/nv_tegra_release") or _tegra(top),
        wsl="microsoft" in version.lower() or (top / "dev/dxg").exists(),
        secure_boot=_secure_boot(top),
        lockdown=found_in(first_line(top / "sys/kernel/security/lockdown"), r"\[(\w+)\]"),
        root=here and os.geteuid() == 0,
        user=_user() if here else "",
        groups=tuple(map(group_name, sorted({os.getegid(), *os.getgroups()}))) if here else (),
        emulator=_emulator(top) if here else "",
        kernel_command_line=first_line(top / "proc/cmdline"),
        memory_bytes=_kilobytes(memory, "MemTotal") or 0,
        cma_free_bytes=_kilobytes(memory, "CmaFree"),
        firmware=first_line(top / "sys/class/dmi/id/bios_version"),
    )


def _user() -> str:
    """The name of this process' user; "" for one without a name, as containers have them."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""


def _os_release(top: Path) -> dict[str, str]:
    text = text_of(top / "etc/os-release", 16384) or text_of(top / "usr/lib/os-release", 16384)
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}


def _libc(top: Path, *, here: bool) -> tuple[str, str]:
    if here and (found := _own_libc())[0] == "glibc":
        return found
    if any((top / path).exists() for path in _MUSL):
        return "musl", ""
    for folder in ("lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "usr/lib64", "lib64", "usr/lib"):
        for name in names_in(top / folder):
            if match := re.fullmatch(r"libc-(\d+\.\d+)\.so", name):
                return "glibc", match[1]
    return ("glibc", "") if names_in(top / "lib64") or names_in(top / "usr/lib") else ("", "")


def _own_libc() -> tuple[str, str]:
    """The C library of this process as it names itself; musl has no such name."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (OSError, ValueError):
        return "", ""
    return name, version


def _tegra(top: Path) -> str:
    """The Tegra that the device tree names ("nvidia,tegra234"): in a container the file of Jetson Linux is missing."""
    return next(iter(re.findall(r"nvidia,tegra\d{2,4}", text_of(top / "proc/device-tree/compatible", 4096))), "")


def _secure_boot(top: Path) -> bool | None:
    """The last of five bytes of the variable: four are its attributes (UEFI specification, GetVariable)."""
    for name in names_in(top / _EFI):
        if name.startswith("SecureBoot-"):
            try:
                data = read_start(top / _EFI / name, 5)
            except OSError:
                return None
            return len(data) >= 5 and data[4] == 1
    return None


def _emulator(top: Path) -> str:
    """qemu-user shows itself by the CPU of the machine below, which is another one's."""
    cpu = text_of(top / "proc/cpuinfo", 65536)
    machine = os.uname().machine
    if machine == "aarch64" and re.search(r"^(vendor_id\s*:\s*(Genuine|Authentic))", cpu, re.MULTILINE):
        return "qemu-user: /proc/cpuinfo is that of an x86_64 CPU"
    return ""


def _kilobytes(text: str, name: str) -> int | None:
    """A value of /proc/meminfo in bytes."""
    found = found_in(text, rf"^{name}:\s*(\d+)\s*kB")
    return int(found) * 1024 if found else None
