"""Says, of libraries that the loader finds, those that are not what the requirements of their users mean."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from packaging.utils import canonicalize_name

from wheel_checks.facts.installed.facts import Distribution, RecordedFiles, UnmetRequirement
from wheel_checks.facts.installed.requirements import Active, required_by
from wheel_checks.facts.links.closure import Closure, Need, Status
from wheel_checks.formats.elf.file import ElfFacts, Missing
from wheel_checks.model import Unavailable

_FOUND = (Status.RESOLVED, Status.PRELOAD, Status.SYSTEM)


def with_wrong_versions(
    closure: Closure,
    files: Mapping[str, ElfFacts],
    distributions: Sequence[Distribution],
    active: Active,
    unmet: Mapping[str, Sequence[UnmetRequirement]],
) -> Closure:
    """Mark what is found, but is not the file that the needing distribution's requirements mean: one whose content is
    not the one recorded, one of a version that is not asked for, or one outside that is before the wheel's own.
    """
    judge = _Judge(files, distributions, active, unmet)
    needs = [(need, judge.fault(need) if need.status in _FOUND else "") for need in closure.needs]
    marked = [replace(n, status=Status.WRONG_VERSION, how=f"{n.how}; {fault}") if fault else n for n, fault in needs]
    return replace(closure, needs=tuple(marked))


class _Judge:
    """Knows who owns which file, which files were changed, and what is required of whom."""

    def __init__(
        self,
        files: Mapping[str, ElfFacts],
        distributions: Sequence[Distribution],
        active: Active,
        unmet: Mapping[str, Sequence[UnmetRequirement]],
    ) -> None:
        self._active = active
        self._owners: dict[str, Distribution] = {}
        self._changed: set[str] = set()
        for distribution in distributions:
            recorded = distribution.files
            if isinstance(recorded, RecordedFiles):
                digests = () if isinstance(recorded.digests, Unavailable) else recorded.digests
                self._owners |= dict.fromkeys(recorded.owned, distribution)
                self._changed |= {wrong.path for wrong in (*recorded.sizes, *digests)}
        self._refused = {(name, canonicalize_name(u.requirement.name)) for name, us in unmet.items() for u in us}
        self._providers: dict[str, list[str]] = {}
        for path, elf in files.items():
            if elf.dynamic and not isinstance(elf.dynamic, Missing) and elf.dynamic.soname:
                self._providers.setdefault(elf.dynamic.soname, []).append(path)

    def fault(self, need: Need) -> str:
        """What is wrong with the file that was found, "" when nothing is."""
        owner, provider = self._owners.get(need.elf), self._owners.get(need.by)
        if need.by in self._changed and provider is not None and provider is not owner:
            return f"not the file that {provider.name} {provider.version} installed"
        if owner is None:
            return ""
        if provider is not None and (owner.name, provider.name) in self._refused:
            return f"of {provider.name} {provider.version}, which {owner.name} does not accept"
        return self._passed_over(need, owner) if need.status is Status.SYSTEM else ""

    def _passed_over(self, need: Need, owner: Distribution) -> str:
        """The library of a required wheel that the loader does not reach, for one outside comes first."""
        own = (self._owners.get(path) for path in self._providers.get(need.soname, ()))
        required = required_by(owner.name, self._active)
        names = [d.name for d in own if d is not None and d is not owner and d.name in required]
        return f"outside the environment, before that of {names[0]}" if names else ""
