"""The GPUs themselves: on the bus, answering, and open to this user."""

import re
from collections.abc import Iterator
from typing import Any

from wheel_checks.commands import Command, NoCommand, Pipe, Step, WriteFile
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.presence import gpus_of_build
from wheel_checks.facts.host.probes import CudaProbe, NvmlProbe
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.rules.host import other_makers
from wheel_checks.rules.host.cause import Layer, cause
from wheel_checks.rules.host.observed import NO_CUDA, gpus_on_bus, in_container, kernel_said

KERNEL_LOG = Pipe((("sudo", "dmesg"), ("grep", "-i", "-E", "nvrm|xid")))
_MODE_FILE = "/etc/modprobe.d/nvidia-nodes.conf"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)  # of a user or a group
_REBOOT = Command(("sudo", "reboot"))


@cause(
    "C01",
    "a host with a CUDA build of torch has a GPU",
    Severity.NOTE,
    layer=Layer.HARDWARE,
    explains=NO_CUDA,
    why="Without an NVIDIA GPU on the PCI bus no driver and no wheel can help. On a laptop or a CI runner that is "
    "expected; in a cloud it is the wrong instance type, or a GPU that was not passed through.",
    example="torch.cuda.is_available() is False on a virtual machine without a GPU",
    fix="Choose an instance with a GPU, or pass one through; or install the CPU wheel if no GPU is intended.",
    sources="generic",
    tested="this project's own machines, which have none; facts",
)
def no_gpu(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """No GPU on the bus, no Tegra, no WSL; an error when a kernel driver waits for one."""
    if isinstance(facts.pci, Unavailable) or gpus_on_bus(facts) or gpus_of_build(facts):
        return
    system, driver = need(facts.system), need(facts.driver)
    if system.tegra or system.wsl or in_container(facts):  # a sandbox may hide the bus
        return
    seen = isinstance(facts.cuda, CudaProbe) and facts.cuda.gpus
    if seen:
        return
    waiting = Severity.ERROR if driver.version else None
    yield Finding(
        "this host has no NVIDIA GPU on its PCI bus" + (", although NVIDIA's driver is loaded" if waiting else ""),
        (Evidence("PCI", "no device of vendor 10de and class 0300 or 0302", "/sys/bus/pci/devices"),),
        Fix("Use a host or an instance type with an NVIDIA GPU."),
        severity=waiting,
    )


@cause(
    "C16",
    "the GPU responds on the PCI bus",
    layer=Layer.HARDWARE,
    explains=(*NO_CUDA, "cuda:fewer"),
    why="After a GPU falls off the bus (Xid 79), every read returns ones until the host is power-cycled. The cause is "
    "power, cooling, the slot, or the GPU.",
    example="NVRM: Xid (PCI:0000:18:00): 79, GPU has fallen off the bus",
    fix="Power-cycle the host; if the fault returns, reseat or replace the GPU.",
    sources="NVSentinel#155, open-gpu-kernel-modules#387",
    tested="a fake root whose configuration space reads ones; a stub for NVML 15",
)
def fallen_off_the_bus(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A configuration space of ones, or NVML's GPU_IS_LOST, or Xid 79."""
    said = kernel_said(facts, r"Xid.*: 79\b|fallen off the bus")
    gone = [gpu for gpu in gpus_on_bus(facts) if gpu.gone]
    lost = isinstance(facts.nvml, NvmlProbe) and (
        facts.nvml.code == 15 or any(gpu.error == 15 for gpu in facts.nvml.gpus)
    )
    if not gone and not lost:
        return
    evidence = [Evidence("configuration space", "all ones", gpu.address) for gpu in gone]
    evidence += [Evidence("NVML", "15 (GPU is lost)")] if lost else []
    yield Finding(
        "a GPU has fallen off the bus" + (f": {gone[0].address}" if gone else ""),
        (*evidence, *said),
        Fix("Power-cycle the host (a reboot is not enough); if the fault returns, reseat or replace the GPU."),
    )


@cause(
    "C17",
    "NVML lists every GPU of the host",
    layer=Layer.KERNEL,
    explains=("cuda:fewer",),
    why="A GPU that failed to start is missing from NVML and CUDA, and a job that expects eight GPUs gets seven.",
    example="7 of 8 GPUs in nvidia-smi",
    fix="Read the kernel log for that GPU; drain the host.",
    sources="gpu-operator#2511",
    tested="facts and a stub that lists fewer devices",
)
def partial_gpus(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Fewer GPUs at NVML than on the bus, outside of containers."""
    gpus = gpus_on_bus(facts)
    if in_container(facts) or isinstance(facts.nvml, Unavailable) or facts.nvml.code or not facts.nvml.gpus:
        return
    bound = [gpu for gpu in gpus if gpu.driver == "nvidia"]
    if "SLURM_JOB_ID" in facts.variables or len(facts.nvml.gpus) >= len(bound) or any(gpu.gone for gpu in gpus):
        return
    driver = need(facts.driver)
    yield Finding(
        f"{len(bound)} GPUs are on the bus, but NVML lists {len(facts.nvml.gpus)}",
        (
            Evidence("PCI", str(len(bound)), "/sys/bus/pci/devices"),
            Evidence("/proc/driver/nvidia/gpus", str(driver.gpus)),
            Evidence("NVML", str(len(facts.nvml.gpus))),
            *kernel_said(facts, "RmInitAdapter|Xid", 2),
        ),
        Fix("Find out why the GPU failed to start; then drain the host.", (KERNEL_LOG,)),
    )


@cause(
    "C18",
    "the driver responds",
    layer=Layer.KERNEL,
    explains=("nvml:hang", "cuda:hang", "torch:hang"),
    why="A hung GPU or driver never responds: every process that calls it blocks in the kernel and cannot be killed.",
    example="torch.cuda.is_available() never returns",
    fix="Reset the GPU or reboot; drain the node.",
    sources="returnn#1756",
    tested="a stub driver that hangs in cuInit; no wedged GPU",
)
def driver_hangs(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The probe of NVML or CUDA was killed at its deadline, and no variable is guilty."""
    probes = [("NVML", facts.nvml), ("cuInit", facts.cuda)]
    hanging = [(name, probe) for name, probe in probes if not isinstance(probe, Unavailable) and probe.end.hang]
    if not hanging or any(fact.proves for fact in facts.counterfactuals):
        return
    name, probe = hanging[0]
    waits = Evidence("waits in", probe.end.waits_in, "/proc/PID/wchan")
    yield Finding(
        f"the driver does not respond: {name} did not return within {probe.end.seconds:.0f} s",
        (
            *(Evidence(other, f"no answer in {one.end.seconds:.0f} s") for other, one in hanging),
            *([waits] if probe.end.waits_in else []),
        ),
        Fix(
            "Find the cause in the kernel log, then reset or reboot.",
            (KERNEL_LOG, Command(("sudo", "nvidia-smi", "-r"), "while no process uses the GPU"), _REBOOT),
        ),
    )


@cause(
    "C15",
    "this user has access to the device nodes",
    layer=Layer.CONTAINER,
    explains=("nvml:*", *NO_CUDA),
    why="Where only root or a group has access to the device nodes, CUDA reports that there is no device. As root "
    "everything works. ROCm needs /dev/kfd and /dev/dri/renderD*, XPU the latter.",
    example="torch finds no GPU as a user, and all of them with sudo",
    fix="Add the user to the nodes' group, or let the driver create nodes that every user can open.",
    sources="nvidia-docker#1608; ROCm/ROCm-docker#90",
    tested="a file without permissions, opened by another user; facts",
)
def node_permissions(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Nodes whose opening gives EACCES, and whose mode says why."""
    if gpus_of_build(facts):
        yield from other_makers.nodes_denied(facts)
        return
    denied = [node for node in need(facts.nodes) if node.error == "EACCES" and not node.mode.endswith(("6", "7"))]
    if not denied:
        return
    node, driver = denied[0], need(facts.driver)
    yield Finding(
        f"this user has no access to {node.path}: mode {node.mode}, {node.owner}:{node.group}",
        (
            *(
                Evidence(one.path, f"{one.error}, mode {one.mode}, {one.owner}:{one.group}", "open()")
                for one in denied[:3]
            ),
            Evidence("DeviceFileMode", driver.device_file_mode, "/proc/driver/nvidia/params"),
        ),
        _give_access(facts, node.group),
    )


def _give_access(facts: HostFacts, group: str) -> Fix:
    if group == "root":
        mode = WriteFile(_MODE_FILE, ("options nvidia NVreg_DeviceFileMode=0666",), as_root=True)
        return Fix("Let the driver create nodes that every user can open.", (mode, _REBOOT))
    user = "" if isinstance(facts.system, Unavailable) else facts.system.user
    add: Step = NoCommand("the user, or the group of the nodes, has no plain name")
    if _NAME.fullmatch(user) and _NAME.fullmatch(group):
        add = Command(("sudo", "usermod", "-aG", group, user), "takes effect at the next login")
    return Fix(f"Add this user to the group {group}.", (add,))
