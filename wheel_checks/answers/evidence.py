"""The evidence in the results of a subject: reasons for no, and reasons why a question is open."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wheel_checks.answers.questions import ASIDES, FOLLOWS_FROM, OF_ONE_GPU, OF_WHAT_RUNS, OPEN_BY_A_WARNING, REASONS
from wheel_checks.model import Audience, CheckResult, Outcome, Severity, Subject, Verdict
from wheel_checks.phrases import and_more, joined, plural, summarised

_RANK = (Verdict.PASS, Verdict.UNDECIDED, Verdict.FAIL)
IGNORED = "ignored until "  # begins the message of a finding that the expectation of a release knows and accepts
UNREAD = "WHL000"  # is in for all rules of a subject that could not be read
_NAMED = 2  # packages that a reason names
_KIND = "distribution"  # the fact of a package: "wheel", "sdist" or "none"
_PREAMBLE = re.compile(r"^not proven that this runs on [^:]*: ")  # the answer says that already
JUDGED = (Outcome.PASS, Outcome.FAIL)
CERTAINTIES = ("exact", "sampled", "declared")  # from the best to the weakest


class Reason(NamedTuple):
    """A deciding reason: the message of ``rule``, which is "" for a rule that was not run, about ``package``.

    ``is_plain`` is true if the form of the rule says it all, and no message is needed.
    """

    rule: str
    text: str
    package: str = ""
    is_plain: bool = False


@dataclass(frozen=True, slots=True)
class Evidence:
    """``no`` are reasons against, ``left_open`` undecided points, without duplicates."""

    no: tuple[Reason, ...] = ()
    left_open: tuple[Reason, ...] = ()

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(
            tuple(dict.fromkeys((*self.no, *other.no))), tuple(dict.fromkeys((*self.left_open, *other.left_open)))
        )

    @property
    def verdict(self) -> Verdict:
        """No comes before open, and open before yes."""
        return Verdict.FAIL if self.no else Verdict.UNDECIDED if self.left_open else Verdict.PASS

    @property
    def texts(self) -> tuple[str, ...]:
        """The deciding reasons, without the packages' names."""
        return tuple(dict.fromkeys(reason.text for reason in self.no or self.left_open))

    @property
    def reasons(self) -> tuple[str, ...]:
        """The deciding reasons, one sentence for each rule: the reasons against, else undecided points."""
        return tuple(dict.fromkeys(sentence for _, sentence in self.by_rule))

    @property
    def by_rule(self) -> tuple[tuple[str, str], ...]:
        """The deciding reasons as sentences, each with the id of its rule."""
        groups: dict[tuple[str, bool], list[Reason]] = {}
        for reason in self.no or self.left_open:
            groups.setdefault((reason.rule, reason.is_plain), []).append(reason)
        return tuple((rule, _sentence(reasons)) for (rule, _), reasons in groups.items())

    @property
    def rules(self) -> tuple[str, ...]:
        """The ids of the rules that decide."""
        return tuple(dict.fromkeys(reason.rule for reason in self.no or self.left_open if reason.rule))


_NOTHING_CHECKED = Evidence(left_open=(Reason("", "nothing was checked"),))


def of_being_checked(subjects: Iterable[Subject]) -> Evidence:
    """An open question if no rule judged any of the subjects.

    Rules about code that a wheel runs (SEC) do not show that it is in order: they are used if no other was requested.
    """
    results = [result for subject in subjects for result in subject.results]
    answering = [result for result in results if not result.rule.startswith(OF_WHAT_RUNS)] or results
    return Evidence() if any(result.outcome in JUDGED for result in answering) else _NOTHING_CHECKED


def gather(subject: Subject, deciding: Collection[str], gpu: str = "") -> Evidence:
    """The evidence of one subject for a question that the rules ``deciding`` answer; "" is no ``gpu``.

    Every error of any rule is included, and every unchecked result. A deciding rule that was not run, was skipped or
    was silenced leaves the question open.
    """
    counting = [r for r in subject.results if subject.concerns_reader(r) and not _is_about_another(r, subject, gpu)]
    worst: dict[str, Verdict] = {}
    for result in counting:
        worst[result.rule] = max(
            worst.get(result.rule, Verdict.PASS), _counts_as(result, subject, deciding), key=_RANK.index
        )
    no: list[Reason] = []
    left_open: list[Reason] = []
    for result in counting:
        verdict = _counts_as(result, subject, deciding)
        causes = [worst.get(cause, Verdict.PASS) for cause in FOLLOWS_FROM.get(result.rule, ())]
        if verdict is Verdict.PASS or any(_RANK.index(cause) >= _RANK.index(verdict) for cause in causes):
            continue  # a root fact that weighs as much is the reason
        reason = _reason(result, subject)
        (no if verdict is Verdict.FAIL else left_open).append(reason)
    run = {result.rule for result in subject.results}
    missing = [] if UNREAD in run else [rule for rule in deciding if rule not in run]
    if missing:
        left_open.append(Reason("", f"{joined(missing)} {'was' if len(missing) == 1 else 'were'} not run"))
    return Evidence(tuple(dict.fromkeys(no)), tuple(dict.fromkeys(left_open)))


def _counts_as(result: CheckResult, subject: Subject, deciding: Collection[str]) -> Verdict:
    """One result's answer to the question: an error is a no, an unchecked one leaves it open."""
    if result.outcome is Outcome.FAIL:
        if result.severity is Severity.ERROR:
            return Verdict.FAIL
        is_open = result.rule in deciding and result.rule in OPEN_BY_A_WARNING
        return Verdict.UNDECIDED if is_open else Verdict.PASS
    is_unchecked = result.outcome is Outcome.SKIP and not result.message.startswith(IGNORED)
    if subject.is_open(result) or (is_unchecked and result.rule in deciding):
        return Verdict.UNDECIDED
    return Verdict.PASS


def asides(subjects: Iterable[Subject]) -> tuple[str, ...]:
    """The warnings that decide nothing for an installer, by rule: "2 packages run code at start-up"."""
    found: dict[tuple[str, bool], dict[str, None]] = {}
    for subject in subjects:
        for result in subject.results if subject.reader is Audience.INSTALLER else ():
            warns = result.outcome is Outcome.FAIL and result.severity is not Severity.NOTE
            if not result.decides and (warns or result.outcome is Outcome.ERROR) and subject.concerns_reader(result):
                found.setdefault((result.rule, warns), {})[package_name(subject)] = None
    return tuple(_aside(rule, list(names), warns=warns) for (rule, warns), names in sorted(found.items()))


def _aside(rule: str, names: Sequence[str], *, warns: bool) -> str:
    who = names[0] if len(names) == 1 else plural(len(names), "package")
    if not warns:
        return f"{rule} could not be checked in {who}"
    phrase = ASIDES.get(rule, f"fail{{s}} {rule}")
    return f"{who} {phrase.format(s='s' if len(names) == 1 else '')}"


def certainty_of(subjects: Iterable[Subject]) -> str:
    """The weakest certainty of the subjects' GPU code ("sampled" if one library is unread), or ""."""
    found = [code.get("certainty", "sampled") for code in map(_gpu_code, subjects) if code.get("products")]
    return max((c for c in found if c in CERTAINTIES), key=CERTAINTIES.index, default="")


def package_name(subject: Subject) -> str:
    """The name of the subject's package, as in a requirement; the subject's id without one."""
    return str(subject.facts.get("package") or subject.facts.get("name") or subject.id).replace("_", "-")


def _reason(result: CheckResult, subject: Subject) -> Reason:
    name, message = package_name(subject), _PREAMBLE.sub("", result.message)
    is_no = result.outcome is Outcome.FAIL and result.severity is Severity.ERROR
    is_plain = result.rule in REASONS and (is_no or (result.rule == "STK102" and subject.facts.get(_KIND) == "sdist"))
    is_named = subject.kind not in ("wheel", "package", "distribution") or f"{name} " in message
    return Reason(result.rule, message, "" if is_named and not is_plain else name, is_plain)


def _sentence(reasons: Sequence[Reason]) -> str:
    """One rule's messages about several packages, in few words."""
    names = list(dict.fromkeys(reason.package for reason in reasons if reason.package))
    if reasons[0].is_plain:
        one, several = REASONS[reasons[0].rule]
        return (one if len(names) == 1 else several).format(_listed(names))
    texts = list(dict.fromkeys(reason.text for reason in reasons))
    about = f"{_listed(names)}: " if names else ""
    return f"{about}{texts[0]}{and_more(0 if names else len(texts) - 1, before=' (')}" + ")" * (
        not names and len(texts) > 1
    )


def _listed(names: Sequence[str]) -> str:
    return joined(names) if len(names) <= _NAMED else summarised(names, _NAMED)


def _gpu_code(subject: Subject) -> Mapping[str, object]:
    code = subject.facts.get("gpu_code")
    return code if isinstance(code, Mapping) else {}


def _is_about_another(result: CheckResult, subject: Subject, gpu: str) -> bool:
    """Whether a finding about GPU code is not about ``gpu``, because the facts say that its code runs there."""
    if not gpu or result.rule not in OF_ONE_GPU or result.outcome is not Outcome.FAIL:
        return False
    products = _gpu_code(subject).get("products")
    known: Sequence[Mapping[str, object]] = products if isinstance(products, (list, tuple)) else ()
    how = {str(product["name"]): product["runs"] for product in known}
    refused = [name for name, runs in how.items() if runs == "none"]
    # If no product is refused, the finding is not about a product: it applies to every GPU.
    return bool(refused) and how.get(gpu, "none") != "none"
