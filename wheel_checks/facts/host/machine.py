"""The machine below Python: operating system, container, scheduler, limits."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class System:
    """The operating system and the firmware of the host."""

    machine: str  # uname's: x86_64, aarch64
    kernel: str  # release of the kernel
    os_id: str  # ID of os-release
    os_name: str  # PRETTY_NAME of os-release
    libc: tuple[str, str]  # ("glibc", "2.39") or ("musl", "1.2.5")
    page_size: int  # in bytes
    tegra: str = ""  # first line of /etc/nv_tegra_release; "" elsewhere
    wsl: bool = False  # Windows Subsystem for Linux
    secure_boot: bool | None = None  # None if the firmware does not report it
    lockdown: str = ""  # mode of the kernel's lockdown
    root: bool = False  # whether doctor runs as root
    groups: tuple[str, ...] = ()  # names of the groups of its user
    user: str = ""  # name of its user; "" without one
    emulator: str = ""  # binfmt handler or CPU that shows emulation
    kernel_command_line: str = ""  # /proc/cmdline
    memory_bytes: int = 0  # MemTotal of /proc/meminfo; 0 if unknown
    cma_free_bytes: int | None = None  # CmaFree of /proc/meminfo
    firmware: str = ""  # version of the firmware in DMI ("02.04.07")


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
