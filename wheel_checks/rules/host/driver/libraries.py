"""Section C, its second half: libcuda, permissions, and faults of certain kernels and firmware."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.pci_names import needs_open_modules
from wheel_checks.facts.host.probes import CudaProbe, NvmlProbe
from wheel_checks.facts.host.software import CudaLibrary
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.rules.host.cause import Layer, cause

NO_CUDA = ("cuda:*", "torch:unavailable", "torch:init", "kernel:failed")
# Open-gpu-kernel-modules#1269: mappings of 4 GiB and more fault on kernels with pages of 64 KiB
FAULTY_ON_64K = ("595.", "610.43")
LARGE_PAGES = 65536


def _cuda(facts: HostFacts) -> CudaProbe:
    return need(facts.cuda)


def _in_container(facts: HostFacts) -> bool:
    return not isinstance(facts.container, Unavailable) and bool(facts.container.kind)


def _kind(facts: HostFacts, path: str) -> str:
    """What the libcuda at ``path`` is: by the loader's facts, else by its folder."""
    known: tuple[CudaLibrary, ...] = () if isinstance(facts.loader, Unavailable) else facts.loader.cuda_libraries
    for library in known:
        # The name with 1 is a link: what is mapped has the version in its name.
        if path in {library.path, f"{library.path.removesuffix('.1')}.{library.version}"}:
            return library.kind
    if "/stubs/" in path:
        return "stub"
    return "compat" if "/compat/" in path else ""


def _who_named(facts: HostFacts, folder: str) -> Iterator[Evidence]:
    """Where the loader got a folder from."""
    for entry in facts.variables.get("LD_LIBRARY_PATH", "").split(":"):
        if entry and (entry.rstrip("/") == folder or folder.startswith(entry.rstrip("/") + "/")):
            yield Evidence("LD_LIBRARY_PATH", entry, "environment")


def _proof(facts: HostFacts) -> Iterator[Evidence]:
    for fact in facts.counterfactuals:
        if fact.variable.startswith("LD_LIBRARY_PATH") and fact.proves:
            value = f"cuInit {fact.after[0]}, {fact.after[1]} devices (with it: {fact.before[0]})"
            yield Evidence(f"without {fact.variable}", value, "the probe, again")


def _without(facts: HostFacts, folder: str) -> str:
    """The command that takes one folder out of LD_LIBRARY_PATH, or the whole variable when nothing is left."""
    entries = [entry for entry in facts.variables.get("LD_LIBRARY_PATH", "").split(":") if entry]
    left = [entry for entry in entries if entry.rstrip("/") != folder]
    return f"export LD_LIBRARY_PATH={':'.join(left)}" if left else "unset LD_LIBRARY_PATH"


@cause(
    "C10",
    "libcuda.so.1 is there",
    layer=Layer.USERSPACE,
    explains=("cuda:-1", "torch:unavailable", "torch:init", "kernel:failed"),
    why="The module is loaded and the driver's compute library is not installed: drivers come in packages, and the "
    "one for servers without CUDA leaves it out.",
    example="OSError: libcuda.so.1: cannot open shared object file: No such file or directory",
    fix="Install the compute libraries of the loaded driver's version.",
    sources="triton#2110",
    tested="facts; a machine without any libcuda",
)
def libcuda_missing(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The module runs, and libcuda cannot be loaded, outside of containers (there E01 and E08 say why)."""
    driver, cuda, loader = need(facts.driver), _cuda(facts), need(facts.loader)
    if cuda.code != -1 or not driver.version or _in_container(facts):
        return
    elsewhere = [lib for lib in loader.cuda_libraries if lib.name == "libcuda.so.1" and lib.kind == "driver"]
    if not need(facts.system).wsl:
        branch = driver.version.partition(".")[0]
        if elsewhere:
            message = f"libcuda.so.1 is in {elsewhere[0].path}, where the loader does not look"
            fix = Fix("Let the loader know the folder.", ("sudo ldconfig",))
        else:
            message = f"driver {driver.version} is loaded, and its library libcuda.so.1 is not installed"
            fix = Fix("Install it.", (f"sudo apt-get install libnvidia-compute-{branch}", "sudo ldconfig"))
        yield Finding(message, (Evidence("dlopen", cuda.fault), Evidence("module", driver.version)), fix)


@cause(
    "C11",
    "libcuda.so.1 is the driver's, not the toolkit's stub",
    layer=Layer.USERSPACE,
    explains=("cuda:34", *NO_CUDA),
    why="The toolkit has a libcuda in a folder named stubs, to link against where no driver is. When that folder is "
    "on the loader's path, every call says that it is a stub.",
    example="CUDA driver is a stub library (34)",
    fix="Take the stubs folder out of LD_LIBRARY_PATH or out of the loader's configuration.",
    sources="warp#219, numba#9732, numba#8985",
    tested="a stub library first on LD_LIBRARY_PATH, really loaded, and the fix applied",
)
def libcuda_stub(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The mapped libcuda is a stub, or says so."""
    cuda = _cuda(facts)
    if cuda.code == 0 or (cuda.code != 34 and _kind(facts, cuda.library) != "stub"):
        return
    folder = cuda.library.rpartition("/")[0]
    named = list(_who_named(facts, folder))
    if named:
        fix = Fix("Take it off the path.", (_without(facts, folder),))
    else:
        search = f"grep -rl {folder or 'stubs'} /etc/ld.so.conf /etc/ld.so.conf.d"
        fix = Fix("Take the folder out of the loader's configuration.", (search, "sudo ldconfig"))
    yield Finding(
        f"the loader takes the toolkit's stub of libcuda instead of the driver's: {cuda.library or 'cuInit says so'}",
        (
            *_proof(facts),
            Evidence("mapped", cuda.library, "/proc/self/maps"),
            Evidence("cuInit", str(cuda.code)),
            *named,
        ),
        fix,
    )


def _compat(facts: HostFacts, code: int) -> tuple[CudaProbe, str] | None:
    """The probe and the folder, when the mapped libcuda is a compat one and cuInit gives ``code``."""
    cuda = _cuda(facts)
    if cuda.code == code and _kind(facts, cuda.library) == "compat":
        return cuda, cuda.library.rpartition("/")[0]
    return None


def _drop_compat(facts: HostFacts, folder: str) -> tuple[str, ...]:
    if list(_who_named(facts, folder)):
        return (_without(facts, folder),)
    return (f"grep -rl {folder} /etc/ld.so.conf.d | xargs sudo rm", "sudo ldconfig")


@cause(
    "C12",
    "the compatibility libcuda fits the kernel's driver",
    layer=Layer.USERSPACE,
    explains=("cuda:803", *NO_CUDA),
    why="cuda-compat runs a newer CUDA on certain older drivers. With another driver than those it fails at once.",
    example="Error 803: system has unsupported display driver / cuda driver combination",
    fix="Take the compat folder off the loader's path, or install a newer driver.",
    sources="llm-d#706, nixl#441, NVIDIA's page on forward compatibility",
    tested="a stub in a compat folder that answers 803",
)
def compat_unsupported(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """803 of a compat libcuda."""
    if not (found := _compat(facts, 803)):
        return
    cuda, folder = found
    driver = need(facts.driver)
    yield Finding(
        f"cuda-compat in {folder} does not work with driver {driver.version or 'of this kernel'} (803)",
        (
            *_proof(facts),
            Evidence("mapped", cuda.library, "/proc/self/maps"),
            Evidence("kernel driver", driver.version, "/sys/module/nvidia/version"),
            *_who_named(facts, folder),
        ),
        Fix("Use the driver's own libcuda.", _drop_compat(facts, folder)),
    )


@cause(
    "C13",
    "this GPU takes forward compatibility",
    layer=Layer.USERSPACE,
    explains=("cuda:804", *NO_CUDA),
    why="Forward compatibility is for data-centre GPUs, some RTX models and Jetson. On others cuda-compat fails; also "
    "when the driver was updated and the machine not rebooted.",
    example="Error 804: forward compatibility was attempted on non supported HW",
    fix="Take the compat folder off the path; reboot when the driver was updated.",
    sources="faster-whisper#653, NVIDIA's page on forward compatibility",
    tested="a stub in a compat folder that answers 804",
)
def compat_on_other_hardware(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """804, whoever gave it."""
    cuda = _cuda(facts)
    if cuda.code != 804:
        return
    folder = cuda.library.rpartition("/")[0]
    names = [gpu.name for gpu in facts.nvml.gpus] if isinstance(facts.nvml, NvmlProbe) else []
    evidence = [*_proof(facts), Evidence("mapped", cuda.library, "/proc/self/maps"), Evidence("cuInit", "804")]
    evidence += [Evidence("GPU", names[0], "NVML")] if names else []
    if _kind(facts, cuda.library) == "compat":
        fix = Fix("Use the driver's own libcuda.", _drop_compat(facts, folder))
        message = f"cuda-compat in {folder} is not for this GPU{f' ({names[0]})' if names else ''} (804)"
    else:
        fix = Fix("The libraries are newer than the loaded module: reboot.", ("sudo reboot",))
        message = "the driver's libraries are newer than its loaded module (804), as after an update without a reboot"
    yield Finding(message, (*evidence, *_who_named(facts, folder)), fix)


@cause(
    "C14",
    "cuda-compat is newer than the driver",
    Severity.NOTE,
    layer=Layer.USERSPACE,
    explains=(),
    why="A compat libcuda that is older than the driver's own brings nothing and takes features away.",
    example="/usr/local/cuda-12.4/compat on LD_LIBRARY_PATH with driver 580",
    fix="Take it off the path.",
    sources="NVIDIA's page on forward compatibility",
    tested="facts",
)
def compat_unneeded(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The mapped libcuda is a compat one of an older version than the module."""
    cuda, driver = _cuda(facts), need(facts.driver)
    if cuda.code or _kind(facts, cuda.library) != "compat" or not driver.version:
        return
    version = cuda.library.rpartition(".so.")[2]
    if version[:1].isdigit() and _numbers(version) < _numbers(driver.version):
        folder = cuda.library.rpartition("/")[0]
        yield Finding(
            f"cuda-compat {version} hides the driver's own, newer libcuda {driver.version}",
            (Evidence("mapped", cuda.library), *_who_named(facts, folder)),
            Fix("Take it off the path.", _drop_compat(facts, folder)),
        )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


@cause(
    "C15",
    "this user may open the device nodes",
    layer=Layer.CONTAINER,
    explains=("nvml:*", *NO_CUDA),
    why="Nodes that only root or a group may open make CUDA say that there is no device. As root everything works.",
    example="torch sees no GPU as a user, and all of them with sudo",
    fix="Add the user to the nodes' group, or let the driver make nodes for all.",
    sources="nvidia-docker#1608",
    tested="a file without permissions, opened by another user; facts",
)
def node_permissions(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Nodes whose opening gives EACCES, and whose mode says why."""
    denied = [node for node in need(facts.nodes) if node.error == "EACCES" and not node.mode.endswith(("6", "7"))]
    if not denied:
        return
    node, driver = denied[0], need(facts.driver)
    others_fix = "echo 'options nvidia NVreg_DeviceFileMode=0666' | sudo tee /etc/modprobe.d/nvidia-nodes.conf"
    fix = (
        (f'sudo usermod -aG {node.group} "$USER"  # then log in anew',)
        if node.group != "root"
        else (others_fix, "sudo reboot")
    )
    yield Finding(
        f"this user may not open {node.path}: mode {node.mode}, {node.owner}:{node.group}",
        (
            *(
                Evidence(one.path, f"{one.error}, mode {one.mode}, {one.owner}:{one.group}", "open()")
                for one in denied[:3]
            ),
            Evidence("DeviceFileMode", driver.device_file_mode, "/proc/driver/nvidia/params"),
        ),
        Fix("Give this user access.", fix),
    )


@cause(
    "C19",
    "the GPU's firmware is new enough for the driver",
    layer=Layer.KERNEL,
    explains=("nvml:no-device", "cuda:100", "cuda:no-device", "torch:unavailable", "torch:init", "kernel:failed"),
    why="Some GH200 machines have firmware with which drivers from 565 on find no device, while 560 does.",
    example="nvidia-smi: No devices were found, with driver 565 or later on GH200",
    fix="Update the firmware of GPU and host; until then use driver 560.",
    sources="open-gpu-kernel-modules#774",
    tested="facts alone",
    certain=False,
)
def firmware_too_old(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A GH200 on the bus, the open module loaded, and NVML without a device."""
    driver = need(facts.driver)
    gpus = [gpu for gpu in need(facts.pci) if gpu.is_nvidia_gpu and gpu.device.startswith("234")]
    empty = isinstance(facts.nvml, NvmlProbe) and facts.nvml.code == 0 and not facts.nvml.gpus
    if gpus and driver.open and empty and _numbers(driver.version) >= (565,) and not any(gpu.gone for gpu in gpus):
        yield Finding(
            f"driver {driver.version} finds no device on this Grace Hopper machine: most often its firmware is too old",
            (Evidence("PCI", f"{len(gpus)} GPUs"), Evidence("NVML", "0 devices"), Evidence("driver", driver.version)),
            Fix("Update the firmware of GPU and host, or use driver 560 until then."),
        )


@cause(
    "C20",
    "the driver handles pages of 64 KiB",
    Severity.WARNING,
    layer=Layer.KERNEL,
    explains=("torch:compute", "cuda:signal", "torch:signal"),
    why="Drivers 595 and 610.43 fault on large mappings when the kernel has pages of 64 KiB, as those for Grace do.",
    example="Xid 31, FAULT_PTE, at mappings of 4 GiB and more",
    fix="Use driver 580, or a kernel with pages of 4 KiB.",
    sources="open-gpu-kernel-modules#1269",
    tested="facts alone; no such machine",
)
def large_page_fault(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Both: the page size and the driver."""
    system, driver = need(facts.system), need(facts.driver)
    if system.page_size == LARGE_PAGES and driver.version.startswith(FAULTY_ON_64K):
        said = [line for line in driver.kernel_messages if "Xid" in line and ": 31," in line]
        yield Finding(
            f"driver {driver.version} faults on large mappings with pages of 64 KiB",
            (
                Evidence("page size", "65,536 bytes", "sysconf"),
                Evidence("driver", driver.version),
                *(Evidence("kernel", line) for line in said[-1:]),
            ),
            Fix("Use driver 580, or boot a kernel with pages of 4 KiB."),
        )


@cause(
    "C21",
    "the kernel leaves memory for CMA",
    Severity.WARNING,
    layer=Layer.KERNEL,
    explains=("torch:compute",),
    why="Kernels from 7.0 on reserve scratch memory for kexec handover out of CMA; on GB10 registering memory then "
    "fails.",
    example="-ENOMEM from cuMemHostRegister on DGX Spark",
    fix="Boot with kho=off.",
    sources="NVIDIA/NV-Kernels PR591",
    tested="facts alone",
    certain=False,
)
def kexec_handover(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A GB10, kernel 7, no CMA left, and kho not off."""
    system = need(facts.system)
    spark = any(gpu.device == "2e12" for gpu in need(facts.pci) if gpu.is_nvidia_gpu)
    new = _numbers(system.kernel.split("-")[0]) >= (7,) and "kho=off" not in system.kernel_command_line
    if spark and new and system.cma_free_bytes == 0:
        yield Finding(
            f"kernel {system.kernel} has no CMA memory left on this GB10: registering memory will fail",
            (Evidence("CmaFree", "0", "/proc/meminfo"), Evidence("kernel", system.kernel)),
            Fix("Boot without kexec handover.", ("sudo grubby --update-kernel=ALL --args=kho=off", "sudo reboot")),
        )


@cause(
    "C22",
    "kernel address randomization and HMM suit the driver",
    layer=Layer.KERNEL,
    explains=("cuda:802", "cuda:999", "torch:unavailable", "torch:init", "kernel:failed"),
    why="On some kernels cuInit fails on Hopper and later unless KASLR or HMM is off; NVIDIA's release notes name it.",
    example="802 or 999 on kernel 6.x with everything else in order",
    fix="Boot with nokaslr, or load nvidia_uvm with uvm_disable_hmm=1.",
    sources="gpu-burn#133; the HMM part (inferred)",
    tested="facts alone",
    certain=False,
)
def kaslr(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """999 with all in order on Hopper or later, and the kernel's log names HMM."""
    system, driver, cuda = need(facts.system), need(facts.driver), _cuda(facts)
    if cuda.code not in {802, 999} or "nokaslr" in system.kernel_command_line:
        return
    said = [line for line in driver.kernel_messages if "hmm" in line.lower()]
    later = [
        gpu
        for gpu in need(facts.pci)
        if gpu.is_nvidia_gpu and (needs_open_modules(gpu.device) or "23" in gpu.device[:2])
    ]
    if said and later:
        yield Finding(
            f"cuInit gives {cuda.code}, and the kernel's log names HMM: this kernel and driver do not get on",
            (Evidence("kernel", said[-1]), Evidence("driver", driver.version)),
            Fix(
                "Turn HMM off for the driver.",
                ("echo 'options nvidia_uvm uvm_disable_hmm=1' | sudo tee /etc/modprobe.d/uvm.conf", "sudo reboot"),
            ),
        )
