"""Cgroups, labels, sandboxes, schedulers and orchestrators that keep the GPU from a process."""

from collections.abc import Iterator
from typing import Any

from wheel_checks.commands import Command, Options, Unset
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.model import Evidence, Finding, Fix, Unavailable, need
from wheel_checks.rules.host.cause import Layer, causes_in
from wheel_checks.rules.host.containers.runtime import DOCKER, PODMAN, WITH_GPUS, start_with_gpu
from wheel_checks.rules.host.observed import NO_CUDA, TORCH_FAILS, container_shown, fails

_CONFIGURE = ("sudo", "nvidia-ctk", "config", "--in-place")

cause = causes_in(Layer.CONTAINER, NO_CUDA)


@cause(
    "E04",
    "the container's cgroup allows access to the device nodes",
    why="A running container loses its devices when systemd reloads and rewrites the cgroup's device rules without "
    "them. The nodes still exist, but opening one fails with EPERM; wrong permissions would give EACCES.",
    example="Failed to initialize NVML: Unknown Error, hours after a good start",
    fix="Restart the container. To prevent it, create the /dev/char links or use CDI.",
    sources="nvidia-container-toolkit#48, nvidia-container-toolkit#251",
    tested="facts alone: a cgroup that denies a device cannot be made here",
)
def cgroup_denies(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Device nodes whose opening gives EPERM, in a container."""
    container = need(facts.container)
    denied = [node for node in need(facts.nodes) if node.error == "EPERM"]
    options = container.runtime_options or {}
    if not denied or not container.kind or "no-cgroups" in options or "SLURM_JOB_ID" in facts.variables:
        return
    yield Finding(
        f"the container's cgroup denies {denied[0].path}: the node exists, but opening it fails with EPERM",
        (container_shown(container), *(Evidence(node.path, node.error, "open()") for node in denied[:4])),
        Fix(
            "Restart the container. To prevent it, create the links on the host, or start the container with CDI.",
            (
                Command(("sudo", "nvidia-ctk", "system", "create-dev-char-symlinks", "--create-all")),
                *start_with_gpu(container.kind)[-1:],
            ),
        ),
    )


@cause(
    "E05",
    "the NVIDIA runtime configures cgroups",
    why="`no-cgroups = true` is for rootless containers. With Docker as root it leaves the devices denied.",
    example="no-cgroups = true in /etc/nvidia-container-runtime/config.toml",
    fix="Set no-cgroups to false and restart Docker, or run Docker rootless.",
    sources="nvidia-container-toolkit#580",
    tested="the real file on a fake root; facts for the symptom",
)
def no_cgroups(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The setting, where nodes are denied."""
    options = need(facts.container).runtime_options or {}
    if "no-cgroups" not in options:
        return
    denied = [node for node in need(facts.nodes) if node.error == "EPERM"]
    if denied:
        yield Finding(
            f"the NVIDIA runtime does not configure cgroups (no-cgroups = true), and {denied[0].path} is denied",
            (Evidence("no-cgroups", options["no-cgroups"]), Evidence(denied[0].path, "EPERM", "open()")),
            Fix(
                "Set no-cgroups to false.",
                (
                    Command((*_CONFIGURE, "--set", "nvidia-container-cli.no-cgroups=false")),
                    Command(("sudo", "systemctl", "restart", "docker")),
                ),
            ),
        )


@cause(
    "E06",
    "the container's security label allows access to the device nodes",
    why="SELinux confines a container to files with its label, and device nodes have a different one.",
    example="NVML: Insufficient Permissions, in a container on Fedora or RHEL",
    fix="Allow the access by policy, or start the container without label separation.",
    sources="triton-dev-containers#61",
    tested="facts alone; no machine with SELinux",
)
def label_denies(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A container's label, and nodes whose opening gives EACCES although their mode allows it."""
    container = need(facts.container)
    if "container_t" not in container.label:
        return
    denied = [node for node in need(facts.nodes) if node.error == "EACCES" and node.mode.endswith(("6", "7"))]
    if denied:
        yield Finding(
            f"SELinux denies {denied[0].path}: its mode {denied[0].mode} allows access, the label {container.label} "
            "does not",
            (Evidence("label", container.label, "/proc/self/attr/current"),),
            Fix(
                "Start this container without label separation, or allow all containers to use devices.",
                (
                    Options(PODMAN, ("--security-opt", "label=disable")),
                    Command(("sudo", "setsebool", "-P", "container_use_devices", "1"), "for all containers instead"),
                ),
            ),
        )


@cause(
    "E09",
    "the sandbox allows the system calls that CUDA needs",
    explains=("cuda:304", *TORCH_FAILS),
    why="cuInit creates a memory file (memfd_create) and writes thread names. A seccomp filter or Landlock rule that "
    "denies either makes it fail with 304, while nvidia-smi works.",
    example="cudaErrorOperatingSystem (304) in a sandbox",
    fix="Allow memfd_create and writing /proc/self/task/*/comm in the sandbox's profile.",
    sources="OpenShell#1696, OpenShell#1486, OpenShell#2343, NemoClaw#4016, llama-cpp-python#645",
    tested="a real seccomp filter that denies memfd_create, in a child; a stub driver for 304",
)
def sandbox_denies(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """304 of cuInit, and one of the two operations is denied."""
    container, cuda = need(facts.container), need(facts.cuda)
    if cuda.code == 304 and container.denied:
        shown = ", ".join(f"{name} returned {error}" for name, error in container.denied.items())
        filtered = {0: "none", 1: "strict", 2: "filter"}.get(container.seccomp, str(container.seccomp))
        yield Finding(
            f"the sandbox denies what CUDA needs: {shown}; cuInit therefore returned 304",
            (
                *(Evidence(name, error, "tried") for name, error in container.denied.items()),
                Evidence("seccomp", filtered, "/proc/self/status"),
            ),
            Fix(
                "Allow the calls in the sandbox's profile; to confirm the cause, run once without a filter.",
                (Options(DOCKER, ("--security-opt", "seccomp=unconfined", *WITH_GPUS), "once"),),
            ),
        )


@cause(
    "E11",
    "the Slurm job has a GPU",
    why="Slurm gives a job only the GPUs that it requests: without --gres the nodes are denied, or the list is empty.",
    example="srun python train.py, without --gres=gpu:1",
    fix="Request a GPU.",
    sources="pyxis#47",
    tested="facts alone; no Slurm here",
)
def slurm_without_gpu(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A job without SLURM_JOB_GPUS whose CUDA fails."""
    variables = facts.variables
    if "SLURM_JOB_ID" not in variables or not fails(facts, "nvml:*", "cuda:*", "torch:unavailable"):
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
            "the Slurm job has no GPU: neither SLURM_JOB_GPUS nor SLURM_STEP_GPUS is set",
            tuple(evidence),
            Fix("Request a GPU.", (Options(("srun",), ("--gres=gpu:1",)),)),
        )


@cause(
    "E12",
    "no orchestrator sets CUDA_VISIBLE_DEVICES to an empty value",
    layer=Layer.VISIBILITY,
    explains=("cuda:100", "cuda:no-device", *TORCH_FAILS),
    why="Some platforms give a container its GPU through NVIDIA_VISIBLE_DEVICES and set CUDA_VISIBLE_DEVICES to an "
    "empty value, which hides the GPU again.",
    example="NVIDIA_VISIBLE_DEVICES=GPU-... next to CUDA_VISIBLE_DEVICES=",
    fix="Unset CUDA_VISIBLE_DEVICES at the start of the job.",
    sources="lilbee PR394",
    tested="facts of both variables; the counterfactual with a stub driver is F01's",
)
def orchestrator_hides(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Both variables, one with GPUs and one without."""
    given = facts.variables.get("NVIDIA_VISIBLE_DEVICES", "")
    visible = facts.variables.get("CUDA_VISIBLE_DEVICES")
    if given in {"", "void", "none"} or visible is None or visible.strip() or not need(facts.container).kind:
        return
    if fails(facts, "cuda:100", "cuda:no-device"):
        proof = [
            Evidence(
                "without CUDA_VISIBLE_DEVICES", f"cuInit {one.after[0]}, {one.after[1]} devices", "the probe, again"
            )
            for one in facts.counterfactuals
            if one.variable == "CUDA_VISIBLE_DEVICES" and one.proves
        ]
        yield Finding(
            "an empty CUDA_VISIBLE_DEVICES hides the GPUs that the container was given "
            f"(NVIDIA_VISIBLE_DEVICES={given})",
            (*proof, Evidence("CUDA_VISIBLE_DEVICES", repr(visible), "environment")),
            Fix("Unset it before CUDA starts.", (Unset(("CUDA_VISIBLE_DEVICES",)),)),
        )
