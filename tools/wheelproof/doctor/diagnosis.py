"""From symptoms and findings to one root cause: pure, so that a saved host gives the same diagnosis anywhere.

Symptoms depend on one another: when cuInit fails, torch cannot see a GPU, and no kernel can run. The root is the start
of that chain. Of the findings that explain its first symptom, one proven by an experiment comes first (the CUDA probe
again without a variable), then observations before conclusions, then the deeper layer. Findings whose symptoms all
follow from the root, and which are in a higher layer or only concluded, are its consequences. Other findings are
reported separately. A symptom without explanation is named; its cause is not guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from wheel_checks.facts.gpu.expected import CPU, HostExpectation
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.presence import gpus_of_build, may_have_gpu
from wheel_checks.facts.host.log.symptoms import symptoms
from wheel_checks.facts.host.probes import Counterfactual
from wheel_checks.model import CheckResult, Evidence, Outcome, Severity
from wheel_checks.rules.host.cause import CAUSES, Cause

HARMLESS = "harmless:"
PROVEN, CERTAIN, LIKELY = "proven", "certain", "likely"

# The order of the chain of symptoms: torch needs CUDA, a kernel needs torch. NVML is independent.
_CHAIN = ("cuda:", "torch:", "nvml:", "triton:", "kernel:")

# Symptoms that follow from a symptom.
_FOLLOWS = {
    "cuda:*": ("torch:unavailable", "torch:init", "torch:compute", "torch:hang", "torch:signal", "kernel:*"),
    "torch:missing": ("triton:*",),
    "torch:*": ("torch:unavailable", "torch:init", "torch:compute", "kernel:*"),
    "triton:*": ("kernel:*",),
}
# Symptoms that are no fault on a machine without a GPU.
OF_A_GPU = ("cuda:*", "nvml:*", "torch:cpu-build", "torch:unavailable", "torch:init", "triton:*")

KEEPS_FROM_A_GPU = (*OF_A_GPU, "kernel:*")
"""Symptoms that are no faults where a CPU is expected."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """``root`` is None if there is no fault, or a fault without a known cause (``unexplained``).

    ``confidence`` is "proven" (by an experiment, or by an error code that has this one meaning), "certain" (everything
    was observed), "likely" (a conclusion), "" without a root. ``consequences`` follow from the root, ``others`` do not.
    """

    symptoms: tuple[str, ...]
    root: CheckResult | None = None
    cause: Cause | None = None
    confidence: str = ""
    proof: tuple[Evidence, ...] = ()
    consequences: tuple[CheckResult, ...] = ()
    others: tuple[CheckResult, ...] = ()
    unexplained: tuple[str, ...] = ()
    harmless: tuple[CheckResult, ...] = ()


def diagnose(
    facts: HostFacts,
    results: Sequence[CheckResult],
    causes: Mapping[str, Cause] = CAUSES,
    *,
    expected: HostExpectation | None = None,
) -> Diagnosis:
    """The diagnosis of a host whose rules gave these results."""
    seen = observed_symptoms(facts, expected)
    found = [result for result in results if result.outcome is Outcome.FAIL]
    harmless = tuple(result for result in found if result.message.startswith(HARMLESS))
    suspects = [_Suspect.of(result, causes, seen, facts) for result in found if result not in harmless]
    unexplained = _unexplained(seen, frozenset().union(*(suspect.covers for suspect in suspects)))
    first = min(seen, key=_place_in_chain, default="")  # the best explanation of the symptom that begins the chain
    root = min((suspect for suspect in suspects if first in suspect.explains), key=_rank, default=None)
    if root is None:
        others = tuple(suspect.result for suspect in suspects)
        return Diagnosis(seen, others=others, unexplained=unexplained, harmless=harmless)
    rest = [suspect for suspect in suspects if suspect is not root]
    labels = {item.label for item in root.result.evidence}  # evidence of the rule itself is not repeated
    experiments = (Evidence(one.label, one.summary, one.value) for one in root.proofs if one.label not in labels)
    return Diagnosis(
        seen,
        root.result,
        root.cause,
        root.confidence,
        (*root.result.evidence, *experiments),
        tuple(suspect.result for suspect in rest if suspect.is_explained_by(root)),
        tuple(suspect.result for suspect in rest if not suspect.is_explained_by(root)),
        unexplained,
        harmless,
    )


def observed_symptoms(facts: HostFacts, expected: HostExpectation | None = None) -> tuple[str, ...]:
    """The symptoms that are faults here: a CPU torch build is one where a GPU is present, or expected."""
    seen = symptoms(facts)
    if expected is not None:
        no_fault: tuple[str, ...] = KEEPS_FROM_A_GPU if expected.accelerator == CPU else ()
    else:
        no_fault = () if may_have_gpu(facts) or gpus_of_build(facts) else OF_A_GPU
    return tuple(name for name in seen if not matches(name, no_fault))


@dataclass(frozen=True, slots=True)
class _Suspect:
    """A finding and its cause. ``explains`` are the observed symptoms that it explains, ``covers`` adds their
    consequences; ``proofs`` are the experiments that prove it.
    """

    result: CheckResult
    cause: Cause | None
    explains: tuple[str, ...]
    covers: frozenset[str]
    proofs: tuple[Counterfactual, ...]

    @classmethod
    def of(cls, result: CheckResult, causes: Mapping[str, Cause], seen: tuple[str, ...], facts: HostFacts) -> _Suspect:
        cause = causes.get(result.rule)
        explains = tuple(name for name in seen if cause and matches(name, cause.explains))
        proofs = tuple(c for c in facts.counterfactuals if c.proves and _names(result, c.variable))
        return cls(result, cause, explains, _closure(explains, seen), proofs)

    @property
    def confidence(self) -> str:
        if self.cause is None or not self.cause.certain or self.result.severity is Severity.NOTE:
            return LIKELY  # a note is only a suspicion
        codes = (name.rpartition(":")[2].lstrip("-") for name in self.explains if name in self.cause.explains)
        return PROVEN if self.proofs or any(map(str.isdecimal, codes)) else CERTAIN

    def is_explained_by(self, root: _Suspect) -> bool:
        """Whether the root explains everything that this finding explains, and is the better explanation of it.

        It is when its layer is deeper, or when it was observed and this is only a conclusion.
        """
        if self.cause is None or root.cause is None or not self.explains:
            return False
        better = self.cause.layer > root.cause.layer or (root.cause.certain and not self.cause.certain)
        return better and root.covers.issuperset(self.explains)


def _rank(suspect: _Suspect) -> tuple[bool, bool, bool, int, int, str]:
    """Small is guilty. A note is not a root while there is anything worse."""
    cause = suspect.cause
    assert cause is not None  # noqa: S101  # a finding that explains a symptom has a cause
    remark = suspect.result.severity is Severity.NOTE
    return not suspect.proofs, remark, not cause.certain, cause.layer, -len(suspect.explains), suspect.result.rule


def _unexplained(seen: tuple[str, ...], covered: frozenset[str]) -> tuple[str, ...]:
    """The symptoms that no finding covers, except those that follow from another one."""
    left = sorted((name for name in seen if name not in covered), key=_place_in_chain)
    kept: list[str] = []
    for name in left:
        if name not in _closure(tuple(kept), seen):
            kept.append(name)
    return tuple(kept)


def _place_in_chain(symptom: str) -> int:
    return next((place for place, name in enumerate(_CHAIN) if symptom.startswith(name)), len(_CHAIN))


def _closure(explained: tuple[str, ...], seen: tuple[str, ...]) -> frozenset[str]:
    """The explained symptoms, and the observed ones that follow from them."""
    covered = set(explained)
    while True:
        patterns = [
            p for name in covered for cause, follow in _FOLLOWS.items() if fnmatchcase(name, cause) for p in follow
        ]
        more = {name for name in seen if matches(name, patterns)} - covered
        if not more:
            return frozenset(covered)
        covered |= more


def matches(symptom: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns (``cuda:*``) names the symptom."""
    return any(fnmatchcase(symptom, pattern) for pattern in patterns)


def _names(result: CheckResult, variable: str) -> bool:
    """Whether the finding is about this variable: its message or its evidence name it."""
    texts = (result.message, *(text for item in result.evidence for text in (item.label, item.value, item.source)))
    return any(variable in text for text in texts)
