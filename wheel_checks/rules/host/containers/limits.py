"""Limits, WSL and MPS."""

from collections.abc import Iterator
from typing import Any

from wheel_checks.commands import Command, Options, Step, Unset, WriteFile
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.log.symptoms import symptoms
from wheel_checks.facts.host.probes import CudaProbe
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.rules.host.cause import Layer, cause
from wheel_checks.rules.host.containers.runtime import DOCKER, WITH_GPUS
from wheel_checks.rules.host.observed import DEBIAN, RED_HAT, TORCH_FAILS, gpus_on_bus, in_container

_SYMBOL_NOT_FOUND = 500  # CUDA_ERROR_NOT_FOUND

SMALL_SHM = 1 << 30  # bytes: DataLoader workers and NCCL share memory there; Docker's default is 64 MB
SMALL_MEMLOCK = 64 << 20  # bytes: registering memory for InfiniBand locks all of it


@cause(
    "E13",
    "shared memory (/dev/shm) is large enough",
    Severity.WARNING,
    layer=Layer.CONTAINER,
    explains=("torch:signal",),
    why="Data loaders and NCCL share memory through /dev/shm. Docker gives a container 64 MB, and a process that "
    "touches more crashes with a bus error.",
    example="Bus error (core dumped) in a DataLoader; NCCL: unhandled system error",
    fix="Start the container with --shm-size=16g or --ipc=host.",
    sources="nixl#441",
    tested="a real mount of 64 KB; facts",
)
def small_shared_memory(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A container with a GPU whose /dev/shm is small."""
    limits, container = need(facts.limits), need(facts.container)
    if container.kind and gpus_on_bus(facts) and limits.shm_bytes < SMALL_SHM:
        yield Finding(
            f"shared memory (/dev/shm) has {limits.shm_bytes / 1e6:,.0f} MB; a process that needs more crashes with "
            "a bus error",
            (Evidence("the mount dev/shm", f"{limits.shm_bytes:,} bytes", "statvfs"),),
            Fix("Start the container with a larger /dev/shm.", (Options(DOCKER, ("--shm-size=16g", *WITH_GPUS)),)),
            severity=None if "torch:signal" in symptoms(facts) else Severity.NOTE,
        )


@cause(
    "E14",
    "the limit on locked memory allows RDMA",
    Severity.NOTE,
    layer=Layer.CONTAINER,
    explains=(),
    why="InfiniBand and GPUDirect register memory by locking it; RLIMIT_MEMLOCK of 8 MB makes ibv_reg_mr fail.",
    example="ibv_reg_mr failed: Cannot allocate memory",
    fix="Start the container with --ulimit memlock=-1, or raise the limit for the service.",
    sources="nixl#441",
    tested="a real RLIMIT_MEMLOCK; facts",
)
def small_memory_lock(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A machine with InfiniBand modules whose limit is small."""
    limits, driver = need(facts.limits), need(facts.driver)
    rdma = sorted({"ib_umad", "ib_uverbs", "mlx5_ib", "nvidia_peermem"} & set(driver.modules))
    if rdma and limits.memlock_bytes is not None and limits.memlock_bytes < SMALL_MEMLOCK and gpus_on_bus(facts):
        yield Finding(
            f"the limit on locked memory is {limits.memlock_bytes / 1e6:,.0f} MB, and {', '.join(rdma)} is loaded: "
            "registering memory for RDMA will fail",
            (Evidence("RLIMIT_MEMLOCK", f"{limits.memlock_bytes:,} bytes", "getrlimit"),),
            Fix("Raise the limit.", (Options(DOCKER, ("--ulimit", "memlock=-1")),)),
        )


@cause(
    "E15",
    "WSL uses the Windows driver's libcuda",
    layer=Layer.USERSPACE,
    explains=("cuda:*", "nvml:*", *TORCH_FAILS),
    why="WSL uses the Windows driver, whose libcuda is in /usr/lib/wsl/lib. A Linux driver installed inside WSL "
    "shadows it, and without an entry in the loader's configuration it is not found.",
    example="libcuda.so.1: cannot open shared object file, in WSL, while nvidia-smi.exe works",
    fix="Remove the Linux driver from WSL, and add /usr/lib/wsl/lib to the loader's configuration (ldconfig). For "
    "error 500, update the container toolkit, or WSL.",
    sources="WSL#8587, pytorch#97501, NVIDIA/nvidia-container-toolkit#520",
    tested="facts alone; no Windows here",
)
def wsl_driver(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """WSL where libcuda is found elsewhere first, or not at all."""
    if not need(facts.system).wsl:
        return
    loader, cuda = need(facts.loader), need(facts.cuda)
    own = [
        lib for lib in loader.cuda_libraries if lib.name == "libcuda.so.1" and not lib.path.startswith("/usr/lib/wsl/")
    ]
    shipped = any(lib.path.startswith("/usr/lib/wsl/") for lib in loader.cuda_libraries)
    if cuda.code == _SYMBOL_NOT_FOUND and (in_container(facts) or not own):
        yield _older_than_windows(facts, cuda)
        return
    if cuda.code == 0 or not shipped:
        return
    commands: list[Step] = [
        WriteFile("/etc/ld.so.conf.d/wsl.conf", ("/usr/lib/wsl/lib",), as_root=True),
        Command(("sudo", "ldconfig")),
    ]
    if own:
        commands[:0] = _without_linux_driver(facts)
        message = f"a Linux driver inside WSL ({own[0].path}) shadows the Windows driver in /usr/lib/wsl/lib"
    else:
        message = "the Windows driver is in /usr/lib/wsl/lib, where the loader does not search"
    evidence = [Evidence("libcuda.so.1", lib.path, lib.where) for lib in loader.cuda_libraries[:4]]
    yield Finding(message, tuple(evidence), Fix("Use the Windows driver.", tuple(commands)))


def _older_than_windows(facts: HostFacts, cuda: CudaProbe) -> Finding:
    """Error 500 of cuInit, where a library that the driver of Windows opens by name is not there."""
    evidence = (Evidence("cuInit", f"{cuda.code} (CUDA_ERROR_NOT_FOUND)", cuda.library),)
    if in_container(facts):
        fix = Fix(
            "On the host, update the NVIDIA container toolkit to 1.15 or later, or Docker Desktop, which then mount "
            "libnvdxgdmal.so.1; then start the container again.",
            (Command(("nvidia-ctk", "--version")),),
        )
        return Finding("the container lacks a library of the Windows driver (cuInit: 500)", evidence, fix)
    fix = Fix("In Windows: `wsl --update`, then `wsl --shutdown`; also update the Windows driver.")
    return Finding("WSL is older than the Windows driver (cuInit: 500)", evidence, fix)


def _without_linux_driver(facts: HostFacts) -> tuple[Step, ...]:
    os_id = "" if isinstance(facts.system, Unavailable) else facts.system.os_id
    if os_id in RED_HAT:
        return (Command(("sudo", "dnf", "remove", "nvidia-driver*", "libnvidia-*")),)
    return (Command(("sudo", "apt-get", "purge", "libnvidia-compute-*", "nvidia-driver-*")),) if os_id in DEBIAN else ()


@cause(
    "E16",
    "the MPS control daemon is running where CUDA uses MPS",
    layer=Layer.VISIBILITY,
    explains=("cuda:805", "cuda:807", *TORCH_FAILS),
    why="When an MPS control pipe is set or left behind, CUDA connects to the MPS daemon; when the daemon is not "
    "running, cuInit fails.",
    example="Error 805: MPS client failed to connect to the MPS control daemon",
    fix="Start the daemon, or remove its leftover pipe.",
    sources="ApeRAG#120, vss#70",
    tested="a stub driver for 805; facts of the pipe",
)
def mps_without_daemon(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """805 or 807 of cuInit."""
    cuda, services = need(facts.cuda), need(facts.services)
    if cuda.code not in {805, 807}:
        return
    pipe = facts.variables.get("CUDA_MPS_PIPE_DIRECTORY", "") or services.mps_control
    running = [name for name in services.processes if name.startswith("nvidia-cuda-mps")]
    evidence = [Evidence("cuInit", str(cuda.code), cuda.library)]
    evidence += [Evidence("MPS pipe", pipe)] if pipe else []
    evidence += [Evidence("MPS daemon", ", ".join(running) or "is not running")]
    daemon: tuple[Step, ...] = (Command(("nvidia-cuda-mps-control", "-d")),)
    fix = Fix("Start the daemon.", daemon)
    if "CUDA_MPS_PIPE_DIRECTORY" in facts.variables:
        without = Unset(("CUDA_MPS_PIPE_DIRECTORY",), "to run without MPS instead")
        fix = Fix("Start the daemon, or run without MPS.", (*daemon, without))
    yield Finding(
        f"CUDA uses MPS, but cannot reach the MPS daemon (cuInit {cuda.code})",
        tuple(evidence),
        fix,
    )
