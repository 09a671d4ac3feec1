"""Tabulate the machine code of kernels for GPUs that are not here, for the pages of benchmarks.

usage: python -m kernels_smoke --compile-only --target sm_90,sm_100,... --format json --output RUN.json
       python benchmarks/compiled.py RUN.json

Prints markdown: for each kernel and target the registers of a thread, the bytes that spill, and the matrix
instructions, of all launches of its timed shapes and cases; then findings and notes of the suite. Needs no torch.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from kernels_smoke.suite import registry  # found by the line above

Record = dict[str, Any]


def main() -> None:
    """Read the document of one run, print the tables."""
    parser = argparse.ArgumentParser(description="Show what the kernels compile into.")
    parser.add_argument("document", type=Path, metavar="RUN.json")
    path = parser.parse_args().document
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        table = markdown(document)
    except (OSError, LookupError, TypeError, ValueError) as error:
        parser.error(f"{path} is not a report of kernels_smoke --compile-only --format json: {error!r}")
    print(table)


def markdown(document: Record) -> str:
    """The table, followed by failures and notes."""
    records = document["compiled"]
    targets = sorted({record["target"] for record in records}, key=_order)
    order = [entry.name for entry in registry.ENTRIES]
    kernels = sorted({record["kernel"] for record in records}, key=order.index)
    versions = " and ".join(f"{name} {document['environment'][name]['version']}" for name in ("triton", "torch"))
    made = f"{len(records):,} compilations of {len(kernels)} kernels for {len(targets)} targets"
    lines = [
        f"{document['started'][:10]} · {versions}, no GPU · {made} in {document['seconds']:.0f} s · registers of a "
        "thread, spilled bytes if any, matrix instructions",
        "",
        _row(["kernel", *targets]),
        _row(["---"] * (1 + len(targets))),
    ]
    for kernel in kernels:
        of_kernel = [record for record in records if record["kernel"] == kernel]
        lines.append(_row([kernel, *(_cell([one for one in of_kernel if one["target"] == name]) for name in targets)]))
    return "\n".join([*lines, "", *_messages(records)])


def _cell(records: Sequence[Record]) -> str:
    """One kernel for one target: the most registers and spills of its functions, and all their matrix instructions."""
    compiled = [record for record in records if record.get("registers") is not None]
    if not compiled:
        return records[0]["outcome"] if records else "-"
    spills = max(record["spill_bytes"] or 0 for record in compiled)
    parts = [str(max(record["registers"] for record in compiled)), f"{spills} B spilled" if spills else ""]
    parts += dict.fromkeys(_short(name) for record in compiled for name in record["instructions"])
    return ", ".join(filter(None, parts))


def _short(instruction: str) -> str:
    """AMD's names without the shape: ``v_mfma_scale_f32_32x32x64_f8f6f4`` is ``MFMA scale f8f6f4``."""
    return re.sub(r"v_mfma_(scale_)?\w+?_\d+x\d+x\d+_?", lambda found: f"MFMA {'scale ' * bool(found[1])}", instruction)


def _messages(records: Sequence[Record]) -> Iterator[str]:
    """A line for each message: of a fault, a missing feature of a target, a conversion."""
    messages: dict[tuple[str, str], list[str]] = {}
    for record in records:
        if record["message"]:
            messages.setdefault((record["target"], record["message"]), []).append(record["kernel"])
    for (target, message), kernels in messages.items():
        yield f"- {target}, {', '.join(dict.fromkeys(kernels))}: {message}"


def _order(target: str) -> tuple[bool, int]:
    return target.startswith("gfx"), int(target[3:], 16)  # "sm_90" before "sm_100", NVIDIA's before AMD's


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
