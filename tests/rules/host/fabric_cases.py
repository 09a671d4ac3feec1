"""DOC401 to DOC409: fabric manager, IMEX, confidential computing."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.case import NOTE, WARNING, Case
from tests.support.hosts import DRIVER, cuda_fails, grace, healthy, hgx, in_container, replaced
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.devices import DeviceNode, PciDevice, Services
from wheel_checks.facts.host.probes import NvmlProbe

IMEX = "/dev/nvidia-caps-imex-channels/channel0"


def not_ready(*processes: str, manager: str = DRIVER) -> HostFacts:
    return replace(cuda_fails(hgx(), 802), services=Services(processes, fabric_manager=manager))


def b200(*processes: str, modules: tuple[str, ...] = ()) -> HostFacts:
    gpus = tuple(
        PciDevice(f"0000:{n:02x}:00.0", "10de", "2901", "030200", "nvidia", name="NVIDIA B200") for n in range(8)
    )
    facts = replace(cuda_fails(hgx(), 802), pci=gpus, services=Services(processes, fabric_manager=DRIVER))
    return replaced(facts, "driver", modules=("nvidia", "nvidia_uvm", *modules))


def fabric(facts: HostFacts, **fields: object) -> HostFacts:
    """The same with other fields of every GPU of NVML's."""
    assert isinstance(facts.nvml, NvmlProbe)
    gpus = tuple(replace(gpu, **fields) for gpu in facts.nvml.gpus)  # type: ignore[arg-type]  # by name
    return replaced(facts, "nvml", gpus=gpus)


def rack(*nodes: DeviceNode, state: int = 3, imex: tuple[str, ...] = (), running: tuple[str, ...] = ()) -> HostFacts:
    """A GB200 tray."""
    gpu = PciDevice("0008:01:00.0", "10de", "2941", "030200", "nvidia", name="NVIDIA GB200")
    facts = replace(grace(), pci=(gpu,), nodes=nodes, services=Services(running, imex_nodes=imex))
    return fabric(facts, fabric_state=state)


CASES = [
    Case(
        "DOC401",
        "802 and no manager",
        not_ready,
        ("the fabric manager is not running: the GPUs wait for their NVSwitches, and cuInit returned 802",),
        evidence=("802", DRIVER),
    ),
    Case("DOC401", "802 and the manager runs", lambda: not_ready("nv-fabricmanager")),
    Case("DOC401", "802 in a container, which DOC405 explains", lambda: in_container(not_ready())),
    Case("DOC401", "no switches", lambda: cuda_fails(healthy(), 802)),
    Case("DOC401", "CUDA works", hgx),
    Case(
        "DOC402",
        "the manager of the branch before",
        lambda: not_ready(manager="570.86.10"),
        (f"the fabric manager is 570.86.10, but the driver is {DRIVER}: the fabric manager exits at once",),
    ),
    Case("DOC402", "the same version", not_ready),
    Case("DOC402", "another version, and CUDA works", lambda: replaced(hgx(), "services", fabric_manager="570.86.10")),
    Case(
        "DOC403",
        "a B200 board without nvlsm",
        lambda: b200("nv-fabricmanager", modules=("ib_umad", "mlx5_ib")),
        ("NVIDIA B200 needs the NVLink subnet manager, but nvlsm is not running",),
    ),
    Case(
        "DOC403",
        "without ib_umad",
        lambda: b200("nvlsm", modules=("mlx5_ib",)),
        ("NVIDIA B200 needs the NVLink subnet manager, but ib_umad is not loaded",),
    ),
    Case("DOC403", "with both", lambda: b200("nvlsm", modules=("ib_umad", "mlx5_ib"))),
    Case("DOC403", "H200 needs none", not_ready),
    Case(
        "DOC404",
        "a confidential GPU that waits",
        lambda: replaced(cuda_fails(healthy(), 802), "nvml", confidential_ready=False),
        ("the GPU is in confidential mode but not set to ready",),
    ),
    Case("DOC404", "set ready", lambda: replaced(healthy(), "nvml", confidential_ready=True)),
    Case("DOC404", "no confidential computing", healthy),
    Case(
        "DOC405",
        "802 in a container",
        lambda: in_container(not_ready()),
        ("the host's NVSwitch fabric is not ready (cuInit 802), which cannot be fixed from inside a container",),
    ),
    Case("DOC405", "802 on the machine itself", not_ready),
    Case("DOC405", "a container that works", lambda: in_container(hgx())),
    Case(
        "DOC406",
        "a manager without switches",
        lambda: replaced(healthy(), "services", fabric_manager=DRIVER),
        ("harmless: the fabric manager is installed but not running; this host has no NVSwitch to manage",),
        NOTE,
    ),
    Case("DOC406", "a manager that manages", hgx),
    Case(
        "DOC407",
        "a rack's tray without its channel",
        rack,
        (f"the IMEX channel {IMEX} is missing: GPUs of other trays cannot share memory with this one",),
        WARNING,
    ),
    Case(
        "DOC407",
        "a channel that is closed",
        lambda: rack(DeviceNode(IMEX, "0600", "root", "root", "EACCES")),
        (
            f"the IMEX channel {IMEX} is closed to this user (EACCES): GPUs of other trays cannot share memory with "
            "this one",
        ),
        WARNING,
    ),
    Case(
        "DOC407",
        "a pod, whose job may not span trays",
        lambda: in_container(rack(), "kubernetes"),
        (f"the IMEX channel {IMEX} is missing: GPUs of other trays cannot share memory with this one",),
        NOTE,
    ),
    Case(
        "DOC407",
        "a container of Docker",
        lambda: in_container(rack()),
        (f"the IMEX channel {IMEX} is missing: GPUs of other trays cannot share memory with this one",),
        WARNING,
    ),
    Case("DOC407", "an open channel", lambda: rack(DeviceNode(IMEX, "0666", "root", "root", ""))),
    Case("DOC407", "a single GH200", grace),
    Case(
        "DOC408",
        "links that are down",
        lambda: fabric(hgx(4), fabric_health=0b01),
        ("4 of 4 GPUs report a fault of the NVLink fabric (bandwidth: degraded)",),
        WARNING,
    ),
    Case(
        "DOC408",
        "a route that is unhealthy",
        lambda: fabric(hgx(4), fabric_health=0x9A, fabric_clique=7),
        ("4 of 4 GPUs report a fault of the NVLink fabric (route: unhealthy)",),
        WARNING,
    ),
    Case(
        "DOC408",
        "a summary alone",
        lambda: fabric(hgx(4), fabric_health=0, fabric_summary=2),
        ("4 of 4 GPUs report a fault of the NVLink fabric (fabric: unhealthy)",),
        WARNING,
    ),
    Case("DOC408", "a whole fabric", lambda: fabric(hgx(4), fabric_health=0x51AA, fabric_summary=1)),
    Case(
        "DOC409",
        "a domain without its daemon",
        lambda: rack(DeviceNode(IMEX, "0666", "root", "root", ""), state=2, imex=("10.0.0.1", "10.0.0.2")),
        (
            "an IMEX domain is configured, but its daemon is not running on this host: NVLS across trays will fail "
            "with 802",
        ),
        WARNING,
    ),
    Case(
        "DOC409",
        "the daemon runs",
        lambda: rack(DeviceNode(IMEX, "0666", "root", "root", ""), state=2, imex=("a",), running=("nvidia-imex",)),
    ),
    Case("DOC409", "no domain", lambda: rack(DeviceNode(IMEX, "0666", "root", "root", ""), state=2)),
]
