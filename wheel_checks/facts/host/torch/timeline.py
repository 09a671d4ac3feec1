"""Who replaced torch: what was installed together and when, who asked for which torch, and what was left behind."""

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import Package
from wheel_checks.facts.host.torch.choice import COMPANIONS, public
from wheel_checks.facts.host.torch.demands import applies, markers_of
from wheel_checks.facts.host.torch.fit import cuda_major, torch_files, torch_package
from wheel_checks.model import Unavailable
from wheel_checks.parsing import requirement_or_none, version_or_none

TOGETHER = 120.0  # seconds between files of one run of an installer, at most; torch alone takes a minute to unpack

# NVIDIA's libraries that name their CUDA; of CUDA 13 only some do, and of the others cuda-toolkit is the user.
_LIBRARY = re.compile(r"nvidia-[a-z0-9-]+-(cu\d{2})")


@dataclass(frozen=True, slots=True)
class Installation:
    """One run of an installer: the distributions that it wrote, the first one first; ``moment`` is that of the last."""

    moment: float
    packages: tuple[Package, ...]

    @property
    def time(self) -> str:
        """When, UTC: ``2026-11-20 12:03:11 UTC``."""
        return moment_text(self.moment)


@dataclass(frozen=True, slots=True)
class Replacement:
    """Signs that another torch was there before.

    ``installation`` is the run that brought the present one, None when its time is unknown. ``pinned_by`` are the
    distributions of that run that require this very release, each with its requirement; ``orphans`` the CUDA libraries
    that nothing requires any more; ``companions`` those of torch that are built for another accelerator than torch.
    """

    installation: Installation | None
    pinned_by: tuple[tuple[Package, str], ...]
    orphans: tuple[Package, ...]
    companions: tuple[Package, ...]


def moment_text(moment: float) -> str:
    """A time in seconds since 1970, as people read it."""
    try:
        return dt.datetime.fromtimestamp(moment, dt.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "an impossible time"


def installations(packages: Sequence[Package]) -> tuple[Installation, ...]:
    """The runs of installers that brought these distributions, oldest first; what has no time is in none."""
    runs: list[list[Package]] = []
    for package in sorted((p for p in packages if p.installed > 0), key=lambda p: p.installed):
        if runs and package.installed - runs[-1][-1].installed <= TOGETHER:
            runs[-1].append(package)
        else:
            runs.append([package])
    return tuple(Installation(run[-1].installed, tuple(run)) for run in runs)


def replacement(facts: HostFacts) -> Replacement | None:
    """The signs that the torch of this environment replaced another one; None when there aren't any.

    Libraries that nothing requires, and a torchvision for another accelerator, say that a CUDA torch was present. That
    a distribution pins torch shows who may have brought this one, and nothing of another before it.
    """
    torch, files = torch_package(facts), torch_files(facts)
    if torch is None or files is None or isinstance(facts.installed, Unavailable):
        return None
    packages = facts.installed.packages
    orphans = tuple(package for package in _orphans(facts, packages) if _suffix(package) != cuda_major(files.cuda))
    companions = tuple(
        p for p in packages if p.name in COMPANIONS and cuda_major(p.build) not in {0, cuda_major(files.cuda)}
    )
    if not orphans and not companions:
        return None
    run = next((run for run in installations(packages) if torch in run.packages), None)
    return Replacement(run, _pinned_by(run.packages if run else packages, public(torch.version)), orphans, companions)


def asked_for(package: Package) -> bool | None:
    """Whether its user requested it, and not only something that requires it; None when its installer does not say.

    uv (0.13) puts a REQUESTED next to everything that it installs.
    """
    return package.requested if package.installer == "pip" else None


def history(facts: HostFacts) -> tuple[tuple[str, str], ...]:
    """What happened to this environment: for each run of an installer its time, and what it brought."""
    if isinstance(facts.installed, Unavailable):
        return ()
    return tuple((run.time, _brought(run.packages)) for run in installations(facts.installed.packages))


def _pinned_by(packages: Sequence[Package], version: str) -> tuple[tuple[Package, str], ...]:
    """Who requires this torch release; torchvision, which comes along with any torch, only when no one else does."""
    pins = [(package, text) for package in packages for text in package.requires if _pins(text, version)]
    others = [pin for pin in pins if pin[0].name not in COMPANIONS]
    return tuple(others or pins)


def _brought(packages: Sequence[Package]) -> str:
    libraries = [package for package in packages if package.name.startswith(("nvidia-", "cuda-"))]
    others = [package for package in packages if package not in libraries]
    told = [
        f"{p.name} {p.version}{f' ({p.build})' if p.build else ''}{', asked for' * (asked_for(p) is True)}"
        for p in others
    ]
    told += [f"{len(libraries)} CUDA libraries"] if libraries else []
    installers = " and ".join(sorted({package.installer for package in packages if package.installer}))
    return "; ".join(told) + (f" (by {installers})" if installers else "")


def _suffix(package: Package) -> int:
    """The CUDA that a library's name shows: 12 of nvidia-cublas-cu12, 0 for a name without one."""
    found = _LIBRARY.fullmatch(package.name)
    return cuda_major(found[1]) if found else 0


def _orphans(facts: HostFacts, packages: Sequence[Package]) -> Iterator[Package]:
    """CUDA libraries that no one asked for, and that nothing requires here."""
    markers = markers_of(facts)
    requirements = (found for package in packages for text in package.requires if (found := requirement_or_none(text)))
    wanted = {canonicalize_name(found.name) for found in requirements if applies(found, markers)}
    return (p for p in packages if _suffix(p) and not asked_for(p) and p.name not in wanted)


def _pins(text: str, version: str) -> bool:
    """Whether this requirement accepts this release of torch and not the next ones."""
    found, release = requirement_or_none(text), version_or_none(version)
    if found is None or release is None or canonicalize_name(found.name) != "torch":
        return False
    following = f"{release.major}.{release.minor + 1}"
    accepts = found.specifier.contains
    return accepts(release, prereleases=True) and not accepts(following, prereleases=True)
