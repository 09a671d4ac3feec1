"""May this release be uploaded? And for a comparison: do the two sides agree as required?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from wheel_checks.answers.claims import claim, loads
from wheel_checks.answers.evidence import Evidence, gather
from wheel_checks.answers.questions import OF_A_GPU, OF_A_RELEASE, OF_A_RELEASED_ACCELERATOR, OF_PARITY, OF_PROVENANCE
from wheel_checks.model import Answer, Outcome, Subject, Verdict
from wheel_checks.phrases import plural


@dataclass(frozen=True, slots=True)
class ReleaseQuestion:
    """Further requirements of the expectation, besides complete files.

    ``parity`` of platforms; the names of files that need ``accelerators``, GPU code for ``gpus``, or to be
    ``attested``.
    """

    parity: bool = False
    accelerators: Collection[str] = ()
    gpus: Collection[str] = ()
    attested: Collection[str] = ()


def answer_release(question: ReleaseQuestion, subjects: Sequence[Subject]) -> Answer:
    """Whether the release, the first of ``subjects``, may be uploaded with its files; not if anything is unchecked."""
    release = subjects[0]
    complete = (*OF_A_RELEASE, *(OF_PARITY if question.parity else ()))
    evidence = gather(release, complete)
    for subject in subjects[1:]:
        accelerator = OF_A_RELEASED_ACCELERATOR if subject.id in question.accelerators else ()
        provenance = OF_PROVENANCE if subject.id in question.attested else ()
        evidence += gather(subject, (*accelerator, *(OF_A_GPU if subject.id in question.gpus else ()), *provenance))
    claims = [claim("complete", [(release, complete)])]
    if any("links" in subject.facts for subject in subjects[1:]):
        load, of_loading = loads(subjects[1:], every=True)
        claims.append(load)
        evidence += Evidence(left_open=of_loading.left_open)
    if question.gpus:
        claims.append(claim("has code", [(one, OF_A_GPU) for one in subjects[1:] if one.id in question.gpus]))
    if question.attested:
        claims.append(claim("attested", [(one, OF_PROVENANCE) for one in subjects[1:] if one.id in question.attested]))
    words = {
        Verdict.PASS: "may be uploaded",
        Verdict.FAIL: "must not be uploaded",
        Verdict.UNDECIDED: "must not be uploaded: something is not proven",
    }
    return Answer(
        evidence.verdict, words[evidence.verdict], release.id, evidence.reasons, "", evidence.rules, tuple(claims)
    )


def answer_difference(subjects: Sequence[Subject]) -> Answer:
    """``agree``, ``agree but for N warnings`` or ``do not agree``: of a pair of wheels, or of all pairs of two sets."""
    return _of_difference(subjects).claiming("agrees")


def _of_difference(subjects: Sequence[Subject]) -> Answer:
    evidence = Evidence()
    for subject in subjects:
        evidence += gather(subject, ())
    about = subjects[0].id if subjects else ""
    if not subjects:
        return Answer(Verdict.UNDECIDED, "not proven", about, ("nothing to compare",))
    remarks = [r for s in subjects for r in s.results if r.outcome is Outcome.FAIL]
    if evidence.verdict is Verdict.PASS:
        but = f", apart from {plural(len(remarks), 'finding')} that is not an error" if len(remarks) == 1 else ""
        but = but or (f", apart from {len(remarks)} findings that are not errors" if remarks else "")
        reasons = (remarks[0].message,) if remarks else ()
        same = "the two sides agree" if len(subjects) > 1 or not (others := _accelerators(subjects[0])) else others
        return Answer(Verdict.PASS, f"{same}{but}", about, reasons)
    words = "the two sides do not agree" if evidence.verdict is Verdict.FAIL else "not proven"
    return Answer(evidence.verdict, words, about, evidence.reasons, "", evidence.rules)


def _accelerators(pair: Subject) -> str:
    """The accelerators of a pair of wheels if they differ, as they may between releases; or ""."""
    sides = [pair.facts.get(side, {}) for side in "ab"]
    a, b = (f"{side.get('accelerator', '')} {side.get('accelerator_version', '')}".strip() for side in sides)
    return f"the two sides are built for {a} and for {b}" if a and b and a != b else ""
