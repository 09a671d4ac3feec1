"""Each claim of an answer is proven only when all of its obligations are discharged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.answers.results import ERROR, FAIL, SKIP, package, result, stack
from wheel_checks.answers.claims import loads, of_loading
from wheel_checks.answers.stack import StackQuestion, answer_stack
from wheel_checks.answers.wheels import WheelQuestion, answer_wheels
from wheel_checks.model import CheckResult, Claim, Outcome, Subject, Verdict

OF_LOADING = ("WHL503", "WHL506", "WHL521", "WHL522", "WHL530", "WHL526")
GB200 = StackQuestion("aarch64, Python 3.12", ("GB200",))


UNREAD = result("WHL521", SKIP, message="its libraries were not read (--depth links)")


def compiled(name: str, *results: CheckResult, read: bool = True, demand: str = "you ask for it") -> Subject:
    """A wheel with compiled files; its libraries were ``read``, and passed every rule but for ``results``."""
    plain = package(name, *results)
    given = {item.rule for item in results}
    facts = {**plain.facts, "native_members": {"count": 2, "known": 2}, "demanded_by": [demand]}
    facts["tags"] = ["cp312-cp312-manylinux_2_28_aarch64"]
    rest = tuple(result(rule) for rule in OF_LOADING if rule not in given)
    if not read:
        return replace(plain, facts=facts, results=(*plain.results, UNREAD))
    return replace(plain, facts={**facts, "links": {"symbols": 1}}, results=(*plain.results, *rest))


def claims(*packages: Subject) -> dict[str, Claim]:
    (found,) = answer_stack(GB200, stack(), packages)
    return {claim.name: claim for claim in found.claims}


def verdict(*packages: Subject) -> tuple[Verdict, str]:
    (found,) = answer_stack(GB200, stack(), packages)
    return found.verdict, found.line


def test_runs_is_made_of_three_claims() -> None:
    found = claims(compiled("vllm"))
    assert {name: claim.verdict for name, claim in found.items()} == dict.fromkeys(
        ("installs", "loads", "has code"), Verdict.PASS
    )
    assert found["loads"].obligations == OF_LOADING
    assert found["loads"].coverage == "the libraries of 1 of 1 compiled wheels were read"


def test_libraries_that_were_not_read_leave_it_open_and_name_the_option() -> None:
    unread = compiled("vllm", read=False)
    assert verdict(unread) == (
        Verdict.UNDECIDED,
        "not proven: vllm: its libraries were not read (--depth links)",
    )
    loaded = claims(unread)["loads"]
    assert (loaded.verdict, loaded.command) == (Verdict.UNDECIDED, "--depth links")
    assert loaded.open == ("WHL521: vllm: its libraries were not read (--depth links)",)
    assert claims(unread)["has code"].verdict is Verdict.PASS


@pytest.mark.parametrize("rule", OF_LOADING)
@pytest.mark.parametrize(
    ("outcome", "expected"), [(FAIL, Verdict.FAIL), (ERROR, Verdict.UNDECIDED), (SKIP, Verdict.UNDECIDED)]
)
def test_each_obligation_of_loading(rule: str, outcome: Outcome, expected: Verdict) -> None:
    one = compiled("vllm", result(rule, outcome))
    assert (claims(one)["loads"].verdict, verdict(one)[0]) == (expected, expected)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"tags": ["cp312-cp312-linux_aarch64"]}, "WHL503"),
        ({"links": {}}, "WHL526"),
        ({"links": {"stable_abi_unread": ["a.abi3.so"]}}, "WHL530"),
    ],
)
def test_a_rule_that_does_not_apply_is_no_obligation(changes: dict[str, object], rule: str) -> None:
    """No tag promises a glibc, no symbol was to be looked up, or those for the stable ABI are far inside a file."""
    one = compiled("vllm", result(rule, SKIP))
    one = replace(one, facts={**one.facts, **changes})
    assert (loads([one]).verdict, rule in of_loading(one)) == (Verdict.PASS, False)
    assert ("but not what 1 file for the stable ABI uses of it" in loads([one]).coverage) == (rule == "WHL530")


def test_a_finding_about_one_file_counts_although_another_was_not_read() -> None:
    one = compiled("vllm", result("WHL530", FAIL))
    assert (
        loads([replace(one, facts={**one.facts, "links": {"stable_abi_unread": ["b.abi3.so"]}})]).verdict
        is Verdict.FAIL
    )


@pytest.mark.parametrize("rule", OF_LOADING)
def test_a_silenced_rule_discharges_nothing(rule: str) -> None:
    silenced = compiled("vllm")
    silenced = replace(silenced, results=tuple(item for item in silenced.results if item.rule != rule))
    assert verdict(silenced) == (Verdict.UNDECIDED, f"not proven: {rule} was not run")


@pytest.mark.parametrize(
    ("name", "demand", "requirements", "expected"),
    [
        ("numpy", "pandas requires it", [], Verdict.PASS),  # compiled for its platform tag alone
        ("xformers", "vllm requires it", ["torch==2.11.0"], Verdict.UNDECIDED),
        ("torchlike", "vllm requires it", ["torch-geometric"], Verdict.PASS),
        ("torch", "you ask for it", [], Verdict.PASS),  # its symbols are those of a table
    ],
)
def test_which_wheels_must_be_read(name: str, demand: str, requirements: list[str], expected: Verdict) -> None:
    one = compiled(name, read=False, demand=demand)
    one = replace(one, facts={**one.facts, "requirements": requirements, "package": name})
    assert loads([one]).verdict is expected


def test_what_was_not_named_of_the_system_is_a_condition() -> None:
    asked = replace(GB200, needs="driver 580 or newer and glibc 2.28 or newer")
    (found,) = answer_stack(asked, stack(), [compiled("vllm")])
    assert found.line == "runs on GB200 with driver 580 or newer and glibc 2.28 or newer"
    drivers = [result(rule) for rule in ("WHL605", "WHL606", "WHL607")]
    named = replace(asked, needs="glibc 2.28 or newer", driver="580")
    (found,) = answer_stack(named, stack(), [compiled("vllm", *drivers)])
    assert found.line == "runs on GB200 with driver 580 and glibc 2.28 or newer"


def test_a_wheel_runs_only_if_its_libraries_were_read() -> None:
    question = WheelQuestion("", ("GB200",))
    (read,) = answer_wheels(question, [compiled("vllm")])
    (unread,) = answer_wheels(question, [compiled("vllm", read=False)])
    assert [claim.name for claim in read.claims] == ["has code", "loads"]
    assert [claim.name for claim in unread.claims] == ["has code"]
    assert (" runs on GB200" in read.line, " has code for GB200" in unread.line) == (True, True)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"native_members": {"count": 0, "known": 0}}, "has no machine code; the torch of the stack decides"),
        ({"native_members": {"count": 2, "known": 2}}, "has no code for any GPU, so nothing is missing for GB200"),
        (
            {"gpu_code": {"products": [], "compiled_at_first_use": {"compilers": [{"member": "bin/ptxas"}]}}},
            "has no code for any GPU, and contains a compiler that knows GB200",
        ),
    ],
)
def test_a_wheel_without_code_for_a_gpu(facts: dict[str, object], expected: str) -> None:
    plain = package("triton", runs={})
    (found,) = answer_wheels(WheelQuestion("", ("GB200",)), [replace(plain, facts={**plain.facts, **facts})])
    assert (found.verdict, found.line.endswith(expected)) == (Verdict.PASS, True), found.line
