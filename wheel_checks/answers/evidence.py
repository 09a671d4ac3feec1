"""What the results of a subject say about a question: reasons for no, and what leaves it open."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wheel_checks.answers.questions import FOLLOWS_FROM, OF_ONE_GPU, OPEN_BY_A_WARNING, REASONS
from wheel_checks.model import CheckResult, Outcome, Severity, Subject, Verdict
from wheel_checks.phrases import joined, summarised

_RANK = (Verdict.PASS, Verdict.UNDECIDED, Verdict.FAIL)
UNREAD = "WHL000"  # stands in for all rules of a subject that could not be read
_NAMED = 2  # packages that a reason names
CERTAINTIES = ("exact", "sampled", "declared")  # from the best to the weakest


class Reason(NamedTuple):
    """What decides, in words, and the rule that found it; "" for a rule that was not run.

    ``package`` is the one that the words are about, "" where they name it.
    """

    rule: str
    text: str
    package: str = ""


@dataclass(frozen=True, slots=True)
class Evidence:
    """``no`` are reasons against, ``left_open`` what is not decided, each once."""

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
        """What decides, without the packages' names."""
        return tuple(dict.fromkeys(reason.text for reason in self.no or self.left_open))

    @property
    def reasons(self) -> tuple[str, ...]:
        """What decides: the reasons against, else what is open; what is said of several packages once."""
        packages: dict[str, list[str]] = {}
        for reason in self.no or self.left_open:
            packages.setdefault(reason.text, []).append(reason.package)
        about = {text: summarised(list(filter(None, dict.fromkeys(names))), _NAMED) for text, names in packages.items()}
        return tuple(f"{names}: {text}" if names else text for text, names in about.items())

    @property
    def rules(self) -> tuple[str, ...]:
        """The ids of the rules that decide."""
        return tuple(dict.fromkeys(reason.rule for reason in self.no or self.left_open if reason.rule))


def gather(subject: Subject, deciding: Collection[str], gpu: str = "", *, several: bool = False) -> Evidence:
    """The evidence of one subject for a question that the rules ``deciding`` answer; "" is no ``gpu``.

    Every error counts, whatever its rule, and everything that could not be checked. A deciding rule that was not run,
    was skipped or was silenced leaves the question open. ``several`` GPUs are named in the reasons.
    """
    counting = [r for r in subject.results if subject.concerns_reader(r) and not _is_about_another(r, subject, gpu)]
    worst: dict[str, Verdict] = {}
    for result in counting:
        worst[result.rule] = max(worst.get(result.rule, Verdict.PASS), _counts_as(result, deciding), key=_RANK.index)
    no: list[Reason] = []
    left_open: list[Reason] = []
    for result in counting:
        verdict = _counts_as(result, deciding)
        causes = [worst.get(cause, Verdict.PASS) for cause in FOLLOWS_FROM.get(result.rule, ())]
        if verdict is Verdict.PASS or any(_RANK.index(cause) >= _RANK.index(verdict) for cause in causes):
            continue  # a root fact that weighs as much is the reason
        reason = _reason(result, subject, gpu if several else "it")
        (no if verdict is Verdict.FAIL else left_open).append(reason)
    run = {result.rule for result in subject.results}
    missing = [] if UNREAD in run else [rule for rule in deciding if rule not in run]
    if missing:
        left_open.append(Reason("", f"{joined(missing)} {'was' if len(missing) == 1 else 'were'} not run"))
    return Evidence(tuple(dict.fromkeys(no)), tuple(dict.fromkeys(left_open)))


def _counts_as(result: CheckResult, deciding: Collection[str]) -> Verdict:
    """What one result says of the question: an error is a no, what was not checked leaves it open."""
    if result.outcome is Outcome.FAIL:
        if result.severity is Severity.ERROR:
            return Verdict.FAIL
        is_open = result.rule in deciding and result.rule in OPEN_BY_A_WARNING
        return Verdict.UNDECIDED if is_open else Verdict.PASS
    if result.outcome is Outcome.ERROR or (result.outcome is Outcome.SKIP and result.rule in deciding):
        return Verdict.UNDECIDED
    return Verdict.PASS


def certainty_of(subjects: Iterable[Subject]) -> str:
    """The weakest certainty of the GPU code of the subjects that have some; "" when none has."""
    found = [code.get("certainty") for code in map(_gpu_code, subjects) if code.get("products")]
    return max((c for c in found if c in CERTAINTIES), key=CERTAINTIES.index, default="")


def package_name(subject: Subject) -> str:
    """The name of the package that the subject is, as in a requirement; the subject's id when it has none."""
    return str(subject.facts.get("package") or subject.facts.get("name") or subject.id).replace("_", "-")


def _reason(result: CheckResult, subject: Subject, gpu: str) -> Reason:
    """The finding in few words, or its message with the package, unless that names it."""
    form = REASONS.get(result.rule) if result.outcome is Outcome.FAIL else None
    name, message = package_name(subject), result.message
    if form is not None:
        return Reason(result.rule, form.format(package=name, gpu=gpu or "it"))
    is_named = subject.kind not in ("wheel", "package", "distribution") or name in message.replace("_", "-")
    return Reason(result.rule, message, "" if is_named else name)


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
    # Where no product is refused the finding is about something else than the facts tell: it counts for every GPU.
    return bool(refused) and how.get(gpu, "none") != "none"
