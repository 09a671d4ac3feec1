"""The report for test dashboards: JUnit XML as Jenkins' ``junit-10.xsd`` describes it."""

from collections.abc import Iterator
from typing import Any, TextIO
from xml.etree import ElementTree as ET  # builds XML only; nothing is parsed

from wheel_checks.model import CheckResult, Outcome, Report, Subject
from wheel_checks.report import wording
from wheel_checks.report.wording import neutral


def render(report: Report, stream: TextIO) -> None:
    """Write one test suite per subject and one test case per result, in ASCII with character references.

    Behind a subject come the suites of a user's own tests that ran there (``tests`` of its facts). A failed check is a
    failure whatever its severity (the ``type`` shows it); one that could not be made is an error.
    """
    suites = ET.Element(
        "testsuites",
        name=": ".join([f"wheelproof {neutral(report.command)}", *wording.answer_lines(report)]),
        time=f"{report.seconds:.3f}",
    )
    for subject in report.subjects:
        suites.append(_suite(report, subject))
        suites.extend(_suites_of_user(subject))
    for name in ("tests", "failures", "errors"):
        suites.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    ET.indent(suites)
    body = ET.tostring(suites, encoding="us-ascii", xml_declaration=False).decode("ascii")
    body = wording.without_commands(body, colon="&#58;")
    stream.write(f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n')


def _suite(report: Report, subject: Subject) -> ET.Element:
    seconds = wording.json_ready(subject.facts.get("seconds"))
    suite = ET.Element(
        "testsuite",
        name=neutral(subject.id),
        tests=str(len(subject.results)),
        failures=str(subject.count(Outcome.FAIL)),
        errors=str(subject.count(Outcome.ERROR)),
        skipped=str(subject.count(Outcome.SKIP)),
        time=f"{seconds if isinstance(seconds, (int, float)) else sum(r.seconds for r in subject.results):.3f}",
        timestamp=neutral(report.started),
    )
    facts = [
        ("kind", neutral(subject.kind)),
        ("headline", neutral(subject.headline)),
        *wording.flat_facts(subject.facts),
    ]
    if phrase := wording.silenced_phrase(report):
        facts.append(("silenced", phrase))
    properties = ET.SubElement(suite, "properties")
    for name, value in facts:
        ET.SubElement(properties, "property", name=name, value=value)
    seen: dict[str, int] = {}
    for result in subject.results:
        name = neutral(f"{result.rule} {result.title}")
        seen[name] = seen.get(name, 0) + 1
        # Dashboards take two cases with one name for two runs of one case.
        numbered = name if seen[name] == 1 else f"{name} ({seen[name]})"
        suite.append(_case(subject, result, numbered))
    return suite


def _suites_of_user(subject: Subject) -> Iterator[ET.Element]:
    """The tests that a command of the user ran, as its own reports have them; other reports may bring anything here."""
    reports = subject.facts.get("tests")
    for report in reports if isinstance(reports, list | tuple) else ():
        cases = report.get(wording.CASES) if isinstance(report, dict) else None
        if isinstance(cases, list | tuple):
            yield _suite_of_user(subject, str(report.get("file")), [case for case in cases if isinstance(case, dict)])


def _suite_of_user(subject: Subject, file: str, cases: list[dict[str, Any]]) -> ET.Element:
    outcomes = [str(case.get("outcome")) for case in cases]
    suite = ET.Element("testsuite", name=neutral(f"{subject.id}: {file}"), tests=str(len(cases)))
    for name, outcome in (("failures", "failed"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(name, str(outcomes.count(outcome)))
    for case, outcome in zip(cases, outcomes, strict=True):
        seconds = wording.json_ready(case.get("seconds"))
        written = ET.SubElement(
            suite,
            "testcase",
            classname=neutral(f"{subject.id}.{case.get('classname', '')}".rstrip(".")),
            name=neutral(str(case.get("name", ""))),
            time=f"{seconds if isinstance(seconds, (int, float)) else 0:.3f}",
        )
        message = neutral(str(case.get("message", "")))
        if outcome in ("failed", "error"):
            tag = "failure" if outcome == "failed" else "error"
            ET.SubElement(written, tag, type="of the user's tests", message=message).text = message
        elif outcome == "skipped":
            ET.SubElement(written, "skipped", message=message)
    return suite


def _case(subject: Subject, result: CheckResult, name: str) -> ET.Element:
    case = ET.Element("testcase", classname=neutral(subject.id), name=name, time=f"{result.seconds:.3f}")
    place = result.location
    if place and place.file:  # not in Jenkins' schema; GitLab and pytest's first family of reports have them
        case.set("file", neutral(place.file))
        if place.line is not None:
            case.set("line", str(place.line))
    message = neutral(result.message)
    details = "\n".join([message, *wording.detail_lines(result)])
    if result.outcome is Outcome.FAIL:
        kind = result.severity.value if subject.concerns_reader(result) else f"{result.severity}, for the publisher"
        ET.SubElement(case, "failure", type=kind, message=message).text = details
    elif result.outcome is Outcome.ERROR:
        ET.SubElement(case, "error", type="could not check", message=message).text = details
    elif result.outcome is Outcome.SKIP:
        ET.SubElement(case, "skipped", message=message)
    return case
