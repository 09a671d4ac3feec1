"""Compares a log with the known texts of the catalogue's causes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

from wheel_checks.data import load
from wheel_checks.facts.host.gpus.fabric_health import fabric_faults
from wheel_checks.facts.host.log.facts import Log
from wheel_checks.facts.host.log.failures import failures
from wheel_checks.facts.host.log.host import refutes_cpu_build
from wheel_checks.facts.host.log.installs import MANAGERS, manager_of, torch_was_harmed
from wheel_checks.fixes.commands import Command, Export, Options, Pipe, Step, Unset, WriteFile
from wheel_checks.model import Evidence, Finding, Fix, Severity
from wheel_checks.phrases import joined
from wheel_checks.registry import rule
from wheel_checks.rules.host.cause import Layer, rule_id

UNRECOGNISED = "DOC901"
HARMLESS = "harmless:"
MORE = "Provide more of the log, from its beginning: the first error says most, the last line least."

_NO_CUDA = "Torch not compiled with CUDA enabled"
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class Recognition:
    """An entry of the table and the first line of the log that has one of its texts; ``groups`` are named parts of it.

    ``manager`` is the package manager of the system that wrote the log.
    """

    entry: Mapping[str, Any]
    line: int
    quote: str
    groups: Mapping[str, str]
    manager: str = ""

    @property
    def rule(self) -> str:
        """The id of the cause: that of the doctor's rule, or one for logs alone."""
        return rule_of(self.entry)

    @property
    def catalogue(self) -> str:
        """The likeliest entry of the catalogue, "" for a cause that it does not have."""
        return "" if "rule" in self.entry else str(self.entry["catalogue"][0])

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
        """The advice. No text of the log is part of a command, since logs are not trusted."""
        steps = (step_of(row, self.manager) for row in self.entry.get("commands", ()))
        return Fix(_filled(self.entry["fix"], self.groups), tuple(steps))

    @property
    def rank(self) -> tuple[bool, int, int]:
        """Small is the root: the deepest layer, then the first line."""
        return self.harmless, Layer[self.entry["layer"]], self.line

    @property
    def finding(self) -> Finding:
        """The cause as a finding, with the line that shows it."""
        own = [self.rule] if "rule" in self.entry else []
        pages = ", ".join([*own, *map(rule_id, self.entry.get("catalogue", ()))])
        return Finding(
            self.says,
            (Evidence(f"line {self.line}", self.quote), Evidence("see", pages, "`wheelproof rules`")),
            self.fix,
            severity=Severity.NOTE if self.harmless else Severity.ERROR,
        )


@lru_cache(maxsize=1)  # each rule of a log asks for the same log
def recognise(log: Log) -> tuple[Recognition, ...]:
    """The causes whose texts the log has, the likeliest root cause first; specific causes replace general ones."""
    found = []
    for number, entry in enumerate(load("log_texts")["entry"]):
        first = _first(_patterns()[number], log, entry.get("health_mask", ""))
        if first is not None and (entry.get("judged") is None or _JUDGES[entry["judged"]](log)):
            line, quote = log.line_at(first.start())
            groups = {name: value for name, value in first.groupdict().items() if value}
            if "health_mask" in entry:
                groups["faults"] = joined(list(fabric_faults(int(groups["mask"], 16))))
            found.append(Recognition(entry, line, quote, groups))
    replaced = {name for one in found for name in one.entry.get("instead_of", ())}
    kept = [one for one in found if one.entry.get("instead_of") or one.catalogue not in replaced]
    manager = manager_of(log) if kept else ""
    return tuple(replace(one, manager=manager) for one in sorted(kept, key=lambda one: one.rank))


@rule(
    UNRECOGNISED,
    "every failure in the log has a known cause",
    why="Most failures of an installation end in one of a few hundred texts, and each text has few causes. Of several "
    "in one log the deepest layer is reported first, as the doctor does: a driver that fails makes torch, and then "
    "Triton, fail. A text is no proof: the doctor, run on that host, has more evidence. If no text is known, or the "
    "known ones are harmless and another line looks like a failure, the answer is undecided (exit code 3).",
    example="none of 12 lines contains an error text with a known cause",
    fix="Provide more of the log, or run `wheelproof doctor` on the host of the log.",
    kind="log",
)
def unrecognised(log: Log, _expectations: Any) -> Iterator[Finding]:
    """The cause of the failure is not known: the log is undecided, with the first such line and the next step."""
    reason, evidence = not_recognised(log)
    if reason:
        steps = (Command(("wheelproof", "doctor"), "on the host of the log"),)
        yield Finding(reason, evidence, Fix(MORE, steps), undecided=True)


@lru_cache(maxsize=1)  # the rule and the headline need it
def not_recognised(log: Log) -> tuple[str, tuple[Evidence, ...]]:
    """Why the log is undecided, with the first line that looks like a failure; "" if it is decided."""
    known = recognise(log)
    if not all(one.harmless for one in known):
        return "", ()
    harmless = [text for row in load("log_texts")["entry"] if row["says"].startswith(HARMLESS) for text in row["texts"]]
    line, quote = next(failures(log, harmless), (0, ""))
    evidence = (Evidence(f"line {line}", quote),) if line else ()
    if not known:
        return nothing_known(log), evidence
    if line:
        return f"line {line} looks like a failure, and its cause is not known", evidence
    return ("nothing failed in the part of the log that was read" if log.cut else ""), ()


def nothing_known(log: Log) -> str:
    """Why nothing of a log is known, in a sentence."""
    if log.is_empty:
        return "the log is empty"
    return f"none of {log.line_count:,} lines contains an error text with a known cause"


def rule_of(entry: Mapping[str, Any]) -> str:
    """The id of the rule of an entry of the table."""
    return str(entry["rule"]) if "rule" in entry else rule_id(entry["catalogue"][0])


def _check_of(identity: str) -> Callable[[Log, Any], Iterator[Finding]]:
    def check(log: Log, _expectations: Any) -> Iterator[Finding]:
        """The cause, if a text of its entry is in the log."""
        return (one.finding for one in recognise(log) if one.rule == identity)

    return check


def _register() -> None:
    """The rules of causes that are known from logs alone."""
    for entry in load("log_texts")["entry"]:
        if {"title", "why", "example", "sources"} <= entry.keys():  # tests name a row that lacks some
            why = f"{entry['why']} Sources: {'; '.join(entry['sources'])}."
            identity = rule_of(entry)
            rule(identity, entry["title"], why=why, example=entry["example"], fix=entry["fix"], kind="log")(
                _check_of(identity)
            )


_register()


def steps_of(row: Any) -> tuple[Step, ...]:
    """All that a step of the table may become."""
    return tuple(dict.fromkeys(step_of(row, manager) for manager in MANAGERS))


def step_of(row: Any, manager: str = "apt") -> Step:
    """A step as the table has it: a vector, or a table whose first key names the step."""
    if isinstance(row, list):
        return Command(tuple(row))
    name, note = next(iter(row)), row.get("note", "")
    if name == "install":
        return Command((*_INSTALL[manager], *load("log_texts")["install"][row[name]][manager]), note)
    if name == "search":
        return Command((*_SEARCH[manager], row[name]), note)
    return _STEPS[name](row, note)


def _export(row: Mapping[str, Any], note: str) -> Export:
    value = row["value"]
    return Export(row["export"], value if isinstance(value, str) else tuple(value), note)


def _torch(row: Mapping[str, Any], note: str) -> Pipe:
    """The installed release of torch again, with its dependencies and dependents: no other version is chosen.

    ``torch`` is the build, "" for the installed one; of ``companions`` the matching releases are installed.
    """
    build, companions = row["torch"], row.get("companions", [])
    names = "torch" if companions else "torch|torchvision|torchaudio"
    kept = ("sed", "-nE", rf"s/^({names})==([0-9.]+).*/\1==\2/p") if build else ("grep", "-E", "^torch==")
    backend = [f"--torch-backend={build}"] if build else []
    again = [f"--reinstall-package={name}" for name in ("torch", *companions)] if build else []
    return Pipe(
        (("uv", "pip", "freeze"), kept, ("uv", "pip", "install", *backend, *again, "-r", "-", *companions)), note
    )


_INSTALL = {
    "apt": ("sudo", "apt-get", "install", "-y"),
    "dnf": ("sudo", "dnf", "install", "-y"),
    "zypper": ("sudo", "zypper", "install", "-y"),
    "apk": ("sudo", "apk", "add"),
}
_SEARCH = {
    "apt": ("apt-cache", "search"),
    "dnf": ("dnf", "search"),
    "zypper": ("zypper", "search"),
    "apk": ("apk", "search"),
}
_JUDGES: dict[str, Callable[[Log], bool]] = {
    "torch was harmed": torch_was_harmed,
    "blocks do not refute it": lambda log: _NO_CUDA in log.text or not refutes_cpu_build(log),
}
_STEPS: dict[str, Callable[[Mapping[str, Any], str], Step]] = {
    "run": lambda row, note: Command(tuple(row["run"]), note),
    "pipe": lambda row, note: Pipe(tuple(map(tuple, row["pipe"])), note),
    "export": _export,
    "unset": lambda row, note: Unset(tuple(row["unset"]), note),
    "write": lambda row, note: WriteFile(row["write"], tuple(row["lines"]), note, row["as_root"]),
    "options": lambda row, note: Options(tuple(row["of"]), tuple(row["options"]), note),
    "torch": _torch,
}


def _filled(text: str, groups: Mapping[str, str]) -> str:
    return _FIELD.sub(lambda field: groups.get(field[1], ""), text)


@dataclass(frozen=True, slots=True)
class _Texts:
    """One of ``any`` must be in the log, each of ``all`` besides, and none of ``none``."""

    any: tuple[re.Pattern[str], ...]
    all: tuple[re.Pattern[str], ...]
    none: tuple[re.Pattern[str], ...]


def _first(texts: _Texts, log: Log, health: str) -> re.Match[str] | None:
    """The first match of an entry in the log; None if the entry does not apply.

    If the entry is about a health mask, the first that is "healthy" or "faulty", as ``health`` says.
    """
    matches = [match for pattern in texts.any if (match := _search(pattern, log.text, health))]
    if not matches or not all(pattern.search(log.text) for pattern in texts.all):
        return None
    return None if any(pattern.search(log.text) for pattern in texts.none) else min(matches, key=re.Match.start)


def _search(pattern: re.Pattern[str], text: str, health: str) -> re.Match[str] | None:
    if not health:
        return pattern.search(text)
    matches = pattern.finditer(text)
    return next((m for m in matches if bool(fabric_faults(int(m["mask"], 16))) is (health == "faulty")), None)


@cache
def _patterns() -> tuple[_Texts, ...]:
    """The texts of every entry; ^ and $ match at lines."""

    def compiled(texts: list[str]) -> tuple[re.Pattern[str], ...]:
        return tuple(re.compile(text, re.MULTILINE) for text in texts)

    return tuple(
        _Texts(compiled(entry["texts"]), compiled(entry.get("with", [])), compiled(entry.get("without", [])))
        for entry in load("log_texts")["entry"]
    )
