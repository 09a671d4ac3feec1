"""Do the GPUs reach one another? An all-reduce of NCCL, with one process for each GPU and a deadline for all.

This module is also the program that each of these processes runs: ``RANK WORLD FOLDER BACKEND DEVICE SECONDS``.
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch

from kernels_smoke.suite import start
from kernels_smoke.suite.advice import command, docker_run
from kernels_smoke.suite.probes.answer import Answer

DEADLINE = 45.0  # seconds for all ranks together: importing torch, connecting, reducing
SMALL, LARGE = 1000, 16 << 20  # float32 numbers: NCCL takes other algorithms for 64 MiB than for 4 KB
FIX = (
    command(
        *("env", "NCCL_DEBUG=INFO", sys.executable, "-m", "kernels_smoke", "--level", "full"),
        note="says which transport fails",
    ),
    docker_run("--gpus", "all", "--ipc=host", "--ulimit", "memlock=-1"),
    "to find the guilty transport, set one of NCCL_NVLS_ENABLE=0, NCCL_P2P_DISABLE=1, NCCL_SHM_DISABLE=1",
)


def nccl(slowness: float = 1.0) -> Answer:
    """All-reduce over all GPUs of this machine, which may take ``slowness`` times as long as elsewhere."""
    count = torch.cuda.device_count()
    if count < 2:
        return Answer("skip", f"an all-reduce needs two GPUs, and there is {count}")
    if not torch.distributed.is_available() or not torch.distributed.is_nccl_available():
        return Answer("skip", f"torch {torch.__version__} is built without NCCL")
    version = ".".join(map(str, torch.cuda.nccl.version()))
    what, deadline = f"NCCL {version}", DEADLINE * slowness
    return all_reduce(count, backend="nccl", device="cuda", what=what, deadline=deadline)


def all_reduce(world: int, *, backend: str, device: str, what: str, deadline: float = DEADLINE) -> Answer:
    """The answer of ``world`` processes that reduce together over ``backend`` of torch.distributed."""
    environment = {"NCCL_DEBUG": "WARN", **os.environ}  # so that a rank's last words name the cause
    settings = {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
    with tempfile.TemporaryDirectory(prefix="kernels-smoke-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        ranks = []
        for rank in range(world):
            program = start.command(
                "suite.probes.nccl", str(rank), str(world), str(folder), backend, device, str(deadline)
            )
            with (folder / f"{rank}.words").open("wb") as file:
                ranks.append(
                    subprocess.Popen(program, stdout=file, stderr=file, stdin=subprocess.DEVNULL, env=environment)
                )
        late = _wait(ranks, deadline)
        found = [_answer_of(folder, rank) for rank in range(world)]
        words = {f"rank {rank}": _words(folder, rank) for rank in range(world) if found[rank] is None}
    evidence = settings | {name: text for name, text in words.items() if text}
    if late:
        message = (
            f"an all-reduce over {world} GPUs with {what} did not end within {deadline:g} s; silent: {_list(late)}"
        )
        return Answer("fail", message, evidence, FIX)
    if lost := [rank for rank in range(world) if found[rank] is None]:
        said = (words[f"rank {lost[0]}"] or "it said nothing").splitlines()[-1]
        message = f"an all-reduce over {world} GPUs with {what} failed on {_list(lost)}: {said}"
        return Answer("fail", message, evidence, FIX)
    results = [result for result in found if result is not None]
    if faults := [fault for result in results for fault in result["faults"]]:
        return Answer("fail", f"{what} reduces wrongly over {world} GPUs: {'; '.join(faults)}", evidence, FIX)
    rate = min(result["bytes_per_second"] for result in results)
    evidence["bus bandwidth"] = f"{rate / 1e9:.1f} GB/s"
    message = f"{what}: all-reduce over {world} GPUs at {evidence['bus bandwidth']}"
    return Answer("pass", message, evidence, rates={"all-reduce": rate})


def _wait(ranks: list[subprocess.Popen[bytes]], deadline: float) -> list[int]:
    """Wait for all; a rank that fails, or the deadline, ends the others. Returns the ranks that the deadline ended."""
    end = time.monotonic() + deadline
    while time.monotonic() < end and any(process.poll() is None for process in ranks):
        if any(process.poll() for process in ranks):
            end = min(end, time.monotonic() + 1.0)  # the others wait for it in vain; one second for their own words
        time.sleep(0.02)
    failed = any(process.returncode for process in ranks)
    silent = [rank for rank, process in enumerate(ranks) if process.poll() is None]
    for process in ranks:
        if process.poll() is None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # inside the kernel even SIGKILL waits for the driver
                process.wait(2.0)
    return [] if failed else silent


def _answer_of(folder: Path, rank: int) -> dict[str, Any] | None:
    path = folder / f"{rank}.json"
    if not path.exists():
        return None
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _words(folder: Path, rank: int) -> str:
    return (folder / f"{rank}.words").read_text(encoding="utf-8", errors="replace").strip()[-1000:]


def _list(ranks: list[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


# In the process of one rank


def reduce_here(rank: int, world: int, folder: Path, backend: str, device: str, deadline: float) -> None:
    """Reduce with the others and write what was found into ``folder``."""
    if device == "cuda":
        torch.cuda.set_device(rank)
    rendezvous, patience = f"file://{folder}/rendezvous", timedelta(seconds=deadline)
    torch.distributed.init_process_group(backend, init_method=rendezvous, rank=rank, world_size=world, timeout=patience)
    faults = []
    for count in (SMALL, LARGE):
        pattern = torch.arange(count, device=device).remainder_(251).float()
        numbers = pattern * (rank + 1)
        torch.distributed.all_reduce(numbers)
        if not torch.equal(numbers, pattern * (world * (world + 1) // 2)):  # whole numbers: the sum is exact
            faults.append(f"rank {rank} has wrong sums of {count} numbers")
    rate = _bus_bandwidth(torch.zeros(LARGE, device=device), world)
    torch.distributed.destroy_process_group()
    (folder / f"{rank}.part").write_text(json.dumps({"faults": faults, "bytes_per_second": rate}), encoding="utf-8")
    (folder / f"{rank}.part").replace(folder / f"{rank}.json")


def _bus_bandwidth(numbers: torch.Tensor, world: int) -> float:
    """Bytes per second, as NCCL's own tests count them: 2 (n - 1) / n times the buffer in the time of one reduction."""
    rounds = 5
    float(numbers[0])  # waits for what was asked of the GPU before
    begun = time.monotonic()
    for _ in range(rounds):
        torch.distributed.all_reduce(numbers)
    float(numbers[0])
    seconds = (time.monotonic() - begun) / rounds
    size = int(numbers.numel()) * int(numbers.element_size())
    return 2 * (world - 1) / world * size / seconds


if __name__ == "__main__":
    rank, world, folder, backend, device, deadline = sys.argv[1:]
    reduce_here(int(rank), int(world), Path(folder), backend, device, float(deadline))
