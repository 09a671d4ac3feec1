"""Probes of CUDA through torch: it starts, memory holds what is written to it, streams wait, graphs replay.

Each runs in a child process of the foreman, on the first GPU, and raises what torch raises; ``failure`` explains that.
"""

import re
from collections.abc import Callable

import torch

from kernels_smoke.suite.advice import command, pipe
from kernels_smoke.suite.probes.answer import Answer, first_line
from kernels_smoke.suite.probes.driver_faults import FAULTS, explain

COUNT = 1 << 22  # numbers that are copied, and added to: 16 MiB
DEVICE = "cuda"
HEALTH = (  # what shows whether the GPU is ill
    command("nvidia-smi", "-q", "-d", "ECC,PAGE_RETIREMENT,ROW_REMAPPER"),
    pipe(("sudo", "dmesg"), ("grep", "-i", "xid")),
)


def cuda_init() -> Answer:
    """Start CUDA, make a context, and see whether this torch has machine code for each GPU."""
    torch.cuda.init()
    torch.cuda.synchronize()
    built_for = torch.cuda.get_arch_list()
    names, faults = [], []
    for index in range(torch.cuda.device_count()):
        capability = torch.cuda.get_device_capability(index)
        names.append(f"{torch.cuda.get_device_name(index)} (sm_{capability[0]}{capability[1]})")
        if not covered(capability, built_for):
            faults.append(f"GPU {index}, {names[-1]}")
    evidence = {"GPUs": ", ".join(names), "torch is built for": " ".join(built_for), "CUDA": str(torch.version.cuda)}
    if faults:
        message = f"torch {torch.__version__} has no machine code, nor PTX, for {'; '.join(faults)}"
        fix = "install a newer torch, or one built for a newer CUDA, whose list of architectures has this one"
        return Answer("fail", message, evidence, (fix,))
    return Answer("pass", f"CUDA {torch.version.cuda} starts on {', '.join(names)}", evidence)


def covered(capability: tuple[int, int], built_for: list[str]) -> bool:
    """True when code that was built for one of ``built_for`` (sm_90, sm_100f, compute_120) runs on ``capability``.

    Machine code runs on the same major capability with the same or a greater minor one, PTX on every later GPU, and
    what was built for one architecture alone (sm_90a) only there: CUDA C++ programming guide, "Compute capabilities".
    """
    number = 10 * capability[0] + capability[1]
    for name in built_for:
        if not (found := re.fullmatch(r"(sm|compute)_(\d+)([af]?)", name)):
            continue
        kind, built, suffix = found[1], int(found[2]), found[3]
        family = built // 10 == number // 10 or (kind == "compute" and not suffix)
        if built == number or (family and built < number and suffix != "a"):
            return True
    return False


def allocation() -> Answer:
    """Allocate 64 MiB, fill them twice, and sum them: every number is known."""
    free, total = torch.cuda.mem_get_info()
    count = 1 << 24
    numbers = torch.arange(count, dtype=torch.int32, device=DEVICE)
    sums = {"0, 1, 2, ...": (int(numbers.sum(dtype=torch.int64)), count * (count - 1) // 2)}
    numbers.fill_(-7)
    sums["-7, -7, ..."] = (int(numbers.sum(dtype=torch.int64)), -7 * count)
    evidence = {"free": f"{free >> 20} MiB", "total": f"{total >> 20} MiB"}
    wrong = [f"{what} to {got} instead of {wanted}" for what, (got, wanted) in sums.items() if got != wanted]
    if wrong:
        return Answer("fail", f"{count} numbers on the GPU sum up wrongly: {'; '.join(wrong)}", evidence, HEALTH)
    return Answer("pass", f"64 MiB hold what was written, {free >> 20} MiB are free", evidence)


def copies() -> Answer:
    """Copy to the GPU, on it and back, from pageable and from pinned memory, and compare checksums at every step."""
    scattered = torch.arange(COUNT) * 2654435761 & 0xFFFFFFFF  # every bit of 32 changes
    host = (scattered - 2**31).to(torch.int32)
    pinned, returned = host.pin_memory(), torch.zeros(COUNT, dtype=torch.int32).pin_memory()
    there = {"pageable": host.to(DEVICE), "pinned": pinned.to(DEVICE, non_blocking=True)}
    beside = there["pinned"].clone()
    returned.copy_(beside, non_blocking=True)
    torch.cuda.synchronize()
    steps = {
        "host to GPU, pageable memory": there["pageable"],
        "host to GPU, pinned memory": there["pinned"],
        "GPU to GPU, the same one": beside,
        "GPU to host, pinned memory": returned,
        "GPU to host, pageable memory": there["pageable"].cpu(),
    }
    wanted = checksum(host)
    wrong = [step for step, tensor in steps.items() if checksum(tensor) != wanted]
    if wrong:
        message = f"copies changed 16 MiB of data: {'; '.join(wrong)}"
        return Answer("fail", message, {"checked": ", ".join(steps)}, HEALTH)
    return Answer("pass", f"{len(steps)} kinds of copies, bit for bit", {"checked": ", ".join(steps)})


def checksum(numbers: torch.Tensor) -> int:
    """Sum of int32 numbers, each times a weight by its position, so that two that changed places change it, too.

    It fits into 64 bits for up to 2^23 numbers: 2^31 * 509 * 2^23 < 2^63.
    """
    weights = torch.arange(len(numbers), device=numbers.device).remainder_(509).add_(1)
    return int((numbers.to(torch.int64) * weights).sum())


def streams_and_events() -> Answer:
    """One stream adds for a while, another waits for its event and reads: it must see the last sum; time must pass."""
    rounds = 100
    numbers = torch.zeros(1 << 24, dtype=torch.int32, device=DEVICE)  # large: adding takes longer than asking for it
    seen = torch.zeros_like(numbers)
    torch.cuda.synchronize()
    writer, reader = torch.cuda.Stream(), torch.cuda.Stream()
    begun, written, read = (torch.cuda.Event(enable_timing=True) for _ in range(3))
    with torch.cuda.stream(writer):
        begun.record()
        for _ in range(rounds):
            numbers.add_(1)
        written.record()
    with torch.cuda.stream(reader):
        reader.wait_event(written)
        seen.copy_(numbers)
        read.record()
    read.synchronize()
    adding, copying = begun.elapsed_time(written), written.elapsed_time(read)
    evidence = {"adding": f"{adding:.3f} ms", "copying": f"{copying:.3f} ms"}
    low, high = int(seen.min()), int(seen.max())
    if (low, high) != (rounds, rounds):
        message = (
            f"a stream that waited for {rounds} additions saw {low} to {high} of them: events do not order streams"
        )
        return Answer("fail", message, evidence, HEALTH)
    if not (written.query() and adding > 0 and copying > 0):
        message = f"events measure {adding} ms for {rounds} additions and {copying} ms for a copy; both take time"
        return Answer("fail", message, evidence, HEALTH)
    return Answer("pass", "streams wait for events, and events measure time", evidence)


def cuda_graph() -> Answer:
    """Capture two operations, replay them over inputs that changed since, and compare."""
    numbers, results = torch.zeros(4099, device=DEVICE), torch.zeros(4099, device=DEVICE)

    def compute() -> None:
        torch.mul(numbers, 3, out=results)
        results.add_(1)

    compute()  # loads the kernels, which a capture must not do
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        compute()
    for value in (2.0, -5.0, 1024.0):
        numbers.fill_(value)
        results.fill_(torch.nan)
        graph.replay()
        if (low := float(results.min())) != 3 * value + 1 or float(results.max()) != low:
            message = f"a replayed CUDA graph computed {low} from {value}, and not {3 * value + 1}"
            return Answer("fail", message, {}, (HEALTH[1], "install a newer NVIDIA driver"))
    return Answer("pass", "a captured graph replays over changed inputs")


BASIC: dict[str, Callable[[], Answer]] = {
    "cuda_init": cuda_init,
    "allocation": allocation,
    "copies": copies,
    "streams_and_events": streams_and_events,
    "cuda_graph": cuda_graph,
}


def failure(error: Exception) -> Answer:
    """What an exception of torch's means. One that is due to another project's use of the GPU is not a finding."""
    said = f"{type(error).__name__}: {error}"
    evidence = {"error": said[-2000:]}
    if isinstance(error, torch.cuda.OutOfMemoryError):
        message = f"the GPU's memory is taken by others: {first_line(error)}"
        users = command("nvidia-smi", "--query-compute-apps=pid,name,used_memory", "--format=csv")
        return Answer("error", message, evidence, (users,))
    if found := re.search(r"driver on your system is too old \(found version (\d+)\)", said):
        number = int(found[1])
        has = f"{number // 1000}.{number % 1000 // 10}"
        fix = (
            "install a newer NVIDIA driver",
            f"or a torch that is built for CUDA {has} or an older one of the same major version",
        )
        message = f"the NVIDIA driver runs CUDA up to {has}, and this torch is built for CUDA {torch.version.cuda}"
        return Answer("fail", message, evidence, fix)
    code = getattr(error, "error_code", None)  # torch.AcceleratorError, since torch 2.8
    if code is None and (found := re.search(r"\bError (\d+):", said)):
        code = int(found[1])
    if code in FAULTS:
        fault = explain(code)
        return Answer(fault.outcome, f"{first_line(error)}: {fault.meaning}", evidence, fault.fix)
    return Answer("fail", first_line(said), evidence, HEALTH)
