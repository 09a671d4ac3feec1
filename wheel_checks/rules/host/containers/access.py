"""Section E: containers, schedulers and sandboxes that keep the GPU, or a part of it, from a process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpu import DeviceNode
from wheel_checks.facts.host.log.symptoms import symptoms
from wheel_checks.facts.host.machine import Container
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.rules.host.cause import Layer, cause

NO_CUDA = ("nvml:*", "cuda:*", "torch:unavailable", "torch:init", "kernel:failed")
START_WITH_GPU = {
    "kubernetes": ("ask for a GPU in the pod's specification: resources.limits: {nvidia.com/gpu: 1}",),
    "podman": ("podman run --device nvidia.com/gpu=all ...",),
    "apptainer": ("apptainer run --nv ...",),
}


def _container(facts: HostFacts) -> Container:
    return need(facts.container)


def _nodes(facts: HostFacts) -> tuple[DeviceNode, ...]:
    return need(facts.nodes)


def _fails(facts: HostFacts, *names: str) -> bool:
    """Whether one of these symptoms is seen; a name may end in ``:*``."""
    seen = symptoms(facts)
    return any(
        symptom == name or (name.endswith("*") and symptom.startswith(name[:-1])) for name in names for symptom in seen
    )


def _start(kind: str) -> tuple[str, ...]:
    return START_WITH_GPU.get(kind, ("docker run --gpus all ...", "docker run --device nvidia.com/gpu=all ...  # CDI"))


def _marks(container: Container) -> Evidence:
    return Evidence("container", container.kind, ", ".join(container.marks))


@cause(
    "E01",
    "the container was started with its GPU",
    layer=Layer.CONTAINER,
    explains=NO_CUDA,
    why="A container sees the GPU only when it is started with it. The host's kernel module shows through /proc, so "
    "that it looks as if a driver were there.",
    example="docker run image python train.py, without --gpus",
    fix="Start the container again with its GPUs; nothing inside of it can add them.",
    sources="nvidia-docker#1352",
    tested="facts of a container without device nodes; no real GPU host",
)
def started_without_gpu(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A container, no /dev/nvidiactl, and yet the host's driver in /proc."""
    container, nodes, driver = _container(facts), _nodes(facts), need(facts.driver)
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
        f"the {container.kind} container was started without a GPU: the host runs driver {driver.version}, and there "
        "is no /dev/nvidiactl",
        (_marks(container), Evidence("host driver", driver.version, "/proc/driver/nvidia/version")),
        Fix("Start the container again with its GPUs.", _start(container.kind)),
    )


@cause(
    "E02",
    "Docker knows the NVIDIA runtime",
    Severity.WARNING,
    layer=Layer.CONTAINER,
    explains=(),
    why='Without the NVIDIA container toolkit, `docker run --gpus all` fails with "could not select device driver".',
    example='docker: Error response: could not select device driver "" with capabilities: [[gpu]]',
    fix="Install the toolkit on the host, register its runtime, and restart Docker. Docker from snap cannot use it.",
    sources="nvidia-docker#1034, nvidia-docker#1642",
    tested="facts alone; no host with Docker and a GPU",
)
def toolkit_missing(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A host with a GPU and Docker, and no toolkit."""
    container = _container(facts)
    has_gpu = any(device.is_nvidia_gpu for device in need(facts.pci))
    if container.kind or not has_gpu or not container.docker or container.toolkit:
        return
    snap = " Docker is from snap, which cannot start the NVIDIA runtime." if container.docker == "snap" else ""
    yield Finding(
        f"Docker is installed and the NVIDIA container toolkit is not: no container gets a GPU.{snap}",
        (Evidence("docker", container.docker),),
        Fix(
            "Install the toolkit and register its runtime.",
            (
                "sudo apt-get install nvidia-container-toolkit",
                "sudo nvidia-ctk runtime configure --runtime=docker",
                "sudo systemctl restart docker",
            ),
        ),
    )


@cause(
    "E03",
    "the files that CDI names exist",
    layer=Layer.CONTAINER,
    explains=(),
    why="A CDI specification lists the driver's files by name, with its version. After a driver update it names files "
    "that are gone, and containers no longer start, or start without a GPU.",
    example="unresolvable CDI devices nvidia.com/gpu=all",
    fix="Generate the specification again after every change of the driver.",
    sources="nvidia-container-toolkit, its source; NemoClaw#4016",
    tested="real specification files in JSON and YAML on a fake root",
)
def cdi_stale(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A specification that names files of the host which are not there."""
    container = _container(facts)
    if container.kind:
        return  # its files are the host's, and cannot be looked for here
    for specification in container.cdi:
        if specification.missing:
            first = specification.missing[0]
            yield Finding(
                f"{specification.path} names {len(specification.missing)} files that do not exist, the first is "
                f"{first}",
                (Evidence("missing", first, specification.path),),
                Fix("Generate it again.", (f"sudo nvidia-ctk cdi generate --output={specification.path}",)),
            )


@cause(
    "E04",
    "the cgroup lets the device nodes be opened",
    layer=Layer.CONTAINER,
    explains=NO_CUDA,
    why="A running container loses its devices when systemd reloads: its cgroup's device rules are written anew "
    "without them. The nodes are there, and opening one gives EPERM; wrong permissions would give EACCES.",
    example="Failed to initialize NVML: Unknown Error, hours after a good start",
    fix="Restart the container; create the /dev/char links or use CDI so that it does not come back.",
    sources="nvidia-container-toolkit#48, nvidia-container-toolkit#251",
    tested="facts alone: a cgroup that denies a device cannot be made here",
)
def cgroup_denies(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Device nodes whose opening gives EPERM, in a container."""
    container = _container(facts)
    denied = [node for node in _nodes(facts) if node.error == "EPERM"]
    options = container.runtime_options or {}
    if not denied or not container.kind or "no-cgroups" in options or "SLURM_JOB_ID" in facts.variables:
        return
    yield Finding(
        f"the container's cgroup denies {denied[0].path}: it is there, and opening it gives EPERM",
        (_marks(container), *(Evidence(node.path, node.error, "open()") for node in denied[:4])),
        Fix(
            "Restart the container. So that it stays: make the links on the host, or start it with CDI.",
            ("sudo nvidia-ctk system create-dev-char-symlinks --create-all", *_start(container.kind)[-1:]),
        ),
    )


@cause(
    "E05",
    "the NVIDIA runtime sets up cgroups",
    layer=Layer.CONTAINER,
    explains=NO_CUDA,
    why="`no-cgroups = true` is for rootless containers. With Docker as root it leaves the devices denied.",
    example="no-cgroups = true in /etc/nvidia-container-runtime/config.toml",
    fix="Set it to false and restart Docker; or run rootless.",
    sources="nvidia-container-toolkit#580",
    tested="the real file on a fake root; facts for the symptom",
)
def no_cgroups(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The setting, where nodes are denied."""
    options = _container(facts).runtime_options or {}
    if "no-cgroups" not in options:
        return
    denied = [node for node in _nodes(facts) if node.error == "EPERM"]
    if denied:
        yield Finding(
            f"the NVIDIA runtime leaves cgroups alone (no-cgroups = true), and {denied[0].path} is denied",
            (Evidence("no-cgroups", options["no-cgroups"]), Evidence(denied[0].path, "EPERM", "open()")),
            Fix(
                "Let it set up cgroups.",
                (
                    "sudo nvidia-ctk config --in-place --set nvidia-container-cli.no-cgroups=false",
                    "sudo systemctl restart docker",
                ),
            ),
        )


@cause(
    "E06",
    "the security label lets the device nodes be opened",
    layer=Layer.CONTAINER,
    explains=NO_CUDA,
    why="SELinux confines a container to files with its label, and device nodes have another one.",
    example="NVML: Insufficient Permissions, in a container on Fedora or RHEL",
    fix="Allow it by policy, or start the container without label separation.",
    sources="triton-dev-containers#61",
    tested="facts alone; no machine with SELinux",
)
def label_denies(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A container's label, and nodes whose opening gives EACCES although their mode allows it."""
    container = _container(facts)
    if "container_t" not in container.label:
        return
    denied = [node for node in _nodes(facts) if node.error == "EACCES" and node.mode.endswith(("6", "7"))]
    if denied:
        yield Finding(
            f"SELinux denies {denied[0].path}: its mode {denied[0].mode} allows it, the label {container.label} does "
            "not",
            (Evidence("label", container.label, "/proc/self/attr/current"),),
            Fix(
                "Allow containers to use devices, or start this one without labels.",
                ("sudo setsebool -P container_use_devices 1", "podman run --security-opt label=disable ..."),
            ),
        )


@cause(
    "E07",
    "NVIDIA_VISIBLE_DEVICES asks for a GPU",
    layer=Layer.CONTAINER,
    explains=NO_CUDA,
    why="The NVIDIA runtime gives a container the GPUs that NVIDIA_VISIBLE_DEVICES names; void, none or an empty value "
    "mean no GPU.",
    example="NVIDIA_VISIBLE_DEVICES=void, which Kubernetes' device plugin sets when no GPU was asked for",
    fix="Start the container again with NVIDIA_VISIBLE_DEVICES=all, or ask the scheduler for a GPU.",
    sources="neutree PR96",
    tested="facts of the variable and the nodes; no real runtime",
)
def visible_devices_void(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The variable hides all GPUs, and no node is there."""
    container = _container(facts)
    value = facts.variables.get("NVIDIA_VISIBLE_DEVICES")
    if not container.kind or value not in {"", "void", "none"} or not _fails(facts, *NO_CUDA):
        return
    if any(node.path.startswith("/dev/nvidia") and not node.error for node in _nodes(facts)):
        return
    yield Finding(
        f"NVIDIA_VISIBLE_DEVICES={value!r}: the runtime gave this container no GPU",
        (Evidence("NVIDIA_VISIBLE_DEVICES", repr(value), "environment"), _marks(container)),
        Fix(
            "Start it again with GPUs.",
            ("docker run --gpus all -e NVIDIA_VISIBLE_DEVICES=all ...",)
            if container.kind != "kubernetes"
            else START_WITH_GPU["kubernetes"],
        ),
    )


@cause(
    "E08",
    "the container has the driver's compute libraries",
    layer=Layer.CONTAINER,
    explains=("cuda:-1", "torch:unavailable", "torch:init", "kernel:failed"),
    why="NVIDIA_DRIVER_CAPABILITIES says which of the driver's libraries a container gets. With utility alone there is "
    "nvidia-smi and no libcuda.so.1.",
    example="NVIDIA_DRIVER_CAPABILITIES=utility: nvidia-smi works, torch sees no driver",
    fix="Start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility.",
    sources="the container toolkit's documentation (inferred)",
    tested="facts alone",
    certain=False,
)
def without_compute(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """NVML answers, libcuda is missing, and the capabilities leave compute out."""
    container, nvml, cuda = _container(facts), need(facts.nvml), need(facts.cuda)
    value = facts.variables.get("NVIDIA_DRIVER_CAPABILITIES", "")
    missing = {"all", "compute"}.isdisjoint(value.split(","))
    if container.kind and nvml.code == 0 and nvml.gpus and cuda.code == -1 and missing:
        yield Finding(
            "the driver's compute libraries were not given to this container: NVML works, libcuda.so.1 is missing "
            f"(NVIDIA_DRIVER_CAPABILITIES={value!r})",
            (Evidence("NVML", f"{len(nvml.gpus)} GPUs"), Evidence("libcuda", cuda.fault, "dlopen()")),
            Fix(
                "Start it again with them.",
                ("docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ...",),
            ),
        )


@cause(
    "E09",
    "the sandbox lets CUDA do what it must",
    layer=Layer.CONTAINER,
    explains=("cuda:304", "torch:unavailable", "torch:init", "kernel:failed"),
    why="cuInit creates a memory file (memfd_create) and writes thread names. A seccomp filter or Landlock rule that "
    "denies either makes it fail with 304, while nvidia-smi works.",
    example="cudaErrorOperatingSystem (304) in a sandbox",
    fix="Allow memfd_create and writing /proc/self/task/*/comm in the sandbox's profile.",
    sources="OpenShell#1696, OpenShell#1486, OpenShell#2343, NemoClaw#4016, llama-cpp-python#645",
    tested="a real seccomp filter that denies memfd_create, in a child; a stub driver for 304",
)
def sandbox_denies(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """304 of cuInit, and one of the two operations is denied."""
    container, cuda = _container(facts), need(facts.cuda)
    if cuda.code == 304 and container.denied:
        shown = ", ".join(f"{name} gives {error}" for name, error in container.denied.items())
        filtered = {0: "none", 1: "strict", 2: "filter"}.get(container.seccomp, str(container.seccomp))
        yield Finding(
            f"the sandbox denies what CUDA needs: {shown}; cuInit therefore gives 304",
            (
                *(Evidence(name, error, "tried") for name, error in container.denied.items()),
                Evidence("seccomp", filtered, "/proc/self/status"),
            ),
            Fix(
                "Allow it in the profile; to prove it, run once without a filter.",
                ("docker run --security-opt seccomp=unconfined --gpus all ...",),
            ),
        )


@cause(
    "E10",
    "Triton finds the libcuda that Apptainer brings",
    layer=Layer.CONTAINER,
    explains=("kernel:failed",),
    why="Apptainer puts the driver's libraries into /.singularity.d/libs and names it in LD_LIBRARY_PATH; Triton "
    "before 3.3 asks ldconfig alone, which does not know that folder.",
    example="libcuda.so cannot found! in an Apptainer container with --nv",
    fix="Tell Triton where it is.",
    sources="pytorch#107960",
    tested="facts alone; no Apptainer here",
)
def apptainer_libcuda(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The libcuda only in Apptainer's folder, and Triton's kernel fails."""
    container, loader = _container(facts), need(facts.loader)
    folder = "/.singularity.d/libs"
    there = any(lib.name == "libcuda.so.1" and lib.path.startswith(folder) for lib in loader.cuda_libraries)
    named = facts.variables.get("TRITON_LIBCUDA_PATH", "")
    lost = container.kind == "apptainer" and there and not loader.cached_libcuda and not named
    if lost and _fails(facts, "kernel:failed"):
        yield Finding(
            f"libcuda.so.1 is in {folder}, which ldconfig does not know, and Triton does not find it",
            (Evidence("libcuda.so.1", folder), _marks(container)),
            Fix("Name the folder.", (f"export TRITON_LIBCUDA_PATH={folder}",)),
        )


@cause(
    "E11",
    "the Slurm job has a GPU",
    layer=Layer.CONTAINER,
    explains=NO_CUDA,
    why="Slurm gives a job only the GPUs that it asked for: without --gres the nodes are denied, or the list is empty.",
    example="srun python train.py, without --gres=gpu:1",
    fix="Ask for a GPU.",
    sources="pyxis#47",
    tested="facts alone; no Slurm here",
)
def slurm_without_gpu(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A job without SLURM_JOB_GPUS whose CUDA fails."""
    variables = facts.variables
    if "SLURM_JOB_ID" not in variables or not _fails(facts, "nvml:*", "cuda:*", "torch:unavailable"):
        return
    if any(variables.get(name) for name in ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE")):
        return
    visible = variables.get("CUDA_VISIBLE_DEVICES")
    denied = [node for node in facts.nodes if node.error == "EPERM"] if not isinstance(facts.nodes, Unavailable) else []
    if denied or visible in {"", "NoDevFiles"}:
        evidence = [Evidence("SLURM_JOB_ID", variables["SLURM_JOB_ID"], "environment")]
        evidence += [Evidence("CUDA_VISIBLE_DEVICES", repr(visible), "environment")] if visible is not None else []
        evidence += [Evidence(node.path, node.error, "open()") for node in denied[:2]]
        yield Finding(
            "the Slurm job was given no GPU: neither SLURM_JOB_GPUS nor SLURM_STEP_GPUS is set",
            tuple(evidence),
            Fix("Ask for one.", ("srun --gres=gpu:1 ...",)),
        )


@cause(
    "E12",
    "no orchestrator leaves CUDA_VISIBLE_DEVICES empty",
    layer=Layer.VISIBILITY,
    explains=("cuda:100", "cuda:no-device", "torch:unavailable", "torch:init", "kernel:failed"),
    why="Some platforms give a container its GPU through NVIDIA_VISIBLE_DEVICES and set CUDA_VISIBLE_DEVICES to "
    "nothing, which hides it again.",
    example="NVIDIA_VISIBLE_DEVICES=GPU-... beside CUDA_VISIBLE_DEVICES=",
    fix="Unset CUDA_VISIBLE_DEVICES at the start of the job.",
    sources="lilbee PR394",
    tested="facts of both variables; the counterfactual with a stub driver is F01's",
)
def orchestrator_hides(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Both variables, one with GPUs and one without."""
    given = facts.variables.get("NVIDIA_VISIBLE_DEVICES", "")
    visible = facts.variables.get("CUDA_VISIBLE_DEVICES")
    if given in {"", "void", "none"} or visible is None or visible.strip() or not _container(facts).kind:
        return
    if _fails(facts, "cuda:100", "cuda:no-device"):
        proof = [
            Evidence(
                "without CUDA_VISIBLE_DEVICES", f"cuInit {one.after[0]}, {one.after[1]} devices", "the probe, again"
            )
            for one in facts.counterfactuals
            if one.variable == "CUDA_VISIBLE_DEVICES" and one.proves
        ]
        yield Finding(
            f"the container was given {given} (NVIDIA_VISIBLE_DEVICES), and an empty CUDA_VISIBLE_DEVICES hides it",
            (*proof, Evidence("CUDA_VISIBLE_DEVICES", repr(visible), "environment")),
            Fix("Unset it before anything of CUDA starts.", ("unset CUDA_VISIBLE_DEVICES",)),
        )
