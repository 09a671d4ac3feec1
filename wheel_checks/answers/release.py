"""May this release be uploaded? And for a comparison: do the two sides agree where they must?"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from wheel_checks.answers.evidence import Evidence, gather
from wheel_checks.answers.questions import OF_A_GPU, OF_A_RELEASE, OF_A_RELEASED_ACCELERATOR, OF_PARITY, OF_PROVENANCE
from wheel_checks.model import Answer, Outcome, Subject, Verdict
from wheel_checks.phrases import plural


@dataclass(frozen=True, slots=True)
class ReleaseQuestion:
    """What the expectation requires besides that all files are there and whole.

    ``parity`` of platforms; of the files with these names an ``accelerators``, that they run on GPUs (``gpus``), and
    that they are ``attested``.
    """

    parity: bool = False
    accelerators: Collection[str] = ()
    gpus: Collection[str] = ()
    attested: Collection[str] = ()


def answer_release(asked: ReleaseQuestion, subjects: Sequence[Subject]) -> Answer:
    """``may be uploaded``, or ``must not be uploaded``, also when something could not be checked.

    The first of ``subjects`` is the release, the others are its files.
    """
    release = subjects[0]
    evidence = gather(release, (*OF_A_RELEASE, *(OF_PARITY if asked.parity else ())))
    for subject in subjects[1:]:
        accelerator = OF_A_RELEASED_ACCELERATOR if subject.id in asked.accelerators else ()
        provenance = OF_PROVENANCE if subject.id in asked.attested else ()
        evidence += gather(subject, (*accelerator, *(OF_A_GPU if subject.id in asked.gpus else ()), *provenance))
    words = {
        Verdict.PASS: "may be uploaded",
        Verdict.FAIL: "must not be uploaded",
        Verdict.UNDECIDED: "must not be uploaded: something is not proven",
    }
    return Answer(evidence.verdict, words[evidence.verdict], release.id, evidence.reasons, "", evidence.rules)


def answer_difference(subjects: Sequence[Subject]) -> Answer:
    """``agree``, ``agree but for N warnings`` or ``do not agree``: of a pair of wheels, or of all pairs of two sets."""
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
    """What a pair of wheels is built for where that differs, as it may between releases; "" where it does not."""
    sides = [pair.facts.get(side, {}) for side in "ab"]
    a, b = (f"{side.get('accelerator', '')} {side.get('accelerator_version', '')}".strip() for side in sides)
    return f"the two sides are built for {a} and for {b}" if a and b and a != b else ""
