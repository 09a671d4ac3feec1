"""Every rule, fed with names, paths and versions that a stranger chose: no value leaves its argument."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.rules.case import Case
from tests.rules.test_rules import CASES
from tests.support.facts import judged
from tests.support.hostile import HEAD, HOSTILE, faults, planted, texts_of, vectors
from wheel_checks.commands import NoCommand
from wheel_checks.model import CheckResult
from wheel_checks.report.wording import fix_lines

SAMPLE = 40  # attacks on each case; `ci/hostile_rules.py` makes all of them
HOWS = ("replaced", "appended", "inside")
FAILING = [case for case in CASES if case.says]
Attack = tuple[str, str, str]


def attacks(case: Case, facts: Any, results: tuple[CheckResult, ...]) -> Iterator[Attack]:
    """Which text of the facts is replaced by which: first those that the commands and messages hold."""
    shown = [line for r in results if r.fix for line in (*r.fix.lines, r.fix.summary)] + [r.message for r in results]
    texts = [text for text in dict.fromkeys(texts_of(facts)) if text.strip()]
    texts.sort(key=lambda text: not any(text in line for line in shown))
    chosen = random.Random(case.id)
    used = [text for text in texts if any(text in line for line in shown)]
    everything = [(text, kind, how) for text in used or texts for kind in HOSTILE for how in HOWS]
    chosen.shuffle(everything)
    yield from everything


def check(case: Case, facts: Any, attack: Attack, seen: Counter[str]) -> list[str]:
    """The faults of one attack; ``seen`` counts what became of it."""
    text, kind, how = attack
    hostile = HOSTILE[kind]
    results = judged(case.rule, planted(facts, text, hostile, how), **case.expectations)
    seen["attacks"] += 1
    found = []
    for result in results:
        if "crashed" in result.message:
            seen["crashed"] += 1
        steps = result.fix.commands if result.fix else ()
        for step in steps:
            if isinstance(step, str):
                seen["text"] += 1
                continue
            reached = any(HEAD in word for argv in vectors(step) for word in argv)
            seen["commands"] += 1
            seen["reached"] += reached
            seen["refused"] += isinstance(step, NoCommand)
            found += [f"{case.id}, {attack}: {fault}" for fault in faults(step, hostile)]
        if result.fix:
            for line in fix_lines(result.fix):
                if not line.text.isprintable():
                    found.append(f"{case.id}, {attack}: {line.text!r} is shown")
    return found


@pytest.mark.parametrize("case", FAILING, ids=lambda case: case.id)
def test_no_value_leaves_its_argument(case: Case) -> None:
    facts = case.facts()
    results = judged(case.rule, facts, **case.expectations)
    seen: Counter[str] = Counter()
    wrong = []
    for number, attack in enumerate(attacks(case, facts, results)):
        if number >= SAMPLE:
            break
        wrong += check(case, facts, attack, seen)
    assert not wrong, wrong[0]
    assert seen["attacks"], "no string of the facts was attacked"
