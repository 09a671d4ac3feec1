"""The copy of a package that an import finds, before and after an install.

Python searches the folders of ``sys.path`` in order: PYTHONPATH, the environment's site-packages and folders of its
.pth files, the user's site-packages, those of the base installation. An installer sees some of these folders, writes
into one, and uninstalls only from its own. So a package that is not removed may still be lost: a second copy that is in
front of it shadows it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from packaging.requirements import Requirement

from wheel_checks.model import Unavailable


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy of a distribution. ``folder`` is the position of its folder in the import order.

    ``requirements`` is Unavailable if only name and version are known. ``modules`` are its import names; ``is_new``
    says that an install puts it there. If the requirements are unknown, ``may_require`` are the packages that some
    build of this release requires, None when that is unknown either.
    """

    name: str
    version: str
    folder: int
    requirements: tuple[Requirement, ...] | Unavailable = ()
    modules: frozenset[str] = frozenset()
    is_new: bool = False
    may_require: frozenset[str] | None = None

    @property
    def label(self) -> str:
        """Such as "torch 2.9.1+cu128"."""
        return f"{self.name} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class ImportOrder:
    """The ``folders`` that imports search, in order, and the copies in them by normalised name, the first one first.

    ``loose`` maps packages to the imported file if it belongs to none of the copies: a source checkout on PYTHONPATH,
    say. No installer changes it.
    """

    folders: tuple[str, ...]
    copies: Mapping[str, tuple[Copy, ...]] = field(default_factory=dict)
    loose: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, folders: Iterable[str], copies: Iterable[Copy], loose: Mapping[str, str] | None = None) -> ImportOrder:
        """The order with these copies."""
        found: dict[str, list[Copy]] = {}
        for copy in sorted(copies, key=lambda copy: copy.folder):
            found.setdefault(copy.name, []).append(copy)
        return cls(tuple(folders), {name: tuple(rows) for name, rows in found.items()}, dict(loose or {}))

    def visible(self, name: str) -> Copy | None:
        """The copy that imports find; None when imports find no copy."""
        return next(iter(self.copies.get(name, ())), None)

    @property
    def everything(self) -> dict[str, Copy]:
        """The copy of each package that imports find."""
        return {name: rows[0] for name, rows in self.copies.items() if rows}

    def after(
        self,
        new: Mapping[str, Copy],
        gone: Collection[str],
        takes_away: Callable[[Copy], bool],
    ) -> ImportOrder:
        """The order after an install that puts ``new`` into place, and uninstalls the packages ``gone``, namely the
        copies for which ``takes_away`` is true.
        """
        copies: dict[str, list[Copy]] = {name: list(rows) for name, rows in self.copies.items()}
        for name in gone:
            copies[name] = [copy for copy in copies.get(name, ()) if not takes_away(copy)]
        for name, copy in new.items():
            rows = [row for row in copies.get(name, ()) if row.folder != copy.folder]
            copies[name] = sorted([*rows, replace(copy, is_new=True)], key=lambda row: row.folder)
        return replace(self, copies={name: tuple(rows) for name, rows in copies.items() if rows})
