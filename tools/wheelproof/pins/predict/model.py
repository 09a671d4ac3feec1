"""The subjects of a prediction: an install, its environment, and how the installer is queried."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from wheel_checks.facts.pins.import_order import Copy, ImportOrder
from wheel_checks.facts.stack.facts import LinkedPackage
from wheel_checks.formats.secrets import redact_text
from wheel_checks.model import Unavailable
from wheel_checks.targets.target import Target
from wheelproof.pins.installers import DEFAULT_TIMEOUT, PIP, UV
from wheelproof.pins.predict.import_order import Interior
from wheelproof.pins.predict.step import Step
from wheelproof.reporting import EVERY_RULE, Selection
from wheelproof.wheels.asked import Requested
from wheelproof.wheels.declared_model import Declared

NOTHING_REQUESTED = Requested((), (), (), Declared())


@dataclass(frozen=True, slots=True)
class Destination:
    """The destination of an install. ``python`` is the interpreter of an environment, whose ``interior`` was read.

    ``described`` is True when the packages were named, or are those after another install: no installer finds them.
    """

    target: Target
    interior: Interior
    python: str = ""
    described: bool = False
    is_named: bool = False  # by the user, so that no variable chooses another

    @classmethod
    def of(cls, target: Target, packages: Mapping[str, str]) -> Destination:
        """An environment that is only described, by the versions of its packages."""
        unknown = Unavailable("only its name and version are known")
        copies = [Copy(name, version, 0, unknown) for name, version in packages.items()]
        return cls(target, Interior(ImportOrder.of(("site-packages",), copies)), described=True)

    @property
    def order(self) -> ImportOrder:
        """The import order there."""
        return self.interior.order

    @property
    def packages(self) -> dict[str, LinkedPackage]:
        """The installed packages as pip sees them: the copies that imports find."""
        return {name: _linked(copy) for name, copy in self.order.everything.items()}

    @property
    def own(self) -> dict[str, Copy]:
        """The installed packages as uv sees them: those in the environment's own folders."""
        rows = ((name, copy) for name, copies in self.order.copies.items() for copy in copies)
        found: dict[str, Copy] = {}
        for name, copy in rows:
            if copy.folder in self.interior.own:
                found.setdefault(name, copy)
        return found

    def seen_by(self, installer: str) -> dict[str, Copy]:
        """The copies that an installer takes for installed."""
        return self.own if installer == UV else self.order.everything

    def behind(self, folder: str) -> Destination:
        """The environment with another folder in front of it, into which installers write."""
        copies = [replace(copy, folder=copy.folder + 1) for rows in self.order.copies.values() for copy in rows]
        order = ImportOrder.of((folder, *self.order.folders), copies, self.order.loose)
        return replace(self, interior=replace(self.interior, order=order, own=(0,)), described=True)

    @property
    def empty(self) -> Destination:
        """The same without any package."""
        order = ImportOrder(self.order.folders)
        return replace(self, interior=replace(self.interior, order=order), described=True)

    def after(self, order: ImportOrder) -> Destination:
        """The environment after an install that is only planned."""
        return replace(self, interior=replace(self.interior, order=order), described=True)


def _linked(copy: Copy) -> LinkedPackage:
    requirements = () if isinstance(copy.requirements, Unavailable) else copy.requirements
    return LinkedPackage(copy.name, copy.version, requirements)


@dataclass(frozen=True, slots=True)
class PredictRequest:
    """An install: its packages, place and installers. ``options`` are passed on to them (indexes, --pre).

    ``build`` lets them build source archives, which runs their code; else results of builds are undecided. ``packages``
    are names and globs inspected with the families. ``folder`` and ``to_user`` are the place, ``wheels_only`` excludes
    source archives. ``step`` is the command of the request, None only for requirements.
    """

    requested: Requested
    place: Destination
    installers: tuple[str, ...] = (UV, PIP)
    options: tuple[str, ...] = ()
    upgrade: bool = False
    build: bool = False
    selection: Selection = EVERY_RULE
    timeout: float = DEFAULT_TIMEOUT
    variables: Mapping[str, str] = field(default_factory=lambda: os.environ)
    packages: tuple[str, ...] = ()
    to_user: bool = False
    folder: str = ""
    wheels_only: bool = False
    may_change_managed: bool = False  # an environment of the system's package manager
    step: Step | None = None

    @property
    def label(self) -> str:
        """The request, in words."""
        return redact_text(self.step.text) if self.step else self.requested.label
