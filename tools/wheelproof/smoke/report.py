"""Runs the suite, turns what it says into facts, and judges them: the installation, each kernel, each target."""

import signal
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from wheel_checks.catalogue import get_rule
from wheel_checks.commands import in_words
from wheel_checks.errors import FormatError, UsageError
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.gpu.compile_targets import products_of
from wheel_checks.facts.kernels.document import parse_smoke_document
from wheel_checks.facts.kernels.facts import (
    MUTANTS,
    InstallationFacts,
    KernelFacts,
    NoDocument,
    SmokeDocument,
    TargetFacts,
)
from wheel_checks.facts.kernels.gpus import GpuFacts
from wheel_checks.model import Report, Rule, Subject
from wheel_checks.runner import run_rules
from wheelproof.reporting import OpenReport, Selection
from wheelproof.smoke.child import SuiteEnd, run_suite
from wheelproof.smoke.overview import environment_phrase, gpu_headline, kernel_headline, overview, target_headline
from wheelproof.smoke.request import SmokeRequest

ENDED = "KRN001"  # holds whatever rules were selected: a suite without a report must not look like a pass
_USAGE, _INTERRUPTED, _OWN_ENDS = 2, 130, (0, 1, 3)  # exit codes of the suite


def smoke(request: SmokeRequest, *, deadline: float, selection: Selection, quiet: bool = False) -> tuple[Report, int]:
    """Run the suite for at most ``deadline`` seconds and judge what it reports, in part where it did not end.

    The number is that of the signal that interrupted this process, 0 for none. Raises UsageError for what the suite or
    the catalogue of rules does not know, SourceError when the interpreter cannot be started, KeyboardInterrupt or
    SystemExit when the suite was interrupted and had nothing to report yet.
    """
    opened = OpenReport("smoke")
    rules = selection.rules_by_kind(("installation", "gpu", "kernel", "gpu-target"))
    ended = run_suite(request.python, request.options(), deadline=deadline, quiet=quiet)
    outcome = read_outcome(ended, deadline)
    kernels, targets = _kernels(request, outcome), _targets(request, outcome)
    subjects = (
        _installation(request, outcome, ended.words, rules["installation"]),
        *(_subject(g.gpu.label, "gpu", gpu_headline(g), _gpu_facts(g), g, rules["gpu"]) for g in _gpus(outcome)),
        *(_subject(k.label, "kernel", kernel_headline(k), _kernel_facts(k), k, rules["kernel"]) for k in kernels),
        *(
            _subject(_target_id(t), "gpu-target", target_headline(t), _target_facts(t), t, rules["gpu-target"])
            for t in targets
        ),
    )
    report = opened.close(subjects, selection, overview=overview(request, outcome, kernels, targets))
    return report, ended.stopped_by


def read_outcome(ended: SuiteEnd, deadline: float) -> SmokeDocument | NoDocument:
    """The suite's report, or why there isn't one. Raises UsageError and KeyboardInterrupt as :func:`smoke` says."""
    if ended.report is not None:
        try:
            document = parse_smoke_document(ended.report)
            return replace(document, partial=_why_partial(document, ended, deadline)) if document.partial else document
        except FormatError as error:
            expected = f"; expected {error.expected}" if error.expected else ""
            return NoDocument(f"{error.what}{expected}", ended.words)
    if ended.timed_out:
        what = f"the suite did not finish within {deadline:g} s, and was killed"
        return NoDocument(what, ended.words, "If it needs longer, increase --deadline SECONDS.")
    if ended.status == _USAGE:
        raise UsageError(ended.words.rpartition("error: ")[2] or "the suite does not support this option")
    if ended.status in (_INTERRUPTED, -signal.SIGINT):
        raise KeyboardInterrupt
    return NoDocument(f"the suite {_how(ended)}, without a report", ended.words, _hint(ended))


def _why_partial(document: SmokeDocument, ended: SuiteEnd, deadline: float) -> str:
    """What ended the suite; where it ended by itself, it says why."""
    if ended.status in _OWN_ENDS and not ended.timed_out:
        return document.partial
    if ended.stopped_by:
        return f"interrupted by {_signal_name(ended.stopped_by)}"
    if ended.timed_out:
        return f"stopped at the deadline of {deadline:g} s"
    return f"the suite {_how(ended)}"


def _how(ended: SuiteEnd) -> str:
    return f"exited with code {ended.status}" if ended.status >= 0 else f"was killed by {_signal_name(-ended.status)}"


def _hint(ended: SuiteEnd) -> str:
    return "See the end of its output." if ended.words else "It printed nothing; check that the interpreter works."


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _kernels(request: SmokeRequest, outcome: SmokeDocument | NoDocument) -> list[KernelFacts]:
    if isinstance(outcome, NoDocument):
        return []
    gpus = outcome.environment.gpus if len(outcome.environment.gpus) > 1 and outcome.mode != MUTANTS else ()
    found = [
        KernelFacts(
            name,
            tuple(case for case in outcome.cases if case.kernel == name and (not gpu or case.gpu == gpu.uuid)),
            tuple(speed for speed in outcome.speeds if speed.kernel == name and (not gpu or speed.gpu == gpu.uuid)),
            request.replay(outcome.seed, name, gpu.uuid if gpu else ""),
            gpu,
            tuple(mutant for mutant in outcome.mutants if mutant.kernel == name),
        )
        for gpu in (gpus or [None])
        for name in sorted({run.kernel for run in (*outcome.runs, *outcome.mutants)})  # families run in any order
    ]
    return [kernel for kernel in found if kernel.runs or kernel.mutants]


def _gpus(outcome: SmokeDocument | NoDocument) -> list[GpuFacts]:
    """The GPUs that were tried, in a run that says what was measured of each."""
    if isinstance(outcome, NoDocument):
        return []
    readings = {reading.gpu: reading for reading in outcome.readings}
    return [GpuFacts(gpu, readings[gpu.uuid]) for gpu in outcome.environment.gpus if gpu.uuid in readings]


def _gpu_facts(facts: GpuFacts) -> dict[str, Any]:
    return {**asdict(facts.gpu), **asdict(facts.reading), "rates_compared": facts.numbers()}


def _targets(request: SmokeRequest, outcome: SmokeDocument | NoDocument) -> list[TargetFacts]:
    """The targets on which the suite reports, in the order in which they were asked for."""
    if isinstance(outcome, NoDocument):
        return []
    compiled = sorted(outcome.compiled, key=lambda compilation: compilation.kernel)  # they arrive in any order
    told = dict.fromkeys(compilation.target for compilation in compiled)
    names = dict.fromkeys((*(name for name in request.targets if name in told), *told))
    return [TargetFacts(name, tuple(c for c in compiled if c.target == name), products_of(name)) for name in names]


def _installation(
    request: SmokeRequest, outcome: SmokeDocument | NoDocument, words: str, rules: Sequence[Rule]
) -> Subject:
    facts = InstallationFacts(request.python, outcome, words)
    if isinstance(outcome, NoDocument):
        known = {"interpreter": request.python, "last_words": outcome.last_words}
        return _subject(request.python, "installation", "gave no report", known, facts, [get_rule(ENDED)])
    told = dict(_installation_facts(request, outcome))
    if outcome.partial:  # a rule that holds whatever was selected, as above
        rules = [*rules, *(rule for rule in [get_rule(ENDED)] if rule.id not in {each.id for each in rules})]
    return _subject(request.python, "installation", environment_phrase(outcome), told, facts, rules)


def _subject(name: str, kind: str, headline: str, facts: dict[str, Any], judged: Any, rules: Sequence[Rule]) -> Subject:
    return Subject(name, kind, headline, facts, run_rules(rules, judged, Expectations()))


def _installation_facts(request: SmokeRequest, document: SmokeDocument) -> Iterator[tuple[str, Any]]:
    yield "interpreter", request.python
    yield from asdict(document.environment).items()
    for name in ("mode", "device", "level", "seed", "verdict", "message", "partial", "seconds"):
        yield name, getattr(document, name)
    yield "replay", in_words(request.replay(document.seed))
    if document.calibration:
        yield "calibration", asdict(document.calibration)
    if document.families:
        yield "families", [asdict(family) for family in document.families]
    yield "probes", {probe.name: probe.ending for probe in document.probes}
    yield "rates", {name: rate for probe in document.probes for name, rate in probe.rates.items()}
    yield "left_out", [asdict(record) for record in document.left_out]


def _kernel_facts(kernel: KernelFacts) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "cases": [asdict(case) for case in kernel.cases],
        "speeds": [asdict(speed) for speed in kernel.speeds],
    }
    if kernel.mutants:
        caught, judged = kernel.score
        facts |= {"mutants": [asdict(mutant) for mutant in kernel.mutants], "caught": caught, "judged": judged}
    return facts


def _target_facts(target: TargetFacts) -> dict[str, Any]:
    return {
        "target": target.target,
        "products": target.products,
        "sound": target.sound,
        "impossible": target.impossible,
        "compiled": [asdict(compilation) for compilation in target.compiled],
    }


def _target_id(target: TargetFacts) -> str:
    return f"{target.target} ({', '.join(target.products)})" if target.products else target.target
