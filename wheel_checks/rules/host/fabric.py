"""The NVSwitch fabric, IMEX, confidential computing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.devices import Services
from wheel_checks.facts.host.gpus.fabric_health import fabric_faults
from wheel_checks.facts.host.gpus.pci_names import needs_subnet_manager
from wheel_checks.facts.host.probes import NvmlGpu, NvmlProbe
from wheel_checks.fixes.commands import Command, Export, NoCommand, Options, Word, run
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.phrases import joined
from wheel_checks.rules.host.cause import Layer, causes_in
from wheel_checks.rules.host.observed import (
    TORCH_FAILS,
    container_shown,
    cuda_code,
    gpus_on_bus,
    in_container,
    nvml_gpus,
    of_driver,
    of_kernel,
)

NOT_INITIALIZED = 802  # CUDA_ERROR_SYSTEM_NOT_READY
IN_PROGRESS, COMPLETED = 2, 3  # nvmlGpuFabricState_t
WITHOUT_CUDA = ("cuda:802", *TORCH_FAILS)
IMEX_MAJOR, IMEX_NODE = "nvidia-caps-imex-channels", "/dev/nvidia-caps-imex-channels/channel0"

_ORCHESTRATED = ("kubernetes", "containerd")  # a pod without its variables shows as its runtime
# github.com/NVIDIA/k8s-dra-driver-gpu, "ComputeDomains"
_CLAIM = NoCommand(
    "create a ComputeDomain (resource.nvidia.com/v1beta1) with a channel's resourceClaimTemplate, and name that "
    "template in resourceClaims of the pod"
)
MANAGER = "nvidia-fabricmanager-{branch}={version}-1"  # the package as apt-get names it
_SYSTEMCTL = ("sudo", "systemctl")
_RESTART_MANAGER = Command((*_SYSTEMCTL, "restart", "nvidia-fabricmanager"))

cause = causes_in(Layer.FABRIC)


def _has_switches(facts: HostFacts) -> bool:
    """NVSwitches on the bus, or their nodes; the majors are there on every machine."""
    on_bus = any(device.is_nvswitch for device in need(facts.pci))
    return on_bus or any(node.path.startswith("/dev/nvidia-nvswitch") for node in need(facts.nodes))


def _states(facts: HostFacts) -> Iterator[Evidence]:
    names = {0: "not supported", 1: "not started", 2: "in progress", 3: "completed"}
    for gpu in nvml_gpus(facts)[:2]:
        if gpu.fabric_state is not None:
            yield Evidence(
                f"fabric state of GPU {gpu.index}", names.get(gpu.fabric_state, str(gpu.fabric_state)), "NVML"
            )


def _extra_modules(facts: HostFacts) -> tuple[Word, ...]:
    """The package with ib_umad and mlx5_ib, if the kernel's release is known."""
    if isinstance(facts.system, Unavailable) or not facts.system.kernel:
        return ()
    return (of_kernel(facts.system.kernel, "linux-modules-extra-{release}"),)


@cause(
    "D01",
    "the fabric manager is running",
    explains=WITHOUT_CUDA,
    why="GPUs behind NVSwitches wait until the fabric manager has configured the switches; until then cuInit returns "
    "802, while nvidia-smi shows nothing unusual.",
    example="Error 802: system not yet initialized, on HGX H100, H200 or B200",
    fix="Install the fabric manager of exactly the driver's version, and start it.",
    sources="pytorch#35710, aws dcv#33, jax PR34113",
    tested="a stub driver for 802 and NVML's fabric state; no HGX machine without its manager",
)
def manager_not_running(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """802, switches, and no manager among the processes."""
    services = need(facts.services)
    if cuda_code(facts) != NOT_INITIALIZED or in_container(facts) or "nv-fabricmanager" in services.processes:
        return
    if not _has_switches(facts) and not any(gpu.fabric_state in {1, IN_PROGRESS} for gpu in nvml_gpus(facts)):
        return
    version = need(facts.driver).version
    if services.fabric_manager and services.fabric_manager != version:
        return  # D02 says why it does not
    install = () if services.fabric_manager else (run("sudo", "apt-get", "install", of_driver(version, MANAGER)),)
    yield Finding(
        "the fabric manager is not running: the GPUs wait for their NVSwitches, and cuInit returned 802",
        (
            Evidence("cuInit", "802"),
            *_states(facts),
            Evidence("nv-fabricmanager", "not among the processes", "/proc"),
            Evidence("package", services.fabric_manager or "not installed"),
        ),
        Fix(
            "Start the fabric manager; its version must be the driver's.",
            (*install, Command((*_SYSTEMCTL, "enable", "--now", "nvidia-fabricmanager"))),
        ),
    )


@cause(
    "D02",
    "the fabric manager has the version of the driver",
    explains=WITHOUT_CUDA,
    why="The fabric manager rejects a driver of any other version, to the last digit, and exits.",
    example="fabric manager NVIDIA GPU driver interface version 530.30.02 don't match with driver version 530.41.03",
    fix="Install exactly the driver's version.",
    sources="gpu-operator#544",
    tested="a fake root with dpkg's file; facts",
)
def manager_of_another_version(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Two versions, on a machine with switches if CUDA is not ready."""
    services, driver = need(facts.services), need(facts.driver)
    if not services.fabric_manager or not driver.version or services.fabric_manager == driver.version:
        return
    if _has_switches(facts) and cuda_code(facts) == NOT_INITIALIZED:
        yield Finding(
            f"the fabric manager is {services.fabric_manager}, but the driver is {driver.version}: the fabric manager "
            "exits at once",
            (
                Evidence("nvidia-fabricmanager", services.fabric_manager, "/var/lib/dpkg/status"),
                Evidence("driver", driver.version, "/sys/module/nvidia/version"),
            ),
            Fix(
                "Install the fabric manager in the driver's version.",
                (
                    run("sudo", "apt-get", "install", "--allow-downgrades", of_driver(driver.version, MANAGER)),
                    _RESTART_MANAGER,
                ),
            ),
        )


@cause(
    "D03",
    "the NVLink subnet manager is running where NVLink 5 requires it",
    explains=WITHOUT_CUDA,
    why="On HGX B200 and B300 the fabric manager works through nvlsm, which uses InfiniBand's management protocol and "
    "needs ib_umad.",
    example="the fabric manager ends with NV_WARN_NOTHING_TO_DO on a B200 machine; cuInit gives 802",
    fix="Install nvlsm and load ib_umad and mlx5_ib.",
    sources="gpu-operator#2781, siderolabs/extensions PR717",
    tested="facts; no B200 machine",
)
def subnet_manager_missing(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """802 on a B200 or B300 without nvlsm or ib_umad."""
    services, driver = need(facts.services), need(facts.driver)
    boards = [device for device in gpus_on_bus(facts) if needs_subnet_manager(device.device)]
    if cuda_code(facts) != NOT_INITIALIZED or not boards or len(boards) < 2 or in_container(facts):
        return
    lacking = [name for name in ("ib_umad", "mlx5_ib") if name not in driver.modules]
    if "nvlsm" not in services.processes or lacking:
        yield Finding(
            f"{boards[0].name} needs the NVLink subnet manager"
            + (f", but {', '.join(lacking)} is not loaded" if lacking else ", but nvlsm is not running"),
            (
                Evidence("nvlsm", "runs" if "nvlsm" in services.processes else "not running", "/proc"),
                Evidence("modules", ", ".join(sorted({"ib_umad", "mlx5_ib"} & set(driver.modules))) or "neither"),
            ),
            Fix(
                "Install nvlsm and load the modules that it needs.",
                (
                    run("sudo", "apt-get", "install", "nvlsm", *_extra_modules(facts)),
                    Command(("sudo", "modprobe", "-a", "ib_umad", "mlx5_ib")),
                    _RESTART_MANAGER,
                ),
            ),
        )


@cause(
    "D04",
    "a GPU in confidential mode is set to ready",
    explains=(*WITHOUT_CUDA, "cuda:no-device", "cuda:100"),
    why="In confidential computing a GPU accepts no work until its attestation succeeded and it is set to ready.",
    example="is_available() is False in a confidential virtual machine",
    fix="Attest the GPU, then set it to ready.",
    sources="nvtrust#56, nvtrust#37, nvtrust#39",
    tested="a stub NVML that says not ready; no confidential machine",
)
def confidential_not_ready(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """NVML says that the GPUs are not ready."""
    if isinstance(facts.nvml, NvmlProbe) and facts.nvml.confidential_ready is False:
        yield Finding(
            "the GPU is in confidential mode but not set to ready",
            (Evidence("confidential computing, GPUs ready", "no", "nvmlSystemGetConfComputeGpusReadyState"),),
            Fix(
                "After attestation, set the GPU to ready.",
                (Command(("sudo", "nvidia-smi", "conf-compute", "-srs", "1")),),
            ),
        )


@cause(
    "D05",
    "the provider's NVSwitch fabric is ready",
    explains=WITHOUT_CUDA,
    why="In a container or a rented virtual machine the provider runs the fabric manager. Error 802 cannot be fixed "
    "from inside.",
    example="802 in a hosted notebook, on one node and not on another",
    fix="Use another node, and report this one to the provider.",
    sources="huggingface_hub#4128, huggingface_hub#4134",
    tested="a stub driver for 802 and facts of a container",
)
def hosted_fabric(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """802 inside of a container."""
    if cuda_code(facts) == NOT_INITIALIZED and in_container(facts):
        yield Finding(
            "the host's NVSwitch fabric is not ready (cuInit 802), which cannot be fixed from inside a container",
            (
                Evidence("cuInit", "802"),
                *_states(facts),
                container_shown(need(facts.container)),
            ),
            Fix(
                "Use another node, and report this one to the provider: cuInit returns CUDA_ERROR_SYSTEM_NOT_READY "
                "(802), so its fabric manager or its partition is not up."
            ),
        )


@cause(
    "D06",
    "a fabric manager that is not running on a host without NVSwitches is harmless",
    Severity.NOTE,
    why="On a host without NVSwitches the fabric manager exits with an error, and nothing needs it.",
    example="nvidia-fabricmanager.service: failed, on a machine with PCIe GPUs where CUDA works",
    fix="No action is needed; disable the service to silence its failure.",
    sources="gpu-operator#610",
    tested="facts",
)
def manager_without_switches(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The package is installed, there are no switches, and CUDA works."""
    services = need(facts.services)
    connected = any(gpu.fabric_state == COMPLETED for gpu in nvml_gpus(facts))
    idle = bool(services.fabric_manager) and "nv-fabricmanager" not in services.processes
    if idle and cuda_code(facts) == 0 and not _has_switches(facts) and not connected:
        yield Finding(
            "harmless: the fabric manager is installed but not running; this host has no NVSwitch to manage",
            (Evidence("nvidia-fabricmanager", services.fabric_manager), Evidence("cuInit", "0")),
        )


@cause(
    "D07",
    "the IMEX channel's device node exists",
    Severity.WARNING,
    explains=("torch:compute",),
    why="GPUs of several trays (GB200 and GB300 NVL72) share memory through an IMEX channel, a device node. Without it "
    "cuMemCreate with fabric handles returns 800, and NCCL fails across trays.",
    example="CUDA_ERROR_NOT_PERMITTED (800) in cuMemCreate; NCCL MNNVL",
    fix="Create the channel's node; in a container, request the channel; in Kubernetes, claim one with a ComputeDomain "
    "where a job spans trays.",
    sources="mscclpp#467, nccl#1483, nccl#1632, nvbandwidth#39",
    tested="a fake root without the node; no NVL72",
)
def imex_channel_missing(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """GPUs that belong to a fabric across machines, and no channel or none that may be opened."""
    driver, nodes = need(facts.driver), need(facts.nodes)
    multi_node = any(device.name in {"NVIDIA GB200", "NVIDIA GB300"} for device in gpus_on_bus(facts))
    if not multi_node or IMEX_MAJOR not in driver.majors:
        return
    channel = next((node for node in nodes if node.path == IMEX_NODE), None)
    if channel is not None and not channel.error:
        return
    state = "missing" if channel is None else channel.error
    kind = need(facts.container).kind if in_container(facts) else ""
    # A pod has the channel only when it claims one, and needs it only when its job spans trays
    severity = Severity.NOTE if kind in _ORCHESTRATED else None
    what = "missing" if channel is None else f"closed to this user ({state})"
    yield Finding(
        f"the IMEX channel {IMEX_NODE} is {what}: GPUs of other trays cannot share memory with this one",
        (Evidence(IMEX_MAJOR, "registered", "/proc/devices"), Evidence(IMEX_NODE, state)),
        _with_channel(kind),
        severity=severity,
    )


def _with_channel(kind: str) -> Fix:
    """The commands that give the channel to the host ("") or to a container of this kind."""
    if not kind:
        return Fix("Create its node.", (Command(("sudo", "nvidia-modprobe", "-s", "-i", "0:1")),))
    if kind in _ORCHESTRATED:
        return Fix("A job that spans trays claims the channel in its pods; others need none.", (_CLAIM,))
    if kind == "docker":
        docker = Options(("docker", "run"), ("--gpus", "all", "-e", "NVIDIA_IMEX_CHANNELS=0"))
        return Fix("Request the channel for the container.", (docker,))
    return Fix(
        "Pass the channel to the container in the tool that starts it.",
        (NoCommand(f"give {IMEX_NODE} to the container"),),
    )


def _mask(gpu: NvmlGpu, faults: Sequence[str]) -> Evidence:
    clique = f", clique {gpu.fabric_clique}" if gpu.fabric_clique is not None else ""
    mask = f"health mask {gpu.fabric_health:#x}" if gpu.fabric_health is not None else "no health mask"
    return Evidence(f"GPU {gpu.index}", f"{mask} ({joined(list(faults))}){clique}", "NVML")


@cause(
    "D08",
    "the NVLink fabric is healthy",
    Severity.WARNING,
    explains=("torch:compute", "torch:signal"),
    why="With some links of an NVLink domain down, NCCL across several trays may crash instead of routing around them.",
    example="NCCL INFO MNNVL busId 0x801000 ... state 3 healthMask 0xa9: degraded bandwidth",
    fix="Use NCCL_MNNVL_ENABLE=0 until the fabric is repaired. 0xaa, 0x1aa and 0x51aa are healthy: in the first four "
    "fields, of two bits each, 1 is the fault and 2 says that there isn't one.",
    sources="nvml.h, nccl#2186",
    tested="a stub NVML's health mask, and all 65,536 masks",
)
def degraded_fabric(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A health mask with a fault in a field, or a summary with one."""
    gpus = nvml_gpus(facts)
    faulty = {gpu: faults for gpu in gpus if (faults := fabric_faults(gpu.fabric_health, gpu.fabric_summary))}
    if faulty:
        kinds = joined(list(dict.fromkeys(fault for faults in faulty.values() for fault in faults)))
        yield Finding(
            f"{len(faulty)} of {len(gpus)} GPUs report a fault of the NVLink fabric ({kinds})",
            tuple(_mask(gpu, faults) for gpu, faults in list(faulty.items())[:4]),
            Fix("Stop NCCL from using it until it is repaired.", (Export("NCCL_MNNVL_ENABLE", "0"),)),
        )


@cause(
    "D09",
    "the IMEX daemon is running where an IMEX domain is configured",
    Severity.WARNING,
    explains=("torch:compute",),
    why="Multicast over NVLink (NVLS) across trays needs the IMEX daemon on every tray; without it NCCL fails with "
    "error 802, while CUDA otherwise works.",
    example="NCCL: Cuda failure 802 on GB200, while cuInit is fine",
    fix="Start nvidia-imex on every tray; set NCCL_NVLS_ENABLE=0 until then.",
    sources="nccl#1769",
    tested="facts; no NVL72",
)
def imex_domain_down(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """CUDA works, the fabric of a GB200 or GB300 is not connected, and the daemon does not run."""
    services: Services = need(facts.services)
    if cuda_code(facts) != 0 or "nvidia-imex" in services.processes or not services.imex_nodes or in_container(facts):
        return
    if any(gpu.fabric_state is not None and gpu.fabric_state != COMPLETED for gpu in nvml_gpus(facts)):
        yield Finding(
            "an IMEX domain is configured, but its daemon is not running on this host: NVLS across trays will fail "
            "with 802",
            (*_states(facts), Evidence("nodes", f"{len(services.imex_nodes)} configured", "/etc/nvidia-imex")),
            Fix(
                "Start nvidia-imex on every tray.",
                (
                    Command((*_SYSTEMCTL, "enable", "--now", "nvidia-imex")),
                    Export("NCCL_NVLS_ENABLE", "0", "until the daemon runs on every tray"),
                ),
            ),
        )
