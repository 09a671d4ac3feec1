"""Which torch of the configured index the host can run, best first, and the companions that belong to it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.tables import DriverCuda, HostGpu, driver_cuda, host_gpus
from wheel_checks.facts.host.torch.choice import (
    COMPANIONS,
    Build,
    choose,
    code_of,
    companions,
    known_builds,
    machine_of,
    public,
)
from wheel_checks.facts.host.torch.demands import overwritten_by, refused_by
from wheel_checks.facts.host.torch.fit import torch_files
from wheel_checks.model import Unavailable
from wheel_checks.parsing import requirement_or_none
from wheel_checks.phrases import joined
from wheelproof.doctor.repair.graph import Graph
from wheelproof.doctor.repair.offers import Offers

MOST_READ = 24  # torch wheels whose version.py is read
_MOST_OF_BACKENDS = 4
_OTHER = re.compile(r"cpu|rocm|xpu")


@dataclass(frozen=True)
class Candidate:
    """A torch build that may be installed: the pins of it and of its companions, by name, and where it is.

    ``changed`` packages come from the index, installed or not; ``backend`` is uv's name of a part of PyTorch's own
    index, "" for the configured one.
    """

    build: Build
    pins: dict[str, str]
    changed: tuple[str, ...]
    backend: str = ""

    @property
    def proof(self) -> str:
        """The evidence for it."""
        where = f"PyTorch's own index ({self.backend})" if self.backend else "its version.py on the index"
        return f"{self.build.label}, as {where} says"


class TorchBuilds:
    """The builds that a host can run, as the indexes have them. ``passed_over`` says why others were not taken."""

    def __init__(self, facts: HostFacts, graph: Graph, offers: Offers) -> None:
        self._facts, self._graph, self._offers = facts, graph, offers
        self.passed_over: dict[str, None] = {}

    def candidates(self) -> Iterator[Candidate]:
        """The best build first: of the installed release, else of the latest one.

        If no index is configured and the default one has none, those of PyTorch's own index. Raises SourceError.
        """
        driver, gpus = driver_cuda(self._facts), host_gpus(self._facts)
        if driver is None:
            self.passed_over["the CUDA version that the driver supports is unknown"] = None
            return
        found = False
        for version, build in self._on_index(driver, gpus):
            found = True
            yield self._candidate(build, version)
        if not found and self._only_default:
            yield from self._of_pytorch(driver, gpus)

    def companion(self, name: str, torch: Version, cuda: str) -> tuple[str, bool] | None:
        """The pin of the companion that belongs to this torch, and whether it is taken again; None if none is found.

        It has the same local version as torch ("cu128", or none), and requires this torch.
        """
        versions = self._offers.versions(name)
        local = [version for version in versions if version.local == torch.local]
        table = [requirement_or_none(text) for text in companions(torch.public, self._facts.installed)]
        known = [one.specifier for one in table if one is not None and one.name == name]
        preferred = [v for v in local if any(spec.contains(v.public, prereleases=True) for spec in known)]
        for version in dict.fromkeys([*preferred, *local][:MOST_READ]):
            if not self._accepted(name, version):
                continue
            wanted = [one for one in self._offers.read(name, version).requirements if one.name == "torch"]
            if all(one.specifier.contains(torch, prereleases=True) for one in wanted):
                return pin(version, versions), not self._is_installed(name, version, cuda)
        return None

    @property
    def _only_default(self) -> bool:
        config = self._offers.config
        return not config.find_links and all(where.startswith("the default") for where in config.origin.values())

    def _on_index(self, driver: DriverCuda, gpus: Sequence[HostGpu]) -> Iterator[tuple[Version, Build]]:
        torch = torch_files(self._facts)
        keep = public(torch.version) if torch else ""
        by_release: dict[str, list[Version]] = {}
        for version in self._offers.versions("torch"):
            if self._accepted("torch", version):
                by_release.setdefault(version.public, []).append(version)
        ordered = sorted(by_release, key=lambda release: (release == keep, Version(release)), reverse=True)
        stable = [release for release in ordered if release == keep or not Version(release).is_prerelease]
        read = 0
        for release in stable or ordered:
            fitting = {}
            for version in by_release[release]:
                if version.local and _OTHER.match(version.local):
                    self.passed_over[f"torch {version} is a build for {version.local}, and not for CUDA"] = None
                    continue
                read += 1
                if read > MOST_READ:
                    return
                if build := self._fitting(version, driver, gpus):
                    fitting[build] = version
            while fitting:
                best = choose(list(fitting), driver, gpus, keep=release)
                if best is None:
                    break
                yield fitting.pop(best), best

    def _fitting(self, version: Version, driver: DriverCuda, gpus: Sequence[HostGpu]) -> Build | None:
        offered = self._offers.read("torch", version)
        cuda = offered.build.get("cuda", "")
        if not re.fullmatch(r"\d+\.\d+", cuda):
            self.passed_over[f"torch {version} on the index is not built for CUDA"] = None
            return None
        build = Build(version.public, "", cuda, code_of(version.public, cuda, machine_of(self._facts)))
        if not build.supports(driver, gpus):
            names = ", ".join(dict.fromkeys(str(gpu.product) for gpu in gpus))
            reason = f"the driver is for CUDA {driver.version}, the GPU {names or 'unknown'}"
            self.passed_over[f"torch {version} on the index is for CUDA {cuda}, and {reason}"] = None
            return None
        for package in overwritten_by(self._facts, build):
            users = joined([one.label for one in self._graph.users(package.name, leaving={"torch"})])
            self.passed_over[f"torch {version} overwrites files of {package.name}, which {users} requires"] = None
            return None
        return build

    def _candidate(self, build: Build, version: Version) -> Candidate:
        pins, changed = {"torch": pin(version, self._offers.versions("torch"))}, ["torch"]
        for name in self._belonging():
            if found := self.companion(name, version, build.cuda):
                pins[name] = found[0]
                changed += [name] * found[1]
        return Candidate(build, pins, tuple(changed))

    def _belonging(self) -> list[str]:
        """The companions that are installed, or required by installed packages."""
        there = self._graph.distributions
        wanted = {canonicalize_name(r.name) for one in there.values() for r in self._graph.active(one)}
        return [name for name in COMPANIONS if name in there or name in wanted]

    def _of_pytorch(self, driver: DriverCuda, gpus: Sequence[HostGpu]) -> Iterator[Candidate]:
        torch = torch_files(self._facts)
        keep = public(torch.version) if torch else ""
        left = [
            build
            for build in known_builds(self._facts)
            if build.backend and not refused_by(self._facts, build) and not overwritten_by(self._facts, build)
        ]
        for _ in range(_MOST_OF_BACKENDS):
            build = choose(left, driver, gpus, keep=keep, own_index=True)
            if build is None:
                return
            left.remove(build)
            parsed = [requirement_or_none(text) for text in companions(build.version, self._facts.installed)]
            pins = {"torch": f"=={build.version}", **{one.name: str(one.specifier) for one in parsed if one}}
            yield Candidate(build, pins, tuple(pins), build.backend)

    def _accepted(self, name: str, version: Version) -> bool:
        """Whether installed packages accept it; companions of torch, which change with it, do not count."""
        against = [
            f"{one.label} requires {name}{requirement.specifier}"
            for one in self._graph.distributions.values()
            if not (one.name in COMPANIONS and name == "torch")
            for requirement in self._graph.active(one)
            if canonicalize_name(requirement.name) == name
            and not (bool(requirement.url) or requirement.specifier.contains(version, prereleases=True))
        ]
        self.passed_over.update(dict.fromkeys(against))
        return not against

    def _is_installed(self, name: str, version: Version, cuda: str) -> bool:
        """Whether just this build of a companion is installed."""
        one, facts = self._graph.distributions.get(name), self._facts.installed
        known = None if isinstance(facts, Unavailable) else facts.named(name)
        build = known.build if known else ""
        return bool(one and one.parsed == version and build in {"", f"cu{cuda.replace('.', '')}"})


def pin(version: Version, listed: Iterable[Version]) -> str:
    """The specifier of exactly this version: ``==2.11.0`` alone would also take 2.11.0+cpu, if it is ``listed``."""
    others = [one for one in listed if one.local and one.public == version.public]
    excluded = [] if version.local else [f"!={one}" for one in others]
    return ",".join([f"=={version}", *excluded])
