"""The fused all-reduce: the result of one rank with signals, compilation for GPUs, and refusals."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from kernels_smoke.norm.all_reduce_add_rms_norm import all_reduce_add_rms_norm
from kernels_smoke.norm.peers import PROGRAMS, Peers
from kernels_smoke.norm.reference import all_reduce_add_rms_norm as expected
from tests.kernels.support import DEVICE, error, zeros

ROWS, WIDTH = 3, 40

# Compiles the code that waits for other ranks, which no case of the suite runs, in one process.
PROGRAM = """
import torch
from kernels_smoke.norm.all_reduce_add_rms_norm import all_reduce_add_rms_norm
from kernels_smoke.norm.peers import Peers
from kernels_smoke.suite.compiling.ahead_of_time import compiling, target_of
x, weight = (torch.empty(*shape, dtype=torch.bfloat16, device="meta") for shape in ((16, 4096), (4096,)))
addresses = torch.empty(2, dtype=torch.int64, device="meta")
for name in ("sm_90", "gfx942"):
    with compiling(target_of(name)) as functions:
        all_reduce_add_rms_norm(Peers(x=x, pointers=addresses, signals=addresses), x, weight)
    print(name, len(functions), "ld.global.cg.v4" in functions[0].compiled.asm.get("ptx", ""))
"""


def peers(ranks: int = 1, **changes: Any) -> Peers:
    parts = [zeros(ROWS, WIDTH) for _ in range(ranks)]
    pointers = torch.tensor([part.data_ptr() for part in parts], device=DEVICE)
    return Peers(**{"x": parts[0], "pointers": pointers, "owner": parts} | changes)


def test_one_rank_meets_itself_and_leaves_its_signals_as_they_were() -> None:
    x = torch.randn(ROWS, WIDTH, generator=torch.Generator().manual_seed(1)).to(DEVICE)
    signals = torch.zeros(PROGRAMS, 2, 1, dtype=torch.int32, device=DEVICE)
    here = Peers(
        x=x,
        pointers=torch.tensor([x.data_ptr()], device=DEVICE),
        signals=torch.tensor([signals.data_ptr()], device=DEVICE),
    )
    residual, weight = torch.ones_like(x), torch.ones(WIDTH, device=DEVICE)
    for _ in range(2):
        normed, total = all_reduce_add_rms_norm(here, residual, weight)
        wanted = expected(x[None], residual, weight, epsilon=1e-6, zero_centred=False)
        assert error(normed, wanted[0]) < 1e-6
        assert torch.equal(total, wanted[1])
        assert not signals.any()


def test_a_rank_signals_the_others_and_clears_what_they_signalled() -> None:
    parts = torch.randn(3, ROWS, WIDTH, generator=torch.Generator().manual_seed(2)).to(DEVICE)
    signals = torch.zeros(3, PROGRAMS, 2, 3, dtype=torch.int32, device=DEVICE)
    signals[1, 0, :, (0, 2)] = 1  # both others have come, twice: the rows are one tile
    here = Peers(
        x=parts[1],
        pointers=torch.tensor([part.data_ptr() for part in parts], device=DEVICE),
        rank=1,
        signals=torch.tensor([each.data_ptr() for each in signals], device=DEVICE),
    )
    residual, weight = torch.ones_like(parts[1]), torch.ones(WIDTH, device=DEVICE)
    _, total = all_reduce_add_rms_norm(here, residual, weight)
    wanted = expected(parts, residual, weight, epsilon=1e-6, zero_centred=False)
    assert torch.equal(total, wanted[1])
    assert not signals[1].any()
    for other in (0, 2):
        assert signals[other].sum() == signals[other, 0, :, 1].sum() == 2


def test_what_waits_for_other_ranks_compiles_and_loads_sixteen_bytes_at_once() -> None:
    root = Path(__file__).parents[2]
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = str(root)
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split("\n")[:2]) == (0, ["sm_90 1 True", "gfx942 1 False"]), done.stderr


@pytest.mark.parametrize(
    ("peers", "change", "message"),
    [
        (peers(9), {}, "there are 9 ranks; 1 to 8 are possible"),
        (peers(2, rank=2), {}, "rank must be from 0 to 1, not 2"),
        (peers(2, pointers=zeros(2)), {}, "pointers must be torch.int64"),
        (peers(2, signals=zeros(3, dtype=torch.int64)), {}, "signals must have the shape"),
        (peers(x=zeros(WIDTH)), {}, "x must be .rows, width."),
        (peers(), {"residual": zeros(ROWS, 41)}, "residual must have the shape"),
        (peers(), {"weight": zeros(41)}, "weight must have the shape"),
        (peers(), {"out": (zeros(ROWS, WIDTH), zeros(1, WIDTH).expand(ROWS, WIDTH))}, "are at the same place"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(peers: Peers, change: dict[str, Any], message: str) -> None:
    arguments = {"residual": zeros(ROWS, WIDTH), "weight": zeros(WIDTH)} | change
    with pytest.raises(ValueError, match=message):
        all_reduce_add_rms_norm(peers, **arguments)
