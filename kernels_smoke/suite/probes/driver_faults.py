"""What the codes mean with which the NVIDIA driver refuses to start, and what to do about each."""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from kernels_smoke.suite.advice import Advice, command, docker_run, pipe, unset
from kernels_smoke.suite.probes.answer import Outcome

DEVICES = Path("/dev")


@dataclass(frozen=True)
class Fault:
    """``outcome`` is ``error`` where nothing could be checked: no GPU, no room on it, or only the stub of a driver."""

    name: str
    meaning: str
    fix: tuple[Advice, ...]
    outcome: Outcome = "fail"


_DMESG = pipe(("sudo", "dmesg"), ("grep", "-i", "-e", "xid", "-e", "nvrm"), note="an Xid message names what hangs")
HANG = (
    _DMESG,
    command("sudo", "nvidia-smi", "--gpu-reset", note="after every process on the GPU is gone, or else reboot"),
)
_EXCLUSIVE = (
    command("nvidia-smi", "--query-compute-apps=pid,name", "--format=csv"),
    command("sudo", "nvidia-smi", "--compute-mode=DEFAULT"),
)
_MPS = (
    command("nvidia-cuda-mps-control", "-d"),
    unset("CUDA_MPS_PIPE_DIRECTORY", "instead, where no daemon is wanted"),
)
_RELOAD = (command("sudo", "rmmod", "nvidia_uvm"), command("sudo", "modprobe", "nvidia_uvm"), *HANG)
_CONTAINER = docker_run("--gpus", "all", note="in a container, with the NVIDIA container toolkit on the machine")
_LIST = command("nvidia-smi", "-L", note="on the machine itself, to see whether the driver sees a GPU")

# Code: as cudaError_enum of cuda.h (CUDA 13.0). The CUDA runtime uses the same numbers for these.
FAULTS = {
    2: Fault(
        "CUDA_ERROR_OUT_OF_MEMORY",
        "the memory of the GPU, or of this process, is taken",
        (_EXCLUSIVE[0], "raise the limit of the memory of a process (ulimit -v unlimited)"),
        "error",
    ),
    3: Fault("CUDA_ERROR_NOT_INITIALIZED", "the driver could not be initialised", (_LIST, *_RELOAD)),
    34: Fault(
        "CUDA_ERROR_STUB_LIBRARY",
        "this libcuda.so is the toolkit's stub, made for linking, and no driver",
        ("take the folder stubs of the toolkit out of LD_LIBRARY_PATH", _CONTAINER),
        "error",
    ),
    35: Fault(
        "cudaErrorInsufficientDriver", "the driver is older than torch's CUDA", ("install a newer NVIDIA driver",)
    ),
    36: Fault("CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "the driver is too old", ("install a newer NVIDIA driver",)),
    46: Fault(
        "CUDA_ERROR_DEVICE_UNAVAILABLE",
        "the GPU is taken: its compute mode lets one process in (exclusive), or none (prohibited)",
        _EXCLUSIVE,
    ),
    100: Fault("CUDA_ERROR_NO_DEVICE", "there is no GPU here", (_CONTAINER, _LIST), "error"),
    101: Fault(
        "CUDA_ERROR_INVALID_DEVICE", "the GPU's number or state is invalid", (unset("CUDA_VISIBLE_DEVICES"), _LIST)
    ),
    102: Fault(
        "CUDA_ERROR_DEVICE_NOT_LICENSED",
        "the virtual GPU has no licence",
        (command("sudo", "systemctl", "restart", "nvidia-gridd"),),
    ),
    214: Fault("CUDA_ERROR_ECC_UNCORRECTABLE", "the GPU's memory has an error that ECC cannot correct", HANG),
    304: Fault("CUDA_ERROR_OPERATING_SYSTEM", "a call of the operating system failed", (_LIST, *_RELOAD)),
    800: Fault(
        "CUDA_ERROR_NOT_PERMITTED",
        "this process may not use the GPU",
        ("see who may open /dev/nvidia* (ls -l)", _CONTAINER),
    ),
    802: Fault(
        "CUDA_ERROR_SYSTEM_NOT_READY",
        "a service that the GPUs need does not run; on machines with NVSwitch that is the fabric manager",
        (
            command("sudo", "systemctl", "start", "nvidia-fabricmanager", note="of the same version as the driver"),
            pipe(("nvidia-smi", "-q"), ("grep", "-A", "3", "Fabric"), note="the state must be Completed"),
        ),
    ),
    803: Fault(
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "libcuda.so.1 is of another version than the kernel module, as after an upgrade of the driver without a reboot",
        (
            command("sudo", "reboot", note="or unload and load the nvidia modules"),
            "in a container: use the machine's library; take .../compat and copies of libcuda.so.1 out of the image",
        ),
    ),
    804: Fault(
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "the forward-compatibility libcuda.so.1 works on data-centre GPUs alone",
        ("take .../compat out of LD_LIBRARY_PATH and /etc/ld.so.conf.d, or install a newer NVIDIA driver",),
    ),
    805: Fault("CUDA_ERROR_MPS_CONNECTION_FAILED", "the multi-process service (MPS) does not answer", _MPS),
    807: Fault("CUDA_ERROR_MPS_SERVER_NOT_READY", "the multi-process service (MPS) is recovering", _MPS),
    999: Fault(
        "CUDA_ERROR_UNKNOWN", "the driver itself does not know why; often nvidia_uvm hangs after a suspend", _RELOAD
    ),
}
_NO_FILE_NO_GPU = frozenset({3, 100, 304, 800, 999})  # what a driver returns that may not open its device files


def explain(code: int) -> Fault:
    """What ``code`` means on this machine, now: one code has several causes, which its surroundings distinguish."""
    fault = FAULTS.get(code, Fault(f"CUDA error {code}", "see the CUDA driver API reference, cudaError_enum", (_LIST,)))
    if code in _NO_FILE_NO_GPU and (closed := closed_device_files()):
        meaning = f"this process may not open the GPU's device files: {'; '.join(closed)}"
        fix: tuple[Advice, ...] = (
            "see who may open /dev/nvidia* (ls -l) and which groups you are in (id); then join the group (usermod -aG)",
            "restart the container with --gpus all  (running ones lose their GPUs at `systemctl daemon-reload`)",
        )
        return replace(fault, meaning=meaning, fix=fix, outcome="fail")
    if code == 100 and _all_hidden():
        meaning = f"CUDA_VISIBLE_DEVICES={os.environ['CUDA_VISIBLE_DEVICES']!r} hides every GPU"
        return replace(fault, meaning=meaning, fix=(unset("CUDA_VISIBLE_DEVICES"),))
    if code == 999 and _gpu_files() and not (DEVICES / "nvidia-uvm").exists():
        fix = (command("sudo", "nvidia-modprobe", "-u", "-c=0"), _CONTAINER)
        return replace(fault, meaning="/dev/nvidia-uvm is missing", fix=fix)
    return fault


def closed_device_files() -> list[str]:
    """The driver's device files that this process cannot open, each with the reason.

    Opening them is the only way to know: a container's device rules refuse what the file's mode allows.
    """
    refusals = []
    for path in [DEVICES / "nvidiactl", DEVICES / "nvidia-uvm", *_gpu_files()]:
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
        except FileNotFoundError:
            continue
        except OSError as error:
            refusals.append(f"{path}: {error.strerror}")
    return refusals


def _gpu_files() -> list[Path]:
    return sorted(DEVICES.glob("nvidia[0-9]*"))


def _all_hidden() -> bool:
    """True when CUDA_VISIBLE_DEVICES shows no GPU: CUDA stops reading it at the first entry that is not valid."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return False
    return visible.strip() in {"", "-1", "none", "void", "NoDevFiles"} or bool(_gpu_files())
