"""Who demands that an installed package goes? Follows requirements from what was requested, and stops when it knows."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import WheelproofError
from wheel_checks.facts.stack.facts import Demand, LinkedPackage, chain_to, find_demands
from wheel_checks.facts.wheel.resolution import metadata_reader
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.targets.selection import choose
from wheel_checks.targets.target import Target
from wheelproof.wheels.asked import Asked

_AT_ONCE = 8  # METADATA read in parallel


class DemandSearch:
    """Reads METADATA level by level, from what was requested: of installed packages where they are, else by range.

    Packages whose METADATA cannot be had have no demands: the chain may then be empty.
    """

    def __init__(
        self,
        asked: Asked,
        packages: Mapping[str, LinkedPackage],
        planned: Mapping[str, str],
        target: Target,
        client: HttpClient,
        index: SimpleIndex,
    ) -> None:
        self._asked, self._packages, self._planned, self._target = asked, packages, planned, target
        self._index, self._read = index, metadata_reader(client)
        self._known: dict[str, LinkedPackage] = {}

    def chain(self, name: str, before: str) -> tuple[Demand, ...]:
        """The demands that lead to the nearest one on ``name`` that ``before`` does not satisfy; () without one.

        Without ``before`` any demand counts.
        """
        while True:
            demands = find_demands(self._asked.known, list(self._known.values()), self._target)
            offending = [
                demand
                for demand in demands.get(name, ())
                if not before
                or demand.requirement.url
                or not demand.requirement.specifier.contains(before, prereleases=True)
            ]
            if offending:
                labels = {package.label: package.name for package in self._known.values()}
                return chain_to(name, {**demands, name: offending}, labels)
            front = [other for other in demands if other not in self._known and other != name]
            if not front:
                return ()
            with ThreadPoolExecutor(_AT_ONCE, "demands") as pool:
                self._known.update(zip(front, pool.map(self._link, front), strict=True))

    def _link(self, name: str) -> LinkedPackage:
        version = self._planned.get(name)
        if version is None:
            return self._packages.get(name) or LinkedPackage(name, "")
        try:
            choice = choose(Requirement(f"{name}=={version}"), self._index.files(name).files, self._target, pre=True)
            requirements = self._read(choice.chosen).requirements if choice.chosen else ()
        except (WheelproofError, ValueError):
            requirements = ()
        return LinkedPackage(str(canonicalize_name(name)), version, requirements)
