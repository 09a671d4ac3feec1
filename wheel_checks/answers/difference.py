"""Do the two sides of a comparison agree, and in what?"""

from __future__ import annotations

from collections.abc import Sequence

from wheel_checks.answers.claims import claim
from wheel_checks.answers.evidence import Evidence, gather
from wheel_checks.answers.questions import OF_A_PAIR, OF_TWO_SETS
from wheel_checks.model import Answer, Outcome, Subject, Verdict
from wheel_checks.phrases import joined, plural


def answer_difference(subjects: Sequence[Subject], omitted: Sequence[str] = ()) -> Answer:
    """Whether all pairs agree in each part of ``OF_A_PAIR``, without those that the depth ``omitted``.

    Wheels that differ on purpose, such as two releases, are compared without a claim: no rule judges them.
    """
    about = subjects[0].id if subjects else ""
    every = [rule for rules in OF_A_PAIR.values() for rule in rules]
    parity = [result for subject in subjects for result in subject.results if result.rule in every]
    evidence = sum((gather(subject, ()) for subject in subjects), start=Evidence())
    if evidence.verdict is Verdict.PASS and parity and all(result.outcome is Outcome.SKIP for result in parity):
        return Answer(Verdict.PASS, "the two sides were compared, and not judged", about, (parity[0].message,))
    parts = [part for part in OF_A_PAIR if part not in omitted]
    rules = [rule for part in parts for rule in OF_A_PAIR[part]]
    judged = [(subject, rules if subject.kind == "pair" else OF_TWO_SETS) for subject in subjects]
    evidence = sum((gather(*each) for each in judged), start=Evidence())
    if not subjects:
        return Answer(Verdict.UNDECIDED, "not proven", about, ("nothing to compare",))
    reasons, sentence = evidence.reasons, "not proven"
    if evidence.verdict is Verdict.FAIL:
        sentence = "the two sides do not agree"
    elif evidence.verdict is Verdict.PASS:
        sentence = f"the two sides agree in {joined(parts)}"
        if omitted:
            sentence += f" ({joined(omitted)} {'was' if len(omitted) == 1 else 'were'} not compared)"
        if remarks := [r for subject in subjects for r in subject.results if r.outcome is Outcome.FAIL]:
            verb = "is not an error" if len(remarks) == 1 else "are not errors"
            sentence, reasons = (
                f"{sentence}, apart from {plural(len(remarks), 'finding')} that {verb}",
                (remarks[0].message,),
            )
    claims = (claim("agrees", judged, coverage=joined(parts)),)
    return Answer(evidence.verdict, sentence, about, reasons, "", evidence.rules, claims)
