"""Every rule, fed with names, paths and versions that a stranger chose: no value leaves its argument."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import pytest

from tests.rules.case import Case
from tests.rules.test_rules import CASES, NEVER_FAIL
from tests.support import reports
from tests.support.hostile import HEAD, HOSTILE, faults, planted, texts_of, vectors
from tests.support.rendering import rendered, workflow_commands
from tests.support.wheel_facts import judged
from wheel_checks.catalogue import all_rules
from wheel_checks.fixes.commands import Command, NoCommand, Options, decoded, shell
from wheel_checks.model import Fix, Outcome, Report, Subject
from wheel_checks.report import FORMATS
from wheel_checks.report.wording import fix_lines

SAMPLE = 24  # attacks on each case; `ci/hostile_rules.py` makes all of them
HOWS = ("replaced", "appended", "inside")
FAILING = [case for case in CASES if case.says]
ACTING = re.compile("[\x00\x07\x1b\r\x9b\xad\u200b\u202e\u2066\ufe0f\ud800-\udfff]")
Attack = tuple[str, str, str]


def attacks(case: Case, facts: Any) -> Iterator[Attack]:
    """Which text of the facts is replaced by which, and how: those that the rule shows, or else all, at random."""
    results = judged(case.rule, facts, **case.expectations)
    shown = [line for r in results if r.fix for line in (*r.fix.lines, r.fix.summary)] + [r.message for r in results]
    texts = [text for text in dict.fromkeys(texts_of(facts)) if text.strip()]
    used = [text for text in texts if any(text in line for line in shown)] or texts
    everything = [(text, kind, how) for text in used for kind in HOSTILE for how in HOWS]
    random.Random(case.id).shuffle(everything)
    yield from everything


def check(case: Case, facts: Any, attack: Attack, seen: Counter[str], *, formats: Sequence[str] = ()) -> list[str]:
    """The faults of one attack, rendered in ``formats`` too; ``seen`` counts the outcomes."""
    text, kind, how = attack
    hostile = HOSTILE[kind]
    results = judged(case.rule, planted(facts, text, hostile, how), **case.expectations)
    seen["attacks"] += 1
    seen["crashed"] += any("crashed" in result.message for result in results)
    found: list[str] = []
    for fix in filter(None, (result.fix for result in results)):
        for step in fix.commands:
            seen["steps"] += 1
            seen["reached"] += any(HEAD in word for argv in vectors(step) for word in argv)
            seen["without a command"] += isinstance(step, NoCommand)
            found += faults(step, hostile)
        found += _shown_wrongly(fix)
    if formats:
        seen["rendered"] += len(formats)
        subject = Subject(hostile, "wheel", hostile, {"name": hostile, hostile: [hostile, {"a": hostile}]}, results)
        report = reports.report(subject)
        found += [fault for name in formats for fault in _obeyed(report, name)]
    return [f"{case.id}, {attack}: {fault}" for fault in found]


def _shown_wrongly(fix: Fix) -> Iterator[str]:
    """A command is shown exactly, with all others, or not at all."""
    lines = fix_lines(fix)
    shown = [line.text for line in lines if line.for_shell and not line.text.startswith("# ")]
    exact = [shell(step) for step in fix.commands if not isinstance(step, (Options, NoCommand))]
    if shown not in ([], exact):
        yield f"{shown} is shown, not {exact}"
    yield from (f"{line.text!r} is shown" for line in lines if not line.text.replace("\u00a0", " ").isprintable())


def _obeyed(report: Report, name: str) -> Iterator[str]:
    """Text that a terminal, a page or a runner of GitHub would execute in this format."""
    text = rendered(report, name, verbose=2)
    if "##[" in text or ACTING.search(text):
        yield f"{name} holds what acts: {text!r}"
    problems = sum(r.outcome in (Outcome.FAIL, Outcome.ERROR) for s in report.subjects for r in s.results)
    if len(workflow_commands(text)) != (problems if name == "github" else 0):
        yield f"{name} has other workflow commands than its own: {text!r}"
    if name == "json":
        fixes = [r["fix"] for s in json.loads(text)["subjects"] for r in s["results"] if "fix" in r]
        kept = [r.fix for s in report.subjects for r in s.results if r.fix]
        short = all(len(line) < 10_000 for fix in kept for line in fix.lines)  # a longer argument is not read back
        if short and [[*map(decoded, fix["steps"])] for fix in fixes] != [[*fix.commands] for fix in kept]:
            yield f"{name} does not give the steps back: {fixes}"


@pytest.mark.parametrize("case", FAILING, ids=lambda case: case.id)
def test_no_value_leaves_its_argument(case: Case) -> None:
    facts = case.facts()
    seen: Counter[str] = Counter()
    wrong = []
    for number, attack in enumerate(islice(attacks(case, facts), SAMPLE)):
        wrong += check(case, facts, attack, seen, formats=() if number else FORMATS)
    assert not wrong, wrong[0]
    assert seen["attacks"] == SAMPLE, "no string of the facts was attacked"


def test_every_rule_is_attacked() -> None:
    assert {case.rule for case in FAILING} == {rule.id for rule in all_rules()} - NEVER_FAIL


@pytest.mark.parametrize(
    ("rule", "text", "hostile", "command"),
    [
        ("WHL104", "3", "1;curl${IFS}-s", "python -m wheel tags --build '1;curl${IFS}-s' demo-1.0-3-py3-none-any.whl"),
        ("WHL104", "3", "--help", "python -m wheel tags --build=--help demo-1.0-3-py3-none-any.whl"),
        ("WHL507", "demo/liba.so", "-a;id.so", "patchelf --set-rpath '$ORIGIN' './-a;id.so'"),
        ("WHL507", "demo/liba.so", "../../x.so", "no command: '../../x.so' leads out of the folder"),
        ("WHL507", "demo/liba.so", "/lib/x.so", "no command: '/lib/x.so' leads out of the folder"),
        ("PIN101", "requirements.txt", "r-$(touch pwned).txt", "wheelproof pins rewrite 'r-$(touch pwned).txt'"),
        ("PIN101", "requirements.txt", "--journal=x", "wheelproof pins rewrite ./--journal=x"),
    ],
)
def test_attacks_that_got_through(rule: str, text: str, hostile: str, command: str) -> None:
    case = next(case for case in FAILING if case.rule == rule)
    results = judged(rule, planted(case.facts(), text, hostile, "replaced"), **case.expectations)

    assert [line for result in results[:1] if result.fix for line in result.fix.lines] == [command] * bool(command)


@pytest.mark.parametrize("name", ["torch @ https://evil.example/x.whl", "-r", "./x", "git+https://evil.example/x"])
def test_no_installer_gets_an_address_as_a_name(name: str) -> None:
    case = next(case for case in FAILING if case.rule == "WHL702")
    (result,) = judged("WHL702", planted(case.facts(), "demo", name, "replaced"), **case.expectations)

    assert result.fix is not None
    assert result.fix.lines == (f"no command: {name!r} is not the name of a package",)


def test_a_folder_with_a_space_is_removed_as_one() -> None:
    for rule in ("WHL710", "WHL712"):
        case = next(case for case in FAILING if case.rule == rule)
        facts = case.facts()
        (result,) = judged(rule, planted(facts, "/tmp/", "my env; rm x", "inside"), **case.expectations)
        assert result.fix is not None
        removed = [step.argv for step in result.fix.commands if isinstance(step, Command) and step.argv[0] == "rm"]
        assert removed
        assert all(len(argv) == (3 if rule == "WHL710" else 4) and "my env; rm x" in argv[-1] for argv in removed)
