"""Findings with one cause: which are shown as one, and with which details."""

from __future__ import annotations

from wheel_checks.fixes.commands import Options, run
from wheel_checks.model import CheckResult, Evidence, Fix, Outcome, Severity, Subject
from wheel_checks.report.causes import Cause, causes


def archive(name: str, told: str, kind: str = "package", cause: str = "would be built there") -> Subject:
    fix = Fix(
        "Build the wheels:",
        (run("pip", "wheel", name), Options(("wheelproof", "stack"), ("--find-links", "wheels"))),
    )
    result = CheckResult(
        "STK102",
        "every package has a wheel for the target",
        Outcome.ERROR,
        Severity.WARNING,
        f"{name} 1.0 would be built there{told}",
        (Evidence("source archive", f"{name}-1.0.tar.gz"),),
        fix,
        cause=cause,
    )
    return Subject(f"{name} 1.0", kind, facts={"package": name, "version": "1.0"}, results=(result,))


def grouped(*subjects: Subject) -> list[Cause]:
    return causes((subject, subject.results[0]) for subject in subjects)


def test_what_differs_between_packages_of_one_cause_is_kept() -> None:
    (cause,) = grouped(archive("a", ": requires torch"), archive("b", ": requires nothing"))
    assert cause.shown.message == "a 1.0, b 1.0 would be built there"
    assert [(item.label, item.value) for item in cause.shown.evidence] == [
        ("a 1.0", "requires torch"),
        ("b 1.0", "requires nothing"),
    ]


def test_the_commands_of_all_and_options_once_at_the_end() -> None:
    (cause,) = grouped(archive("a", ": x"), archive("b", ": y"))
    assert cause.shown.fix is not None
    assert cause.shown.fix.lines == ("pip wheel a", "pip wheel b", "add to `wheelproof stack`: --find-links wheels")


def test_many_are_named_and_few_are_described() -> None:
    names = [f"p{number}" for number in range(11)]
    (cause,) = grouped(*(archive(name, f": requires {name}") for name in names))
    assert len(cause.shown.evidence) == 9
    assert cause.shown.evidence[-1] == Evidence("and", "p8 1.0, p9 1.0, p10 1.0")


def test_one_package_keeps_its_words_and_evidence() -> None:
    (cause,) = grouped(archive("a", ": requires torch"))
    assert cause.shown == cause.first


def test_wheels_and_findings_without_a_stated_cause_are_counted() -> None:
    (wheels,) = grouped(archive("demo", ": x", kind="wheel"), archive("other", ": y", kind="wheel"))
    assert wheels.shown.message == "demo 1.0 would be built there: x (in 2 wheels)"
    (alike,) = grouped(archive("demo", ": x", cause=""), archive("other", ": x", cause=""))
    assert alike.shown.message == "demo 1.0 would be built there: x (in 2 packages)"
    assert len(grouped(archive("demo", ": x", cause=""), archive("other", ": y", cause=""))) == 2
