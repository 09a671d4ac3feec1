"""DOC301 to DOC322: the GPU, the kernel, the driver and its libraries."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.case import NOTE, WARNING, Case
from tests.support.hosts import (
    DONE,
    DRIVER,
    cuda_fails,
    grace,
    healthy,
    hgx,
    in_container,
    nvml_fails,
    replaced,
    with_variables,
    without_driver,
    without_gpu,
    without_nodes,
)
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.devices import DeviceNode, KernelDriver, PciDevice
from wheel_checks.facts.host.machine import System
from wheel_checks.facts.host.probes import ChildEnd, Counterfactual, CudaProbe, NvmlProbe
from wheel_checks.facts.host.software import CudaLibrary
from wheel_checks.model import Unavailable

PROPRIETARY = f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {DRIVER}  Release Build"
NODES = tuple(DeviceNode(f"/dev/{name}", "0666", "root", "root", "") for name in ("nvidiactl", "nvidia0"))
UVM = DeviceNode("/dev/nvidia-uvm", "0666", "root", "root", "")


def pci(facts: HostFacts, **fields: object) -> HostFacts:
    """The same with other fields of every PCI device."""
    assert not isinstance(facts.pci, Unavailable)
    return replace(facts, pci=tuple(replace(device, **fields) for device in facts.pci))  # type: ignore[arg-type]  # by name


def kernel(facts: HostFacts) -> str:
    assert isinstance(facts.system, System)
    return facts.system.kernel


def not_loaded(**driver: object) -> HostFacts:
    """The driver is installed in some way, and its module is not loaded."""
    empty = KernelDriver("", None, "", (), (), 0, ())
    return replaced(replace(without_driver(healthy()), driver=empty), "driver", **driver)


def libraries(version: str, kind: str = "driver", path: str = "/usr/lib/libcuda.so.1") -> HostFacts:
    library = CudaLibrary("libcuda.so.1", path, version, kind, "ld.so.cache", 10**8)
    return replaced(healthy(), "loader", cuda_libraries=(library,))


def mismatch(version: str, code: int = 18) -> HostFacts:
    return nvml_fails(libraries(version), code)


def mapped(path: str, code: int, **variables: str) -> HostFacts:
    """The loader took another libcuda, and cuInit gives ``code``."""
    return with_variables(cuda_fails(healthy(), code, library=path), **variables)


def proven(facts: HostFacts, folder: str) -> HostFacts:
    assert isinstance(facts.cuda, CudaProbe)
    return replace(facts, counterfactuals=(Counterfactual("LD_LIBRARY_PATH", folder, (facts.cuda.code, 0), (0, 1)),))


def uvm(code: int, *modules: str, node: bool = True) -> HostFacts:
    facts = replaced(cuda_fails(healthy(), code), "driver", modules=("nvidia", *modules))
    return replace(facts, nodes=(*NODES, UVM) if node else NODES)


def hanging(name: str) -> HostFacts:
    facts = healthy()
    end = ChildEnd(hang=True, seconds=20.0, waits_in="rpc_wait")
    if name == "cuda":
        return replace(facts, cuda=CudaProbe(end, 0))
    return replace(facts, nvml=NvmlProbe(end, 0), cuda=CudaProbe(end, 0))


def denied(mode: str, group: str, error: str = "EACCES") -> HostFacts:
    node = DeviceNode("/dev/nvidiactl", mode, "root", group, error)
    return replace(cuda_fails(healthy(), 100), nodes=(node,))


def spark(**system: object) -> HostFacts:
    facts = replace(grace(), pci=(PciDevice("000f:01:00.0", "10de", "2e12", "030200", "nvidia", name="NVIDIA GB10"),))
    return replaced(facts, "system", **{"kernel": "7.0.1-nvidia", "cma_free_bytes": 0, **system})


def sees(count: int) -> HostFacts:
    """An HGX board with eight GPUs, some of which NVML does not see."""
    seen = hgx(count).nvml
    assert isinstance(seen, NvmlProbe)
    return replaced(hgx(8), "nvml", gpus=seen.gpus)


def silent_grace(version: str) -> HostFacts:
    facts = replaced(grace(), "driver", version=version)
    return replace(facts, nvml=NvmlProbe(DONE, 0, driver_version=version))


COMPAT = "/usr/local/cuda-13/compat/libcuda.so.580.65.06"
STUB = "/usr/local/cuda/lib64/stubs/libcuda.so"

CASES = [
    Case(
        "DOC301",
        "no GPU on the bus",
        lambda: without_gpu(healthy()),
        ("this host has no NVIDIA GPU on its PCI bus",),
        NOTE,
    ),
    Case(
        "DOC301",
        "no GPU, and a driver that is loaded",
        lambda: replace(healthy(), pci=(), cuda=CudaProbe(DONE, 100)),
        ("this host has no NVIDIA GPU on its PCI bus, although NVIDIA's driver is loaded",),
    ),
    Case("DOC301", "a GPU", healthy),
    Case("DOC301", "Tegra has no PCI GPU", lambda: replaced(without_gpu(grace()), "system", tegra="# R38 (release)")),
    Case("DOC301", "CUDA sees one that the bus does not show", lambda: healthy(pci=())),
    Case(
        "DOC302",
        "a GPU and nothing of the driver",
        lambda: without_driver(healthy()),
        ("the host has an NVIDIA GPU, but no NVIDIA driver is installed",),
    ),
    Case("DOC302", "a module for another kernel", lambda: not_loaded(built_for=("6.8.0-1-generic",))),
    Case("DOC302", "nouveau holds it", lambda: pci(without_driver(healthy()), driver="nouveau")),
    Case("DOC302", "in a container", lambda: in_container(without_driver(healthy()))),
    Case(
        "DOC303",
        "nouveau",
        lambda: pci(without_driver(healthy()), driver="nouveau"),
        ("the GPU is bound to nouveau, not to NVIDIA's driver",),
        evidence=("nouveau",),
    ),
    Case(
        "DOC303",
        "passed through",
        lambda: pci(without_driver(healthy()), driver="vfio-pci"),
        ("the GPU is bound to vfio-pci, not to NVIDIA's driver",),
    ),
    Case("DOC303", "NVIDIA's own", healthy),
    Case(
        "DOC304",
        "Secure Boot and an unsigned module",
        lambda: replaced(not_loaded(built_for=(kernel(healthy()),)), "system", secure_boot=True),
        (f"Secure Boot blocks the NVIDIA module: it is built for {kernel(healthy())} but not loaded",),
    ),
    Case("DOC304", "no Secure Boot", lambda: not_loaded(built_for=(kernel(healthy()),))),
    Case("DOC304", "Secure Boot and a loaded module", lambda: replaced(healthy(), "system", secure_boot=True)),
    Case(
        "DOC305",
        "a module for the kernel before",
        lambda: not_loaded(built_for=("6.8.0-1-generic",)),
        (f"the NVIDIA module is built for 6.8.0-1-generic, but kernel {kernel(healthy())} is running",),
    ),
    Case("DOC305", "one for this kernel, too", lambda: not_loaded(built_for=("6.8.0-1-generic", kernel(healthy())))),
    Case(
        "DOC306",
        "libraries of a newer driver, and NVML refuses",
        lambda: mismatch("590.12"),
        (f"the kernel runs driver {DRIVER}, but its libraries are 590.12: they do not work together",),
        evidence=(DRIVER, "590.12"),
    ),
    Case(
        "DOC306",
        "cuInit gives 803",
        lambda: replace(libraries("590.12"), cuda=CudaProbe(DONE, 803)),
        (f"the kernel runs driver {DRIVER}, but its libraries are 590.12: they do not work together",),
    ),
    Case("DOC306", "the same version, and NVML fails otherwise", lambda: mismatch(DRIVER)),
    Case("DOC306", "another version, and everything works", lambda: libraries("590.12")),
    Case(
        "DOC307",
        "the proprietary module on Grace Hopper",
        lambda: replaced(grace(), "driver", open=False, version_line=PROPRIETARY),
        ("NVIDIA GH200 480GB requires the open kernel modules, but the proprietary ones are loaded",),
        evidence=(PROPRIETARY,),
    ),
    Case("DOC307", "the proprietary module on H200", lambda: replaced(healthy(), "driver", open=False)),
    Case("DOC307", "the open module on Grace Hopper", grace),
    Case(
        "DOC308",
        "999 without the module",
        lambda: uvm(999, node=False),
        ("the module nvidia_uvm is not loaded: CUDA cannot start without it",),
    ),
    Case(
        "DOC308",
        "999 without the node",
        lambda: uvm(999, "nvidia_uvm", node=False),
        ("/dev/nvidia-uvm is missing: CUDA cannot start without it",),
    ),
    Case("DOC308", "999 with both", lambda: uvm(999, "nvidia_uvm")),
    Case("DOC308", "no node, and CUDA works", lambda: uvm(0, node=False)),
    Case(
        "DOC309",
        "999 with everything there",
        lambda: uvm(999, "nvidia_uvm"),
        (
            "cuInit returned 999 although NVML works and nvidia_uvm and its node are present: most often the module "
            "is stale after a suspend",
        ),
    ),
    Case("DOC309", "999 that a variable explains", lambda: proven(uvm(999, "nvidia_uvm"), "/x")),
    Case("DOC309", "999 without the module", lambda: uvm(999, node=False)),
    Case(
        "DOC310",
        "the module and no library",
        lambda: replaced(replace(healthy(), cuda=CudaProbe(DONE, -1, "not found")), "loader", cuda_libraries=()),
        (f"driver {DRIVER} is loaded, but its library libcuda.so.1 is not installed",),
    ),
    Case(
        "DOC310",
        "a library that the loader does not find",
        lambda: replace(libraries(DRIVER, path="/opt/nv/libcuda.so.1"), cuda=CudaProbe(DONE, -1, "not found")),
        ("libcuda.so.1 is in /opt/nv/libcuda.so.1, where the loader does not search",),
    ),
    Case("DOC310", "a container", lambda: in_container(without_nodes(healthy()))),
    Case("DOC310", "no driver at all", lambda: without_driver(healthy())),
    Case(
        "DOC311",
        "the toolkit's stub first on the path",
        lambda: proven(mapped(STUB, 34, LD_LIBRARY_PATH="/usr/local/cuda/lib64/stubs"), "/usr/local/cuda/lib64/stubs"),
        (f"the loader uses the CUDA toolkit's libcuda stub instead of the driver's: {STUB}",),
        evidence=("cuInit 0, 1 devices (with it: 34)", STUB),
    ),
    Case("DOC311", "the driver's own", healthy),
    Case("DOC311", "another failure of the driver's own", lambda: cuda_fails(healthy(), 999)),
    Case(
        "DOC312",
        "compat with a driver that it does not know",
        lambda: mapped(COMPAT, 803, LD_LIBRARY_PATH="/usr/local/cuda-13/compat"),
        (f"cuda-compat in /usr/local/cuda-13/compat does not support driver {DRIVER} (803)",),
    ),
    Case("DOC312", "803 without compat", lambda: cuda_fails(healthy(), 803)),
    Case(
        "DOC313",
        "compat on other hardware",
        lambda: mapped(COMPAT, 804, LD_LIBRARY_PATH="/usr/local/cuda-13/compat"),
        ("cuda-compat in /usr/local/cuda-13/compat does not support this GPU (NVIDIA H200) (804)",),
    ),
    Case(
        "DOC313",
        "804 of the driver's own libcuda",
        lambda: cuda_fails(healthy(), 804),
        ("the driver's libraries are newer than its loaded module (804), as after an update without a reboot",),
    ),
    Case("DOC313", "compat that works", lambda: mapped(COMPAT, 0)),
    Case(
        "DOC314",
        "an old compat before a new driver",
        lambda: replaced(healthy(), "cuda", library="/usr/local/cuda-12.4/compat/libcuda.so.550.54.15"),
        (f"cuda-compat 550.54.15 shadows the driver's own, newer libcuda {DRIVER}",),
        NOTE,
    ),
    Case(
        "DOC314",
        "a newer compat",
        lambda: replaced(healthy(), "cuda", library="/usr/local/cuda-13.2/compat/libcuda.so.595.10"),
    ),
    Case(
        "DOC315",
        "nodes for a group",
        lambda: denied("0660", "video"),
        ("this user has no access to /dev/nvidiactl: mode 0660, root:video",),
    ),
    Case("DOC315", "a mode that allows it is SELinux's matter", lambda: denied("0666", "root")),
    Case("DOC315", "EPERM is the cgroup's", lambda: denied("0660", "video", "EPERM")),
    Case(
        "DOC316",
        "a configuration space of ones",
        lambda: pci(nvml_fails(healthy(), 15), gone=True),
        ("a GPU has fallen off the bus: 0000:18:00.0",),
    ),
    Case("DOC316", "an old line in the log", lambda: replaced(healthy(), "driver", kernel_messages=("Xid 79",))),
    Case(
        "DOC317",
        "seven of eight",
        lambda: sees(7),
        ("8 GPUs are on the bus, but NVML lists 7",),
    ),
    Case("DOC317", "all eight", hgx),
    Case("DOC317", "a job that was given some", lambda: with_variables(sees(2), SLURM_JOB_ID="1")),
    Case(
        "DOC318",
        "cuInit does not come back",
        lambda: hanging("cuda"),
        ("the driver does not respond: cuInit did not return within 20 s",),
        evidence=("rpc_wait",),
    ),
    Case(
        "DOC318",
        "NVML does not, either",
        lambda: hanging("nvml"),
        ("the driver does not respond: NVML did not return within 20 s",),
    ),
    Case("DOC318", "it answers", healthy),
    Case(
        "DOC319",
        "a Grace Hopper without devices",
        lambda: silent_grace("570.86.10"),
        ("driver 570.86.10 finds no device on this Grace Hopper host: most often its firmware is too old",),
    ),
    Case("DOC319", "driver 560", lambda: silent_grace("560.35.03")),
    Case("DOC319", "it finds devices", grace),
    Case(
        "DOC320",
        "driver 595 with large pages",
        lambda: replaced(grace(), "driver", version="595.45.04"),
        ("driver 595.45.04 faults on large mappings with pages of 64 KiB",),
        WARNING,
    ),
    Case("DOC320", "driver 580 with large pages", grace),
    Case("DOC320", "driver 595 with small pages", lambda: replaced(healthy(), "driver", version="595.45.04")),
    Case(
        "DOC321",
        "kernel 7 on a Spark",
        spark,
        ("kernel 7.0.1-nvidia has no CMA memory left on this GB10: registering memory will fail",),
        WARNING,
    ),
    Case("DOC321", "with kho=off", lambda: spark(kernel_command_line="ro kho=off")),
    Case("DOC321", "kernel 6", lambda: spark(kernel="6.17.0-nvidia")),
    Case(
        "DOC322",
        "999 and HMM in the log",
        lambda: replaced(uvm(999, "nvidia_uvm"), "driver", kernel_messages=("nvidia-uvm: HMM registration failed",)),
        ("cuInit returned 999, and the kernel log mentions HMM: this kernel and this driver are incompatible",),
    ),
    Case("DOC322", "999 alone", lambda: uvm(999, "nvidia_uvm")),
]
