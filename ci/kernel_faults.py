"""Faults seeded in the kernels, one in each of fourteen, and whether ``kernels_smoke`` catches them. It takes a GPU.

usage: python ci/kernel_faults.py [--level quick|full|deep] [--root DIR] [--seed N]

Copies ``kernels_smoke`` from DIR (this repository's when it is not given; another checkout shows what that one caught),
changes a line of fourteen kernels, and runs the suite once on the copy. Each fault is caught when anything of its
kernel is wrong. They are kinds that small cases cannot see: what goes wrong from some row, program, position, token or
segment on, on one multiprocessor, in one head, in one element, or in one launch of fifty.

The exit code is 0 when all were caught.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BAD = {"wrong", "crash", "hang", "refused", "fail"}  # of a speed, "slow" is no catch: the fault may well be fast
SMID = (
    'tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r,r", [quarters.to(tl.int32)], dtype=tl.int32, '
    "is_pure=False, pack=1)"
)


@dataclass(frozen=True)
class Fault:
    """In the file of ``kernel``, ``old`` becomes ``new``."""

    kernel: str
    file: str
    what: str
    old: str
    new: str


FAULTS = (
    Fault(
        "fused_add_rms_norm",
        "norm/fused_add_rms_norm.py",
        "rows from 2,000 on",
        "normed = (total * inverse * scale)",
        "normed = (total * tl.where(rows < 2000, inverse, 1.25 * inverse) * scale)",
    ),
    Fault(
        "mul_add_sigmoid",
        "fusion/mul_add_sigmoid.py",
        "from program 1,000 on",
        "tl.sigmoid(x * w + b)",
        "tl.sigmoid(tl.where(tl.program_id(0) < 1000, x * w + b, x * w - b))",
    ),
    Fault(
        "dynamic_per_token_scaled_fp8_quant",
        "quantization/dynamic_per_token_scaled_fp8_quant.py",
        "rows beyond 2^15 not written",
        "tl.store(codes_pointer + rows * codes_stride + columns, codes, mask=mask)",
        "tl.store(codes_pointer + rows * codes_stride + columns, codes, mask=mask & (rows < 32768))",
    ),
    Fault(
        "silu_and_mul_dynamic_per_token_quant",
        "quantization/silu_and_mul_dynamic_per_token_quant.py",
        "one element of a row, from row 8,192 on",
        "head_product = _silu_and_mul(head_gate, head_up)",
        "head_product = _silu_and_mul(head_gate, head_up) * tl.where((head == 7) & (row >= 8192), 0.5, 1.0)",
    ),
    Fault(
        "scaled_mm",
        "matmul/scaled_mm.py",
        "columns from 12,288 on",
        "result = result * row_scale[:, None] * column_scale[None, :]",
        "result = result * row_scale[:, None] * column_scale[None, :] * tl.where(column >= 12288, 0.5, 1.0)",
    ),
    Fault(
        "paged_attention",
        "attention/tiled_softmax.py",
        "positions from 32,768 on",
        'scores = tl.dot(q, k.T, input_precision="ieee")',
        'scores = tl.dot(q, k.T, input_precision="ieee") * tl.where(position < 32768, 1.0, 0.5)[None, :]',
    ),
    Fault(
        "gated_delta_rule_chunk",
        "delta_net/gated_delta_rule_chunk.py",
        "the state lost at token 4,096",
        "of_state = tl.load(factors + 4 * CHUNK - 1)",
        "of_state = tl.load(factors + 4 * CHUNK - 1) * tl.where(end - begin - left == 4096, 0.0, 1.0)",
    ),
    Fault(
        "gated_delta_rule_decode",
        "delta_net/gated_delta_rule_decode.py",
        "rows of states from 128 on",
        "tl.store(states + row * states_stride + within, state,",
        "tl.store(states + row * states_stride + within, state * tl.where(row >= 128, 0.99, 1.0),",
    ),
    Fault(
        "block_diagonal_attention",
        "block_attention/block_diagonal_attention.py",
        "one head, from token 320,000 on",
        "* (1.0 / total)",
        "* (1.0 / total) * tl.where((head == 1) & (start >= 320000), 0.9, 1.0)",
    ),
    Fault(
        "newton_schulz",
        "muon/newton_schulz.py",
        "one tile, of matrices of more than 2,048 rows",
        "result = (near if half == 0 else far) + of_kept * same.to(tl.float32)",
        "result = (near if half == 0 else far) * tl.where((row == 2048) & (column == 0), 0.8, 1.0) "
        "+ of_kept * same.to(tl.float32)",
    ),
    Fault(
        "simplex_projection",
        "dualip/simplex_projection.py",
        "elements from 5,000,000 on",
        "tl.store(out + where, projected, mask=inside)",
        "tl.store(out + where, projected * tl.where(begin[None, :, None] > 5000000, 0.5, 1.0), mask=inside)",
    ),
    Fault(
        "fused_qk_norm_rope",
        "rotary/fused_qk_norm_rope.py",
        "positions above 32,768",
        "cos_sin_pointer + position * cos_sin_stride,",
        "cos_sin_pointer + (position % 32768) * cos_sin_stride,",
    ),
    Fault(
        "sin_and_cos",
        "fusion/sin_and_cos.py",
        "on one multiprocessor",
        "    square = angle * angle\n",
        f"    angle = tl.where({SMID} == 77, 0.99 * angle, angle)\n    square = angle * angle\n",
    ),
    Fault(
        "mul_sum_add",
        "fusion/mul_sum_add.py",
        "one launch of fifty does nothing",
        "    if rows:\n",
        "    globals().setdefault('calls', []).append(0)\n    if rows and len(calls) % 50:  # noqa: F821\n",
    ),
)


def main() -> int:
    """Seed, run, report."""
    parser = argparse.ArgumentParser(description="Seed faults in the kernels and see whether the suite catches them.")
    parser.add_argument("--level", choices=("quick", "full", "deep"), default="full")
    parser.add_argument("--root", type=Path, default=ROOT, metavar="DIR", help="the checkout whose suite is tried")
    parser.add_argument("--seed", type=int, default=20261126)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seed_faults(options.root / "kernels_smoke", Path(folder))
        start = time.monotonic()
        report = run(Path(folder), options.level, options.seed)
    found = {fault: caught_by(report, fault) for fault in FAULTS}
    for fault, by in found.items():
        print(f"{'caught' if by else 'MISSED'}  {fault.kernel}: {fault.what}{f': {by}' if by else ''}")
    count = sum(map(bool, found.values()))
    said = f"{report['verdict'].upper()} in {time.monotonic() - start:.1f} s"
    print(f"{count} of {len(FAULTS)} caught at level {options.level}; the suite said {said}: {report['message']}")
    others = healthy_but_bad(report)
    print("\n".join(f"unexpected: {each}" for each in others))
    return 0 if count == len(FAULTS) else 1


def seed_faults(package: Path, folder: Path) -> None:
    """Copy ``package`` into ``folder`` and change it. Raises SystemExit when a text does not stand there once."""
    shutil.copytree(package, folder / "kernels_smoke", ignore=shutil.ignore_patterns("__pycache__"))
    for fault in FAULTS:
        path = folder / "kernels_smoke" / fault.file
        source = path.read_text(encoding="utf-8")
        if (count := source.count(fault.old)) != 1:
            raise SystemExit(f"{fault.kernel}: {fault.old!r} stands {count} times in {path.name}")
        path.write_text(source.replace(fault.old, fault.new), encoding="utf-8")


def run(folder: Path, level: str, seed: int) -> dict[str, Any]:
    """The suite's report on the copy in ``folder``, with an empty cache."""
    environment = os.environ | {"PYTHONPATH": str(folder), "TRITON_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-m", "kernels_smoke", "--level", level, "--seed", str(seed), "--format", "json"]
    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=False)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def caught_by(report: Mapping[str, Any], fault: Fault) -> str:
    """The first record of the kernel that is bad; empty when all are good."""
    for record in bad_records(report):
        if record["kernel"] == fault.kernel:
            return f"{record['case']}: {record['message']}"[:160]
    return ""


def healthy_but_bad(report: Mapping[str, Any]) -> Sequence[str]:
    """What is bad of kernels that nothing was changed in."""
    changed = {fault.kernel for fault in FAULTS}
    return [
        f"{r['kernel']} / {r['case']}: {r['message']}"[:200] for r in bad_records(report) if r["kernel"] not in changed
    ]


def bad_records(report: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Cases and timed runs that ended badly."""
    return [record for key in ("cases", "speeds") for record in report[key] if record["outcome"] in BAD]


if __name__ == "__main__":
    sys.exit(main())
