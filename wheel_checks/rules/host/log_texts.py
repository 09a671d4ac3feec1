"""What a log says: its texts are compared with those that the causes of the catalogue are known by."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from wheel_checks.commands import Command, Export, Options, Pipe, Step, Unset, WriteFile
from wheel_checks.data import load
from wheel_checks.facts.host.fabric_health import fabric_faults
from wheel_checks.facts.host.log.facts import Log
from wheel_checks.model import Evidence, Finding, Fix, Severity
from wheel_checks.phrases import joined
from wheel_checks.registry import rule
from wheel_checks.rules.host.cause import Layer, rule_id

RECOGNISED = "DOC901"
HARMLESS = "harmless:"

_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Recognition:
    """An entry of the table and the first line of the log that has one of its texts; ``groups`` are what it named."""

    entry: Mapping[str, Any]
    line: int
    quote: str
    groups: Mapping[str, str]

    @property
    def says(self) -> str:
        """The cause, in a sentence."""
        return " ".join(_filled(self.entry["says"], self.groups).split()).rstrip(" :")

    @property
    def harmless(self) -> bool:
        """Whether the text is known and means nothing."""
        return bool(self.entry["says"].startswith(HARMLESS))

    @property
    def fix(self) -> Fix:
        """What to do. Nothing that the log says is in a command, whoever wrote it."""
        return Fix(_filled(self.entry["fix"], self.groups), tuple(map(step_of, self.entry.get("commands", ()))))

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Small is the root: the deepest layer, then the first line."""
        return self.harmless, Layer[self.entry["layer"]], self.line


@lru_cache(maxsize=1)  # the rule and the headline ask for the same log
def recognise(log: Log) -> tuple[Recognition, ...]:
    """The causes whose texts the log has, the one that the others most likely follow from first."""
    found = []
    for number, entry in enumerate(load("log_texts")["entry"]):
        matches = [match for pattern in _patterns()[number] if (match := _first(pattern, log.text, entry))]
        if matches:
            first = min(matches, key=re.Match.start)
            line, quote = log.line_at(first.start())
            groups = {name: value for name, value in first.groupdict().items() if value}
            if "mask" in groups:
                groups["faults"] = joined(list(fabric_faults(int(groups["mask"], 16))))
            found.append(Recognition(entry, line, quote, groups))
    return tuple(sorted(found, key=lambda one: one.rank))


def _first(pattern: re.Pattern[str], text: str, entry: Mapping[str, Any]) -> re.Match[str] | None:
    """The first match; of a text with a health mask the first whose mask is as the entry wants it."""
    wanted = entry.get("health_mask")
    if wanted is None:
        return pattern.search(text)
    matches = pattern.finditer(text)
    return next((m for m in matches if bool(fabric_faults(int(m["mask"], 16))) is (wanted == "faulty")), None)


@rule(
    RECOGNISED,
    "the log has no text of a known cause",
    why="Most failures of an installation end in one of a few hundred texts, and each text has few causes. Of several "
    "in one log the deepest layer comes first, as in a diagnosis of the doctor: a driver that fails makes torch, and "
    "then Triton, fail. A text is no proof: the doctor, on that machine, has more to go by.",
    example="line 7: ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'",
    fix="Do what the finding says, or run `wheelproof doctor` on the machine of the log.",
    kind="log",
)
def recognised(log: Log, _expectations: Any) -> Iterator[Finding]:
    """One finding for each cause: the first is the root, the others are what else the log shows."""
    for number, one in enumerate(recognise(log)):
        pages = ", ".join(f"{rule_id(name)} ({name})" for name in one.entry["catalogue"])
        severity = Severity.NOTE if one.harmless else Severity.WARNING if number else Severity.ERROR
        yield Finding(
            one.says if one.harmless or not number else f"also in this log: {one.says}",
            (Evidence(f"line {one.line}", one.quote), Evidence("see", pages, "`wheelproof rules`")),
            one.fix,
            severity=severity,
        )


def step_of(row: Any) -> Step:
    """A step as the table has it: a vector, or a table whose first key names the step."""
    return Command(tuple(row)) if isinstance(row, list) else _STEPS[next(iter(row))](row, row.get("note", ""))


def _export(row: Mapping[str, Any], note: str) -> Export:
    value = row["value"]
    return Export(row["export"], value if isinstance(value, str) else tuple(value), note)


_STEPS: dict[str, Callable[[Mapping[str, Any], str], Step]] = {
    "run": lambda row, note: Command(tuple(row["run"]), note),
    "pipe": lambda row, note: Pipe(tuple(map(tuple, row["pipe"])), note),
    "export": _export,
    "unset": lambda row, note: Unset(tuple(row["unset"]), note),
    "write": lambda row, note: WriteFile(row["write"], tuple(row["lines"]), note, row["as_root"]),
    "options": lambda row, note: Options(tuple(row["of"]), tuple(row["options"]), note),
}


def _filled(text: str, groups: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda field: groups.get(field[1], ""), text)


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], ...], ...]:
    """The texts of every entry; a line is what ^ and $ go by."""
    return tuple(
        tuple(re.compile(text, re.MULTILINE) for text in entry["texts"]) for entry in load("log_texts")["entry"]
    )
