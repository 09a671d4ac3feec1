"""The first line of ``stack`` says "runs" only when every rule that answers was run and passed on every package."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from tests.answers.results import ERROR, FAIL, OF_WHEELS, SKIP, package, result, stack, without
from wheel_checks.answers.questions import (
    OF_A_GPU,
    OF_A_LOCK,
    OF_A_PACKAGE,
    OF_THE_STACK,
    OPEN_BY_A_WARNING,
    of_gpu_and_driver,
)
from wheel_checks.answers.stack import StackQuestion, answer_stack
from wheel_checks.catalogue import all_rules
from wheel_checks.model import Answer, Audience, FailOn, Outcome, Report, Severity, Subject, Verdict

GB200 = StackQuestion("aarch64, Python 3.12", ("GB200",))
NO_GPU = StackQuestion("aarch64, Python 3.12")


def answer(*packages: Subject, asked: StackQuestion = GB200, whole: Subject | None = None) -> Answer:
    (found,) = answer_stack(asked, whole or stack(), packages)
    return found


def test_yes() -> None:
    found = answer(package("torch"), package("vllm"))
    assert (found.verdict, found.line) == (Verdict.PASS, "runs on GB200")


def test_without_gpu_code_nothing_is_said_to_run() -> None:
    found = answer(package("numpy", runs={}), package("requests", runs={}))
    assert (found.verdict, found.line) == (
        Verdict.PASS,
        "installs on aarch64, Python 3.12; nothing in it has code for a GPU",
    )


def test_no_names_the_package_and_what_it_lacks() -> None:
    found = answer(package("torch"), package("onnxruntime-gpu", result("WHL601", FAIL)))
    assert (found.verdict, found.line) == (
        Verdict.FAIL,
        "does not run on GB200: onnxruntime-gpu has no code for it",
    )
    assert found.decided_by == ("WHL601",)


def test_a_cpu_build_is_one_reason_and_not_three() -> None:
    cpu = package(
        "ctranslate2", result("STK101", FAIL), result("WHL601", FAIL), result("WHL203", FAIL, Severity.WARNING)
    )
    assert answer(cpu).line == "does not run on GB200: ctranslate2 is a CPU build"
    assert answer(cpu).reasons == ("ctranslate2 is a CPU build",)


def test_a_root_fact_that_weighs_less_hides_nothing() -> None:
    found = answer(package("demo", result("STK101", SKIP), result("WHL601", FAIL)))
    assert (found.verdict, found.reasons) == (Verdict.FAIL, ("demo has no code for it",))
    found = answer(package("demo", result("WHL601", FAIL, Severity.WARNING), result("WHL602", ERROR, message="unread")))
    assert (found.verdict, found.reasons) == (Verdict.UNDECIDED, ("demo: unread",))


def test_what_would_be_built_is_not_proven() -> None:
    sdist = Subject(
        "flash-attn 2.8.3 for cp312 aarch64",
        "package",
        facts={"package": "flash-attn", "distribution": "sdist"},
        results=(
            result("STK124"),
            result("STK102", ERROR, message="flash-attn 2.8.3 would be built on the target: it has no wheel"),
            result("STK101", SKIP, message="there is no wheel to read"),
            result("STK103"),
        ),
    )
    for asked in (GB200, NO_GPU):
        found = answer(package("torch"), sdist, asked=asked)
        assert found.verdict is Verdict.UNDECIDED
        assert found.line == "not proven: flash-attn would be built on the target from source"


def test_without_a_gpu_it_says_what_was_not_asked() -> None:
    assert answer(without(package("torch"), "WHL601"), asked=NO_GPU).line == (
        "installs on aarch64, Python 3.12; no GPU was specified: --gpu GB200 checks whether it runs"
    )
    assert answer(package("torch", result("STK103", FAIL)), asked=NO_GPU).line == (
        "does not install on aarch64, Python 3.12: torch has no file for it"
    )
    two_majors = stack(result("STK104", FAIL, message="the stack has the runtimes of CUDA 12 and 13"))
    assert answer(package("torch"), asked=NO_GPU, whole=two_majors).line == (
        "does not fit together on aarch64, Python 3.12: the stack has the runtimes of CUDA 12 and 13"
    )


# The last gate: whatever a rule that answers says but "pass", the first line is no "runs".

DECIDING = [*(("stack", rule) for rule in OF_THE_STACK), *(("wheel", rule) for rule in (*OF_A_PACKAGE, *OF_A_GPU))]
WAYS = [(outcome, severity) for outcome in (FAIL, SKIP, ERROR) for severity in Severity]


def with_one(kind: str, rule: str, outcome: Outcome, severity: Severity) -> Answer:
    wrong = result(rule, outcome, severity)
    if kind == "stack":
        return answer(package("torch"), package("vllm"), whole=stack(wrong))
    return answer(package("torch"), package("vllm", wrong))


@pytest.mark.parametrize(("kind", "rule"), DECIDING, ids=lambda value: value)
@pytest.mark.parametrize(("outcome", "severity"), WAYS, ids=str)
def test_one_rule_that_does_not_pass(kind: str, rule: str, outcome: Outcome, severity: Severity) -> None:
    found = with_one(kind, rule, outcome, severity)
    if outcome is FAIL and severity is Severity.ERROR:
        assert (found.verdict, found.sentence) == (Verdict.FAIL, "does not run on GB200")
    elif outcome is not FAIL or rule in OPEN_BY_A_WARNING:
        assert (found.verdict, found.sentence) == (Verdict.UNDECIDED, "not proven")
    else:  # a warning is a remark
        assert (found.verdict, found.sentence) == (Verdict.PASS, "runs on GB200")


@pytest.mark.parametrize(("kind", "rule"), DECIDING, ids=lambda value: value)
@pytest.mark.parametrize("asked", [GB200, NO_GPU], ids=["a GPU", "no GPU"])
def test_a_rule_that_was_not_run(kind: str, rule: str, asked: StackQuestion) -> None:
    whole, wheel = stack(), package("torch")
    whole, wheel = (without(whole, rule), wheel) if kind == "stack" else (whole, without(wheel, rule))
    found = answer(wheel, asked=asked, whole=whole)
    if rule in OF_A_GPU and asked is NO_GPU:
        assert found.verdict is Verdict.PASS
    else:
        assert (found.verdict, found.sentence) == (Verdict.UNDECIDED, "not proven")
        assert f"{rule} was not run" in found.line


def test_every_combination_of_the_rules_of_a_wheel() -> None:
    starts = {Verdict.PASS: "runs on", Verdict.FAIL: "does not run on", Verdict.UNDECIDED: "not proven: "}
    for outcomes in product(Outcome, repeat=len(OF_WHEELS)):
        found = answer(package("torch", *(result(rule, o) for rule, o in zip(OF_WHEELS, outcomes, strict=True))))
        is_open = bool({SKIP, ERROR} & set(outcomes))
        expected = Verdict.FAIL if FAIL in outcomes else Verdict.UNDECIDED if is_open else Verdict.PASS
        assert found.verdict is expected, outcomes
        assert found.line.startswith(starts[expected]), outcomes


def test_an_error_of_any_rule_is_a_no_and_what_could_not_be_checked_leaves_it_open() -> None:
    assert answer(package("torch", result("WHL521", FAIL))).verdict is Verdict.FAIL
    assert answer(package("torch", result("WHL521", ERROR))).verdict is Verdict.UNDECIDED
    assert answer(package("torch", result("WHL521", SKIP))).verdict is Verdict.PASS
    assert answer(package("torch", result("WHL521", FAIL, Severity.WARNING))).verdict is Verdict.PASS


def test_what_only_a_publisher_can_mend_is_no_reason() -> None:
    wrong = result("WHL121", FAIL, audience=Audience.PUBLISHER)
    assert answer(package("torch", wrong)).verdict is Verdict.PASS
    assert answer(package("torch", replace(wrong, outcome=ERROR))).verdict is Verdict.UNDECIDED


def test_nothing_was_resolved() -> None:
    assert answer().line == "not proven: nothing was resolved"
    unread = Subject("demo", "stack", results=(result("WHL000", ERROR, message="no answer from the index"),))
    assert answer(whole=unread).line == "not proven: no answer from the index"


def test_further_subjects_count() -> None:
    indexes = Subject("the indexes", "indexes", results=(result("WHL303", FAIL, message="two files of one name"),))
    (found,) = answer_stack(GB200, stack(), [package("torch")], [indexes])
    assert found.line == "does not run on GB200: two files of one name"


def test_what_several_packages_lack_is_one_reason() -> None:
    names = ("torch", "vllm", "base")
    assert answer(*(package(name, result("WHL601", FAIL)) for name in names[:2])).line == (
        "does not run on GB200: torch and vllm have no code for it"
    )
    two = [package(name, result("WHL601", FAIL), result("WHL521", FAIL, message="no libX.so")) for name in names]
    assert answer(*two).line == (
        "does not run on GB200: torch, vllm and 1 more have no code for it; torch, vllm and 1 more: no libX.so"
    )


def test_what_was_asked_for_is_named_first() -> None:
    asked = package("vllm", result("WHL601", FAIL))
    asked = replace(asked, facts={**asked.facts, "demanded_by": ["you ask for vllm"]})
    others = [package(name, result("WHL601", FAIL)) for name in ("a", "b")]
    assert answer(*others, asked).line == "does not run on GB200: vllm, a and 1 more have no code for it"


# With a driver.

DRIVER_535 = StackQuestion("x86_64, Python 3.12", ("H100",), "535")
OF_DRIVERS = ("WHL605", "WHL606", "WHL607")


def test_the_driver_is_part_of_the_answer() -> None:
    good = package("torch", *map(result, OF_DRIVERS))
    assert answer(good, asked=DRIVER_535).line == "runs on H100 with driver 535"
    old = result("WHL605", FAIL, message="CUDA 13.0 needs driver 580 or later")
    bad = [package(name, old, result("WHL606"), result("WHL607")) for name in ("torch", "triton", "vllm")]
    assert answer(*bad, asked=DRIVER_535).line == (
        "does not run on H100 with driver 535: torch, triton and 1 more: CUDA 13.0 needs driver 580 or later"
    )


@pytest.mark.parametrize("rule", OF_DRIVERS)
@pytest.mark.parametrize("outcome", [SKIP, ERROR])
def test_a_rule_about_drivers_that_does_not_pass(rule: str, outcome: Outcome) -> None:
    others = [result(other) for other in OF_DRIVERS if other != rule]
    assert answer(package("torch", *others, result(rule, outcome)), asked=DRIVER_535).verdict is Verdict.UNDECIDED
    assert answer(package("torch", *others), asked=DRIVER_535).line == f"not proven: {rule} was not run"


def test_a_driver_without_a_gpu() -> None:
    asked = StackQuestion("x86_64, Python 3.12", driver="535")
    assert answer(package("torch", result("WHL605")), asked=asked).verdict is Verdict.PASS
    assert answer(package("torch", result("WHL605", FAIL)), asked=asked).sentence == "does not run with driver 535"


def test_a_host_without_a_driver() -> None:
    asked = StackQuestion("x86_64, Python 3.12", without_driver=True)
    assert answer(package("torch", result("WHL608")), asked=asked).sentence.startswith(
        "installs on x86_64, Python 3.12 and imports without a driver; no GPU was specified"
    )
    needs = result("WHL608", FAIL, message="torch/_C.so needs libcuda.so.1")
    assert answer(package("torch", needs), asked=asked).line == (
        "does not import without a driver: torch: torch/_C.so needs libcuda.so.1"
    )
    both = replace(DRIVER_535, without_driver=True)
    good = package("torch", result("WHL608"), *map(result, OF_DRIVERS))
    assert answer(good, asked=both).line == "runs on H100 with driver 535 and imports without a driver"
    assert answer(package("torch", *map(result, OF_DRIVERS)), asked=both).line == "not proven: WHL608 was not run"


# Several GPUs.

V100_AND_H100 = StackQuestion("x86_64, Python 3.12", ("V100", "H100"))


def test_each_gpu_has_its_answer() -> None:
    torch = package("torch", result("WHL601", FAIL), runs={"V100": "none", "H100": "native"})
    found = answer_stack(V100_AND_H100, stack(), [torch, package("base")])
    assert [(a.verdict, a.line) for a in found] == [
        (Verdict.FAIL, "does not run on V100: torch has no code for it"),
        (Verdict.PASS, "runs on H100"),
    ]


def test_gpus_with_one_answer_share_a_line() -> None:
    (found,) = answer_stack(V100_AND_H100, stack(), [package("torch")])
    assert found.line == "runs on V100 and H100"


def test_a_finding_counts_for_every_gpu_when_the_facts_do_not_say_which() -> None:
    for runs in ({}, {"V100": "native", "H100": "native"}, {"V100": "none"}):
        (*_, last) = answer_stack(V100_AND_H100, stack(), [package("torch", result("WHL601", FAIL), runs=runs)])
        assert last.verdict is Verdict.FAIL


# Certainty.


@pytest.mark.parametrize(
    ("certainties", "line"),
    [
        (("exact", "exact"), "runs on GB200"),
        (("exact", "sampled"), "runs on GB200 (its code was found by sampling)"),
        (("sampled", "declared"), "runs on GB200 (by what the wheels declare)"),
    ],
)
def test_the_weakest_certainty_is_said(certainties: tuple[str, str], line: str) -> None:
    packages = [package(f"p{n}", runs={"GB200": "native"}, certainty=c) for n, c in enumerate(certainties)]
    assert answer(*packages).line == line


# The report goes by its answers.


def test_an_open_answer_makes_the_report_undecided() -> None:
    subjects = (stack(), without(package("torch"), "WHL601"))
    found = answer(subjects[1])
    for fail_on in FailOn:
        report = Report("stack", "", "", 0.0, subjects, fail_on, answers=(found,))
        assert (report.verdict, report.exit_code) == (Verdict.UNDECIDED, 3)
    assert Report("stack", "", "", 0.0, subjects).exit_code == 0


def test_the_rules_that_answer_exist() -> None:
    known = {rule.id for rule in all_rules()}
    assert {*OF_THE_STACK, *OF_A_PACKAGE, *of_gpu_and_driver("a GPU", "580", "none")} <= known
    judged = {
        rule.id for rule in all_rules() if rule.kind in ("stack", "package") and rule.severity is not Severity.NOTE
    }
    assert {*OF_THE_STACK, *OF_A_PACKAGE, *OF_A_LOCK} == judged, "a new rule about stacks answers the question, too"


def test_what_a_host_must_have_is_named_where_the_answer_is_yes() -> None:
    shown = replace(result("WHL521", FAIL, Severity.WARNING), assumes="X11")
    needs = package("opencv-python", shown)
    assert answer(package("torch"), needs).line == "runs on GB200, on hosts with X11"
    assert answer(package("torch", result("WHL601", FAIL)), needs).line.startswith("does not run on GB200: ")
    assert answer(package("torch")).line == "runs on GB200"
    alone = replace(needs, facts={**needs.facts, "gpu_code": {}})
    without = "installs on aarch64, Python 3.12, on hosts with X11; nothing in it has code for a GPU"
    assert answer(alone).line == without


def test_an_unchecked_result_that_decides_nothing_leaves_nothing_open() -> None:
    unread = package("torch", result("SEC010", ERROR))
    assert answer(unread.read_by(Audience.INSTALLER)).verdict is Verdict.UNDECIDED
    aside = replace(unread, results=tuple(replace(r, decides=r.rule != "SEC010") for r in unread.results))
    assert answer(aside.read_by(Audience.INSTALLER)).verdict is Verdict.PASS
