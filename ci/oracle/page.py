"""The page of the readiness table, in Markdown."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from typing import Any

from ci.oracle.answers import GPUS
from ci.oracle.comparison import Judgement, totals
from ci.oracle.wheels import MACHINES

_RUNS = {"native": "yes", "jit": "by PTX", "none": "no", "": ""}
_INTRO = """# Readiness of accelerator packages

What `wheelproof verify NAME --gpu ...` says about the newest releases on {date}, for CPython 3.12 on
Linux. Made by `ci/readiness.py` at commit {commit}. *By PTX*: the driver compiles the code at first use. An empty
cell: the wheel has no GPU code.

![Bars of packages with code for H100, B200, GH200 and GB200; the packages that lack it for one](images/readiness.svg)
"""
_CHECK = """
## The check

Each row was compared with a whole download of the file that pip takes, read by readelf and cuobjdump (`ci/oracle`):
the file, the accelerator, the major version of CUDA by sonames, the code for each GPU, and the exit code.
**{right} right, {wrong} wrong, {undecided} undecided ({share})**, of {all} wheels of {packages} packages. In
{without} more cases pip takes no wheel of the newest release on the machine, and wheelproof does not answer PASS.
"""


def render(rows: Sequence[dict[str, Any]], judged: Sequence[Judgement] | None, commit: str) -> str:
    """The whole page; with the totals and errors of the check, if ``judged`` is given.

    ``commit`` is the tree that gave the answers.
    """
    parts = [_INTRO.format(date=dt.datetime.now(dt.UTC).date(), commit=commit)]
    if judged is not None:
        parts.append(_CHECK.format(**_figures(rows, judged)))
        parts += _not_right(rows, judged)
    for machine in MACHINES:
        parts.append(_table(machine, [row for row in rows if row["machine"] == machine]))
    return "\n".join(parts)


def _figures(rows: Sequence[dict[str, Any]], judged: Sequence[Judgement]) -> dict[str, str | int]:
    """The numbers of the check; packages that rightly have no wheel are counted separately."""
    counts = totals(judged)
    without = sum(not row["file"] and one.outcome == "right" for row, one in zip(rows, judged, strict=True))
    wheels = len(rows) - without
    return {
        "right": counts["right"] - without,
        "wrong": counts["wrong"],
        "undecided": counts["undecided"],
        "share": f"{counts['undecided'] / max(1, wheels):.1%}",
        "all": wheels,
        "packages": len({row["package"] for row in rows}),
        "without": without,
    }


def _not_right(rows: Sequence[dict[str, Any]], judged: Sequence[Judgement]) -> list[str]:
    return [
        f"- {row['package']} on {row['machine']}: {judgement.outcome}. {'; '.join(judgement.why)}"
        for row, judgement in zip(rows, judged, strict=True)
        if judgement.outcome != "right"
    ]


def _table(machine: str, rows: Sequence[dict[str, Any]]) -> str:
    gpus = GPUS[machine]
    head = ["package", "version", "accelerator", *gpus, "verdict", "certainty", "MB read"]
    lines = [f"\n## {machine}\n", f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    return "\n".join(lines + [f"| {' | '.join(_cells(row, gpus))} |" for row in rows]) + "\n"


def _cells(row: dict[str, Any], gpus: Sequence[str]) -> list[str]:
    if not row["file"]:
        return [row["package"], "no wheel", "", *("" for _gpu in gpus), f"exit {row['exit']}", "", ""]
    runs = [_RUNS.get(row["runs"].get(gpu, ""), row["runs"].get(gpu, "")) for gpu in gpus]
    accelerator = row["headline"].split(", from ")[0]  # not where the file came from
    read = f"{row['bytes'] / 1e6:.1f}"
    return [row["package"], row["version"], accelerator, *runs, row["verdict"], row["certainty"], read]
