"""What the rules about the installation share: how torch's import went, what the files' rules found, how to mend it."""

import re
from collections.abc import Iterable

from wheel_checks.commands import Step
from wheel_checks.facts.host.commands import install, repair
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.log.symptoms import symptoms
from wheel_checks.facts.host.probes import KernelProbe, TorchProbe
from wheel_checks.facts.host.software import FileFinding, Installed, Loader, MissingLibrary
from wheel_checks.facts.host.torch.demands import family_of
from wheel_checks.facts.links.known_libraries import nvidia_project
from wheel_checks.goal import Goal
from wheel_checks.model import Fix, Severity, need
from wheel_checks.phrases import and_more

IMPORT_FAILS = ("torch:import", "torch:signal", "torch:hang")

_OF_INDEX = re.compile(r"cu\d{3}|cpu|xpu|rocm[\d.]+")  # builds that PyTorch's own index has, by their local versions


def installed(facts: HostFacts) -> Installed:
    """What is installed; the rule is skipped when that is unknown."""
    return need(facts.installed)


def findings(facts: HostFacts, rule: str) -> list[FileFinding]:
    """What one of the rules for installed wheels found."""
    return [finding for finding in installed(facts).findings if finding.rule == rule]


def missing_of(facts: HostFacts, owner: str) -> list[MissingLibrary]:
    """The needed libraries that are gone from this distribution."""
    return [library for library in installed(facts).missing if library.owner == owner]


def missing_of_torch(facts: HostFacts) -> list[MissingLibrary]:
    """The libraries that torch's own need and that are nowhere."""
    return [library for library in installed(facts).missing if library.user == "torch"]


def import_failed(facts: HostFacts) -> bool:
    """Whether ``import torch`` was tried and did not come to its end."""
    return any(name in IMPORT_FAILS for name in symptoms(facts))


def was_imported(facts: HostFacts) -> bool:
    """Whether ``import torch`` worked."""
    return isinstance(facts.torch, TorchProbe) and facts.torch.imported


def complaints(facts: HostFacts) -> str:
    """All that the loader, torch's import, its computing and the kernel complained of."""
    torch, kernel, loader = facts.torch, facts.kernel, facts.loader
    told: list[str] = []
    if isinstance(torch, TorchProbe):
        told += [torch.error, torch.trace, torch.init_error, torch.computes or "", torch.end.output]
    if isinstance(kernel, KernelProbe):
        told += [kernel.error, kernel.trace, kernel.end.output]
    if isinstance(loader, Loader):
        told.append(loader.error)
    return "\n".join(filter(None, told))


def weight(facts: HostFacts, *, broken: bool) -> Severity:
    """An error for what is broken by itself or fails the import that was seen; a note for what torch lives with."""
    return Severity.ERROR if broken or import_failed(facts) else Severity.NOTE


def again(facts: HostFacts, *names: str, cache: bool = True) -> tuple[Step, ...]:
    """The commands that reinstall these distributions, each in its version and without its dependencies; without
    ``cache`` they are fetched again.
    """
    packages = [package for name in names if (package := installed(facts).named(name))]
    if any("://" in package.url for package in packages):
        return (repair(facts),)  # from that address; which only its user has chosen to trust
    builds = {package.version.partition("+")[2] for package in packages}
    index = next((build for build in builds if len(builds) == 1 and _OF_INDEX.fullmatch(build)), "")
    pins = [f"{package.name}=={package.version}" for package in packages]
    return install(facts, *pins, force=True, no_deps=True, index=index, cache=cache)


def mend(facts: HostFacts, finding: FileFinding, summary: str) -> Fix:
    """Reinstall the distribution of a finding, in the version that is installed."""
    known = installed(facts).named(finding.subject)
    if known is None and finding.version:
        pin = f"{finding.subject}=={finding.version}"
        return Fix(summary, install(facts, pin, force=True, no_deps=True), Goal(intact=(finding.subject,)))
    return Fix(summary, again(facts, finding.subject), Goal(intact=(finding.subject,))) if known else Fix(summary)


def bringer(facts: HostFacts, soname: str) -> str:
    """The installed distribution that has this library of NVIDIA's; "" when none has, or it is another's."""
    wanted = nvidia_project(soname)
    names = (package.name for package in installed(facts).packages)
    return next((name for name in names if family_of(name) == wanted), "") if wanted else ""


def file_name(path: str) -> str:
    """The last part of a path."""
    return path.rpartition("/")[2]


def is_library(path: str) -> bool:
    """True for a shared library or extension module."""
    return ".so" in file_name(path)


def listed(paths: Iterable[str], count: int, shown: int = 5) -> str:
    """The names of the first files, and how many there are besides."""
    names = list(dict.fromkeys(map(file_name, paths)))[:shown]
    return ", ".join(names) + and_more(count - len(names))
