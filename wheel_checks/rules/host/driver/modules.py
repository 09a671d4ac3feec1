"""The driver's kernel modules: installed, bound to the GPU, signed, built for this kernel, loaded."""

from collections.abc import Iterator
from typing import Any

from wheel_checks.commands import Command, NoCommand, Options, WriteFile, run, shell
from wheel_checks.facts.host.advice import newer_driver
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.pci_names import needs_open_modules
from wheel_checks.facts.host.presence import gpus_of_build
from wheel_checks.facts.host.probes import NvmlProbe
from wheel_checks.model import Evidence, Finding, Fix, Unavailable, need
from wheel_checks.rules.host import other_makers
from wheel_checks.rules.host.cause import Layer, causes_in
from wheel_checks.rules.host.observed import (
    NO_CUDA,
    RED_HAT,
    TORCH_FAILS,
    cuda_code,
    gpus_on_bus,
    in_container,
    kernel_said,
    of_kernel,
    pci_shown,
)

_MODULES = ("nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia")  # in the order in which they can be unloaded
_REBOOT = Command(("sudo", "reboot"))
_UNLOAD = ("sudo", "rmmod")

cause = causes_in(Layer.KERNEL, NO_CUDA)


@cause(
    "C02",
    "the GPU's driver is installed",
    why="A wheel contains all of CUDA except the driver: the kernel modules and libcuda.so.1 come from the operating "
    "system. The same holds for amdgpu with /dev/kfd (ROCm), and i915 or xe (XPU).",
    example="RuntimeError: Found no NVIDIA driver on your system",
    fix="Install the driver with its open kernel modules, and reboot.",
    sources="torch's own text; Linux, amdkfd and xe",
    tested="a fake root with a GPU and nothing else; facts of AMD's and Intel's GPUs",
)
def driver_missing(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A GPU, no module loaded, and none built for any kernel."""
    if gpus_of_build(facts):
        yield from other_makers.driver_missing(facts)
        return
    driver, gpus = need(facts.driver), gpus_on_bus(facts)
    if not gpus or "nvidia" in driver.modules or driver.version or driver.built_for or in_container(facts):
        return
    if any(gpu.driver in {"nouveau", "vfio-pci", "nova_core"} for gpu in gpus):
        return  # C03 says what holds them
    yield Finding(
        "the host has an NVIDIA GPU, but no NVIDIA driver is installed",
        (pci_shown(gpus[0]), Evidence("kernel module", "not loaded and not built", "/sys/module, /lib/modules")),
        Fix("Install the driver.", newer_driver(facts)),
    )


@cause(
    "C03",
    "the GPU is bound to NVIDIA's driver",
    why="Only one driver can bind a device. nouveau does not support CUDA, and vfio-pci passes the GPU through to a "
    "virtual machine.",
    example="NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver",
    fix="Keep nouveau from loading, and reboot; or release the GPU from the virtual machine.",
    sources="oneflow#3106",
    tested="a fake root whose driver links name nouveau and vfio-pci",
)
def foreign_driver(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """GPUs that are bound to something else."""
    held = [gpu for gpu in gpus_on_bus(facts) if gpu.driver in {"nouveau", "vfio-pci", "nova_core"}]
    if not held or len(held) < len(gpus_on_bus(facts)):
        return
    kind = held[0].driver
    if kind == "vfio-pci":
        fix = Fix("The GPU is passed through to a virtual machine: stop that, or use CUDA inside the virtual machine.")
    else:
        fix = Fix(
            f"Keep {kind} from loading.",
            (
                WriteFile(
                    f"/etc/modprobe.d/no-{kind}.conf",
                    (f"blacklist {kind}", f"options {kind} modeset=0"),
                    as_root=True,
                ),
                _new_initramfs(facts),
                _REBOOT,
            ),
        )
    yield Finding(
        f"the GPU is bound to {kind}, not to NVIDIA's driver", (pci_shown(held[0]), Evidence("bound to", kind)), fix
    )


def _new_initramfs(facts: HostFacts) -> Command:
    dracut = not isinstance(facts.system, Unavailable) and facts.system.os_id in RED_HAT
    return Command(("sudo", "dracut", "--force") if dracut else ("sudo", "update-initramfs", "-u"))


@cause(
    "C04",
    "the kernel accepts the signature of the driver's module",
    why="With Secure Boot the kernel loads only signed modules, and a module built on this host is signed with a key "
    "that must first be enrolled in the firmware (MOK).",
    example="modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
    fix="Enrol the key and confirm it at the next boot, or install modules that the distribution signed.",
    sources="canonical/nvidia-graphics-drivers#62",
    tested="a fake root with the firmware's variable; no machine with Secure Boot",
)
def secure_boot(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Secure Boot is on, a module is built for this kernel, and it is not loaded."""
    system, driver = need(facts.system), need(facts.driver)
    enforced = system.secure_boot or system.lockdown in {"integrity", "confidentiality"}
    if not gpus_on_bus(facts) or "nvidia" in driver.modules or not enforced or system.kernel not in driver.built_for:
        return
    yield Finding(
        f"Secure Boot blocks the NVIDIA module: it is built for {system.kernel} but not loaded",
        (
            Evidence("Secure Boot", "on" if system.secure_boot else f"lockdown {system.lockdown}", "firmware"),
            *kernel_said(facts, "Key was rejected|module verification"),
        ),
        Fix(
            "Enrol the key that signed the module, and confirm it at the next boot.",
            (Command(("sudo", "mokutil", "--import", "/var/lib/shim-signed/mok/MOK.der")), _REBOOT),
        ),
    )


@cause(
    "C05",
    "the driver's module is built for the running kernel",
    why="After a kernel update the module must be rebuilt; without the headers of the new kernel DKMS fails silently.",
    example="no GPU after unattended-upgrades and a reboot",
    fix="Install the kernel's headers and let DKMS build the module.",
    sources="generic",
    tested="a fake root with modules of another kernel",
)
def module_for_another_kernel(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A module for other kernels, and none for this one."""
    system, driver = need(facts.system), need(facts.driver)
    others = [release for release in driver.built_for if release != system.kernel]
    if not gpus_on_bus(facts) or "nvidia" in driver.modules or in_container(facts) or system.kernel in driver.built_for:
        return
    if others:
        yield Finding(
            f"the NVIDIA module is built for {', '.join(others[:3])}, but kernel {system.kernel} is running",
            (Evidence("running kernel", system.kernel, "uname"), Evidence("built for", ", ".join(others[:6]))),
            Fix(
                "Build the module for this kernel.",
                (
                    run("sudo", "apt-get", "install", of_kernel(system.kernel, "linux-headers-{release}")),
                    run("sudo", "dkms", "autoinstall", "-k", of_kernel(system.kernel, "{release}")),
                    Command(("sudo", "modprobe", "nvidia")),
                ),
            ),
        )


@cause(
    "C06",
    "the driver's kernel module and its libraries have the same version",
    why="An update replaces the libraries at once, but the loaded module only at the next boot; until then they do not "
    "work together.",
    example="Failed to initialize NVML: Driver/library version mismatch; cuInit 803",
    fix="Reboot, or reload the modules; hold the driver packages where updates run unattended.",
    sources="ubuntu-server-docs PR369, truenas-nvidia-drivers#19",
    tested="stub libraries with versioned file names, and NVML 18 of a stub",
)
def version_mismatch(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Two versions: the loaded module's, and that of the driver's own libraries."""
    driver, loader = need(facts.driver), need(facts.loader)
    libraries = [lib for lib in loader.cuda_libraries if lib.kind == "driver" and lib.version]
    other = [lib for lib in libraries if lib.version != driver.version]
    nvml = facts.nvml.code if isinstance(facts.nvml, NvmlProbe) else 0
    refused = nvml == 18 or cuda_code(facts) == 803
    if not driver.version or not other or not refused or any(lib.version == driver.version for lib in libraries):
        return
    yield Finding(
        f"the kernel runs driver {driver.version}, but its libraries are {other[0].version}: they do not work together",
        (
            Evidence("loaded module", driver.version, "/sys/module/nvidia/version"),
            Evidence(other[0].name, other[0].version, other[0].path),
        ),
        _load_new_modules(facts),
    )


def _load_new_modules(facts: HostFacts) -> Fix:
    if in_container(facts):
        return Fix("Restart the container: the host's driver was updated while it ran.")
    unload, load = shell(Command((*_UNLOAD, *_MODULES))), shell(Command(("sudo", "modprobe", "nvidia")))
    summary = f"Reboot; or, while no process uses the GPU, load the new modules: `{unload}`, then `{load}`."
    return Fix(summary, (_REBOOT,))


@cause(
    "C07",
    "the GPU has the kernel modules that it requires",
    why="GH200 and all Blackwell GPUs work only with the open kernel modules; the proprietary ones load but find no "
    "device.",
    example="RmInitAdapter failed! (0x62:...); nvidia-smi: No devices were found",
    fix="Install the open kernel modules of the same driver version.",
    sources="start-technologies PR3693, start-technologies#3465, cloud-native-docs PR6",
    tested="a fake root with a GB200 and the proprietary module's line",
)
def proprietary_module(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The proprietary module next to a GPU that needs the open one."""
    driver = need(facts.driver)
    needing = [gpu for gpu in gpus_on_bus(facts) if needs_open_modules(gpu.device)]
    if driver.open is not False or not needing:
        return
    yield Finding(
        f"{needing[0].name or 'this GPU'} requires the open kernel modules, but the proprietary ones are loaded",
        (
            pci_shown(needing[0]),
            Evidence("module", driver.version_line, "/proc/driver/nvidia/version"),
            *kernel_said(facts, "RmInitAdapter|requires use of the"),
        ),
        Fix("Install the open kernel modules.", newer_driver(facts)),
    )


@cause(
    "C08",
    "the nvidia_uvm module is loaded, and its device node exists",
    explains=("cuda:999", "cuda:304", *TORCH_FAILS),
    why="CUDA needs nvidia_uvm and its node; nvidia-smi needs neither, and therefore works.",
    example="CUDA unknown error (999), while nvidia-smi lists the GPUs",
    fix="Load the module and create its node; give the node to the container.",
    sources="pytorch#49081",
    tested="a fake root without the module; a stub driver for 999",
)
def uvm_missing(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A cuInit that fails where nvidia_uvm or its node is missing."""
    driver, nodes = need(facts.driver), need(facts.nodes)
    if cuda_code(facts) not in {999, 304} or not driver.version:
        return
    node = next((one for one in nodes if one.path == "/dev/nvidia-uvm"), None)
    lost_node = node is None or node.error == "ENOENT"
    control = any(one.path == "/dev/nvidiactl" and one.error != "ENOENT" for one in nodes)
    if not control or ("nvidia_uvm" in driver.modules and not lost_node):
        return
    if in_container(facts):
        pod = NoCommand("load it on the node, and request a GPU in the pod's specification: resources.limits")
        step = Options(("docker", "run"), ("--device", "/dev/nvidia-uvm"))
        fix = Fix(
            "Also give the node to the container.", (pod if need(facts.container).kind == "kubernetes" else step,)
        )
    else:
        fix = Fix("Load the module, and create its node.", (Command(("sudo", "nvidia-modprobe", "-u", "-c0")),))
    what = "/dev/nvidia-uvm is missing" if "nvidia_uvm" in driver.modules else "the module nvidia_uvm is not loaded"
    evidence = (Evidence("nvidia_uvm", "loaded" if "nvidia_uvm" in driver.modules else "not loaded", "/sys/module"),)
    yield Finding(f"{what}: CUDA cannot start without it", evidence, fix)


@cause(
    "C09",
    "the nvidia_uvm module works",
    explains=("cuda:999", *TORCH_FAILS),
    why="After a suspend nvidia_uvm may be left in a state in which cuInit returns 999 until the module is reloaded.",
    example="CUDA unknown error after the laptop slept",
    fix="Reload nvidia_uvm.",
    sources="pytorch#159954, pytorch#49081",
    tested="a stub driver for 999; no machine that was suspended",
    certain=False,
)
def uvm_stale(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """999 of cuInit although everything is there."""
    driver, nodes = need(facts.driver), need(facts.nodes)
    there = any(one.path == "/dev/nvidia-uvm" and not one.error for one in nodes) and "nvidia_uvm" in driver.modules
    if cuda_code(facts) != 999 or not there or isinstance(facts.nvml, Unavailable) or facts.nvml.code:
        return
    if any(fact.proves for fact in facts.counterfactuals):
        return
    if kernel_said(facts, "(?i)hmm"):
        return  # C22 says what that means
    yield Finding(
        "cuInit returned 999 although NVML works and nvidia_uvm and its node are present: most often the module is "
        "stale after a suspend",
        (Evidence("cuInit", "999"), *kernel_said(facts, "(?i)uvm|suspend|resume", 2)),
        Fix("Reload the module.", (Command((*_UNLOAD, "nvidia_uvm")), Command(("sudo", "modprobe", "nvidia_uvm")))),
    )
