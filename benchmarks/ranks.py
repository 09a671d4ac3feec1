"""Check and time kernels on several GPUs: the fused all-reduce with its norm, and a linear program in shares.

usage: python benchmarks/ranks.py [--ranks N] [--device cuda|cpu] [--minutes 2] [--output FILE.json]

One process for each GPU. First whether all ranks compute the result of one, then the times: all-reduce, residual
addition and norm in one launch next to NCCL's all-reduce and the fused norm; an iteration of dual ascent on one GPU and
on all. The curve beyond these GPUs is a calculation: the share of one rank of so many, timed here, and the all-reduce
of this run, whose bytes grow by 2 (n - 1) / n. ``--device cpu`` runs two small problems over gloo, without times.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kernels_smoke.suite.run.stages import NO_MULTICAST  # found by the line above

ROWS, WIDTH = (1, 16, 128, 1024, 8192), 4096  # tokens, and the width of a layer
USERS, ITEMS, MOST = 1_000_000, 10_000, 31
SMOOTHING = 0.1
CURVE = (2, 4, 8)
EPSILON = 1e-6
SEED = 20261127
CALLS, REPLAYS = 20, 7  # in a graph; of it


def main() -> None:
    """Start the ranks, wait for them, and print their results."""
    parser = argparse.ArgumentParser(description="Time what needs several GPUs.")
    parser.add_argument("--ranks", type=int, default=2, metavar="N")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--minutes", type=float, default=2.0, help="after that, all ranks are ended")
    parser.add_argument("--output", type=Path, metavar="FILE.json")
    options = parser.parse_args()
    for name, value in NO_MULTICAST.items():
        os.environ.setdefault(name, value)
    if options.device == "cpu":
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        arguments = [(rank, options.ranks, folder, options.device) for rank in range(options.ranks)]
        ranks = [context.Process(target=one_rank, args=each, daemon=True) for each in arguments]
        for process in ranks:
            process.start()
        until = time.monotonic() + 60 * options.minutes
        while any(process.is_alive() for process in ranks) and time.monotonic() < until:
            if any(process.exitcode for process in ranks):
                until = min(until, time.monotonic() + 5.0)  # the others wait for it in vain
            time.sleep(0.05)
        ended = [process.exitcode for process in ranks]
        for process in ranks:
            process.kill()
        found = Path(folder) / "found.json"
        facts: dict[str, Any] = json.loads(found.read_text(encoding="utf-8")) if found.exists() else {}
    print(report(facts))
    if options.output and facts:
        options.output.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    if any(code != 0 for code in ended):
        raise SystemExit(f"ranks ended with {ended}")


def report(facts: dict[str, Any]) -> str:
    """The tables, as markdown."""
    lines = [facts.get("where", "no rank finished"), *facts.get("checks", ())]
    if norms := facts.get("norm"):
        names = list(norms[0]["times"])
        lines += ["", f"| rows of {WIDTH} | {' | '.join(f'{name}, us' for name in names)} |"]
        lines += ["| ---: |" + " ---: |" * len(names)]
        for row in norms:
            times = " | ".join(f"{row['times'][name]:.1f}" for name in names)
            lines.append(f"| {row['rows']} | {times} |")
    if curve := facts.get("curve"):
        lines += ["", "| GPUs | one iteration, us | times as fast as one | |", "| ---: | ---: | ---: | --- |"]
        lines += [
            f"| {row['ranks']} | {row['us']:.1f} | {curve[0]['us'] / row['us']:.2f} | {row['how']} |" for row in curve
        ]
    return "\n".join(lines)


# In the process of one rank


def one_rank(rank: int, ranks: int, folder: str, device: str) -> None:
    """Check and time together with the others; rank 0 writes the results into ``folder``."""
    import torch
    from torch import distributed

    if device == "cuda":
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        "nccl" if device == "cuda" else "gloo",
        init_method=f"file://{folder}/rendezvous",
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=60),
    )
    name = torch.cuda.get_device_name() if device == "cuda" else "CPU"
    facts: dict[str, Any] = {"where": f"{ranks} x {name}, torch {torch.__version__}", "checks": []}

    def keep() -> None:
        if rank == 0:
            part = Path(folder) / "part.json"
            part.write_text(json.dumps(facts), encoding="utf-8")
            part.replace(Path(folder) / "found.json")

    facts["checks"].append(_same_dual(rank, ranks, device))
    keep()
    if device == "cuda":
        facts["norm"] = []
        for rows in ROWS:
            row, check = _norms(rows)
            facts["norm"].append(row)
            facts["checks"].append(check)
            keep()
        facts["curve"] = _curve(rank, ranks)
        keep()
    distributed.barrier()
    distributed.destroy_process_group()


def _norms(rows: int) -> tuple[dict[str, Any], str]:
    """The times of the fused launch and of its replacement, and the fault of the former."""
    import torch
    from torch import distributed

    from kernels_smoke.norm.all_reduce_add_rms_norm import all_reduce_add_rms_norm
    from kernels_smoke.norm.fused_add_rms_norm import fused_add_rms_norm
    from kernels_smoke.norm.peers import symmetric
    from kernels_smoke.norm.reference import all_reduce_add_rms_norm as expected

    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    peers = symmetric(rows, WIDTH, torch.bfloat16, distributed.group.WORLD)
    generator = torch.Generator("cuda").manual_seed(SEED)  # the same on all ranks
    parts = torch.randn(ranks, rows, WIDTH, generator=generator, device="cuda").bfloat16()
    residual, weight = (
        torch.randn(*shape, generator=generator, device="cuda").bfloat16() for shape in ((rows, WIDTH), (WIDTH,))
    )
    peers.x.copy_(parts[rank])
    options: dict[str, Any] = {"epsilon": EPSILON, "zero_centred": True}  # Gemma's form
    faults = 0
    wanted = expected(parts, residual, weight, epsilon=EPSILON, zero_centred=True)
    for _ in range(5):
        normed, total = all_reduce_add_rms_norm(peers, residual, weight, **options)
        faults += int((total != wanted[1]).sum())
        faults += int((normed != wanted[0].bfloat16()).sum() > normed.numel() // 100)
    summed, out = peers.x.clone(), (torch.empty_like(residual), torch.empty_like(residual))

    def separate() -> None:
        distributed.all_reduce(summed)
        fused_add_rms_norm(summed, residual, weight, **options, out=out)

    def one_shot() -> None:
        reduced = torch.ops.symm_mem.one_shot_all_reduce(peers.x, "sum", distributed.group.WORLD.group_name)
        fused_add_rms_norm(reduced, residual, weight, **options, out=out)

    calls: dict[str, Callable[[], object]] = {
        "one launch": lambda: all_reduce_add_rms_norm(peers, residual, weight, **options, out=out),
        "NCCL, then the norm": separate,
        "torch's one-shot, then the norm": one_shot,
    }
    times = {}
    for name, call in calls.items():
        try:
            times[name] = _microseconds(call)
        except Exception:  # noqa: BLE001  # a function that this torch lacks is not timed; all ranks lack it
            times[name] = float("nan")
    found = torch.tensor(faults, device="cuda")
    distributed.all_reduce(found)
    check = (
        f"{rows} rows: all ranks have the sum of all, bit for bit"
        if not int(found)
        else f"{rows} rows: {int(found)} WRONG"
    )
    return {"rows": rows, "times": times}, check


def _microseconds(call: Callable[[], object]) -> float:
    """The time of one call in a CUDA graph, the greatest of all ranks."""
    import torch
    from torch import distributed

    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
        torch.cuda.synchronize()
        distributed.barrier()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(CALLS):
                call()
        times = []
        for _ in range(REPLAYS):
            torch.cuda.synchronize()
            distributed.barrier()
            marks = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            marks[0].record()
            graph.replay()
            marks[1].record()
            torch.cuda.synchronize()
            times.append(1000.0 * marks[0].elapsed_time(marks[1]) / CALLS)
    slowest = torch.tensor(statistics.median(times), device="cuda")
    distributed.all_reduce(slowest, op=distributed.ReduceOp.MAX)
    return float(slowest)


def _arguments(users: int, items: int, most: int, device: str) -> tuple[Any, ...]:
    """The arguments of ``linear_program`` for a matching problem: one variable for each pair of a user and an item."""
    import torch

    generator = torch.Generator(device).manual_seed(SEED)
    lengths = torch.randint(1, most + 1, (users,), generator=generator, device=device)
    blocks = torch.cat((lengths.new_zeros(1), lengths.cumsum(0))).to(torch.int32)
    pairs = int(blocks[-1])
    rows = torch.randint(0, items, (pairs,), generator=generator, device=device, dtype=torch.int32)
    cost, values = (0.1 + torch.rand(pairs, generator=generator, device=device) for _ in range(2))
    limits = torch.full((items,), 0.3 * users / items, device=device)
    return -cost, limits, torch.arange(pairs + 1, dtype=torch.int32, device=device), rows, values, blocks


def _same_dual(rank: int, ranks: int, device: str) -> str:
    """Whether all ranks together find the dual of a single rank."""
    import torch
    from torch import distributed

    from kernels_smoke.dualip.dual_ascent import dual_ascent, linear_program
    from kernels_smoke.dualip.share import share

    arguments = _arguments(*((20, 6, 3) if device == "cpu" else (20_000, 500, 15)), device)
    options: dict[str, Any] = {"smoothing": (0.3, 0.1), "iterations": 4 if device == "cpu" else 100}
    _, alone = dual_ascent(linear_program(*arguments), **options)
    x, together = dual_ascent(share(*arguments, rank=rank, ranks=ranks), **options, group=distributed.group.WORLD)
    sizes = torch.tensor(len(x), device=x.device)
    distributed.all_reduce(sizes)
    error = float((together - alone).norm() / alone.norm())
    right = error < 1e-3 and int(sizes) == len(arguments[0])
    return f"dual ascent over {ranks} ranks: {'the dual of one' if right else 'WRONG'}, relative difference {error:.1e}"


def _curve(rank: int, ranks: int) -> list[dict[str, Any]]:
    """The time of an iteration on one GPU, on all, and calculated for more."""
    import torch
    from torch import distributed

    from kernels_smoke.dualip.dual_ascent import linear_program
    from kernels_smoke.dualip.share import share

    arguments = _arguments(USERS, ITEMS, MOST, "cuda")
    dual = torch.full_like(arguments[1], 0.3)
    whole = _microseconds(_gradient(linear_program(*arguments), dual))
    reduced = _gradient(share(*arguments, rank=rank, ranks=ranks), dual)

    def together() -> None:
        distributed.all_reduce(reduced())

    curve = [{"ranks": 1, "us": whole, "how": "measured"}]
    curve += [{"ranks": ranks, "us": _microseconds(together), "how": "measured"}]
    numbers = torch.zeros_like(dual)
    reduction = _microseconds(lambda: distributed.all_reduce(numbers))
    for count in CURVE:
        local = _microseconds(_gradient(share(*arguments, rank=0, ranks=count), dual))
        across = reduction * (2 * (count - 1) / count) / (2 * (ranks - 1) / ranks)
        how = f"calculated: {local:.1f} for its share, {across:.1f} for the all-reduce"
        curve.append({"ranks": count, "us": local + across, "how": how})
    return curve


def _gradient(program: Any, dual: Any) -> Callable[[], Any]:
    from kernels_smoke.dualip.simplex_projection import simplex_projection
    from kernels_smoke.dualip.sparse_product import sparse_product

    def run() -> Any:
        price = (program.cost + sparse_product(program.columns, dual)) * (-1 / SMOOTHING)
        x = simplex_projection(price, program.blocks, radius=program.radius, out=price)
        return sparse_product(program.rows, x)

    return run


if __name__ == "__main__":
    main()
