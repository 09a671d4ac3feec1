"""The report for code scanning: SARIF 2.1.0 (OASIS standard), one run, one artifact per subject."""

from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Any, TextIO
from urllib.parse import quote

from wheel_checks.model import CheckResult, Location, Outcome, Report, Rule, Subject
from wheel_checks.registry import registered
from wheel_checks.report import wording
from wheel_checks.report.identity import category, fingerprint
from wheel_checks.report.pages import page_of
from wheel_checks.report.wording import json_ready, neutral

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_FINGERPRINT = "wheelproof/v2"


def render(report: Report, stream: TextIO) -> None:
    """Write a SARIF log in ASCII: failures are results, checks that could not be made are notifications."""
    wording.write_json(json_ready({"$schema": _SCHEMA, "version": "2.1.0", "runs": [_run(report)]}), stream)


def _run(report: Report) -> dict[str, Any]:
    shown = [r for r in wording.all_results(report) if r.outcome in (Outcome.FAIL, Outcome.ERROR)]
    known = {rule.id: rule for rule in registered()}
    used = {result.rule: result for result in shown}
    rules = [_descriptor(known.get(name), used[name]) for name in sorted(used)]
    indexes = {rule["id"]: index for index, rule in enumerate(rules)}
    results: list[dict[str, Any]] = []
    notifications: list[dict[str, Any]] = []
    seen: dict[str, int] = {}
    for artifact, subject in enumerate(report.subjects):
        for result in subject.results:
            if result.outcome is Outcome.FAIL:
                results.append(_result(subject, result, artifact, indexes, seen))
            elif result.outcome is Outcome.ERROR:
                notifications.append(_notification(subject, result, artifact, indexes))
    return {
        "tool": {"driver": {"name": "wheelproof", "version": report.version, "rules": rules}},
        "automationDetails": {"id": f"{category(report)}/"},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": not notifications and bool(report.subjects),
                "exitCode": report.exit_code,
                "startTimeUtc": report.started,
                "toolExecutionNotifications": notifications,
            }
        ],
        "artifacts": [_artifact(report, subject, index) for index, subject in enumerate(report.subjects)],
        "results": results,
        "properties": {
            "answers": [answer.line for answer in report.answers],
            "verdict": report.verdict,
            "failOn": report.fail_on,
            "seconds": report.seconds,
            "bytesRead": report.bytes_read,
            "requests": report.requests,
            **({"tree": asdict(report.tree)} if report.tree else {}),
        },
    }


def _descriptor(rule: Rule | None, result: CheckResult) -> dict[str, Any]:
    """A rule that has something to say; one that is not registered here (None) is described by its result."""
    descriptor: dict[str, Any] = {
        "id": neutral(result.rule),
        "name": neutral(result.title),
        "shortDescription": _message(result.title),
        "defaultConfiguration": {"level": (rule.severity if rule else result.severity).value},
    }
    if rule:
        descriptor["fullDescription"] = _message(rule.why)
        descriptor["help"] = _message(f"{rule.why}\n\nExample: {rule.example}\n\nFix: {rule.fix}")
        if page := "" if rule.plugin else page_of(rule.id):
            descriptor["helpUri"] = page
    return descriptor


def _result(
    subject: Subject, result: CheckResult, artifact: int, indexes: dict[str, int], seen: dict[str, int]
) -> dict[str, Any]:
    document: dict[str, Any] = {
        "ruleId": neutral(result.rule),
        "ruleIndex": indexes[neutral(result.rule)],
        "level": result.severity.value,
        "message": _message("\n".join([neutral(result.message), *wording.detail_lines(result)])),
        "locations": [_location(subject, result.location, artifact)],
        "partialFingerprints": {_FINGERPRINT: fingerprint(subject, result, seen)},
        "properties": {"audience": result.audience, "evidence": [asdict(evidence) for evidence in result.evidence]},
    }
    if result.fix:
        document["properties"]["fix"] = wording.fix_document(result.fix)
    return document


def _notification(subject: Subject, result: CheckResult, artifact: int, indexes: dict[str, int]) -> dict[str, Any]:
    return {
        "level": "error",
        "message": _message("\n".join([neutral(result.message), *wording.detail_lines(result)])),
        "associatedRule": {"id": neutral(result.rule), "index": indexes[neutral(result.rule)]},
        "locations": [_location(subject, result.location, artifact)],
    }


def _artifact(report: Report, subject: Subject, index: int) -> dict[str, Any]:
    # The index makes each entry unique, as the schema demands: one wheel may be judged for two targets.
    document: dict[str, Any] = {
        "location": {"uri": _uri(subject.id), "index": index},
        "roles": ["analysisTarget"],
        "properties": {
            "kind": subject.kind,
            "headline": subject.headline,
            "verdict": report.verdict_of(subject),
            "facts": subject.facts,
        },
    }
    size, sha256 = subject.facts.get("size"), subject.facts.get("sha256")
    if isinstance(size, int) and size >= 0:
        document["length"] = size
    if sha256:
        document["hashes"] = {"sha-256": str(sha256)}
    return document


def _location(subject: Subject, location: Location | None, artifact: int) -> dict[str, Any]:
    if location and location.on_disk:
        physical: dict[str, Any] = {"artifactLocation": {"uri": _path_uri(location.on_disk)}}
        if location.line is not None:
            physical["region"] = {"startLine": location.line}
            if location.column is not None:
                physical["region"]["startColumn"] = location.column
    else:
        physical = {"artifactLocation": {"uri": _uri(subject.id), "index": artifact}}
    document: dict[str, Any] = {"physicalLocation": physical}
    if location and location.member:
        member = neutral(location.member)
        own_line = location.line is not None and not location.file
        line = {"properties": {"line": location.line}} if own_line else {}
        document["logicalLocations"] = [{"fullyQualifiedName": member, "kind": "member", **line}]
    return document


def _uri(name: str) -> str:
    """A relative reference of one segment (RFC 3986): nothing in the name can become a scheme, a host or a folder."""
    return quote(neutral(name), safe="")


def _path_uri(path: str) -> str:
    pure = PurePosixPath(neutral(path))
    return f"file://{quote(str(pure))}" if pure.is_absolute() else quote(str(pure))


def _message(text: str) -> dict[str, str]:
    """A plain text message. "](" would make a link of it (section 3.11.6), which only a rule's page may have."""
    return {"text": "\n".join(neutral(line) for line in text.splitlines()).replace("](", "] (") or "-"}
