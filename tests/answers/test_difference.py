"""The first line of ``diff``."""

from __future__ import annotations

from tests.answers.results import ERROR, FAIL, SKIP, result
from wheel_checks.answers.difference import answer_difference
from wheel_checks.answers.questions import GPU_CODE, LIBRARIES, OF_A_PAIR
from wheel_checks.model import CheckResult, Severity, Subject, Verdict

RULES = [rule for rules in OF_A_PAIR.values() for rule in rules]


def pair(*results: CheckResult) -> Subject:
    """A pair of wheels in which every rule passes but for ``results``."""
    given = {item.rule for item in results}
    rest = (result(rule) for rule in RULES if rule not in given)
    return Subject("demo 1.0: aarch64 against x86_64", "pair", results=(*results, *rest))


def test_it_says_what_was_compared() -> None:
    everything = "the two sides agree in accelerator, requirements, files, libraries and GPU code"
    assert answer_difference([pair()]).line == everything
    unread = pair(result("REL205", SKIP), result("REL207", SKIP))
    found = answer_difference([unread], [LIBRARIES, GPU_CODE])
    assert found.line == (
        "the two sides agree in accelerator, requirements and files (libraries and GPU code were not compared)"
    )
    assert found.claims[0].coverage == "accelerator, requirements and files"
    remark = pair(result("REL202", FAIL, Severity.WARNING, message="a file more"))
    assert answer_difference([remark]).line == f"{everything}, apart from 1 finding that is not an error: a file more"
    wrong = pair(result("REL201", FAIL, message="CUDA against CPU"))
    assert answer_difference([wrong]).line == "the two sides do not agree: CUDA against CPU"


def test_what_was_to_be_compared_and_was_not_leaves_it_open() -> None:
    unread = pair(result("REL205", SKIP, message="the GPU code of a.so was not read (--depth full)"))
    found = answer_difference([unread])
    assert found.line == "not proven: the GPU code of a.so was not read (--depth full)"
    (claim,) = found.claims
    assert (claim.verdict, claim.command) == (Verdict.UNDECIDED, "--depth full")
    assert claim.open == ("REL205: the GPU code of a.so was not read (--depth full)",)
    broken = Subject("demo", "pair", results=(result("WHL000", ERROR, message="no such file"),))
    assert answer_difference([broken]).line == "not proven: no such file"
    assert answer_difference([]).verdict is Verdict.UNDECIDED


def test_what_differs_on_purpose_is_compared_without_a_claim() -> None:
    releases = pair(*(result(rule, SKIP, message="1.0 and 2.0 are different releases") for rule in RULES))
    found = answer_difference([releases])
    assert (found.verdict, found.claims) == (Verdict.PASS, ())
    assert found.line == "the two sides were compared, and not judged: 1.0 and 2.0 are different releases"
