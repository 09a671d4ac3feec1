"""Variables and states of a GPU that hide it, or keep it from a process."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from wheel_checks.commands import Command, Export, Unset, shell
from wheel_checks.facts.host.error_codes import error_text
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.log.symptoms import symptoms
from wheel_checks.facts.host.presence import gpus_of_build
from wheel_checks.facts.host.probes import Counterfactual, CudaProbe, NvmlGpu, TorchProbe
from wheel_checks.facts.host.visible import VARIABLE, read_selection
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.phrases import plural
from wheel_checks.rules.host import other_makers
from wheel_checks.rules.host.cause import Layer, causes_in
from wheel_checks.rules.host.observed import in_container, nvml_gpus

GIB = 1 << 30
TOO_LITTLE = GIB  # of free memory: a context alone takes about half of it
EXCLUSIVE, PROHIBITED = 3, 2  # values of nvmlComputeMode_t
MODES = {PROHIBITED: "PROHIBITED", EXCLUSIVE: "EXCLUSIVE_PROCESS"}
NO_GPU = ("cuda:100", "cuda:101", "cuda:no-device")
LIST_GPUS = Command(("nvidia-smi", "-L"))
_MIG = ("sudo", "nvidia-smi", "mig")
_HIDES_ALL = re.compile(r"\s*(?:|-\d+.*|none|void|NoDevFiles)\s*", re.IGNORECASE)

cause = causes_in(Layer.VISIBILITY)


@cause(
    "F01",
    "no environment variable hides every GPU",
    explains=(*NO_GPU, "torch:unavailable", "torch:init"),
    why="An empty CUDA_VISIBLE_DEVICES, or -1, hides all GPUs from CUDA, while nvidia-smi, which does not read it, "
    "lists them. It is often left behind in a start-up file that once kept a program off the GPU. ROCm reads "
    "ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES, Intel's runtime ZE_AFFINITY_MASK and ONEAPI_DEVICE_SELECTOR.",
    example='CUDA_VISIBLE_DEVICES="" python train.py',
    fix="Unset the variable, and remove it from the file that sets it.",
    sources="pytorch/examples#115, AReaL PR38",
    tested="stub drivers that read the variable as CUDA does",
)
def hidden(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A value that selects nothing, where CUDA finds no device, and the variable makes a difference."""
    if gpus_of_build(facts):
        yield from other_makers.hidden(facts)
        return
    value, cuda = facts.variables.get(VARIABLE), need(facts.cuda)
    if value is None or not _HIDES_ALL.fullmatch(value) or not _sees_none(cuda):
        return
    given = facts.variables.get("NVIDIA_VISIBLE_DEVICES", "")
    if not value.strip() and given not in {"", "void", "none"} and in_container(facts):
        return  # E12: the platform does it
    trial = _trial(facts)
    if not _makes_a_difference(trial, facts):
        return
    state = f'is "{value.strip()}"' if value.strip() else "is empty"
    evidence = (_setting(facts, value), *_proof(trial), Evidence("cuInit", error_text(cuda.code), cuda.library))
    yield Finding(f"{VARIABLE} {state}, which hides every GPU from CUDA", evidence, _unset(facts))


@cause(
    "F02",
    "CUDA_VISIBLE_DEVICES lists GPUs that exist",
    explains=(*NO_GPU, "cuda:fewer", "torch:unavailable", "torch:init"),
    why="CUDA reads the list up to the first invalid entry and silently ignores the rest; a duplicate entry makes it "
    "ignore the whole list. A number that is too high, or a UUID of another host, therefore hides GPUs.",
    example="CUDA_VISIBLE_DEVICES=0,9,1 on a machine with eight GPUs shows one GPU",
    fix="List GPUs that `nvidia-smi -L` shows, by number or UUID.",
    sources="pytorch PR92315",
    tested="stub drivers that read the variable as CUDA does",
)
def names_no_gpu(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """An entry that no GPU matches, where CUDA sees fewer GPUs for it."""
    value, cuda = facts.variables.get(VARIABLE), need(facts.cuda)
    if value is None or _HIDES_ALL.fullmatch(value):
        return
    if not _sees_none(cuda) and "cuda:fewer" not in symptoms(facts):
        return
    gpus, trial = nvml_gpus(facts), _trial(facts)
    selection = read_selection(value, [gpu.uuid for gpu in gpus])
    if gpus and selection.invalid:
        message = f'{VARIABLE} is "{value}", but CUDA ignores it from "{selection.invalid}" on: {selection.why}'
        if not selection.chosen:
            message = f'{VARIABLE} is "{value}", which selects no GPU: {selection.why}'
    elif trial and trial.proves:
        message = f'{VARIABLE} is "{value}", but CUDA finds no such device'
    else:
        return
    seen = Evidence("CUDA sees", plural(len(cuda.gpus), "GPU"), cuda.library)
    there = len(gpus) or (trial.after[1] if trial else 0)
    right = Export(VARIABLE, ",".join(str(number) for number in range(there)))
    fix = Fix(f"List GPUs that exist{_where_set(facts)}.", (LIST_GPUS, right))
    yield Finding(message, (_setting(facts, value), *_proof(trial), seen), fix)


@cause(
    "F03",
    "a GPU in MIG mode has MIG instances",
    explains=(*NO_GPU, "cuda:fewer", "torch:unavailable", "torch:init"),
    why="In MIG mode a GPU is used only through its instances. After MIG was enabled (and after each reboot, since "
    "instances are not kept) it has no instances, and CUDA does not see the GPU at all.",
    example="nvidia-smi shows MIG M. Enabled and no MIG devices; cuInit returns 100",
    fix="Create GPU and compute instances, or disable MIG.",
    sources="pytorch#115340",
    tested="stub drivers; no GPU in MIG mode",
)
def mig_without_instances(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """MIG without a device: on all GPUs when CUDA sees none, on any when it sees fewer."""
    cuda, gpus = need(facts.cuda), nvml_gpus(facts)
    empty = [gpu for gpu in gpus if gpu.mig_enabled and not gpu.mig_devices]
    if not empty or not ((_sees_none(cuda) and len(empty) == len(gpus)) or "cuda:fewer" in symptoms(facts)):
        return
    yield Finding(
        f"{_names(empty)}: in MIG mode without instances, and therefore invisible to CUDA",
        tuple(Evidence(f"GPU {gpu.index}", "MIG enabled, 0 MIG devices", "NVML") for gpu in empty),
        _divide_or_not(",".join(str(gpu.index) for gpu in empty)),
    )


def _divide_or_not(indices: str) -> Fix:
    profiles = shell(Command((*_MIG, "-i", indices, "-lgip")))
    create = shell(Command((*_MIG, "-i", indices, "-cgi", "9,9", "-C")))
    summary = (
        f"Use the GPU as a whole; or divide it into instances: `{profiles}` shows the available profiles, and "
        f"`{create}` creates two instances of profile 9."
    )
    return Fix(summary, (Command(("sudo", "nvidia-smi", "-i", indices, "-mig", "0"), "to use the GPU as a whole"),))


@cause(
    "F04",
    "a process that uses several GPUs does not run in MIG mode",
    Severity.WARNING,
    explains=("cuda:fewer", "torch:init", "torch:compute"),
    why="A process can use one MIG device. CUDA shows only the first one, whatever NVML counts; a program that uses "
    "NVML's count fails.",
    example="device < num_gpus INTERNAL ASSERT FAILED",
    fix="Set the MIG device for each process; disable MIG for a process that needs whole GPUs.",
    sources="pytorch#130181, pytorch#102715, pytorch#95784",
    tested="stub drivers; no GPU in MIG mode",
)
def one_mig_device(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """MIG devices, of which CUDA sees one, where that is fewer than expected or torch trips over it."""
    divided = [gpu for gpu in nvml_gpus(facts) if gpu.mig_enabled and gpu.mig_devices]
    if not divided or len(need(facts.cuda).gpus) != 1:
        return
    if "cuda:fewer" not in symptoms(facts) and "INTERNAL ASSERT FAILED" not in _torch_says(facts):
        return
    devices = sum(gpu.mig_devices or 0 for gpu in divided)
    yield Finding(
        f"MIG is enabled: CUDA shows a process one of {devices} MIG devices",
        tuple(Evidence(f"GPU {gpu.index}", f"{gpu.mig_devices} MIG devices", "NVML") for gpu in divided),
        Fix(
            f"Set {VARIABLE} to a different MIG device for each process: the command shows their UUIDs, which begin "
            "with MIG-.",
            (LIST_GPUS,),
        ),
    )


@cause(
    "F05",
    "the GPU's compute mode admits this process",
    explains=("cuda:46", "torch:init", "torch:compute", "kernel:failed"),
    why="In the mode EXCLUSIVE_PROCESS only one process may use the GPU, in PROHIBITED no process. Counting devices "
    "still works, so that torch.cuda.is_available() is True and the first computation fails.",
    example="CUDA error: all CUDA-capable devices are busy or unavailable",
    fix="Set the mode DEFAULT, or end the process that holds the GPU, or share it through MPS.",
    sources="pytorch#3871, pytorch#2704",
    tested="stub drivers and facts; the mode was not changed on a real GPU",
)
def exclusive(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The mode PROHIBITED where nothing computed, or an exclusive one where CUDA says "busy or unavailable"."""
    gpu = _first_gpu(facts)
    if gpu is None or gpu.compute_mode not in MODES or _computed(facts):
        return
    refused = "busy or unavailable" in _torch_says(facts) or need(facts.cuda).code == 46
    if not refused and gpu.compute_mode != PROHIBITED:
        return
    held = f", and held by process {', '.join(map(str, gpu.processes))}" if gpu.processes else ""
    if gpu.compute_mode == PROHIBITED:
        held = ": no process may use it"
    says = [Evidence("torch", _torch_says(facts))] if refused and _torch_says(facts) else []
    yield Finding(
        f"{_names([gpu])} is in compute mode {MODES[gpu.compute_mode]}{held}",
        (Evidence("compute mode", MODES[gpu.compute_mode], "NVML"), *says),
        Fix(
            "Let several processes use the GPU (an administrator may have set the mode on purpose).",
            (Command(("sudo", "nvidia-smi", "-i", str(gpu.index), "-c", "DEFAULT")),),
        ),
    )


@cause(
    "F06",
    "other processes leave memory free on the GPU",
    explains=("cuda:2", "torch:init", "torch:compute", "kernel:failed"),
    why="On a GPU whose memory is held by another process (a forgotten notebook, another user, another container) the "
    "very first allocation fails. Processes of other containers hold memory without being listed.",
    example="CUDA out of memory at start, 300 MiB of 140 GiB free",
    fix="End the process that holds the memory, or use another GPU.",
    sources="generic",
    tested="facts and stub drivers; no GPU was filled",
)
def memory_held(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A GPU that has almost no free memory, and CUDA or torch that says "out of memory"."""
    gpu = _first_gpu(facts)
    if gpu is None or gpu.memory_free is None or gpu.memory_total is None or gpu.memory_free >= TOO_LITTLE:
        return
    if "out of memory" not in _torch_says(facts).lower() and need(facts.cuda).code != 2:
        return
    pids = ",".join(map(str, gpu.processes))
    look = Command(("nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv"))
    if pids:
        look = Command(("ps", "-o", "pid,user,etime,args", "-p", pids))
    who = f"process {pids.replace(',', ', ')}" if pids else "processes that are not listed here (of another container?)"
    yield Finding(
        f"{_names([gpu])} is full: {gpu.memory_free >> 20} MiB of {gpu.memory_total >> 20} MiB are free; {who}",
        (
            Evidence("free memory", f"{gpu.memory_free >> 20} MiB", "NVML"),
            Evidence("total memory", f"{gpu.memory_total >> 20} MiB", "NVML"),
            Evidence("processes", pids or "not listed", "NVML"),
        ),
        Fix("Find the process that holds the memory; end it, wait for it, or use another GPU.", (look,)),
    )


@cause(
    "F07",
    "NVML reports the GPU's memory size",
    Severity.NOTE,
    why="A GPU that shares its memory with the CPU (GB10, Jetson) has no memory size to report: NVML returns "
    "NOT_SUPPORTED and nvidia-smi shows [N/A]. CUDA and torch work; tools that require a number crash.",
    example="pynvml.NVMLError_NotSupported: Not Supported",
    fix="No action is needed; where a tool needs the number, use the host's memory (/proc/meminfo).",
    sources="cosmos#180, gpud PR1170, nvitop PR208",
    tested="stub drivers; no GPU with unified memory",
)
def unified_memory(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A GPU that NVML knows, and whose memory it does not."""
    gpus = [gpu for gpu in nvml_gpus(facts) if gpu.memory_total is None and not gpu.error]
    if gpus:
        yield Finding(
            f"harmless: NVML does not report a memory size for {_names(gpus)}, which uses the host's memory",
            tuple(Evidence(f"GPU {gpu.index}", error_text(3, "nvml"), "nvmlDeviceGetMemoryInfo") for gpu in gpus),
        )


@cause(
    "F08",
    "no row remapping is pending or has failed",
    layer=Layer.HARDWARE,
    explains=("cuda:214", "torch:init", "torch:compute", "kernel:failed"),
    certain=False,
    why="At its next reset a GPU remaps memory rows that had uncorrectable ECC errors; until then the faulty rows are "
    "in use. If the remapping itself failed, the GPU must be replaced. That programs fail because of it is inferred "
    "from NVML's documentation.",
    example="Xid 63 or 64, CUDA error: uncorrectable ECC error encountered",
    fix="Take the GPU out of use and reset it; replace it if row remapping has failed.",
    sources="NVML documentation (inferred)",
    tested="stub drivers; no GPU with such errors",
)
def rows_to_remap(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Remapping that is pending or has failed, unless something else is failing that does not speak of ECC."""
    says = _torch_says(facts)
    if says and "ECC" not in says:
        return
    for gpu in nvml_gpus(facts):
        if not (gpu.remap_pending or gpu.remap_failure):
            continue
        state = "has failed: replace the GPU" if gpu.remap_failure else "is pending: reset the GPU"
        yield Finding(
            f"{_names([gpu])} has memory errors, and row remapping {state}",
            (Evidence("remapped rows", "failure" if gpu.remap_failure else "pending", "nvmlDeviceGetRemappedRows"),),
            Fix(
                "End all processes on the GPU, then reset it.",
                (
                    Command(("nvidia-smi", "-i", str(gpu.index), "-q", "-d", "ROW_REMAPPER")),
                    Command(("sudo", "nvidia-smi", "-i", str(gpu.index), "-r")),
                ),
            ),
            severity=Severity.ERROR if gpu.remap_failure else Severity.WARNING,
        )


def _sees_none(cuda: CudaProbe) -> bool:
    return cuda.outcome in {(100, 0), (101, 0), (0, 0)}


def _trial(facts: HostFacts) -> Counterfactual | None:
    """The CUDA probe without CUDA_VISIBLE_DEVICES."""
    return next((trial for trial in facts.counterfactuals if trial.variable == VARIABLE), None)


def _makes_a_difference(trial: Counterfactual | None, facts: HostFacts) -> bool:
    """Whether CUDA answers otherwise without the variable; when that was not tried, whether there is a GPU to hide."""
    if trial is not None:
        return trial.after != trial.before
    pci = () if isinstance(facts.pci, Unavailable) else facts.pci
    return bool(nvml_gpus(facts)) or any(device.is_nvidia_gpu for device in pci)


def _proof(trial: Counterfactual | None) -> list[Evidence]:
    return [Evidence(trial.label, trial.summary, "the CUDA probe, again")] if trial else []


def _setting(facts: HostFacts, value: str) -> Evidence:
    return Evidence(VARIABLE, f'"{value}"', facts.variables_origin.get(VARIABLE, "environment"))


def _unset(facts: HostFacts) -> Fix:
    return Fix(f"Unset the variable{_where_set(facts)}.", (Unset((VARIABLE,)),))


def _where_set(facts: HostFacts) -> str:
    """Where else the variable has to change, for a fix that lasts."""
    origin = facts.variables_origin.get(VARIABLE)
    if origin is None:
        return ""
    if origin == "/proc/1/environ":
        return ", and start the container without it: the image or the options of the container set it"
    return f", also in {origin}, which sets it"


def _first_gpu(facts: HostFacts) -> NvmlGpu | None:
    """The GPU that torch uses first: CUDA's first, which need not be NVML's."""
    gpus = nvml_gpus(facts)
    seen = () if isinstance(facts.cuda, Unavailable) else facts.cuda.gpus
    same = (gpu for gpu in gpus if seen and gpu.uuid and gpu.uuid == seen[0].uuid)
    return next(same, gpus[0] if gpus else None)


def _torch_says(facts: HostFacts) -> str:
    """What failed in torch or in the kernel, "" when nothing did or nothing was tried."""
    said = []
    if isinstance(facts.torch, TorchProbe):
        said += [facts.torch.error, facts.torch.init_error, facts.torch.computes or ""]
    if not isinstance(facts.kernel, Unavailable):
        said.append(facts.kernel.error)
    return next(filter(None, said), "")


def _computed(facts: HostFacts) -> bool:
    return isinstance(facts.torch, TorchProbe) and facts.torch.computes == ""


def _names(gpus: Sequence[NvmlGpu]) -> str:
    return ", ".join(f"GPU {gpu.index} ({gpu.name})" for gpu in gpus)


@cause(
    "F09",
    "HSA_OVERRIDE_GFX_VERSION does not make the GPU run code for another target",
    explains=("torch:compute", "torch:unavailable", "torch:init", "torch:hang", "torch:signal", "kernel:failed"),
    why="HSA_OVERRIDE_GFX_VERSION makes ROCm treat every AMD GPU as another model. Where the instructions differ, the "
    "result is an invalid device function, a page fault, or a hang; with two kinds of GPUs it is wrong for at least "
    "one.",
    example="HSA_OVERRIDE_GFX_VERSION=11.0.0 with a gfx1103: the GPU hangs",
    fix="Unset the variable; where torch has no code for the GPU, use a build that has.",
    sources="pytorch#179653, ROCm/TheRock#1184, ROCm/ROCm#3065",
    tested="facts; no AMD GPU",
)
def overridden(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The variable is set to another target than that of a GPU here, and torch does not compute."""
    return other_makers.override(facts)
