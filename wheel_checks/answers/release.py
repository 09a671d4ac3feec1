"""May this release be uploaded?"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from wheel_checks.answers.claims import claim, loads, of_loading
from wheel_checks.answers.evidence import gather
from wheel_checks.answers.questions import (
    OF_A_GPU,
    OF_A_RANGE_OF_TORCH,
    OF_A_RELEASE,
    OF_A_RELEASED_ACCELERATOR,
    OF_PARITY,
    OF_PROVENANCE,
)
from wheel_checks.model import Answer, Subject, Verdict
from wheel_checks.phrases import joined, summarised

_NAMED = 3  # platforms


@dataclass(frozen=True, slots=True)
class ReleaseQuestion:
    """Further requirements of the expectation, besides complete files.

    ``parity`` of platforms; a ``torch_range`` that the wheels must load with; the names of files that need
    ``accelerators``, GPU code for ``gpus``, or to be ``attested``.
    """

    parity: bool = False
    torch_range: bool = False
    accelerators: Collection[str] = ()
    gpus: Collection[str] = ()
    attested: Collection[str] = ()


def answer_release(question: ReleaseQuestion, subjects: Sequence[Subject]) -> Answer:
    """Whether the release, the first of ``subjects``, may be uploaded with its files; not if anything is unchecked.

    Wheels without a single Linux machine, whose libraries cannot be followed, are named.
    """
    release, files = subjects[0], subjects[1:]
    elsewhere = [file for file in files if "target" not in file.facts and file.facts.get("platform", "any") != "any"]
    followed = [file for file in files if file not in elsewhere]
    linked = {file.id for file in followed if "links" in file.facts}
    complete = (*OF_A_RELEASE, *(OF_PARITY if question.parity else ()))
    of_files = (
        ("is a build", question.accelerators, OF_A_RELEASED_ACCELERATOR),
        ("has code", question.gpus, OF_A_GPU),
        ("attested", question.attested, OF_PROVENANCE),
        ("loads with every torch", linked if question.torch_range else (), OF_A_RANGE_OF_TORCH),
    )
    evidence = gather(release, complete)
    for file in files:
        required = [rule for _, names, rules in of_files if file.id in names for rule in rules]
        evidence += gather(file, (*required, *of_loading(file, every=file in followed)))
    claims = [claim("complete", [(release, complete)]), loads(followed, every=True)]
    for name, names, rules in of_files:
        claims += [claim(name, [(file, rules) for file in files if file.id in names])] * bool(names)
    platforms = list(dict.fromkeys(str(file.facts["platform"]) for file in elsewhere))
    named = joined(platforms) if len(platforms) <= _NAMED else summarised(platforms, _NAMED)
    words = {
        Verdict.PASS: f"may be uploaded{f'; loading on {named} was not checked' if named else ''}",
        Verdict.FAIL: "must not be uploaded",
        Verdict.UNDECIDED: "must not be uploaded: something is not proven",
    }
    return Answer(
        evidence.verdict, words[evidence.verdict], release.id, evidence.reasons, "", evidence.rules, tuple(claims)
    )
