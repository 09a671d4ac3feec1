"""The child in which one plug-in runs: it reads a :class:`Task` from standard input and answers in lines of JSON.

Whatever the plug-in prints goes to standard error, so that it cannot disturb the answers.
"""

import importlib
import io
import json
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from wheel_checks.decode.encode import encode
from wheel_checks.errors import WheelproofError
from wheel_checks.model import FactUnavailableError, Finding, Rule

DESCRIBE, CHECK, RENDER, PROBE = "describe", "check", "render", "probe"
MOST_FINDINGS = 1000  # that a rule gives of one subject; the report shows a hundred
LARGEST_TEXT = 32 << 20  # characters of a report
MOST_VALUES, LONGEST_VALUE = 1000, 10_000  # that a probe gives, and characters of each


@dataclass(frozen=True, slots=True)
class Task:
    """What a plug-in is to do: its entry point ``value``, and what the task works on."""

    do: str
    value: str
    rules: tuple[str, ...] = ()
    given: tuple[Any, ...] = ()


class PluginError(Exception):
    """What is wrong with a plug-in, as the end of a sentence that starts with its name."""


def main() -> int:
    """Do the task. Exit code 0 also for a plug-in that is at fault, which the answer says."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    task: Task = pickle.load(sys.stdin.buffer)  # noqa: S301  # our parent wrote it
    try:
        for answer in _TASKS[task.do](task):
            answers.write(json.dumps(answer) + "\n")
            answers.flush()
    except PluginError as error:
        answers.write(json.dumps({"fault": str(error)}) + "\n")
    answers.flush()
    return 0


def _describe(task: Task) -> Iterator[dict[str, Any]]:
    """What each rule says about itself; of a format or a probe only that it can be loaded."""
    rules = _load_rules(task.value)
    texts = ("id", "title", "kind", "severity", "why", "example", "fix", "audience", "tested")
    said = ({name: str(getattr(rule, name)) for name in texts} for rule in rules.values())
    sources = ([str(source) for source in rule.sources] for rule in rules.values())
    yield {"rules": [{**one, "sources": found} for one, found in zip(said, sources, strict=True)]}


def _check(task: Task) -> Iterator[dict[str, Any]]:
    rules = _load_rules(task.value)
    for rule_id in task.rules:
        yield {"rule": rule_id, **_judged(rules[rule_id], *task.given)}


def _judged(rule: Rule, facts: Any, expectations: Any) -> dict[str, Any]:
    """What a rule finds, or why it cannot say."""
    findings: list[Any] = []
    try:
        for finding in rule.check(facts, expectations):
            if not isinstance(finding, Finding):
                return {"crash": f"it gave a {type(finding).__name__}; expected a wheel_checks.Finding"}
            if len(findings) == MOST_FINDINGS:
                return {"crash": f"it gives more than {MOST_FINDINGS:,} findings of one subject"}
            findings.append(encode(finding))
    except FactUnavailableError as missing:
        return {"unavailable": encode(missing.unavailable)}
    except WheelproofError as error:
        return {"error": [error.what, error.expected, error.hint]}
    except BaseException as crash:  # noqa: BLE001  # SystemExit too: whatever it is, the check was not made
        return {"crash": _sentence(crash)}
    return {"findings": findings}


def _render(task: Task) -> Iterator[dict[str, Any]]:
    render = _function(task.value, "render")
    stream = _Bounded()
    try:
        render(*task.given, stream)
    except PluginError:
        raise
    except BaseException as crash:  # as above
        raise PluginError(f"crashed: {_sentence(crash)}") from crash
    yield {"text": stream.getvalue()}


class _Bounded(io.StringIO):
    """A stream that no endless loop fills the memory with."""

    def write(self, text: str) -> int:
        if self.tell() + len(text) > LARGEST_TEXT:
            raise PluginError(f"writes more than {LARGEST_TEXT:,} characters")
        return super().write(text)


def _probe(task: Task) -> Iterator[dict[str, Any]]:
    probe = _function(task.value, "probe")
    try:
        values = probe()
    except BaseException as crash:  # as above
        raise PluginError(f"crashed: {_sentence(crash)}") from crash
    if not isinstance(values, Mapping):
        raise PluginError(f"gave a {type(values).__name__}; expected a mapping of names to values")
    if len(values) > MOST_VALUES:
        raise PluginError(f"gave {len(values):,} values; the limit is {MOST_VALUES:,}")
    for name, value in values.items():
        if not isinstance(name, str) or not isinstance(value, str | int | float):
            raise PluginError(f"gave {name!r} a {type(value).__name__}; expected text, a number or a truth value")
    yield {"values": {name: str(value)[:LONGEST_VALUE] for name, value in values.items()}}


_TASKS = {DESCRIBE: _describe, CHECK: _check, RENDER: _render, PROBE: _probe}


def _load_rules(value: str) -> dict[str, Rule]:
    """The rules that importing the plug-in registers, by id."""
    from wheel_checks.registry import registered  # noqa: PLC0415  # formats and probes need none

    known = {rule.id for rule in registered()}
    _load(value)
    found = {rule.id: rule for rule in registered() if rule.id not in known}
    if not found:
        raise PluginError(f"registers no rules; expected functions with @wheel_checks.rule in {value}")
    return found


def _function(value: str, name: str) -> Callable[..., Any]:
    """The function that an entry point names, or that a module it names calls so."""
    found = _load(value)
    function: Callable[..., Any] | None = found if callable(found) else getattr(found, name, None)
    if not callable(function):
        raise PluginError(f"has no function {name} in {value}")
    return function


def _load(value: str) -> Any:
    module, _, attributes = value.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for attribute in filter(None, attributes.split(".")):
            found = getattr(found, attribute)
    except BaseException as error:  # an import may raise anything
        raise PluginError(f"cannot be imported: {_sentence(error)}") from error
    return found


def _sentence(error: BaseException) -> str:
    """The error, and where in the plug-in it was raised."""
    text = next(iter(str(error).strip().splitlines()), "")[:LONGEST_VALUE]
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None or isinstance(error, SyntaxError | ImportError):
        return said
    file = traceback.tb_frame.f_code.co_filename.rpartition("/")[2]
    return f"{said} ({file}, line {traceback.tb_lineno})"


if __name__ == "__main__":
    sys.exit(main())
