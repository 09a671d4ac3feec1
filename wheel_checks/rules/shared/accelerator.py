"""How rules hold an accelerator against what is expected, and show the signals by which it was judged."""

from collections.abc import Iterable, Iterator, Sequence

from wheel_checks.facts.accelerator.signals import GPU, VERSION
from wheel_checks.facts.accelerator.verdict import DECLARED, LABELS, SAMPLED, AcceleratorFacts
from wheel_checks.facts.expectations import AcceleratorExpectation
from wheel_checks.facts.wheel.facts import Sibling
from wheel_checks.model import Evidence, Finding, Fix


def signals_shown(facts: AcceleratorFacts) -> tuple[Evidence, ...]:
    """The three signals, each with what it says."""
    return tuple(
        Evidence(s.name, f"{' and '.join(s.accelerators) or 'nothing'}: {s.detail}", s.source) for s in facts.signals
    )


def unmet(
    facts: AcceleratorFacts, demand: AcceleratorExpectation, fix: Fix | None, *, what: str = "the wheel"
) -> Iterator[Finding]:
    """At most one finding: ``what`` is not as demanded, or (undecided) it is not proven that it is."""
    served = facts.serves(demand.accelerator)
    found = f"{'has' if facts.described.startswith('no ') else 'is'} {facts.described}"
    if served is False:
        yield Finding(f"{what} {found}; expected {demand}", signals_shown(facts), fix)
    elif served is None:
        why = _not_proven(facts, demand.accelerator)
        yield Finding(f"not proven: expected {demand}, but {why}", signals_shown(facts), undecided=True)
    elif demand.accelerator == facts.accelerator:
        accepted = accepts(demand, facts)
        if accepted is None:
            says = f"states only version {facts.version}" if facts.version else "does not state its version"
            says += f" in what was read: {facts.unread}" if facts.certainty == SAMPLED else ""
            message = f"not proven: expected {demand}, but {what} {says}"
            yield Finding(message, signals_shown(facts), undecided=True)
        elif not accepted:
            yield Finding(f"{what} {found}; expected {demand}", signals_shown(facts), fix)


def accepts(demand: AcceleratorExpectation, facts: AcceleratorFacts) -> bool | None:
    """Whether one of the versions that the wheel has libraries for will do; None when it names too little."""
    versions: Sequence[str] = facts.majors if len(facts.majors) > 1 else (facts.version,)
    answers = {demand.accepts_version(version) for version in versions}
    if True in answers or None in answers:
        return True if True in answers else None
    stated = any(s.name == VERSION and s.version for s in facts.signals)
    return None if facts.certainty == SAMPLED and not stated else False  # what was not read may be for another version


def _not_proven(facts: AcceleratorFacts, wanted: str) -> str:
    """Why it is open whether the wheel serves what is wanted."""
    if facts.unread:
        return facts.unread
    if facts.accelerator in GPU:
        return f"no library of the wheel shows {wanted}; only {facts.declared_by} declare it"
    return "the libraries were not read"


def gpu_siblings(siblings: Iterable[Sibling]) -> list[Sibling]:
    """Those that are built for a GPU."""
    return [sibling for sibling in siblings if sibling.accelerator in GPU]


def unread_siblings(siblings: Sequence[Sibling]) -> list[Sibling]:
    """Those of machines for which no sibling is known."""
    known = {sibling.machine for sibling in siblings if sibling.certainty != DECLARED}
    return [sibling for sibling in siblings if sibling.machine not in known]


def siblings_shown(siblings: Iterable[Sibling]) -> tuple[Evidence, ...]:
    """Each with its machine, its accelerator, and what shows that."""
    return tuple(
        Evidence(
            f"{sibling.machine} ({sibling.certainty})",
            f"{sibling.file_name}: {LABELS[sibling.accelerator]} {sibling.accelerator_version}".rstrip(),
            sibling.source,
        )
        for sibling in siblings
    )


def served(facts: AcceleratorFacts) -> frozenset[str]:
    """The accelerators that two wheels must share to be alike; the same for "cpu" and "none"."""
    return frozenset({facts.accelerator, *facts.others}) & frozenset(GPU)


def contradict(a: str, b: str) -> bool:
    """True when both versions are known and differ as far as both say: 13 and 13.0 do not."""
    return bool(a and b) and any(x != y for x, y in zip(a.split("."), b.split("."), strict=False))
