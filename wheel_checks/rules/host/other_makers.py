"""AMD's and Intel's GPUs: what keeps a torch for ROCm or XPU from them.

The causes are those of NVIDIA's GPUs, by other files: the rules of their entries of the catalogue ask here, too.
"""

import re
from collections.abc import Iterator

from packaging.version import Version

from wheel_checks.commands import Command, NoCommand, Options, Pipe, Step, export, unset
from wheel_checks.facts.host.advice import reinstall_torch
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpu import DeviceNode, OtherDrivers, PciDevice
from wheel_checks.facts.host.other_gpus import (
    OVERRIDE,
    build_of_others,
    has_code,
    intel_row,
    kfd_gpus,
    overridden_target,
    rocm_build,
)
from wheel_checks.facts.host.presence import gpus_of_build
from wheel_checks.facts.host.probes import TorchProbe
from wheel_checks.facts.host.software import TorchFiles
from wheel_checks.facts.host.tables import host_gpus
from wheel_checks.facts.host.torch.fit import torch_files
from wheel_checks.model import Evidence, Finding, Fix, Unavailable, need
from wheel_checks.parsing import version_or_none
from wheel_checks.phrases import joined
from wheel_checks.rules.host.observed import DEBIAN, in_container, variable_shown
from wheel_checks.rules.host.torch_evidence import code_list, version_file

KFD = "/dev/kfd"
_DRIVERS = {"AMD": ("amdgpu",), "Intel": ("i915", "xe")}
_NODES = {"AMD": ("--device=/dev/kfd", "--device=/dev/dri"), "Intel": ("--device=/dev/dri",)}
_LEVEL_ZERO = {"libze_loader.so.1": "its loader", "libze_intel_gpu.so.1": "its driver for Intel's GPUs"}
_LEVEL_ZERO_DEBIAN, _LEVEL_ZERO_FEDORA = ("libze1", "libze-intel-gpu1"), ("oneapi-level-zero", "intel-level-zero")
_HIDING = ("ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "CUDA_VISIBLE_DEVICES")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*|\d{1,10}", re.ASCII)  # of a user or a group
_DOCKER = ("docker", "run")


def sees_none(facts: HostFacts) -> bool:
    """Whether torch was imported, and has no GPU."""
    probe = facts.torch
    return isinstance(probe, TorchProbe) and probe.imported and not probe.available


def shown(device: PciDevice) -> Evidence:
    """A GPU on the bus, by its maker, its name and its driver."""
    row = intel_row(device)
    name = f"{device.maker} {row['name']}" if row else f"{device.maker} GPU"
    driver = f", driver {device.driver}" if device.driver else ", no driver"
    return Evidence(name, f"{device.vendor}:{device.device} at {device.address}{driver}", "/sys/bus/pci")


# C02: no driver


def driver_missing(facts: HostFacts) -> Iterator[Finding]:
    """No kernel module holds the GPU for whose maker torch is built; or amdgpu does, and has no /dev/kfd."""
    gpus = gpus_of_build(facts)
    if not gpus or not sees_none(facts) or isinstance(facts.other_drivers, Unavailable):
        return
    maker, modules = gpus[0].maker, _DRIVERS[gpus[0].maker]
    if not any(gpu.driver in modules for gpu in gpus):
        fix = _load_driver(facts, gpus[0])
        yield Finding(
            f"the {maker} GPU has no driver: it needs {' or '.join(modules)}",
            (shown(gpus[0]), Evidence("modules", ", ".join(facts.other_drivers.modules) or "none", "/sys/module")),
            fix,
        )
    elif maker == "AMD" and not in_container(facts) and _error(facts.other_drivers, KFD) == "ENOENT":
        yield Finding(
            f"the GPU is bound to amdgpu, but {KFD} is missing: this kernel does not support computing on the GPU",
            (shown(gpus[0]), Evidence(KFD, "ENOENT", "open()")),
            Fix(
                "Use a kernel with CONFIG_HSA_AMD, or ROCm's own release of amdgpu; the kernel log may show the "
                "reason.",
                (Pipe((("sudo", "dmesg"), ("grep", "-i", "kfd"))),),
            ),
        )


def _load_driver(facts: HostFacts, gpu: PciDevice) -> Fix:
    row = intel_row(gpu)
    module = str(row["module"]) if row else "amdgpu" if gpu.maker == "AMD" else ""
    if gpu.driver:
        return Fix(f"The GPU is bound to {gpu.driver}: bind it to {module or 'i915 or xe'} again.")
    if in_container(facts):
        return Fix(f"Load {module or 'its module'} on the container's host, then start the container again.")
    kernel = "" if isinstance(facts.system, Unavailable) else facts.system.kernel
    own = version_or_none(".".join(re.findall(r"\d+", kernel)[:2]))
    if row and row["kernel"] and own is not None and own < Version(row["kernel"]):
        return Fix(
            f"Linux {own} does not support the {row['name']}: {module} does from {row['kernel']} on. Install a newer "
            "kernel, and reboot."
        )
    if row and not row["kernel"]:
        return Fix(f"Install Intel's own release of {module} for the {row['name']} (Intel, dgpu-docs), and reboot.")
    return Fix("Load the module.", (Command(("sudo", "modprobe", module)),) if module else ())


# E01: a container without the nodes; C15: nodes that this user may not open


def container_without_nodes(facts: HostFacts) -> Iterator[Finding]:
    """A container in which the nodes of the GPU are missing, or denied by its cgroup."""
    gpus = gpus_of_build(facts)
    if not gpus or not in_container(facts) or not sees_none(facts):
        return
    drivers, maker = need(facts.other_drivers), gpus[0].maker
    wanted = [KFD] if maker == "AMD" else []
    missing = [path for path in wanted if _error(drivers, path) in {"ENOENT", "EPERM"}]
    if not any(node.path != KFD and node.error not in {"ENOENT", "EPERM"} for node in drivers.nodes):
        missing.append("/dev/dri/renderD*")
    kind = need(facts.container).kind
    if missing and any(gpu.driver in _DRIVERS[maker] for gpu in gpus):
        yield Finding(
            f"the {kind} container was started without the {maker} GPU: missing {joined(missing)}",
            (shown(gpus[0]), Evidence("container", kind, ", ".join(need(facts.container).marks))),
            Fix("Start the container again with the device nodes of the GPU.", _start_with_nodes(kind, maker)),
        )


def _start_with_nodes(kind: str, maker: str) -> tuple[Step, ...]:
    if kind == "apptainer" and maker == "AMD":
        return (Options(("apptainer", "exec"), ("--rocm",)),)
    program = ("podman", "run") if kind == "podman" else _DOCKER
    groups = ("--group-add=keep-groups",) if kind == "podman" else ("--group-add=video", "--group-add=render")
    return (Options(program, (*_NODES[maker], *groups)),)


def nodes_denied(facts: HostFacts) -> Iterator[Finding]:
    """The nodes of the GPU are for a group in which this user is not."""
    gpus = gpus_of_build(facts)
    if not gpus or not sees_none(facts) or isinstance(facts.other_drivers, Unavailable):
        return
    denied = [node for node in facts.other_drivers.nodes if node.error == "EACCES"]
    renders = [node for node in facts.other_drivers.nodes if node.path != KFD]
    only = [node for node in denied if node.path != KFD]
    decisive = _error(facts.other_drivers, KFD) == "EACCES" if gpus[0].maker == "AMD" else False
    if not decisive and not (renders and len(only) == len(renders)):
        return  # a second GPU may be another user's
    node = denied[0]
    yield Finding(
        f"this user has no access to {node.path}: mode {node.mode}, {node.owner}:{node.group}",
        tuple(Evidence(n.path, f"{n.error}, mode {n.mode}, {n.owner}:{n.group}", "open()") for n in denied[:3]),
        _join_groups(facts, denied),
    )


def _join_groups(facts: HostFacts, denied: list[DeviceNode]) -> Fix:
    groups = tuple(dict.fromkeys(node.group for node in denied))
    if in_container(facts):
        options = tuple(f"--group-add={group}" for group in groups if _NAME.fullmatch(group))
        return Fix(
            f"Start the container with the {'groups' if len(groups) > 1 else 'group'} of the device nodes.",
            (Options(_DOCKER, options),) if options else (),
        )
    user = "" if isinstance(facts.system, Unavailable) else facts.system.user
    add: Step = NoCommand("the user, or the group of the nodes, has no plain name")
    if _NAME.fullmatch(user) and all(map(_NAME.fullmatch, groups)) and "root" not in groups:
        add = Command(("sudo", "usermod", "-aG", ",".join(groups), user), "takes effect at the next login")
    return Fix(f"Add this user to {joined(groups)}.", (add,))


def _error(drivers: OtherDrivers, path: str) -> str:
    return next((node.error for node in drivers.nodes if node.path == path), "ENOENT")


# C10: the driver's library; F01: variables that hide


def level_zero_missing(facts: HostFacts) -> Iterator[Finding]:
    """A module drives Intel's GPU, and Level Zero, by which torch for XPU reaches it, is not installed."""
    gpus = [gpu for gpu in gpus_of_build(facts) if gpu.maker == "Intel" and gpu.driver in _DRIVERS["Intel"]]
    if not gpus or not sees_none(facts) or isinstance(facts.other_drivers, Unavailable):
        return
    missing = [name for name in _LEVEL_ZERO if name not in facts.other_drivers.level_zero]
    if missing:
        os_id = "" if isinstance(facts.system, Unavailable) else facts.system.os_id
        commands: tuple[Step, ...] = ()
        if os_id in DEBIAN:
            commands = (Command(("sudo", "apt-get", "install", *_LEVEL_ZERO_DEBIAN)),)
        elif os_id == "fedora":
            commands = (Command(("sudo", "dnf", "install", *_LEVEL_ZERO_FEDORA)),)
        yield Finding(
            f"Level Zero is incomplete: missing {joined([f'{name} ({_LEVEL_ZERO[name]})' for name in missing])}",
            (shown(gpus[0]), *(Evidence(name, "no such file", "the folders of libraries") for name in missing)),
            Fix("Install Intel's compute runtime with Level Zero.", commands),
        )


def hidden(facts: HostFacts) -> Iterator[Finding]:
    """A variable that ROCm or Level Zero reads selects no GPU that there is."""
    gpus, torch = gpus_of_build(facts), torch_files(facts)
    if not gpus or torch is None or not sees_none(facts):
        return
    count = len(kfd_gpus(facts)) if torch.hip else len(gpus)
    for name in _HIDING if torch.hip else ("ZE_AFFINITY_MASK",):
        value = facts.variables.get(name)
        if value is not None and count and _selects_none(name, value, count):
            state = f"is {value.strip()!r}" if value.strip() else "is empty"
            yield _hiding(facts, name, f"{name} {state}, which hides all {gpus[0].maker} GPUs")
            return
    selector = facts.variables.get("ONEAPI_DEVICE_SELECTOR", "")
    if torch.xpu and selector and not re.search(r"(?:^|;)(?:level_zero|\*):(?!cpu|fpga)", selector, re.IGNORECASE):
        message = f"ONEAPI_DEVICE_SELECTOR is {selector!r}, which hides all Level Zero GPUs"
        yield _hiding(facts, "ONEAPI_DEVICE_SELECTOR", message)


def _hiding(facts: HostFacts, name: str, message: str) -> Finding:
    origin = facts.variables_origin.get(name, "")
    where = f", and remove it from {origin}" if origin else ""
    return Finding(message, (variable_shown(facts, name),), Fix(f"Unset it{where}.", (unset(name),)))


def _selects_none(name: str, value: str, count: int) -> bool:
    """By the first entry: what follows another entry is ignored. HIP takes an empty value for none at all."""
    first = value.split(",", maxsplit=1)[0].strip()
    if not first:
        return name == "ROCR_VISIBLE_DEVICES"
    number = first.partition(".")[0] if name == "ZE_AFFINITY_MASK" else first
    return bool(re.fullmatch(r"-?\d{1,9}", number)) and not 0 <= int(number) < count


# A15: the wrong build; G02: no code; F09: another target than the GPU's


def wrong_build(facts: HostFacts) -> Iterator[Finding]:
    """A torch for another maker's GPUs, where there isn't one of these, and a build for this one is known."""
    torch = torch_files(facts)
    if torch is None or not (torch.cuda or torch.hip or torch.xpu) or host_gpus(facts) or gpus_of_build(facts):
        return
    name = "CUDA (NVIDIA)" if torch.cuda else "ROCm (AMD)" if torch.hip else "XPU (Intel)"
    if known := build_of_others(facts):
        message = f"torch {torch.version} is built for {name}, but the GPU is made by {known.device.maker}"
        yield Finding(message, (version_file(torch), shown(known.device), *_targets(facts)), reinstall_torch(facts))


def _targets(facts: HostFacts) -> tuple[Evidence, ...]:
    names = dict.fromkeys(gpu.target for gpu in kfd_gpus(facts))
    return (Evidence("target", ", ".join(names), "/sys/class/kfd"),) if names else ()


def no_code(facts: HostFacts) -> Iterator[Finding]:
    """A torch for ROCm that has no code for AMD's GPUs here, as they are; or not for all, and does not compute."""
    torch, gpus = _rocm_with_code(facts), kfd_gpus(facts)
    if torch is None or not gpus or OVERRIDE in facts.variables or _computes(facts):
        return
    lacking = [gpu.target for gpu in gpus if not has_code(torch.architectures, gpu.target)]
    if not lacking or (len(lacking) < len(gpus) and not _fails_to_compute(facts)):
        return
    target = lacking[0]
    if len(lacking) < len(gpus):
        yield _only_some(facts, torch, target)
        return
    row = rocm_build(target)
    fix = Fix(
        f"No build of torch on PyTorch's index has code for {target}: use one of AMD's (ROCm, TheRock), or build torch "
        f"from source. {OVERRIDE} makes the GPU run code for another target, which may hang it."
    )
    if row:
        fix = reinstall_torch(facts)
    yield Finding(f"torch {torch.version} has no code for {target}", (code_list(torch), *_targets(facts)), fix)


def _only_some(facts: HostFacts, torch: TorchFiles, target: str) -> Finding:
    """The GPU of a CPU next to a card, mostly. ROCm numbers them as amdkfd does, and can be shown some alone."""
    good = [str(n) for n, gpu in enumerate(kfd_gpus(facts)) if has_code(torch.architectures, gpu.target)]
    return Finding(
        f"torch {torch.version} has no code for {target}, one of the GPUs here",
        (code_list(torch), *_targets(facts)),
        Fix("Expose only the other GPUs to ROCm.", (export(_HIDING[0], ",".join(good)),)),
    )


def override(facts: HostFacts) -> Iterator[Finding]:
    """HSA_OVERRIDE_GFX_VERSION is set, and torch does not compute: it is no target, or not that of a GPU here."""
    torch, gpus = _rocm_with_code(facts), kfd_gpus(facts)
    value = facts.variables.get(OVERRIDE, "").strip()
    if torch is None or not value or not gpus or _computes(facts):
        return
    target = overridden_target(facts)
    if not target:
        message = f"{OVERRIDE} is {value!r}; expected a version such as 11.0.0"
    elif all(gpu.target == target for gpu in gpus):
        return
    else:
        other = next(gpu.target for gpu in gpus if gpu.target != target)
        message = f"{OVERRIDE} makes the GPU {other} run code for {target}"
    lacking = [gpu.target for gpu in gpus if not has_code(torch.architectures, gpu.target)]
    after = f"torch has no code for {lacking[0]} itself, however." if lacking else "torch has code for the GPU itself."
    yield Finding(
        message,
        (variable_shown(facts, OVERRIDE), *_targets(facts), code_list(torch)),
        Fix(f"Unset it: {after}", (unset(OVERRIDE),)),
    )


def _rocm_with_code(facts: HostFacts) -> TorchFiles | None:
    torch = torch_files(facts)
    return torch if torch is not None and torch.hip and torch.architectures else None


def _fails_to_compute(facts: HostFacts) -> bool:
    return isinstance(facts.torch, TorchProbe) and bool(facts.torch.computes)


def _computes(facts: HostFacts) -> bool:
    return isinstance(facts.torch, TorchProbe) and facts.torch.computes == "" and bool(facts.torch.available)
