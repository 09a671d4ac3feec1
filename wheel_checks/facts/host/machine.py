"""The machine below Python: operating system, container, scheduler, limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class System:
    """``machine`` is uname's (x86_64, aarch64), ``kernel`` its release; ``libc`` is ("glibc", "2.39") or ("musl",
    "1.2.5").

    ``page_size`` in bytes. ``tegra`` is the first line of /etc/nv_tegra_release ("" elsewhere). ``secure_boot`` is None
    when the firmware does not say. ``root`` says whether the doctor runs as root; ``groups`` are its group names.
    ``user`` is the name of its user, "" where that has none.
    ``firmware`` is the version of the machine's firmware as DMI has it ("02.04.07"), "" where it says nothing.
    ``emulator`` is the binfmt handler or CPU that shows that this is emulated, "" when it is not.
    """

    machine: str
    kernel: str
    os_id: str
    os_name: str
    libc: tuple[str, str]
    page_size: int
    tegra: str = ""
    wsl: bool = False
    secure_boot: bool | None = None
    lockdown: str = ""
    root: bool = False
    groups: tuple[str, ...] = ()
    user: str = ""
    emulator: str = ""
    kernel_command_line: str = ""
    memory_bytes: int = 0
    cma_free_bytes: int | None = None
    firmware: str = ""


@dataclass(frozen=True, slots=True)
class CdiSpecification:
    """A container device interface file: the device names that it offers, and the host paths in it that do not
    exist.
    """

    path: str
    devices: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Container:
    """``kind`` is docker, podman, kubernetes, containerd, lxc, apptainer, or "" outside of any; ``marks`` say why.

    ``seccomp`` is the mode of /proc/self/status (0 none, 2 filter); ``label`` the security label of this process.
    ``denied`` maps an operation that CUDA needs to the errno name that it gave when tried ("memfd_create": "EPERM",
    "write own comm": "EACCES"). ``toolkit`` are the paths of the NVIDIA container toolkit that were found (on a host),
    ``runtime_options`` its settings that matter ("no-cgroups": "true (/etc/nvidia-container-runtime/config.toml:7)").
    """

    kind: str
    marks: tuple[str, ...] = ()
    seccomp: int = 0
    label: str = ""
    denied: Mapping[str, str] | None = None
    cdi: tuple[CdiSpecification, ...] = ()
    toolkit: tuple[str, ...] = ()
    docker: str = ""
    runtime_options: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """``shm_bytes`` is the size of /dev/shm (0 when it is missing), ``memlock_bytes`` None for no limit.

    ``address_space_bytes`` is how much a process may map (``ulimit -v``), and ``address_space_hard`` how far its user
    may raise that; None for no limit.
    """

    shm_bytes: int
    memlock_bytes: int | None
    address_space_bytes: int | None = None
    address_space_hard: int | None = None


@dataclass(frozen=True, slots=True)
class Mount:
    """The mount that holds ``path``: file system type, and the options noexec and ro."""

    path: str
    point: str
    type: str
    noexec: bool
    read_only: bool
