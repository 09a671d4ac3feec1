"""Wheels to judge, options of judging, and judged wheels."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from wheel_checks.facts.archive.facts import MAX_READ
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.index.page import IndexFile, OtherListing
from wheel_checks.model import Subject
from wheel_checks.targets.target import Target
from wheelproof.reporting import EVERY_RULE, Selection

if TYPE_CHECKING:  # depth quick need not load them
    from wheel_checks.facts.gpu.targets import Product


@dataclass(frozen=True, slots=True)
class PlannedWheel:
    """A wheel to read: its place, its index entry, and the project's listing.

    ``gpus`` are the GPUs that it must run on, None for all expected ones. ``other_listings`` are entries of other
    indexes for that file name. ``extras`` are the requested ones. ``companions`` are the wheels installed with it, if
    known; then a wheel that was not ``requested`` for is read only as far as it may link to requested ones.
    """

    file_name: str
    location: Path | str
    listing: IndexFile | None = None
    target: Target | None = None
    listed: tuple[IndexFile, ...] = ()
    gpus: tuple[Product, ...] | None = None
    other_listings: tuple[OtherListing, ...] = ()
    extras: frozenset[str] = frozenset()
    companions: tuple[PlannedWheel, ...] | None = field(default=None, compare=False, repr=False)
    requested: bool = True

    @property
    def is_dependency(self) -> bool:
        """True for a wheel of a stack that only others ask for."""
        return self.companions is not None and not self.requested


@dataclass(frozen=True, slots=True)
class Judgement:
    """How to judge: expectations, rules, depth, and the limit of streamed bytes of a wheel.

    ``upload`` reads the metadata that an index checks at upload.
    """

    expectations: Expectations = field(default_factory=Expectations)
    selection: Selection = EVERY_RULE
    depth: Depth = Depth.QUICK
    max_read: int = MAX_READ
    upload: bool = False


class Progress(Protocol):
    """Who learns how far a run is; any thread may call ``done``."""

    def planned(self, wheels: int, *, alike: bool = False) -> None:
        """So many wheels will be read; if they are ``alike``, each takes about as long as another."""

    def done(self) -> None:
        """One more wheel was read."""


class Silent:
    """A :class:`Progress` that shows nothing."""

    def planned(self, wheels: int, *, alike: bool = False) -> None:
        """Say nothing."""

    def done(self) -> None:
        """Say nothing."""


@dataclass(frozen=True, slots=True)
class JudgedWheel:
    """A planned wheel: its subject so far, and its facts, for the comparison with others; None when unreadable.

    ``packages`` are the import packages that are known to be its project's own.
    """

    planned: PlannedWheel
    subject: Subject
    facts: WheelFacts | None = None
    packages: frozenset[str] = frozenset()
