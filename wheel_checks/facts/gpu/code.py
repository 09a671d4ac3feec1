"""The GPU code of a wheel, library by library, and by which of them the wheel is judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from wheel_checks.facts.accelerator.signals import CUDA, ROCM
from wheel_checks.facts.accelerator.verdict import DECLARED, NONE, AcceleratorFacts
from wheel_checks.facts.gpu.deciding import Role, deciding_groups
from wheel_checks.facts.gpu.targets import Product, RunsHow, runs_on
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.model import Unavailable

_ROLES: tuple[Role, ...] = ("main", "library", "special", "bundled", "source")  # by weight

COMMON = 0.5
"""From this share of its files on, a library is built for an architecture; torch has a few files for others."""


@dataclass(frozen=True, slots=True)
class LibraryGpuCode:
    """The GPU code of one library. ``code`` is Unavailable if it could not be read; it has no labels for a library
    without GPU code. ``bytes_read`` are compressed bytes of the archive that this took. ``limit`` is why a sampled
    library was not read on, though that was requested.
    """

    member: str
    code: GpuCode | Unavailable
    bytes_read: int = 0
    limit: Unavailable | None = None


@dataclass(frozen=True, slots=True)
class GpuCodeFacts:
    """The libraries that have or may have GPU code, in archive order; and the targets that the wheel declares.

    ``declared`` is the list that torch reports as ``torch.cuda.get_arch_list()``, a string in ``libtorch_python.so``,
    or None. ``project`` is the name of the package, which identifies its own libraries.
    """

    libraries: tuple[LibraryGpuCode, ...]
    declared: GpuCode | None = None
    project: str = ""

    @property
    def known(self) -> tuple[tuple[str, GpuCode], ...]:
        """Member and code of each library that was read and has some."""
        return tuple(
            (library.member, library.code)
            for library in self.libraries
            if not isinstance(library.code, Unavailable) and library.code.counts
        )

    @property
    def unread(self) -> tuple[tuple[str, Unavailable], ...]:
        """Member and reason of each library whose code could not be read."""
        return tuple(
            (library.member, library.code) for library in self.libraries if isinstance(library.code, Unavailable)
        )

    @property
    def main(self) -> tuple[str, GpuCode] | None:
        """The library that shows the package's targets: the one it imports or dispatches to, see ``deciding.py``.

        Of several, the one with the most targets, of these the one with the most entries.
        """
        roles = self.roles
        return max(
            self.known,
            key=lambda item: (-_ROLES.index(roles[item[0]]), len(item[1].counts), sum(item[1].counts.values())),
            default=None,
        )

    @property
    def roles(self) -> dict[str, Role]:
        """The role of each library, by its member."""
        groups = deciding_groups([library.member for library in self.libraries], self.project)
        return {member: group.role for group in groups for member in group.members}

    @property
    def whole(self) -> GpuCode:
        """The code of all libraries that were read, together."""
        return sum((code for _, code in self.known), GpuCode({}, "exact", {}))

    @property
    def verdict(self) -> tuple[str, GpuCode] | Unavailable | None:
        """The member and the GPU code that the package is built for; None for a package without GPU code.

        The main library's if all deciding libraries were read, else the declared list (with "" as member).
        """
        roles = self.roles
        unread = [
            item
            for item in self.unread
            if roles[item[0]] in ("main", "library") and not (self.known and item[0].endswith(".cubin"))
        ]
        if self.declared and (unread or not self.known):
            return "", self.declared
        if not unread:
            return self.main
        member, reason = unread[0]
        return Unavailable(f"the GPU code of {member} is unknown: {reason.reason}", reason.hint)


def is_for_others(accelerator: AcceleratorFacts, product: Product | None = None) -> bool:
    """True for a wheel for the CPU, XPU, or another maker's GPUs than ``product``'s, by default NVIDIA's.

    Hints alone, such as the local version in version.py, do not show it.
    """
    wanted = ROCM if product and product.gfx else CUDA
    built_for = {accelerator.accelerator, *accelerator.others}
    return accelerator.certainty != DECLARED and built_for.isdisjoint({wanted, NONE})


def share_of(code: GpuCode, labels: Iterable[str]) -> float:
    """The share of the containers of ``code`` that have one of ``labels``, 0 to 1; 0 when it has no containers."""
    wanted = set(labels)
    carrying = sum(count for has, count in code.containers.items() if not wanted.isdisjoint(has))
    return carrying / max(1, sum(code.containers.values()))


def runs_how(code: GpuCode, product: Product) -> RunsHow:
    """How ``code`` runs on ``product``, by the most frequent label of its files rather than a rare one."""
    best = runs_on(code.counts, product)
    common = runs_on([label for label in code.counts if share_of(code, [label]) >= COMMON], product)
    return common if common.how == best.how != "none" else best
