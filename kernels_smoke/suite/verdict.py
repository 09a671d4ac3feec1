"""The verdict of a run: fail with a fault, undecided with an unfinished check. Needs no torch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from kernels_smoke.suite.run.plan import Document

NOT_RUN_ACROSS = "not run across GPUs"  # the outcome of a kernel for several GPUs that was run on each alone
BAD = {"fail", "wrong", "crash", "hang", "refused", "slow", "missed"}


def verdict(document: Document, gpus: int = 1) -> dict[str, str]:
    """``verdict`` and ``message``: fail when something is wrong, undecided when something could not be checked.

    With several ``gpus``, the message counts them.
    """
    records = [*document.probes, *document.cases, *document.speeds, *document.compiled, *document.mutants]
    bad = [record for record in records if record["outcome"] in BAD and not (_is_warning(record) or _is_gap(record))]
    unknown = [record for record in records if record["outcome"] in {"error", NOT_RUN_ACROSS}]
    if bad:
        return {"verdict": "fail", "message": _say(bad, gpus)}
    if unknown:
        return {"verdict": "undecided", "message": _say(unknown, gpus)}
    judged = [*document.cases, *document.compiled, *document.mutants]  # a kernel is right where one of these says so
    if not any(record["outcome"] in {"pass", "caught"} for record in judged):
        return {"verdict": "undecided", "message": _say(judged, gpus) if judged else "no kernel was checked"}
    return {"verdict": "pass", "message": f"{gpus} GPUs: " * (gpus > 1) + _count(document)}


def _is_warning(record: dict[str, Any]) -> bool:
    """True for a fault on which no kernel depends."""
    return bool((record.get("evidence") or {}).get("severity") == "warning")


def _is_gap(record: dict[str, Any]) -> bool:
    """True for an automatic mutant that no case caught: it may be equivalent to the kernel."""
    return record["outcome"] == "missed" and bool(record.get("automatic"))


def _say(records: Sequence[dict[str, Any]], gpus: int) -> str:
    first = records[0]
    what = first.get("name") or " / ".join(
        str(first[key]) for key in ("kernel", "target", "case", "mutant") if first.get(key)
    )
    what += f" on {first['gpu']}" if gpus > 1 and first.get("gpu") else ""
    more = f" (and {len(records) - 1} more)" if len(records) > 1 else ""
    return f"{what}: {first['outcome']}: {first['message']}{more}"


def _count(document: Document) -> str:
    parts = []
    if document.cases:
        passed = [record["kernel"] for record in document.cases if record["outcome"] == "pass"]
        parts.append(f"{_many(len(set(passed)), 'kernel')} correct in {_many(len(passed), 'case')}")
    if document.speeds:
        outcomes = Counter(record["outcome"] for record in document.speeds)
        above = sum(record["outcome"] == "pass" and record.get("bar_met") is False for record in document.speeds)
        parts.append(f"{outcomes['pass'] - above} of {outcomes['pass'] + outcomes['slow']} within their bars")
        if above:
            parts.append(f"{above} within the allowance for noise")
    if document.compiled:
        compiled = [record["target"] for record in document.compiled if record["outcome"] == "pass"]
        parts.append(f"{_many(len(compiled), 'compilation')} for {_many(len(set(compiled)), 'target')}")
    if document.mutants:
        outcomes = Counter(record["outcome"] for record in document.mutants)
        caught, missed = outcomes["caught"], outcomes["missed"]
        parts.append(f"{f'{caught} of ' if missed else ''}{_many(caught + missed, 'mutant')} caught")
    return ", ".join(parts)


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
