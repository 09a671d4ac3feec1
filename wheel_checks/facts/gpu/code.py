"""The GPU code of a wheel, library by library, and by which of them the wheel is judged."""

from collections.abc import Iterable
from dataclasses import dataclass

from wheel_checks.facts.accelerator.signals import CUDA, ROCM
from wheel_checks.facts.accelerator.verdict import NONE, AcceleratorFacts
from wheel_checks.facts.gpu.deciding import Role, deciding_groups
from wheel_checks.facts.gpu.targets import Product, RunsHow, runs_on
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.model import Unavailable

_ROLES: tuple[Role, ...] = ("main", "library", "special", "bundled", "source")  # from what speaks for the package most

COMMON = 0.5
"""From this share of its files on, a library is built for an architecture; torch has a few files for others."""


@dataclass(frozen=True, slots=True)
class LibraryGpuCode:
    """The GPU code of one library. ``code`` is Unavailable where it could not be read; it has no labels for a library
    that was read and holds none. ``bytes_read`` are compressed bytes of the archive that this took. ``limit`` says why
    a library that is only sampled was not read on, though that was requested.
    """

    member: str
    code: GpuCode | Unavailable
    bytes_read: int = 0
    limit: Unavailable | None = None


@dataclass(frozen=True, slots=True)
class GpuCodeFacts:
    """The libraries that hold GPU code, or might, in the order of the archive; and what the wheel declares.

    ``declared`` is the list that torch reports as ``torch.cuda.get_arch_list()``, a string in ``libtorch_python.so``;
    None when the wheel has none. ``project`` is the name of the package, by which its own libraries are known.
    """

    libraries: tuple[LibraryGpuCode, ...]
    declared: GpuCode | None = None
    project: str = ""

    @property
    def known(self) -> tuple[tuple[str, GpuCode], ...]:
        """Member and code of each library that was read and holds some."""
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
        """The library that says what the package is built for: what it imports or dispatches to, see ``deciding.py``.

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
        """Where and what the code is that the package is built for; None for a package without GPU code.

        That is the main library's when all that decide were read, else the declared list (which has no member: "").
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
    """True for a wheel that is built for something else than ``product``: for the CPU, XPU, or the other maker's GPUs.

    Without a product, any GPU of NVIDIA's is meant.
    """
    wanted = ROCM if product and product.gfx else CUDA
    return {accelerator.accelerator, *accelerator.others}.isdisjoint({wanted, NONE})


def share_of(code: GpuCode, labels: Iterable[str]) -> float:
    """The share of the containers of ``code`` that carry one of ``labels``, 0 to 1; 0 when it has no containers."""
    wanted = set(labels)
    carrying = sum(count for has, count in code.containers.items() if not wanted.isdisjoint(has))
    return carrying / max(1, sum(code.containers.values()))


def runs_how(code: GpuCode, product: Product) -> RunsHow:
    """How ``code`` runs on ``product``, by the label that most of its files have rather than one that few have."""
    best = runs_on(code.counts, product)
    common = runs_on([label for label in code.counts if share_of(code, [label]) >= COMMON], product)
    return common if common.how == best.how != "none" else best
