"""The major CUDA version that the code in a wheel was made with: by GPU code, needed runtimes and static ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from wheel_checks.data import load
from wheel_checks.facts.accelerator.shown import IS, NEEDS, AcceleratorContent
from wheel_checks.facts.accelerator.signals import CUDA
from wheel_checks.facts.gpu.code import GpuCodeFacts
from wheel_checks.facts.gpu.drivers import cuda_of_ptx, newest_major, runs_cuda
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.model import Unavailable

_VAGUE = ("", "ABI 8 from sm_100")  # statements that leave CUDA 12 and 13 open


@dataclass(frozen=True, slots=True)
class StaticRuntime:
    """The CUDA runtime of a major version that is linked into ``member``."""

    member: str
    cuda: int


@dataclass(frozen=True, slots=True)
class Toolkit:
    """The CUDA of one file: at least ``low``, at most ``high`` (None: unknown), both major versions.

    ``shown`` is for people, such as "CUDA 12.8"; ``how`` is its evidence.
    """

    low: int
    high: int | None
    shown: str
    how: str

    def runs_with(self, driver: str) -> bool | None:
        """Whether a driver runs it; None when that is unknown."""
        if self.low and runs_cuda(driver, self.low) == "no":
            return False
        return True if self.high and runs_cuda(driver, self.high) == "yes" else None


def toolkits_of(
    content: AcceleratorContent | None,
    code: GpuCodeFacts | Unavailable,
    static: Iterable[StaticRuntime] | Unavailable,
) -> dict[str, list[Toolkit]]:
    """The CUDA of each member that shows one, by all evidence that was read."""
    found: dict[str, list[Toolkit]] = {}
    for shown in content.shown if content else ():
        if shown.accelerator == CUDA and shown.version and shown.how in (NEEDS, IS):
            major, how = int(shown.version), f"{shown.how} {shown.what}"
            found.setdefault(shown.member, []).append(Toolkit(major, major, f"CUDA {major}", how))
    for runtime in () if isinstance(static, Unavailable) else static:
        how = "static CUDA runtime"
        found.setdefault(runtime.member, []).append(Toolkit(runtime.cuda, runtime.cuda, f"CUDA {runtime.cuda}", how))
    for member, own in () if isinstance(code, Unavailable) else code.known:
        if own.sass or own.ptx:
            found.setdefault(member, []).append(toolkit_of_code(own))
    return found


def toolkit_of_code(code: GpuCode) -> Toolkit:
    """The CUDA that the compiled files of a library were made with; of several the newest counts."""
    stated = [(statement, _release_of(statement)) for statement in code.toolkits]
    releases = [release for _, release in stated if release]
    bounds = [(_major(release), _major(release)) for release in releases]
    for statement in (statement for statement, release in stated if not release):
        if releases and (statement in _VAGUE or statement.startswith("PTX")):
            continue  # it is taken to be of the toolkits that the library names
        if statement.startswith("ABI"):
            row = load("drivers")["abi"][statement.removeprefix("ABI ")]
            bounds.append((row.get("since", 0), row.get("until", newest_major())))
        else:
            bounds.append((0, 0))
    low = max((low for low, _ in bounds), default=0)
    high = None if any(not high for _, high in bounds) else max((high for _, high in bounds), default=None)
    return Toolkit(low, high, _shown(releases, low, high), "GPU code")


def hides_cuda(found: GpuCodeFacts, drivers: Sequence[str]) -> frozenset[str]:
    """The members whose code does not show, as far as it was read, whether these drivers run it."""
    return frozenset(
        library.member
        for library in found.libraries
        if not isinstance(library.code, Unavailable)
        and any(toolkit_of_code(library.code).runs_with(driver) is None for driver in drivers)
    )


def _release_of(statement: str) -> str:
    """The CUDA release of a statement: "12.8", also of "PTX 8.7"; "" for another, and for unknown PTX."""
    if statement.startswith("PTX"):
        return cuda_of_ptx(statement.removeprefix("PTX ")) or ""
    return statement if statement[:1].isdigit() else ""


def _shown(releases: list[str], low: int, high: int | None) -> str:
    fitting = [one for one in releases if _major(one) == low == high]
    if fitting:
        return f"CUDA {max(fitting, key=_numbers)}"
    if low == high:
        return f"CUDA {low}"
    return f"CUDA {low} or newer" if low else f"CUDA {high} or older" if high else "an unknown CUDA"


def known_of(codes: Iterable[GpuCode]) -> tuple[int, int]:
    """How many compiled files say something about their CUDA, and how many there are."""
    counts = [item for code in codes for item in code.toolkits.items()]
    known = sum(count for one, count in counts if _release_of(one) or (one.startswith("ABI") and one not in _VAGUE))
    return known, sum(count for _, count in counts)


def _major(version: str) -> int:
    return int(version.partition(".")[0])


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
