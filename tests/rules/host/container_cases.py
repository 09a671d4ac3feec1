"""DOC501 to DOC516: containers, schedulers, sandboxes, limits."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.case import NOTE, WARNING, Case
from tests.support.hosts import (
    DONE,
    cuda_fails,
    healthy,
    in_container,
    kernel_fails,
    replaced,
    with_variables,
    without_driver,
    without_nodes,
)
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.devices import DeviceNode, Services
from wheel_checks.facts.host.machine import CdiSpecification, Limits
from wheel_checks.facts.host.probes import ChildEnd, Counterfactual, CudaProbe, TorchProbe
from wheel_checks.facts.host.software import CudaLibrary

CDI = CdiSpecification("/etc/cdi/nvidia.yaml", ("all",), ("/usr/lib/libcuda.so.570.86.10",))


def denied(facts: HostFacts, error: str, **container: object) -> HostFacts:
    """In a Docker container whose nodes cannot be opened."""
    nodes = tuple(DeviceNode(f"/dev/{name}", "0666", "root", "root", error) for name in ("nvidiactl", "nvidia0"))
    facts = in_container(cuda_fails(facts, 100), "docker", **container)
    return replace(facts, nodes=nodes)


def apptainer(**variables: str) -> HostFacts:
    library = CudaLibrary("libcuda.so.1", "/.singularity.d/libs/libcuda.so.1", "", "driver", "LD_LIBRARY_PATH", 10**8)
    facts = in_container(kernel_fails(healthy(), "AssertionError: libcuda.so cannot found!"), "apptainer")
    facts = replaced(facts, "loader", cuda_libraries=(library,), cached_libcuda=False)
    return with_variables(facts, **variables)


def utility_only(capabilities: str) -> HostFacts:
    missing = CudaProbe(DONE, -1, "libcuda.so.1: cannot open shared object file")
    facts = replace(in_container(cuda_fails(healthy(), -1)), cuda=missing)
    return with_variables(facts, NVIDIA_DRIVER_CAPABILITIES=capabilities)


def slurm(**variables: str) -> HostFacts:
    return with_variables(cuda_fails(healthy(), 100), SLURM_JOB_ID="4711", **variables)


def orchestrated(visible: str, proven: bool = True) -> HostFacts:
    facts = in_container(cuda_fails(healthy(), 100))
    facts = with_variables(facts, NVIDIA_VISIBLE_DEVICES="all", CUDA_VISIBLE_DEVICES=visible)
    again = Counterfactual("CUDA_VISIBLE_DEVICES", visible, (100, 0), (0, 1))
    return replace(facts, counterfactuals=(again,) if proven else ())


def wsl(path: str, code: int) -> HostFacts:
    facts = replaced(cuda_fails(healthy(), code), "system", wsl=True)
    shipped = CudaLibrary("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "", "driver", "known folder", 10**8)
    other = (CudaLibrary("libcuda.so.1", path, "535.1", "driver", "ld.so.cache", 10**8),) if path else ()
    return replaced(facts, "loader", cuda_libraries=(*other, shipped))


def with_host(**container: object) -> HostFacts:
    return replaced(healthy(), "container", **container)


def locked(limit: int | None, *modules: str) -> HostFacts:
    facts = healthy(limits=Limits(2**38, limit))
    return replaced(facts, "driver", modules=("nvidia", "nvidia_uvm", *modules))


def bus_error(facts: HostFacts) -> HostFacts:
    return replace(facts, torch=TorchProbe(ChildEnd(signal="SIGBUS"), False))


def mps(code: int) -> HostFacts:
    return replace(cuda_fails(healthy(), code), services=Services((), mps_control="/tmp/nvidia-mps/control"))


CASES = [
    Case(
        "DOC501",
        "a container without device nodes, on a host with a driver",
        lambda: in_container(without_nodes(healthy())),
        (
            "the docker container was started without a GPU: the host runs driver 580.159.04, but /dev/nvidiactl is "
            "missing",
        ),
        evidence=("580.159.04",),
    ),
    Case("DOC501", "a container with its GPU", lambda: in_container(healthy())),
    Case("DOC501", "no container", lambda: without_nodes(healthy())),
    Case("DOC501", "a host without a driver", lambda: in_container(without_driver(healthy()))),
    Case(
        "DOC501",
        "the runtime was asked to give none, which DOC507 says",
        lambda: with_variables(in_container(without_nodes(healthy())), NVIDIA_VISIBLE_DEVICES="void"),
    ),
    Case(
        "DOC502",
        "Docker without the toolkit on a host with a GPU",
        lambda: with_host(docker="package"),
        ("Docker is installed, but the NVIDIA container toolkit is not: no container can use a GPU.",),
        WARNING,
    ),
    Case(
        "DOC502",
        "Docker from snap",
        lambda: with_host(docker="snap"),
        (
            "Docker is installed, but the NVIDIA container toolkit is not: no container can use a GPU. The snap of "
            "Docker cannot start the NVIDIA runtime.",
        ),
        WARNING,
    ),
    Case("DOC502", "with the toolkit", lambda: with_host(docker="package", toolkit=("/usr/bin/nvidia-ctk",))),
    Case("DOC502", "no Docker", with_host),
    Case(
        "DOC503",
        "files of an older driver",
        lambda: with_host(cdi=(CDI,)),
        ("/etc/cdi/nvidia.yaml names 1 missing file; the first is /usr/lib/libcuda.so.570.86.10",),
        evidence=("/usr/lib/libcuda.so.570.86.10",),
    ),
    Case("DOC503", "all files are there", lambda: with_host(cdi=(replace(CDI, missing=()),))),
    Case("DOC503", "inside a container", lambda: in_container(healthy(), cdi=(CDI,))),
    Case(
        "DOC504",
        "EPERM in a container",
        lambda: denied(healthy(), "EPERM"),
        ("the container's cgroup denies /dev/nvidiactl: the node exists, but opening it fails with EPERM",),
        evidence=("EPERM",),
    ),
    Case("DOC504", "EACCES is a matter of permissions", lambda: denied(healthy(), "EACCES")),
    Case(
        "DOC504",
        "a Slurm job, which DOC511 explains",
        lambda: with_variables(denied(healthy(), "EPERM"), SLURM_JOB_ID="1"),
    ),
    Case(
        "DOC505",
        "no-cgroups with denied nodes",
        lambda: denied(healthy(), "EPERM", runtime_options={"no-cgroups": "true (/etc/x.toml:7)"}),
        ("the NVIDIA runtime does not configure cgroups (no-cgroups = true), and /dev/nvidiactl is denied",),
        evidence=("true (/etc/x.toml:7)",),
    ),
    Case("DOC505", "no-cgroups and nothing denied", lambda: with_host(runtime_options={"no-cgroups": "true"})),
    Case(
        "DOC506",
        "a container's label, and a mode that allows it",
        lambda: denied(healthy(), "EACCES", label="system_u:system_r:container_t:s0:c1,c2"),
        (
            "SELinux denies /dev/nvidiactl: its mode 0666 allows access, the label "
            "system_u:system_r:container_t:s0:c1,c2 does not",
        ),
    ),
    Case("DOC506", "no such label", lambda: denied(healthy(), "EACCES", label="unconfined")),
    Case(
        "DOC507",
        "void",
        lambda: with_variables(in_container(without_nodes(healthy())), NVIDIA_VISIBLE_DEVICES="void"),
        ("NVIDIA_VISIBLE_DEVICES='void': the runtime gave this container no GPU",),
    ),
    Case(
        "DOC507",
        "void, and devices that were given otherwise",
        lambda: with_variables(in_container(healthy()), NVIDIA_VISIBLE_DEVICES="void"),
    ),
    Case(
        "DOC508",
        "utility alone",
        lambda: utility_only("utility"),
        (
            "the container lacks the driver's compute libraries: NVML works, but libcuda.so.1 is missing "
            "(NVIDIA_DRIVER_CAPABILITIES='utility')",
        ),
    ),
    Case("DOC508", "compute is among them", lambda: utility_only("compute,utility")),
    Case(
        "DOC509",
        "304 and a denied memfd_create",
        lambda: replaced(cuda_fails(healthy(), 304), "container", denied={"memfd_create": "EPERM"}, seccomp=2),
        ("the sandbox denies what CUDA needs: memfd_create returned EPERM; cuInit therefore returned 304",),
        evidence=("EPERM", "filter"),
    ),
    Case("DOC509", "304 and nothing denied", lambda: cuda_fails(healthy(), 304)),
    Case("DOC509", "denied, and CUDA works", lambda: with_host(denied={"memfd_create": "EPERM"})),
    Case(
        "DOC510",
        "libcuda in Apptainer's folder alone",
        apptainer,
        ("libcuda.so.1 is in /.singularity.d/libs, which ldconfig does not list: Triton does not find it",),
    ),
    Case("DOC510", "Triton was given the path", lambda: apptainer(TRITON_LIBCUDA_PATH="/.singularity.d/libs")),
    Case(
        "DOC511",
        "a job without --gres",
        lambda: slurm(CUDA_VISIBLE_DEVICES="NoDevFiles"),
        ("the Slurm job has no GPU: neither SLURM_JOB_GPUS nor SLURM_STEP_GPUS is set",),
        evidence=("4711", "'NoDevFiles'"),
    ),
    Case("DOC511", "a job with a GPU", lambda: slurm(CUDA_VISIBLE_DEVICES="", SLURM_JOB_GPUS="0")),
    Case("DOC511", "a job in which all is well", lambda: with_variables(healthy(), SLURM_JOB_ID="4711")),
    Case(
        "DOC512",
        "given all, shown nothing",
        lambda: orchestrated(""),
        ("an empty CUDA_VISIBLE_DEVICES hides the GPUs that the container was given (NVIDIA_VISIBLE_DEVICES=all)",),
        evidence=("cuInit 0, 1 devices",),
    ),
    Case("DOC512", "CUDA_VISIBLE_DEVICES names one", lambda: orchestrated("0", proven=False)),
    Case(
        "DOC513",
        "64 MB in a container",
        lambda: in_container(healthy(limits=Limits(64 << 20, None))),
        ("shared memory (/dev/shm) has 67 MB; a process that needs more crashes with a bus error",),
        NOTE,
    ),
    Case(
        "DOC513",
        "64 MB, and torch was killed by a signal",
        lambda: bus_error(in_container(healthy(limits=Limits(64 << 20, None)))),
        ("shared memory (/dev/shm) has 67 MB; a process that needs more crashes with a bus error",),
        WARNING,
    ),
    Case("DOC513", "16 GB", lambda: in_container(healthy(limits=Limits(16 << 30, None)))),
    Case(
        "DOC514",
        "8 MB next to InfiniBand",
        lambda: locked(8 << 20, "mlx5_ib"),
        ("the limit on locked memory is 8 MB, and mlx5_ib is loaded: registering memory for RDMA will fail",),
        NOTE,
    ),
    Case("DOC514", "8 MB without InfiniBand", lambda: locked(8 << 20)),
    Case("DOC514", "no limit", lambda: locked(None, "mlx5_ib")),
    Case(
        "DOC515",
        "a Linux driver inside of WSL",
        lambda: wsl("/usr/lib/x86_64-linux-gnu/libcuda.so.1", 999),
        (
            "a Linux driver inside WSL (/usr/lib/x86_64-linux-gnu/libcuda.so.1) shadows the Windows driver in "
            "/usr/lib/wsl/lib",
        ),
    ),
    Case(
        "DOC515",
        "a loader that does not look there",
        lambda: wsl("", -1),
        ("the Windows driver is in /usr/lib/wsl/lib, where the loader does not search",),
    ),
    Case("DOC515", "WSL where CUDA works", lambda: replaced(healthy(), "system", wsl=True)),
    Case(
        "DOC516",
        "805 with a pipe that was left behind",
        lambda: mps(805),
        ("CUDA uses MPS, but cannot reach the MPS daemon (cuInit 805)",),
        evidence=("/tmp/nvidia-mps/control", "is not running"),
    ),
    Case("DOC516", "a pipe, and CUDA works", lambda: mps(0)),
]
