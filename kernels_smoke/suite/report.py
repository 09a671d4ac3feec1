"""The document as text for people: the verdict first, then what is wrong, then the tables."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kernels_smoke.suite.advice import shown
from kernels_smoke.suite.gpus import label as gpu_label

Record = dict[str, Any]

# What the runner of GitHub Actions would obey in a log: quoted errors hold words of others.
_COMMAND = re.compile(r"^[^\S\n]*::|##\[", re.MULTILINE)


def text(document: Record) -> str:
    """The whole report."""
    names = _gpu_names(document)
    parts = [
        _verdict(document),
        *(_finding(record, names) for record in _notable(document)),
        _speeds(document),
        _compiled(document),
        _mutants(document),
        _skips(document),
        _left_out(document),
        _replay(document),
    ]
    report = "\n".join(part for part in parts if part) + "\n"
    return _COMMAND.sub(lambda found: found[0].replace(":", "\\x3a").replace("#", "\\x23"), report)


def _verdict(document: Record) -> str:
    environment = document["environment"]
    gpus = environment.get("gpus") or []
    if document["mode"] == "compile":
        where = ", ".join(dict.fromkeys(record["target"] for record in document["compiled"])) or "no target"
    elif document["device"] == "interpret":
        where = "the interpreter"
    else:
        counts = Counter(gpu["name"] for gpu in gpus)
        where = ", ".join(f"{count} x {name}" if count > 1 else name for name, count in counts.items()) or "no GPU"
    versions = [f"{name} {environment[name]['version']}" for name in ("torch", "triton") if environment.get(name)] or [
        "no torch"
    ]
    seconds = f"{document['seconds']:.1f} s"
    line = f"{document['verdict'].upper()}  {where}, {', '.join(versions)}: {document['message']} ({seconds})"
    names = _gpu_names(document)
    measured = [
        f"      {names.get(reading['gpu'], 'measured')}: {rates}"
        for reading in document.get("readings") or []
        if (rates := ", ".join(_rates(reading.get("calibration") or {})))
    ]
    moved = [
        f"      {names.get(reading['gpu'], 'measured')}: {said}"
        for reading in document.get("readings") or []
        for said in _moved(reading)
    ]
    return "\n".join([line, *measured, *moved])


def _gpu_names(document: Record) -> dict[str, str]:
    """``GPU 1 (NVIDIA H200, GPU-...)`` by UUID, of a run on several GPUs; empty for a run on one."""
    gpus = document["environment"].get("gpus") or []
    return {gpu["uuid"]: gpu_label(gpu) for gpu in gpus} if len(gpus) > 1 else {}


def _moved(reading: Record) -> Iterator[str]:
    """Copies, calls from Python, and sustained load."""
    rates, soak = reading.get("rates") or {}, reading.get("soak")
    copies = (("host_to_device", "host to GPU"), ("device_to_host", "GPU to host"))
    said = [f"{label} {rates[name] / 1e9:.1f} GB/s" for name, label in copies if rates.get(name)]
    if calls := rates.get("launch_microseconds"):
        said.append(f"a call from Python takes {min(calls.values()):.0f} to {max(calls.values()):.0f} us")
    if said:
        yield ", ".join(said)
    if soak:
        change = f"{soak['first'] / 1e12:.0f} to {soak['last'] / 1e12:.0f} TF bf16, {100 * soak['fall']:.0f} % less"
        held = f"; {', '.join(soak['held_down_by'])}" if soak["held_down_by"] else ""
        yield f"{soak['asked_seconds']:g} s of load: from {change}{held}"


def _rates(calibration: Record) -> Iterator[str]:
    if calibration.get("bandwidth"):
        yield f"{calibration['bandwidth'] / 1e12:.2f} TB/s"
    for unit in ("bf16", "fp8"):
        if calibration.get(unit):
            yield f"{calibration[unit] / 1e12:.0f} TF {unit}"


def _notable(document: Record) -> list[Record]:
    records = [record for key in ("probes", "cases", "speeds", "compiled", "mutants") for record in document[key]]
    return [record for record in records if record["outcome"] not in {"pass", "caught", "skip"}]


def _finding(record: Record, gpus: Mapping[str, str]) -> str:
    name = record.get("name") or " / ".join(
        str(record[key]) for key in ("kernel", "target", "case", "mutant") if record.get(key)
    )
    if where := gpus.get(record.get("gpu", "")):
        name += f" on {where}"
    faults = record.get("faults") or []
    lines = [f"\n{record['outcome'].upper()}  {name}: {record.get('message', '')}".rstrip(": ")]
    lines += [f"      {fault['message']}" for fault in faults if fault["message"] not in record.get("message", "")]
    for label, value in (record.get("evidence") or {}).items():
        said = str(value).strip().splitlines() or [""]
        rest = said[1:] if len(said) <= 13 else [*said[1:7], "...", *said[-6:]]
        lines += [f"      {label}: {said[0]}", *(f"        {line}" for line in rest)]
    fixes = [*(record.get("fix") or []), *(fix for fault in faults for fix in fault.get("fix") or [])]
    lines += [f"      fix: {fix}" for fix in dict.fromkeys(map(shown, fixes))]
    return "\n".join(lines)


def _speeds(document: Record) -> str:
    rows = [
        (
            record["kernel"],
            record["case"],
            *([_gpu_names(document)[record["gpu"]].partition(" (")[0]] if _gpu_names(document) else []),
            f"{record['microseconds']:.1f}",
            f"{record['floor_microseconds']:.1f}",
            f"{record['floor_microseconds'] / record['microseconds']:.0%}",
            f"{record['versus'] or 'floor'} x {record['bar']:.2f}",
            f"{record['ratio']:.2f}",
            record["outcome"] if record.get("bar_met", True) else f"{record['outcome']}, above the bar",
        )
        for record in document["speeds"]
        if record.get("microseconds")
    ]
    gpu = ("GPU",) if _gpu_names(document) else ()
    return _table(("kernel", "case", *gpu, "us", "floor us", "of floor", "bar", "ratio", ""), rows)


def _compiled(document: Record) -> str:
    rows = [
        (
            record["kernel"],
            record["target"],
            str(record.get("case", "")),
            *(str(record.get(key, "")) for key in ("registers", "spill_bytes", "shared_bytes")),
            " ".join(record.get("instructions") or []),
            record["outcome"],
        )
        for record in document["compiled"]
    ]
    notes: dict[str, list[str]] = {}
    for record in document["compiled"]:
        if record["outcome"] == "pass" and record["message"]:
            notes.setdefault(record["message"], []).append(record["kernel"])
    table = _table(("kernel", "target", "case", "registers", "spills", "shared", "matrix", ""), rows)
    return "\n".join([table, *(f"note: {', '.join(dict.fromkeys(names))}: {note}" for note, names in notes.items())])


def _mutants(document: Record) -> str:
    rows = [
        (record["kernel"], record["mutant"], record["outcome"], record["caught_by"] or record["message"])
        for record in document["mutants"]
    ]
    return _table(("kernel", "mutant", "", "by"), rows)


def _skips(document: Record) -> str:
    skipped: dict[str, list[str]] = {}
    for key in ("probes", "cases", "speeds"):
        for record in document[key]:
            if record["outcome"] == "skip":
                skipped.setdefault(record["message"], []).append(record.get("name") or record["kernel"])
    return "\n".join(f"skipped: {', '.join(dict.fromkeys(names))}: {why}" for why, names in skipped.items())


def _left_out(document: Record) -> str:
    """What this level does not run, by the level that does."""
    lines = []
    records = document.get("left_out") or [] if document["cases"] else []  # nothing ran: what is said is why
    for level in dict.fromkeys(record["level"] for record in records):
        some = [record for record in records if record["level"] == level]
        cases = [record for record in some if record["cases"]]
        whole = [record["kernel"] for record in some if not record["cases"]]
        said = [f"all of {', '.join(whole)}"] if whole else []
        if cases:
            count = sum(len(record["cases"]) for record in cases)
            said.append(f"{count} {'case' if count == 1 else 'cases'} of {len(cases)} of the kernels above")
        lines.append(f"omitted at level {document['level']}, run by --level {level}: {'; '.join(said)}")
    return "\n".join(lines)


def _replay(document: Record) -> str:
    if not document["cases"] and not document["mutants"]:
        return ""
    return f"\nthe same inputs again: --seed {document['seed']}"


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    rows = list(rows)
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in [heads, *rows]
    ]
    return "\n" + "\n".join(lines)
