"""Faults of certain drivers with certain firmware and kernels."""

from collections.abc import Iterator
from typing import Any

from wheel_checks.commands import Command, WriteFile
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.pci_names import needs_open_modules
from wheel_checks.facts.host.probes import NvmlProbe
from wheel_checks.model import Evidence, Finding, Fix, Severity, need
from wheel_checks.parsing import numbers
from wheel_checks.rules.host.cause import Layer, causes_in
from wheel_checks.rules.host.observed import TORCH_FAILS, gpus_on_bus, kernel_said

# Open-gpu-kernel-modules#1269: mappings of 4 GiB and more fault on kernels with pages of 64 KiB
FAULTY_ON_64K = ("595.", "610.43")


LARGE_PAGES = 65536
_REBOOT = Command(("sudo", "reboot"))

cause = causes_in(Layer.KERNEL)


@cause(
    "C19",
    "the GPU firmware is new enough for the driver",
    explains=("nvml:no-device", "cuda:100", "cuda:no-device", *TORCH_FAILS),
    why="With old firmware, drivers from 565 on find no device on some GH200 hosts, while 560 does.",
    example="nvidia-smi: No devices were found, with driver 565 or later on GH200",
    fix="Update the firmware of the GPU and the host; until then use driver 560.",
    sources="open-gpu-kernel-modules#774",
    tested="facts alone",
    certain=False,
)
def firmware_too_old(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A GH200 on the bus, the open module loaded, and NVML without a device."""
    driver = need(facts.driver)
    gpus = [gpu for gpu in gpus_on_bus(facts) if gpu.device.startswith("234")]
    empty = isinstance(facts.nvml, NvmlProbe) and facts.nvml.code == 0 and not facts.nvml.gpus
    if gpus and driver.open and empty and numbers(driver.version) >= (565,) and not any(gpu.gone for gpu in gpus):
        yield Finding(
            f"driver {driver.version} finds no device on this Grace Hopper host: most often its firmware is too old",
            (Evidence("PCI", f"{len(gpus)} GPUs"), Evidence("NVML", "0 devices"), Evidence("driver", driver.version)),
            Fix("Update the firmware of the GPU and the host; until then use driver 560."),
        )


@cause(
    "C20",
    "the driver works with pages of 64 KiB",
    Severity.WARNING,
    explains=("torch:compute", "cuda:signal", "torch:signal"),
    why="Drivers 595 and 610.43 fault on large mappings when the kernel uses pages of 64 KiB, as kernels for Grace do.",
    example="Xid 31, FAULT_PTE, at mappings of 4 GiB and more",
    fix="Use driver 580, or a kernel with pages of 4 KiB.",
    sources="open-gpu-kernel-modules#1269",
    tested="facts alone; no such machine",
)
def large_page_fault(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Both: the page size and the driver."""
    system, driver = need(facts.system), need(facts.driver)
    if system.page_size == LARGE_PAGES and driver.version.startswith(FAULTY_ON_64K):
        yield Finding(
            f"driver {driver.version} faults on large mappings with pages of 64 KiB",
            (
                Evidence("page size", "65,536 bytes", "sysconf"),
                Evidence("driver", driver.version),
                *kernel_said(facts, "(?=.*: 31,).*Xid"),
            ),
            Fix("Use driver 580, or boot a kernel with pages of 4 KiB."),
        )


@cause(
    "C21",
    "the kernel leaves CMA memory for CUDA",
    Severity.WARNING,
    explains=("torch:compute",),
    why="Kernels from 7.0 on reserve scratch memory for kexec handover in CMA; on GB10, registering memory then fails.",
    example="-ENOMEM from cuMemHostRegister on DGX Spark",
    fix="Boot with kho=off.",
    sources="NVIDIA/NV-Kernels PR591",
    tested="facts alone",
    certain=False,
)
def kexec_handover(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A GB10, kernel 7, no CMA left, and kho not off."""
    system = need(facts.system)
    spark = any(gpu.device == "2e12" for gpu in gpus_on_bus(facts))
    new = numbers(system.kernel.split("-")[0]) >= (7,) and "kho=off" not in system.kernel_command_line
    if spark and new and system.cma_free_bytes == 0:
        yield Finding(
            f"kernel {system.kernel} has no CMA memory left on this GB10: registering memory will fail",
            (Evidence("CmaFree", "0", "/proc/meminfo"), Evidence("kernel", system.kernel)),
            Fix(
                "Boot with kho=off (no kexec handover).",
                (Command(("sudo", "grubby", "--update-kernel=ALL", "--args=kho=off")), _REBOOT),
            ),
        )


@cause(
    "C22",
    "KASLR and HMM of this kernel are compatible with the driver",
    explains=("cuda:802", "cuda:999", *TORCH_FAILS),
    why="On some kernels cuInit fails on Hopper and later unless KASLR or HMM is off; NVIDIA's release notes name "
    "them.",
    example="802 or 999 on kernel 6.x with everything else in order",
    fix="Boot with nokaslr, or load nvidia_uvm with uvm_disable_hmm=1.",
    sources="gpu-burn#133; the HMM part (inferred)",
    tested="facts alone",
    certain=False,
)
def kaslr(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """999 with all in order on Hopper or later, and the kernel's log names HMM."""
    system, driver, cuda = need(facts.system), need(facts.driver), need(facts.cuda)
    if cuda.code not in {802, 999} or "nokaslr" in system.kernel_command_line:
        return
    said = kernel_said(facts, "(?i)hmm")
    if any(needs_open_modules(gpu.device) or "23" in gpu.device[:2] for gpu in gpus_on_bus(facts)) and said:
        yield Finding(
            f"cuInit returned {cuda.code}, and the kernel log mentions HMM: this kernel and this driver are "
            "incompatible",
            (*said, Evidence("driver", driver.version)),
            Fix(
                "Turn off HMM in the driver.",
                (
                    WriteFile("/etc/modprobe.d/uvm.conf", ("options nvidia_uvm uvm_disable_hmm=1",), as_root=True),
                    _REBOOT,
                ),
            ),
        )
