"""The suite's report, ``kernels_smoke/1``, read into facts.

What it leaves out, and what it says beyond this, is no fault. A value of another type than expected, or an ending that
nobody has heard of, is one: what cannot be understood must not pass for a success.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

from wheel_checks.errors import FormatError
from wheel_checks.facts.kernels.facts import (
    Calibration,
    CaseRun,
    Compilation,
    Ending,
    Fault,
    FaultKind,
    Gpu,
    Measured,
    Note,
    Probe,
    SmokeDocument,
    SmokeEnvironment,
    SpeedRun,
)

SCHEMA = "kernels_smoke/1"
LARGEST = 64 << 20  # bytes; a deep run of all kernels has about 1 MB

Choice = TypeVar("Choice", bound=StrEnum)


def parse_smoke_document(data: bytes) -> SmokeDocument:
    """The document. Raises FormatError, naming the place, when it is not what the suite writes."""
    if len(data) > LARGEST:
        raise FormatError(f"the suite's report has {len(data):,} bytes", expected=f"at most {LARGEST:,}")
    try:
        values = json.loads(data.decode())
    except (ValueError, RecursionError) as error:  # malformed UTF-8 and JSON are ValueErrors
        raise FormatError(f"the suite's report is not valid JSON: {str(error)[:300]}", expected=SCHEMA) from None
    document = _Table(values, "")
    if (schema := document.text("schema")) != SCHEMA:
        raise FormatError(f"the suite's report is of the form {schema[:80]!r}", expected=SCHEMA)
    calibration = document.table("calibration")
    return SmokeDocument(
        mode=document.text("mode", required=True),
        device=document.text("device"),
        level=document.text("level"),
        seed=document.whole("seed") or 0,
        started=document.text("started"),
        seconds=document.number("seconds") or 0.0,
        verdict=document.text("verdict", required=True),
        message=document.text("message"),
        environment=_environment(document.table("environment")),
        calibration=_calibration(calibration) if calibration else None,
        probes=tuple(_probe(record) for record in document.tables("probes")),
        cases=tuple(_case(record) for record in document.tables("cases")),
        speeds=tuple(_speed(record) for record in document.tables("speeds")),
        compiled=tuple(_compilation(record) for record in document.tables("compiled")),
        plot=document.text("plot"),
    )


def _environment(table: _Table) -> SmokeEnvironment:
    return SmokeEnvironment(
        executable=table.text("executable"),
        python=table.text("python"),
        machine=table.text("machine"),
        torch=table.table("torch").text("version"),
        triton=table.table("triton").text("version"),
        driver=table.table("driver").text("version"),
        gpus=tuple(Gpu(gpu.text("name"), gpu.text("target")) for gpu in table.tables("gpus")),
    )


def _calibration(table: _Table) -> Calibration:
    return Calibration(table.number("bandwidth"), table.number("bf16"), table.number("fp8"))


def _probe(record: _Table) -> Probe:
    severity = record.table("evidence").text("severity")
    return Probe(
        record.text("name", required=True),
        record.choice("outcome", Ending),
        record.text("message"),
        tuple(note for note in record.notes() if note.label != "severity"),
        record.texts("fix"),
        mild=severity in ("note", "warning"),
    )


def _case(record: _Table) -> CaseRun:
    outputs = record.table("outputs")
    return CaseRun(
        record.text("kernel", required=True),
        record.text("case", required=True),
        record.choice("outcome", Ending),
        record.text("message"),
        tuple(_measured(name, outputs.table(name)) for name in outputs),
        record.notes(),
    )


def _measured(output: str, table: _Table) -> Measured:
    return Measured(output, table.number("error"), table.number("tolerance"), table.text("message"))


def _speed(record: _Table) -> SpeedRun:
    return SpeedRun(
        kernel=record.text("kernel", required=True),
        case=record.text("case", required=True),
        ending=record.choice("outcome", Ending),
        message=record.text("message"),
        time=record.number("microseconds"),
        floor=record.number("floor_microseconds"),
        peer=record.number("peer_microseconds"),
        versus=record.text("versus"),
        ratio=record.number("ratio"),
        bar=record.number("bar"),
        bar_met=record.flag("bar_met", default=True),
        bytes=record.whole("bytes") or 0,
        flops=record.whole("flops") or 0,
        held_down_by=record.texts("held_down_by"),
        notes=record.notes(),
    )


def _compilation(record: _Table) -> Compilation:
    return Compilation(
        kernel=record.text("kernel", required=True),
        target=record.text("target", required=True),
        ending=record.choice("outcome", Ending),
        message=record.text("message"),
        case=record.text("case"),
        function=record.text("function"),
        faults=tuple(
            Fault(fault.choice("fault", FaultKind), fault.text("message"), fault.texts("fix"))
            for fault in record.tables("faults")
        ),
        registers=record.whole("registers"),
        spill_bytes=record.whole("spill_bytes"),
        shared_bytes=record.whole("shared_bytes"),
        instructions=record.texts("instructions"),
        sha256=record.text("sha256"),
        notes=record.notes(),
    )


def _phrase(value: object) -> str:
    """A value for people: the items of a list or an object behind one another."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_phrase(item)}" for name, item in value.items())
    return ", ".join(map(_phrase, value)) if isinstance(value, list) else str(value)


class _Table:
    """One JSON object and the path to it. A key that is absent or null gives nothing; one of a wrong type raises."""

    def __init__(self, values: object, path: str) -> None:
        self._path = path
        if not isinstance(values, Mapping):
            self._refuse("", values, "an object")
        self._values: Mapping[str, Any] = values

    def __bool__(self) -> bool:
        return bool(self._values)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def text(self, key: str, *, required: bool = False) -> str:
        value = self._values.get(key)
        if value is None and not required:
            return ""
        if not isinstance(value, str) or (required and not value):
            self._refuse(key, value, "a string")
        return value

    def number(self, key: str) -> float | None:
        value = self._values.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            self._refuse(key, value, "a number")
        return value

    def whole(self, key: str) -> int | None:
        value = self._values.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            self._refuse(key, value, "a whole number")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._values.get(key)
        if value is not None and not isinstance(value, bool):
            self._refuse(key, value, "true or false")
        return default if value is None else value

    def choice(self, key: str, kind: type[Choice]) -> Choice:
        value = self._values.get(key)
        if not isinstance(value, str) or value not in list(kind):
            self._refuse(key, value, f"one of {', '.join(kind)}")
        return kind(value)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._values.get(key)
        if value is not None and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            self._refuse(key, value, "a list of strings")
        return tuple(value or ())

    def table(self, key: str) -> _Table:
        value = self._values.get(key)
        return _Table({} if value is None else value, self._place(key))

    def tables(self, key: str) -> Iterator[_Table]:
        value = self._values.get(key)
        if value is not None and not isinstance(value, list):
            self._refuse(key, value, "a list of objects")
        return (_Table(item, f"{self._place(key)}[{number}]") for number, item in enumerate(value or ()))

    def notes(self) -> tuple[Note, ...]:
        """The evidence of a record: values under names that people read."""
        evidence = self.table("evidence")._values  # noqa: SLF001  # of the same class
        return tuple(Note(name, _phrase(value)) for name, value in evidence.items() if value not in (None, ""))

    def _place(self, key: str) -> str:
        return f"{self._path}.{key}".strip(".")

    def _refuse(self, key: str, value: object, expected: str) -> NoReturn:
        shown = repr(value)
        shown = shown if len(shown) <= 80 else f"{shown[:80]}..."
        raise FormatError(f"{self._place(key) or 'the document'} in the suite's report is {shown}", expected=expected)
