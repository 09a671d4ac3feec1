"""The packages that imports find after an install, and the packages that require the changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.errors import WheelproofError
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.pins.changes import Fate, PackageChange, Role
from wheel_checks.facts.pins.import_order import Copy, ImportOrder
from wheel_checks.facts.pins.outcome import Watch, changes_between
from wheel_checks.facts.stack.facts import Demand
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.resolution import metadata_reader
from wheel_checks.formats.index.file_names import sdist_version
from wheel_checks.formats.index.page import IndexFile, file_from_url
from wheel_checks.model import Unavailable
from wheel_checks.parsing import requirements_in, version_or_none
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.targets.selection import choose
from wheelproof.pins.installers import PIP, UV, DryRun
from wheelproof.pins.predict.demands import DemandSearch
from wheelproof.pins.predict.import_order import position_of
from wheelproof.pins.predict.model import PredictRequest
from wheelproof.pins.predict.overwriting import Overwriting, Wheel, overwriting
from wheelproof.wheels.judging import read_planned
from wheelproof.wheels.model import PlannedWheel


class Effect:
    """The packages that imports find after an install."""

    def __init__(
        self, installer: str, dry: DryRun, request: PredictRequest, client: HttpClient, index: SimpleIndex
    ) -> None:
        self.installer, self.dry, self.request = installer, dry, request
        self._client, self._index, self._place = client, index, request.place
        self._target = request.place.target
        self.watch = Watch.of(request.place.order.copies, request.packages)
        self._files: dict[str, IndexFile | Unavailable] = {}
        self.order = self._after()
        self.overwriting = self._overwriting()

    def _after(self) -> ImportOrder:
        order, interior = self._place.order, self._place.interior
        folder = self._folder()
        if folder is None or self.dry.conflict is not None:
            return order
        new = {name: self._copy(name, version, folder) for name, version in self.dry.installed.items()}
        return order.after(new, {*self.dry.removed, *self.dry.installed}, self._takes_away(interior.own, folder))

    def _overwriting(self) -> Overwriting:
        """The kept packages over whose files the wheels of the plan write."""
        folder = self._folder()
        if folder is None or self.dry.conflict is not None:
            return Overwriting()
        kept = self._place.order.everything
        held = [copy for name, copy in kept.items() if self.watch.role(name) and self.order.visible(name) is copy]
        return overwriting(self._place.order, folder, held, self.dry.installed, self._wheel, self._client)

    def _wheel(self, name: str) -> Wheel:
        """The wheel that the installer would take; None if it would build a source archive."""
        file = self.file(name)
        is_built = self._has_archive(name) if isinstance(file, Unavailable) else not file.is_wheel
        return None if is_built else file

    def _has_archive(self, name: str) -> bool:
        wanted = version_or_none(self.dry.installed[name])
        try:
            versions = [sdist_version(file.file_name, name) for file in self._index.files(name).files]
        except WheelproofError:
            return False
        return wanted is not None and wanted in [version_or_none(text) for text in versions if text]

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
        """Whether pip installs into the user's site-packages: on request, or since it may not write elsewhere."""
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
            return Copy(name, version, folder, tuple(requirements_in(self.dry.requirements[name])))
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
        """The wheel of a package that the installer would take: at its URL, else from the index."""
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
        """The change of each watched package, with the wheel and the demand after a change."""
        before = self._with_names(self._place.order)
        found = changes_between(
            before,
            self.order,
            self.watch,
            self._target.markers(),
            self.installer,
            self._target.machine,
            self.overwriting.by,
        )
        search = DemandSearch(
            self.request.requested, self._place.packages, self.dry.installed, self._target, self._client, self._index
        )
        return [self._explained(change, search, found) for change in found]

    def _with_names(self, order: ImportOrder) -> ImportOrder:
        """The order with the requirements of a described framework's builds on the index, if relevant."""
        copies = dict(order.copies)
        is_news = any(self.watch.role(name) is Role.LIBRARY for name in self.dry.installed)
        for name, rows in order.copies.items():
            if is_news and isinstance(rows[0].requirements, Unavailable) and self.watch.role(name) is Role.ANCHOR:
                copies[name] = (replace(rows[0], may_require=self._names_of(rows[0])), *rows[1:])
                if self.order.copies.get(name) == rows:
                    self.order = replace(self.order, copies={**self.order.copies, name: copies[name]})
        return replace(order, copies=copies)

    def _names_of(self, copy: Copy) -> frozenset[str] | None:
        """The packages that a build of this release on the index requires, on any machine; None if none is found."""
        found: set[str] = set()
        release = Version(copy.version).public
        for machine in ("x86_64", "aarch64"):
            target = replace(self._target, machine=machine)
            try:
                choice = choose(Requirement(f"{copy.name}=={release}"), self._index.files(copy.name).files, target)
                if choice.chosen is None:
                    return None
                requirements = metadata_reader(self._client)(choice.chosen).requirements
            except (WheelproofError, ValueError):
                return None
            found |= {str(canonicalize_name(requirement.name)) for requirement in requirements}
        return frozenset(found)

    def _explained(self, change: PackageChange, search: DemandSearch, others: Sequence[PackageChange]) -> PackageChange:
        name = change.name
        taken = name in self.dry.installed and change.fate not in (Fate.KEPT, Fate.REMOVED, Fate.OVERWRITTEN)
        file_name, build = "", None
        if taken and change.role is not Role.LIBRARY:
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
        """The wheel that an installer would take, by its file name ("" if none), and its accelerator."""
        file = self.file(name)
        if isinstance(file, Unavailable):
            return "", file
        location = path_of(file.url) if is_file_url(file.url) else file.url
        try:
            planned = PlannedWheel(file.file_name, location, file, self._target)
            return file.file_name, read_planned(planned, Depth.QUICK, self._client).accelerator
        except (WheelproofError, ValueError) as error:
            return file.file_name, Unavailable(str(error))


def _is_below(path: str, folder: str) -> bool:
    try:
        return Path(path).resolve().is_relative_to(Path(folder).resolve())
    except (OSError, RuntimeError):
        return False
