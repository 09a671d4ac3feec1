"""GPUs and their driver, as the kernel's files show them: nothing of this can hang, and nothing of it needs root."""

from collections.abc import Mapping
from dataclasses import dataclass, field

_AMD = "1002"
_MAKERS = {"10de": "NVIDIA", _AMD: "AMD", "8086": "Intel"}  # by the vendor on the PCI bus


@dataclass(frozen=True, slots=True)
class PciDevice:
    """``vendor``, ``device`` and ``class_`` are hexadecimal without 0x ("10de", "2330", "030200").

    ``driver`` is the module that is bound ("nvidia", "nouveau", "vfio-pci", "" if none). ``gone`` is True when the
    configuration space reads all ones: the device has fallen off the bus. ``name`` is from our table, "" beyond it.
    """

    address: str
    vendor: str
    device: str
    class_: str
    driver: str
    gone: bool = False
    name: str = ""

    @property
    def maker(self) -> str:
        """Whose GPU it is: "NVIDIA", "AMD" or "Intel"; "" for what is no GPU, or another maker's.

        AMD's Instinct are processing accelerators (class 12), as no GPU of NVIDIA's or Intel's is.
        """
        classes = ("03", "12") if self.vendor == _AMD else ("03",)
        return _MAKERS.get(self.vendor, "") if self.class_.startswith(classes) else ""

    @property
    def is_nvidia_gpu(self) -> bool:
        """A display or 3D controller of NVIDIA's."""
        return self.vendor == "10de" and self.class_.startswith(("0300", "0302"))

    @property
    def is_nvswitch(self) -> bool:
        """An NVSwitch: a bridge of NVIDIA's."""
        return self.vendor == "10de" and self.class_.startswith("0680")


@dataclass(frozen=True, slots=True)
class KernelDriver:
    """The kernel side of NVIDIA's driver.

    ``version`` is /sys/module/nvidia/version ("" when it is not loaded; in a container the host's is visible), ``open``
    whether /proc/driver/nvidia/version says "Open Kernel Module", None when that file is missing. ``modules`` are the
    loaded modules that matter (nvidia, nvidia_uvm, nvidia_modeset, nouveau, ib_umad, ...). ``built_for`` are kernel
    releases for which an nvidia.ko exists. ``gpus`` counts /proc/driver/nvidia/gpus. ``majors`` are the names of
    /proc/devices that start with nvidia. ``device_file_mode`` is that of /proc/driver/nvidia/params, octal.
    """

    version: str
    open: bool | None
    version_line: str
    modules: tuple[str, ...]
    built_for: tuple[str, ...]
    gpus: int
    majors: tuple[str, ...]
    device_file_mode: str = ""
    kernel_messages: tuple[str, ...] = ()  # Xid, NVRM and module lines of the kernel's log, when it may be read
    xids: tuple[int, ...] | None = None  # the numbers in it, each once; None when it may not be read


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A file of /dev that stands for a device: ``error`` is the errno name of opening it ("" when that works, ENOENT
    when it is missing).
    """

    path: str
    mode: str
    owner: str
    group: str
    error: str


@dataclass(frozen=True, slots=True)
class Services:
    """What runs besides: ``processes`` are those that matter, by name (nv-fabricmanager, nvidia-imex, nvlsm, mps).

    ``fabric_manager`` is the version of the installed package ("" if none exists); ``mps_control`` the path of an
    MPS control pipe that exists.
    """

    processes: tuple[str, ...]
    fabric_manager: str = ""
    imex_nodes: tuple[str, ...] = ()
    mps_control: str = ""


@dataclass(frozen=True, slots=True)
class KfdGpu:
    """A GPU in the topology of amdkfd: ``node`` is its number there, ``target`` the processor that compilers know
    ("gfx942"), ``render`` its node in /dev/dri, and ``device`` its number on the PCI bus, hexadecimal ("74a1").
    """

    node: int
    target: str
    render: str = ""
    device: str = ""


@dataclass(frozen=True, slots=True)
class OtherDrivers:
    """The drivers of AMD's and Intel's GPUs, as files show them.

    ``modules`` are those of amdgpu, i915 and xe that are loaded, ``amdgpu`` the version that AMD's own release of the
    module has ("" for the kernel's), ``rocm`` the version in /opt/rocm. ``nodes`` are /dev/kfd and /dev/dri/renderD*;
    /dev/kfd is among them also when it is missing, where amdgpu is loaded. ``level_zero`` are the files of the Level
    Zero loader and of its driver for Intel's GPUs that exist, by soname.
    """

    modules: tuple[str, ...] = ()
    amdgpu: str = ""
    rocm: str = ""
    nodes: tuple[DeviceNode, ...] = ()
    gpus: tuple[KfdGpu, ...] = ()
    level_zero: Mapping[str, str] = field(default_factory=dict)
