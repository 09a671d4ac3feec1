"""Predict the effect of an install on installed frameworks, and which package requires it.

The installer's own dry run decides, in this environment or in a described one. For another platform uv resolves against
a folder with the described metadata; pip evaluates the markers of this machine (pypa/pip issues 11664 and 10050) and is
never used for another. A dry run lists installs and uninstalls; the modules that imports then find follow from the
import order (:mod:`wheel_checks.facts.pins.outcome`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from packaging.utils import canonicalize_name

from wheel_checks.answers.pins import answer_prediction
from wheel_checks.errors import SourceError, UsageError, WheelproofError
from wheel_checks.facts.pins.changes import PlannedInstall
from wheel_checks.facts.pins.outcome import Watch
from wheel_checks.facts.stack.facts import Conflict
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.formats.secrets import redact_text
from wheel_checks.model import Outcome, Report, Subject
from wheel_checks.phrases import joined
from wheel_checks.runner import run_rules
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.simple_index import SimpleIndex
from wheelproof.pins.installers import DryRun
from wheelproof.pins.predict.addresses import passed_variables, step_config, unknown_variables
from wheelproof.pins.predict.configuration import configured
from wheelproof.pins.predict.effect import Effect
from wheelproof.pins.predict.locked import plan_lock
from wheelproof.pins.predict.model import NOTHING_REQUESTED, Destination, PredictRequest
from wheelproof.pins.predict.plan import Planned, plan, refuse_builds
from wheelproof.pins.predict.step import Step, Verb
from wheelproof.pins.predict.uv_project import plan_project
from wheelproof.reporting import OpenReport
from wheelproof.wheels.asked import parse_requested
from wheelproof.wheels.handing import Handed, hand_over
from wheelproof.wheels.judging import unreadable


@dataclass(frozen=True, slots=True)
class Predicted:
    """The effect of one install: the subjects of the report, and the environment after it."""

    subjects: list[Subject]
    place: Destination


def predict(request: PredictRequest, client: HttpClient, index: SimpleIndex, steps: Sequence[Step] = ()) -> Report:
    """The report: for each installer one subject for the install, and one for each watched package.

    ``steps`` are commands that run one after the other, in place of the request. Without an answer the installer is
    undecided. Raises UsageError for an unknown rule prefix, for a platform that uv cannot resolve for, and for pip with
    the description of an environment of another platform.
    """
    opened = OpenReport("pins predict")
    subjects: list[Subject] = []
    if steps:
        subjects += list(_in_order(steps, request, client, index))
    else:
        for installer in request.installers:
            subjects += _judged(installer, request, client, index).subjects
    watch = Watch.of(request.place.order.copies, request.packages)
    if not any(map(watch.role, request.place.order.copies)) and not any(map(_was_there, subjects)):
        subjects = list(_without_a_framework(subjects, request))
    return opened.close(subjects, request.selection, cost=client.cost, answers=[answer_prediction(subjects)])


def _in_order(
    steps: Sequence[Step], request: PredictRequest, client: HttpClient, index: SimpleIndex
) -> Iterator[Subject]:
    """The subjects of steps, each in the environment that those before it leave."""
    programs = list(dict.fromkeys(step.program for step in steps if step.program))
    own = request.place.interior.prefix or (programs[0].removesuffix("/bin") if programs else "")
    for step in steps:
        if step.program and os.path.realpath(step.program.removesuffix("/bin")) != os.path.realpath(own):
            what = f"it works on another environment ({step.program}): predict that one separately (--python)"
            step = replace(step, unread=step.unread or what)  # noqa: PLW2901  # the step as it is understood
        for installer in step.installers or request.installers[:1]:
            predicted = _judged(installer, replace(request, step=step), client, index)
            yield from predicted.subjects
            request = replace(request, place=predicted.place)


def _judged(installer: str, request: PredictRequest, client: HttpClient, index: SimpleIndex) -> Predicted:
    """The prediction for one installer; undecided without an answer."""
    try:
        return judge(installer, request, client, index)
    except WheelproofError as error:
        if isinstance(error, UsageError) and request.step is None:
            raise
        return Predicted([unreadable(f"{installer}: {request.label}", "install", error)], request.place)


def _was_there(subject: Subject) -> bool:
    return subject.kind == "package" and bool(subject.facts.get("from"))


def _without_a_framework(subjects: Sequence[Subject], request: PredictRequest) -> Iterator[Subject]:
    """The subjects, of which the installs are open: nothing that could be lost is there."""
    what = f"nothing that matches {', '.join(request.packages)}" if request.packages else "no framework"
    sentence = f"{what} is installed there, so an install cannot affect it"
    for subject in subjects:
        if subject.kind != "install":
            yield subject
            continue
        rules = request.selection.rules_by_kind(("planned-install",))["planned-install"]
        results = run_rules(rules, PlannedInstall(open=(sentence,)), Expectations())
        open_ = tuple(result for result in results if result.outcome is Outcome.ERROR)
        kept = tuple(
            r for r in subject.results if not (open_ and r.rule == open_[0].rule and r.outcome is Outcome.PASS)
        )
        yield replace(subject, headline=subject.headline or sentence, results=(*kept, *open_))


def judge(installer: str, request: PredictRequest, client: HttpClient, index: SimpleIndex) -> Predicted:
    """The prediction for one installer. Raises WheelproofError without an answer."""
    request = replace(request, timeout=client.time_left(request.timeout))
    step = request.step
    unread = _why_unread(step, request.place) if step is not None else ()
    if unread:
        return _open(installer, request, Planned(DryRun({}, {}, {}), unread))
    if step is not None and step.verb in (Verb.NOTHING, Verb.APART):
        nothing = DryRun({}, {}, {})
        effect = Effect(installer, nothing, request, client, index)
        return Predicted(_subjects(installer, request, Planned(nothing), effect), request.place)
    if step is not None:
        request = _of_step(request, step)
        config, options = step_config(step, index.config)
        index, request = SimpleIndex(client, config), replace(request, options=(*options, *request.options))
    if step is None or step.verb not in (Verb.UNINSTALL, Verb.LOCKED):
        request, unknown = configured(installer, request, index.config.trust)
        if unknown:
            return _open(installer, request, Planned(DryRun({}, {}, {}), not_understood=unknown))
    planned, index = _planned(installer, request, client, index)
    effect = Effect(installer, planned.dry, request, client, index)
    planned = replace(planned, open=(*planned.open, *effect.overwriting.open))
    subjects = _subjects(installer, request, planned, effect)
    if step is not None and step.with_:
        return _overlaid(installer, request, client, index, subjects)
    return Predicted(subjects, request.place.after(effect.order))


def _open(installer: str, request: PredictRequest, planned: Planned) -> Predicted:
    """An install without a plan, since its command or its configuration is not understood."""
    return Predicted(_subjects(installer, request, planned, None), request.place)


def _why_unread(step: Step, place: Destination) -> tuple[str, ...]:
    """Why the effect of a step is unknown; empty if it is known."""
    unread = step.unread or _why_elsewhere(step, place)
    if unread:
        return (f"`{redact_text(step.text)}`: {unread}",)
    unknown = unknown_variables(step)
    return (f"what {joined(unknown)} means for `{redact_text(step.text)}` is unknown",) if unknown else ()


def _why_elsewhere(step: Step, place: Destination) -> str:
    """Why a command of the user works on another environment than that which was read; "" when it does not."""
    if not step.trusted or place.described:
        return ""
    if step.by_sudo and not step.program:
        return "sudo looks for the program on its own PATH: use an absolute path"
    if step.to_system and place.interior.is_virtual:
        return "--system makes it work on the Python of the system: predict that one (--python)"
    return ""


def _of_step(request: PredictRequest, step: Step) -> PredictRequest:
    """The request that a step is."""
    empty = step.verb in (Verb.UNINSTALL, Verb.SYNC, Verb.ADD, Verb.RUN, Verb.LOCKED)
    requested = (
        NOTHING_REQUESTED if empty else parse_requested(step.requirements, (), typed=step.typed, folder=step.project)
    )
    options = (*request.options, *(["--pre"] if step.pre and "--pre" not in request.options else []), *step.options)
    return replace(
        request,
        requested=requested,
        options=options,
        upgrade=request.upgrade or step.upgrade,
        to_user=request.to_user or step.to_user,
        folder=step.folder or request.folder,
        wheels_only=request.wheels_only or step.wheels_only,
        variables={**request.variables, **passed_variables(step)},
    )


def _planned(
    installer: str, request: PredictRequest, client: HttpClient, index: SimpleIndex
) -> tuple[Planned, SimpleIndex]:
    """The plan of an installer, and the index that it asks."""
    step = request.step
    if step is not None and step.verb is Verb.UNINSTALL:
        seen = request.place.seen_by(installer)
        names = map(canonicalize_name, step.requirements)
        return Planned(DryRun({}, {name: seen[name].version for name in names if name in seen}, {})), index
    if step is not None and step.verb is Verb.LOCKED:
        return plan_lock(step, request), index
    if step is not None and step.verb in (Verb.SYNC, Verb.ADD, Verb.RUN):
        return plan_project(step, request, client, index), index
    handed = _handed(installer, request, index)
    index = SimpleIndex(client, handed.config, handed.pinned)
    return _managed(request) or plan(installer, request, handed, client, index), index


def _overlaid(
    installer: str, request: PredictRequest, client: HttpClient, index: SimpleIndex, subjects: list[Subject]
) -> Predicted:
    """With the packages that ``uv run --with`` adds for one command."""
    step = request.step
    if step is None:
        return Predicted(subjects, request.place)
    request = replace(
        request, requested=parse_requested(step.with_, ()), step=replace(step, with_=(), verb=Verb.INSTALL)
    )
    handed = _handed(installer, request, index)
    index = SimpleIndex(client, handed.config, handed.pinned)
    satisfied = plan(installer, request, handed, client, index)
    if not satisfied.dry.installed and satisfied.dry.conflict is None:
        return Predicted(subjects, request.place)
    place = request.place.behind("the environment of --with")
    request = replace(request, place=place)
    planned = plan(installer, replace(request, place=place.empty), handed, client, index)
    effect = Effect(installer, planned.dry, request, client, index)
    return Predicted([*subjects, *_subjects(installer, request, planned, effect)], request.place)


def _managed(request: PredictRequest) -> Planned | None:
    """The plan of an install into an environment that only the system's package manager may change (PEP 668)."""
    allowed = request.may_change_managed or "--break-system-packages" in request.options or request.folder
    if not request.place.interior.is_managed or allowed:
        return None
    sentence = "the environment is managed by the system's package manager, so installers refuse to change it (PEP 668)"
    return Planned(DryRun({}, {}, {}, Conflict((sentence,))))


def _subjects(installer: str, request: PredictRequest, planned: Planned, effect: Effect | None) -> list[Subject]:
    rules = request.selection.rules_by_kind(("planned-install", "planned-change"))
    changes, dry = effect.changes() if effect is not None else [], planned.dry
    results = run_rules(
        rules["planned-install"], PlannedInstall(dry.conflict, planned.open, planned.not_understood), Expectations()
    )
    facts = {
        "installer": installer,
        "requested": [request.step.text] if request.step else list(request.requested.names),
        "target": request.place.target.label,
        "installed": len(dry.installed.keys() - dry.removed.keys()),
        "replaced": len(dry.installed.keys() & dry.removed.keys()),
        "removed": len(dry.removed.keys() - dry.installed.keys()),
    }
    headline = "; ".join(change.sentence for change in changes) or _nothing(request)
    label = f"{installer}: {request.label} on {request.place.target.label}"
    subjects = [Subject(label, "install", headline, facts, results)]
    for change in changes:
        row = {
            "installer": installer,
            "name": change.name,
            "role": change.role.value,
            "fate": change.fate.value,
            "from": change.before,
            "to": change.after,
            "build": change.build,
            "wheel": change.file_name,
            "demanded_by": [str(demand) for demand in change.chain],
            "broken_by": [*change.broken, *change.unfit],
        }
        results = run_rules(rules["planned-change"], change, Expectations())
        subjects.append(Subject(f"{change.name} under {installer}", "package", change.sentence, row, results))
    return subjects


def _nothing(request: PredictRequest) -> str:
    verb = request.step.verb if request.step else Verb.INSTALL
    return "it installs into a separate environment" if verb is Verb.APART else "no framework is affected"


def _handed(installer: str, request: PredictRequest, index: SimpleIndex) -> Handed:
    """The input of the installer. Raises SourceError if a package is omitted, which could require another torch."""
    handed = hand_over(request.requested, request.place.target, index.config)
    if handed.left_out:
        raise next(iter(handed.left_out.values()))
    watch = Watch.of(request.place.order.copies, request.packages)
    for project in handed.projects:
        if watch.role(project.name):
            raise SourceError(f"{project.name} would have to be built from a folder of the tree")
    refuse_builds(installer, request, handed)
    return handed
