"""What would an install do to the frameworks that are installed, and who demands that?

The installer's own dry run decides, in this environment or in one that is only described. For another platform uv
resolves against a folder that holds the metadata of what is described as installed; pip evaluates the markers of this
machine (pypa/pip issues 11664 and 10050) and is never asked about another. A dry run says what is installed and what
is uninstalled; what imports find afterwards follows from their order (:mod:`wheel_checks.facts.pins.outcome`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from wheel_checks.answers.pins import answer_prediction
from wheel_checks.errors import SourceError, UsageError, WheelproofError
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.pins.changes import Fate, PackageChange, PlannedInstall
from wheel_checks.facts.pins.import_order import Copy, ImportOrder
from wheel_checks.facts.pins.outcome import Watch, changes_between
from wheel_checks.facts.stack.facts import Conflict, Demand
from wheel_checks.facts.wheel.facts import Depth
from wheel_checks.facts.wheel.resolution import metadata_reader
from wheel_checks.formats.index_page import IndexFile, file_from_url
from wheel_checks.model import Report, Subject, Unavailable
from wheel_checks.runner import run_rules
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.targets.selection import choose
from wheelproof.pins.installers import PIP, UV, DryRun
from wheelproof.pins.predict.demands import DemandSearch
from wheelproof.pins.predict.import_order import position_of
from wheelproof.pins.predict.model import Destination, PredictRequest
from wheelproof.pins.predict.plan import Planned, plan, refuse_builds
from wheelproof.reporting import OpenReport
from wheelproof.wheels.handing import Handed, hand_over
from wheelproof.wheels.judging import read_planned, unreadable
from wheelproof.wheels.model import PlannedWheel


@dataclass(frozen=True, slots=True)
class Predicted:
    """What one install would do: the subjects of the report, and the environment after it."""

    subjects: list[Subject]
    place: Destination


def predict(request: PredictRequest, client: HttpClient, index: SimpleIndex) -> Report:
    """The report: for each installer one subject for the install, and one for each watched package.

    An installer that gives no answer is undecided. Raises UsageError for a rule prefix that means nothing, for a
    platform that uv cannot resolve for, and for pip with the description of an environment of another platform.
    """
    opened = OpenReport("pins predict")
    subjects: list[Subject] = []
    for installer in request.installers:
        try:
            subjects += judge(installer, request, client, index).subjects
        except UsageError:
            raise
        except WheelproofError as error:
            subjects.append(unreadable(f"{installer}: {request.asked.label}", "install", error))
    answer = answer_prediction(subjects)
    return opened.close(subjects, request.selection, cost=client.cost, answers=[answer])


def judge(installer: str, request: PredictRequest, client: HttpClient, index: SimpleIndex) -> Predicted:
    """What one installer would do. Raises WheelproofError when it gives no answer."""
    handed = _handed(installer, request, index)
    index = SimpleIndex(client, handed.config, handed.pinned)
    request = replace(request, timeout=client.time_left(request.timeout))
    planned = _managed(request) or plan(installer, request, handed, client, index)
    effect = _Effect(installer, planned.dry, request, client, index)
    return Predicted(list(_subjects(installer, request, planned, effect)), request.place.after(effect.order))


def _managed(request: PredictRequest) -> Planned | None:
    """The plan of an install into an environment that only the system's package manager may change (PEP 668)."""
    allowed = "--break-system-packages" in request.options or request.folder
    if not request.place.interior.is_managed or allowed:
        return None
    sentence = "the environment is managed by the system's package manager, and installers refuse it (PEP 668)"
    return Planned(DryRun({}, {}, {}, Conflict((sentence,))))


def _subjects(installer: str, request: PredictRequest, planned: Planned, effect: _Effect) -> list[Subject]:
    rules = request.selection.rules_by_kind(("planned-install", "planned-change"))
    changes, dry = effect.changes(), planned.dry
    install = PlannedInstall(dry.conflict, (*planned.open, *effect.unknown))
    results = run_rules(rules["planned-install"], install, Expectations())
    facts = {
        "installer": installer,
        "requested": list(request.asked.names),
        "target": request.place.target.label,
        "installed": len(dry.installed.keys() - dry.removed.keys()),
        "replaced": len(dry.installed.keys() & dry.removed.keys()),
        "removed": len(dry.removed.keys() - dry.installed.keys()),
    }
    headline = "; ".join(change.sentence for change in changes) or "no framework is installed"
    label = f"{installer}: {request.asked.label} on {request.place.target.label}"
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


def _handed(installer: str, request: PredictRequest, index: SimpleIndex) -> Handed:
    """What the installer is given. Raises SourceError when a package is left out: it could demand another torch."""
    handed = hand_over(request.asked, request.place.target, index.config)
    if handed.left_out:
        raise next(iter(handed.left_out.values()))
    watch = Watch.of(request.place.order.copies, request.packages)
    for project in handed.projects:
        if watch.role(project.name):
            raise SourceError(f"{project.name} would be built from a folder of the tree, and nothing is built")
    refuse_builds(installer, request, handed)
    return handed


class _Effect:
    """What imports find after a dry run became an install."""

    def __init__(
        self, installer: str, dry: DryRun, request: PredictRequest, client: HttpClient, index: SimpleIndex
    ) -> None:
        self.installer, self.dry, self.request = installer, dry, request
        self._client, self._index, self._place = client, index, request.place
        self._target = request.place.target
        self.watch = Watch.of(request.place.order.copies, request.packages)
        self._files: dict[str, IndexFile | Unavailable] = {}
        self.order = self._after()

    @property
    def unknown(self) -> tuple[str, ...]:
        """What keeps the whole question open: nothing that could be lost is there."""
        named = [name for name in self._place.order.copies if self.watch.role(name)]
        if named:
            return ()
        what = f"nothing that matches {', '.join(self.request.packages)}" if self.request.packages else "no framework"
        return (f"{what} is installed there, so there is nothing that an install could keep or lose",)

    def _after(self) -> ImportOrder:
        order, interior = self._place.order, self._place.interior
        folder = self._folder()
        if folder is None or self.dry.conflict is not None:
            return order
        new = {name: self._copy(name, version, folder) for name, version in self.dry.installed.items()}
        return order.after(new, {*self.dry.removed, *self.dry.installed}, self._takes_away(interior.own, folder))

    def _folder(self) -> int | None:
        """The position of the folder that the installer writes into; None when imports do not search it."""
        interior = self._place.interior
        if self.request.folder:
            return position_of(self.request.folder, interior.order.folders)
        if self._is_for_the_user:
            return position_of(interior.user, interior.order.folders)
        return interior.own[0] if interior.own else 0

    @property
    def _is_for_the_user(self) -> bool:
        """Whether pip installs into the user's site-packages: asked to, or since it may not write elsewhere."""
        interior = self._place.interior
        if self.installer != PIP or not interior.user or self.request.folder:
            return False
        return self.request.to_user or not (interior.is_writable or interior.is_virtual)

    def _takes_away(self, own: Sequence[int], folder: int) -> Callable[[Copy], bool]:
        """Which copies the installer uninstalls."""
        if self.request.folder:
            return lambda copy: copy.folder == folder
        if self.installer == UV:
            return lambda copy: copy.folder in own
        seen, interior = self._place.order.everything, self._place.interior

        def by_pip(copy: Copy) -> bool:
            if seen.get(copy.name) is not copy:  # pip knows of the first one only
                return False
            if self._is_for_the_user:
                return copy.folder == folder
            place = interior.order.folders[copy.folder]
            return not interior.is_virtual or not interior.prefix or _is_below(place, interior.prefix)

        return by_pip

    def _copy(self, name: str, version: str, folder: int) -> Copy:
        old = self._place.order.visible(name)
        if old is not None and old.version == version and name not in self.dry.removed and self.installer == UV:
            return replace(old, folder=folder)
        if name in self.dry.requirements:
            return Copy(name, version, folder, tuple(_parsed(self.dry.requirements[name])))
        if not self.watch.role(name):
            return Copy(name, version, folder)
        file = self.file(name)
        if isinstance(file, Unavailable):
            return Copy(name, version, folder, file)
        try:
            requirements = tuple(metadata_reader(self._client)(file).requirements)
        except WheelproofError as error:
            return Copy(name, version, folder, Unavailable(str(error)))
        return Copy(name, version, folder, requirements)

    def file(self, name: str) -> IndexFile | Unavailable:
        """The wheel of a package that the installer would take: the one at its URL, else what the index has."""
        if name not in self._files:
            self._files[name] = self._find_file(name, self.dry.installed[name], self.dry.urls.get(name, ""))
        return self._files[name]

    def _find_file(self, name: str, version: str, url: str) -> IndexFile | Unavailable:
        try:
            file = file_from_url(url, "") if url else None
            if file is not None:
                return file
            choice = choose(Requirement(f"{name}=={version}"), self._index.files(name).files, self._target, pre=True)
        except (WheelproofError, ValueError) as error:
            return Unavailable(str(error))
        return choice.chosen or Unavailable(choice.explanation)

    def changes(self) -> list[PackageChange]:
        """What becomes of each watched package, with the wheel and the demand behind a change."""
        found = changes_between(
            self._place.order, self.order, self.watch, self._target.markers(), self.installer, self._target.machine
        )
        search = DemandSearch(
            self.request.asked, self._place.packages, self.dry.installed, self._target, self._client, self._index
        )
        return [self._explained(change, search, found) for change in found]

    def _explained(self, change: PackageChange, search: DemandSearch, others: Sequence[PackageChange]) -> PackageChange:
        name = change.name
        taken = name in self.dry.installed and change.fate not in (Fate.KEPT, Fate.REMOVED, Fate.OVERWRITTEN)
        file_name, build = "", None
        if taken:
            file_name, build = self._taken(name)
        culprit = next((other for other in change.culprits if other in self.dry.installed), "")
        chain: tuple[Demand, ...] = ()
        if change.is_lost and change.before:
            chain = search.chain(name, change.before)
        elif culprit:
            known = next((other.before for other in others if other.name == culprit), "")
            chain = search.chain(culprit, known)
        return replace(change, accelerator=build, file_name=file_name, chain=chain, upgrade=self.request.upgrade)

    def _taken(self, name: str) -> tuple[str, AcceleratorFacts | Unavailable]:
        """The wheel that an installer would take, by its file name ("" for none), and what it is built for."""
        file = self.file(name)
        if isinstance(file, Unavailable):
            return "", file
        location = path_of(file.url) if is_file_url(file.url) else file.url
        try:
            planned = PlannedWheel(file.file_name, location, file, self._target)
            return file.file_name, read_planned(planned, Depth.QUICK, self._client).accelerator
        except (WheelproofError, ValueError) as error:
            return file.file_name, Unavailable(str(error))


def _parsed(texts: Sequence[str]) -> list[Requirement]:
    found = []
    for text in texts:
        try:
            found.append(Requirement(text))
        except InvalidRequirement:
            continue
    return found


def _is_below(path: str, folder: str) -> bool:
    try:
        return Path(path).resolve().is_relative_to(Path(folder).resolve())
    except (OSError, RuntimeError):
        return False
