"""The container's runtime gives it the GPU, and the driver's libraries."""

import re
from collections.abc import Iterator
from typing import Any

from wheel_checks.commands import Command, Export, NoCommand, Options, Step, run
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.presence import gpus_of_build
from wheel_checks.model import Evidence, Finding, Fix, Severity, need
from wheel_checks.phrases import plural
from wheel_checks.rules.host import other_makers
from wheel_checks.rules.host.cause import Layer, causes_in
from wheel_checks.rules.host.observed import NO_CUDA, TORCH_FAILS, container_shown, fails, gpus_on_bus

DOCKER, PODMAN = ("docker", "run"), ("podman", "run")
WITH_GPUS = ("--gpus", "all")
WITH_CDI = ("--device", "nvidia.com/gpu=all")

_START_WITH_GPU: dict[str, tuple[Step, ...]] = {
    "kubernetes": (NoCommand("request a GPU in the pod's specification: resources.limits: {nvidia.com/gpu: 1}"),),
    "podman": (Options(PODMAN, WITH_CDI),),
    "apptainer": (Options(("apptainer", "run"), ("--nv",)),),
}
_SPECIFICATION = re.compile(r"\w[\w.-]*\.(?:yaml|json)", re.ASCII)
_CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi", "/run/cdi")

cause = causes_in(Layer.CONTAINER)


def start_with_gpu(kind: str) -> tuple[Step, ...]:
    """What starts a container of this kind with its GPUs, that of CDI last."""
    docker = Options(DOCKER, WITH_GPUS), Options(DOCKER, WITH_CDI, "with CDI instead")
    return _START_WITH_GPU.get(kind, docker)


@cause(
    "E01",
    "the container was started with a GPU",
    explains=NO_CUDA,
    why="A container can use a GPU only when it is started with one. The host's kernel module is visible in /proc, so "
    "that a driver seems to be installed.",
    example="docker run image python train.py, without --gpus",
    fix="Start the container again with its GPUs; they cannot be added from inside.",
    sources="nvidia-docker#1352; ROCm/ROCm-docker#116",
    tested="facts of a container without device nodes; no real GPU host",
)
def started_without_gpu(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A container, no /dev/nvidiactl, and yet the host's driver in /proc."""
    if gpus_of_build(facts):
        yield from other_makers.container_without_nodes(facts)
        return
    container, nodes, driver = need(facts.container), need(facts.nodes), need(facts.driver)
    if not container.kind or any(node.path == "/dev/nvidiactl" and node.error != "ENOENT" for node in nodes):
        return
    if (
        facts.variables.get("NVIDIA_VISIBLE_DEVICES", "all") in {"", "void", "none"}
        or "SLURM_JOB_ID" in facts.variables
    ):
        return  # E07 and E11 say more
    if not driver.version:
        return
    yield Finding(
        f"the {container.kind} container was started without a GPU: the host runs driver {driver.version}, but "
        "/dev/nvidiactl is missing",
        (container_shown(container), Evidence("host driver", driver.version, "/proc/driver/nvidia/version")),
        Fix("Start the container again with its GPUs.", start_with_gpu(container.kind)),
    )


@cause(
    "E02",
    "Docker has the NVIDIA runtime",
    Severity.WARNING,
    why='Without the NVIDIA container toolkit, `docker run --gpus all` fails with "could not select device driver".',
    example='docker: Error response: could not select device driver "" with capabilities: [[gpu]]',
    fix="Install the toolkit on the host, register its runtime, and restart Docker. Docker installed as a snap cannot "
    "use it.",
    sources="nvidia-docker#1034, nvidia-docker#1642",
    tested="facts alone; no host with Docker and a GPU",
)
def toolkit_missing(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A host with a GPU and Docker, and no toolkit."""
    container = need(facts.container)
    if not gpus_on_bus(facts) or container.kind or not container.docker or container.toolkit:
        return
    snap = " The snap of Docker cannot start the NVIDIA runtime." if container.docker == "snap" else ""
    yield Finding(
        f"Docker is installed, but the NVIDIA container toolkit is not: no container can use a GPU.{snap}",
        (Evidence("docker", container.docker),),
        Fix(
            "Install the toolkit and register its runtime.",
            (
                Command(("sudo", "apt-get", "install", "nvidia-container-toolkit")),
                Command(("sudo", "nvidia-ctk", "runtime", "configure", "--runtime=docker")),
                Command(("sudo", "systemctl", "restart", "docker")),
            ),
        ),
    )


@cause(
    "E03",
    "the files named in the CDI specifications exist",
    why="A CDI specification lists the driver's files by name, with its version. After a driver update it names files "
    "that no longer exist, and containers do not start, or start without a GPU.",
    example="unresolvable CDI devices nvidia.com/gpu=all",
    fix="Regenerate the specification after every driver update.",
    sources="nvidia-container-toolkit, its source; NemoClaw#4016",
    tested="real specification files in JSON and YAML on a fake root",
)
def cdi_stale(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A specification that names files of the host which are not there."""
    container = need(facts.container)
    if container.kind:
        return  # its files are the host's, and cannot be looked for here
    for specification in container.cdi:
        if specification.missing:
            first = specification.missing[0]
            yield Finding(
                f"{specification.path} names {plural(len(specification.missing), 'missing file')}; the first is "
                f"{first}",
                (Evidence("missing", first, specification.path),),
                Fix("Regenerate the specification.", (_generate(specification.path),)),
            )


def _generate(file: str) -> Step:
    """Root writes the file, so it must be one of a folder of CDI's."""
    folder, _, name = file.rpartition("/")
    if folder not in _CDI_FOLDERS or not _SPECIFICATION.fullmatch(name):
        return NoCommand(f"{file!a} is not a specification in {_CDI_FOLDERS[0]}")
    return run("sudo", "nvidia-ctk", "cdi", "generate", f"--output={file}")


@cause(
    "E07",
    "NVIDIA_VISIBLE_DEVICES requests a GPU",
    explains=NO_CUDA,
    why="The NVIDIA runtime gives a container the GPUs that NVIDIA_VISIBLE_DEVICES names; void, none and an empty "
    "value mean no GPU.",
    example="NVIDIA_VISIBLE_DEVICES=void, which Kubernetes' device plugin sets when the pod requests no GPU",
    fix="Start the container again with NVIDIA_VISIBLE_DEVICES=all, or request a GPU from the scheduler.",
    sources="neutree PR96",
    tested="facts of the variable and the nodes; no real runtime",
)
def visible_devices_void(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The variable hides all GPUs, and no node is there."""
    container = need(facts.container)
    value = facts.variables.get("NVIDIA_VISIBLE_DEVICES")
    if not container.kind or value not in {"", "void", "none"} or not fails(facts, *NO_CUDA):
        return
    if any(node.path.startswith("/dev/nvidia") and not node.error for node in need(facts.nodes)):
        return
    yield Finding(
        f"NVIDIA_VISIBLE_DEVICES={value!r}: the runtime gave this container no GPU",
        (Evidence("NVIDIA_VISIBLE_DEVICES", repr(value), "environment"), container_shown(container)),
        Fix(
            "Start the container again with GPUs.",
            (Options(DOCKER, (*WITH_GPUS, "-e", "NVIDIA_VISIBLE_DEVICES=all")),)
            if container.kind != "kubernetes"
            else start_with_gpu("kubernetes"),
        ),
    )


@cause(
    "E08",
    "the container has the driver's compute libraries",
    explains=("cuda:-1", *TORCH_FAILS),
    why="NVIDIA_DRIVER_CAPABILITIES selects the driver libraries that a container gets. With utility alone, nvidia-smi "
    "is there but libcuda.so.1 is not.",
    example="NVIDIA_DRIVER_CAPABILITIES=utility: nvidia-smi works, torch sees no driver",
    fix="Start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
    sources="the container toolkit's documentation (inferred)",
    tested="facts alone",
    certain=False,
)
def without_compute(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """NVML answers, libcuda is missing, and the capabilities leave compute out."""
    container, nvml, cuda = need(facts.container), need(facts.nvml), need(facts.cuda)
    value = facts.variables.get("NVIDIA_DRIVER_CAPABILITIES", "")
    missing = {"all", "compute"}.isdisjoint(value.split(","))
    if container.kind and nvml.code == 0 and nvml.gpus and cuda.code == -1 and missing:
        yield Finding(
            "the container lacks the driver's compute libraries: NVML works, but libcuda.so.1 is missing "
            f"(NVIDIA_DRIVER_CAPABILITIES={value!r})",
            (Evidence("NVML", f"{len(nvml.gpus)} GPUs"), Evidence("libcuda", cuda.fault, "dlopen()")),
            Fix(
                "Start the container again with the compute libraries.",
                (Options(DOCKER, (*WITH_GPUS, "-e", "NVIDIA_DRIVER_CAPABILITIES=compute,utility")),),
            ),
        )


@cause(
    "E10",
    "Triton finds the libcuda that Apptainer mounts",
    explains=("kernel:failed",),
    why="Apptainer mounts the driver's libraries in /.singularity.d/libs and adds that folder to LD_LIBRARY_PATH; "
    "Triton before 3.3 searches only the cache of ldconfig, which does not list the folder.",
    example="libcuda.so cannot found! in an Apptainer container with --nv",
    fix="Set TRITON_LIBCUDA_PATH to that folder.",
    sources="pytorch#107960",
    tested="facts alone; no Apptainer here",
)
def apptainer_libcuda(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The libcuda only in Apptainer's folder, and Triton's kernel fails."""
    container, loader = need(facts.container), need(facts.loader)
    folder = "/.singularity.d/libs"
    there = any(lib.name == "libcuda.so.1" and lib.path.startswith(folder) for lib in loader.cuda_libraries)
    named = facts.variables.get("TRITON_LIBCUDA_PATH", "")
    lost = container.kind == "apptainer" and there and not loader.cached_libcuda and not named
    if lost and fails(facts, "kernel:failed"):
        yield Finding(
            f"libcuda.so.1 is in {folder}, which ldconfig does not list: Triton does not find it",
            (Evidence("libcuda.so.1", folder), container_shown(container)),
            Fix("Name the folder.", (Export("TRITON_LIBCUDA_PATH", folder),)),
        )
