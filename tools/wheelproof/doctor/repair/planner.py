"""From a goal to a plan: the smallest change of distributions that reaches it and breaks no requirement."""

from __future__ import annotations

import itertools
import os
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from packaging.version import Version

from wheel_checks.errors import FormatError, SourceError
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.torch.choice import COMPANIONS
from wheel_checks.facts.host.torch.demands import family_of, shares_paths
from wheel_checks.facts.host.torch.fit import torch_files
from wheel_checks.fixes.goal import Goal
from wheel_checks.formats.index.page import IndexFile, file_from_url
from wheel_checks.formats.secrets import redact
from wheel_checks.phrases import joined, plural
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheelproof.doctor.repair.builds import Candidate, TorchBuilds, pin
from wheelproof.doctor.repair.graph import Graph
from wheelproof.doctor.repair.installed import Contents, Distribution
from wheelproof.doctor.repair.offers import Offered, Offers
from wheelproof.doctor.repair.plan import Coming, Plan
from wheelproof.doctor.repair.solving import NoPlanError, Question, Solution, Solver
from wheelproof.doctor.repair.wheel_record import differing

_BACKEND = re.compile(r"cu\d{3}")
_MOST_REASONS = 6
_SYSTEM_INSTALLERS = {"conda": "conda", "debian": "the package manager of Debian"}


@dataclass(frozen=True)
class Planner:
    """Plans for one environment: the facts of the host, installed packages, and offers of configured indexes."""

    facts: HostFacts
    contents: Contents
    graph: Graph
    offers: Offers
    environ: Mapping[str, str]

    def plan(self, goal: Goal) -> Plan:
        """The plan that reaches the goal. Raises NoPlanError with the requirements that stop it, and SourceError."""
        draft = self._draft(goal)
        if not goal.fitting_torch:
            return self._finish(draft)
        builds, reasons = TorchBuilds(self.facts, self.graph, self.offers), dict[str, None]()
        for candidate in builds.candidates():
            try:
                return self._finish(draft.with_build(candidate), candidate)
            except NoPlanError as error:
                reasons.update(dict.fromkeys(error.reasons or [error.what]))
        passed_over = [*reasons, *builds.passed_over]
        raise NoPlanError("no torch build on the configured index can be installed here", passed_over[:_MOST_REASONS])

    def _draft(self, goal: Goal) -> _Draft:
        own = self.contents.own
        for name in goal.gone:
            users = self.graph.users(name, leaving=goal.gone)
            if name in own and users:
                raise NoPlanError(f"{name} cannot go", [f"{one.label} requires {name}" for one in users])
        draft = _Draft(gone=tuple(name for name in goal.gone if name in own), wanted=goal.wanted, fresh=goal.fresh)
        draft = replace(draft, remains=tuple(self._confined(path) for path in goal.remains))
        for name in goal.intact:
            if not (goal.fitting_torch and name in ("torch", *COMPANIONS)):
                draft = self._intact(draft, name)
        return self._with_companions(draft, goal.companions) if not goal.fitting_torch else draft

    def _confined(self, path: str) -> str:
        """The path of a leftover, which is in a folder of this environment. Raises NoPlanError for any other."""
        folder, name = posixpath.split(posixpath.normpath(path))
        inside = any(os.path.realpath(folder) == one or os.path.realpath(folder).startswith(f"{one}/")
                     for one in self.contents.folders)  # fmt: skip
        if not inside or name in ("", ".", ".."):
            raise NoPlanError(f"{path} is not in this environment")
        return posixpath.join(os.path.realpath(folder), name)

    def _with_companions(self, draft: _Draft, names: Sequence[str]) -> _Draft:
        torch, files = self.contents.own.get("torch"), torch_files(self.facts)
        if not names or torch is None or torch.parsed is None or files is None:
            return draft
        builds = TorchBuilds(self.facts, self.graph, self.offers)
        for name in names:
            found = builds.companion(name, torch.parsed, files.cuda) if name in self.contents.own else None
            if found is None and name in self.contents.own:
                reason = f"the configured index has no {name} that requires torch {torch.version} and matches its build"
                raise NoPlanError(f"no {name} that matches this torch is available", [reason])
            if found:
                draft = replace(draft, exact={**draft.exact, name: found[0]})
                draft = replace(draft, reinstalled=(*draft.reinstalled, *[name] * found[1]))
        return draft

    def _intact(self, draft: _Draft, name: str) -> _Draft:
        """A distribution again, in its very version, from where it came."""
        one = self._replaceable(name)
        if "url" in one.origin:
            address, found = self._from_address(one)
            offered: Offered | None = found
            draft = replace(draft, urls={**draft.urls, name: address})
        else:
            offered, specifier = self._from_index(one)
            if offered is None:
                local = one.parsed.local if one.parsed and one.parsed.local else ""
                draft = replace(draft, backend=local)
            draft = replace(draft, exact={**draft.exact, name: specifier})
        if offered is not None:
            draft = replace(draft, proofs=(*draft.proofs, self._same_wheel(one, offered)))
        return replace(draft, reinstalled=(*draft.reinstalled, name), intact=draft.intact | {name})

    def _replaceable(self, name: str) -> Distribution:
        one = self.contents.own.get(name)
        if one is None and name in self.contents.elsewhere:
            where = self.contents.elsewhere[name].entry
            raise NoPlanError(f"{name} is in {where}, outside the environment {self.contents.prefix}")
        if one is None:
            raise NoPlanError(f"{name} is not installed in {self.contents.prefix}")
        if by := _SYSTEM_INSTALLERS.get(one.installer):
            raise NoPlanError(f"{by} installed and manages {one.label}")
        if not one.record:
            raise NoPlanError(f"{one.label} has no RECORD: its files are unknown")
        return one

    def _from_address(self, one: Distribution) -> tuple[str, Offered]:
        """The address of direct_url.json, as a requirement has it, and the wheel there."""
        url = str(one.origin["url"])
        if "archive_info" not in one.origin or one.parsed is None:
            what = f"{one.label} was installed from {redact(url)}, which is not a wheel"
            raise NoPlanError(what, ["reinstall it from there"])
        file = file_from_url(url, "")
        if file is None or not file.is_wheel:
            raise NoPlanError(f"{one.label} was built from {redact(url)}: only its source is there, and no wheel")
        if is_file_url(url) and not path_of(url).is_file():
            raise NoPlanError(f"{one.label} was installed from {redact(url)}, which no longer exists")
        info = one.origin["archive_info"]
        hashes = info.get("hashes", {}) if isinstance(info, dict) else {}
        sha256 = str(hashes.get("sha256", "")) if isinstance(hashes, dict) else ""
        offered = self._read(one, lambda: self.offers.read_file(one.name, one.parsed or Version("0"), file))
        return (f"{url}#sha256={sha256}" if re.fullmatch("[0-9a-f]{64}", sha256) else url), offered

    def _from_index(self, one: Distribution) -> tuple[Offered | None, str]:
        versions = self.offers.versions(one.name)
        version = one.parsed
        if version is not None and version in versions:
            return self._read(one, lambda: self.offers.read(one.name, version)), pin(version, versions)
        local = one.parsed.local if one.parsed else ""
        default = all(where.startswith("the default") for where in self.offers.config.origin.values())
        if local and _BACKEND.fullmatch(local) and default and not self.offers.config.find_links:
            return None, f"=={one.version}"  # PyTorch's own index, which names its builds so
        addresses = [redact(url) for url in (*self.offers.config.indexes, *self.offers.config.find_links)]
        raise NoPlanError(
            f"where {one.label} came from is not recorded, and {joined(addresses) or 'no index'} does not have it"
        )

    def _read(self, one: Distribution, read: Callable[[], Offered]) -> Offered:
        try:
            return read()
        except FormatError as error:
            raise NoPlanError(f"the wheel of {one.label} cannot be read: {error}") from error

    def _same_wheel(self, one: Distribution, offered: Offered) -> str:
        """The proof by RECORD that a wheel is the installed one. Raises NoPlanError if it is not."""
        other, count = differing(offered.record, one.digests)
        if other or not count:
            shown = f"{plural(len(other), 'file')} differ, such as {other[0]}" if other else "it lists no file"
            raise NoPlanError(
                f"the index has another build of {one.label} than the one that was installed (RECORD: {shown}), and "
                "where that one came from is not recorded"
            )
        return f"{one.label} there is the wheel that was installed: {count} hashes of RECORD are the same"

    def _finish(self, draft: _Draft, candidate: Candidate | None = None) -> Plan:
        solver = Solver(self.contents, self.graph, self.offers.config, self.environ)
        question = draft.question()
        solution = solver.solve(question)
        gone, again = self._overwritten(solution)
        if gone or again:
            for name in again:
                draft = self._intact(draft, name)
            question = replace(draft.question(), gone=(*question.gone, *gone))
            solution = solver.solve(question)
        coming = tuple(self._coming(solution, draft.backend))
        self._check_owners(coming, question.gone)
        proofs = draft.proofs if candidate is None else (*draft.proofs, candidate.proof)
        left = tuple(f"stays as it was: {one}" for one in solution.left)
        plan = Plan(
            self.contents,
            replace(solution.question, gone=question.gone),
            coming,
            draft.intact,
            question.gone,
            draft.remains,
            proofs,
            left,
            candidate.build.cuda if candidate else "",
            fresh=draft.fresh or bool(draft.intact),
        )
        if plan.is_empty:
            raise NoPlanError("everything is already installed: no install would change anything")
        return plan

    def _coming(self, solution: Solution, backend: str) -> Iterator[Coming]:
        for name, version in sorted(solution.changes.installed.items()):
            if name in solution.question.urls:
                url = solution.question.urls[name]
                yield Coming(name, version, f"{name} @ {url}", self._size(name, version), redact(url))
                continue
            of_pytorch = bool(backend) and "+" in version
            listed = {} if of_pytorch else self._versions(name)
            file = listed.get(Version(version))
            source = redact(file.index or file.url) if file else f"PyTorch's own index ({backend})" if backend else ""
            size = None if of_pytorch else self._size(name, version)
            yield Coming(name, version, f"{name}{pin(Version(version), listed)}", size, source)

    def _versions(self, name: str) -> Mapping[Version, IndexFile]:
        try:
            return self.offers.versions(name)
        except SourceError:
            return {}

    def _size(self, name: str, version: str) -> int | None:
        try:
            return self.offers.size(name, version)
        except SourceError:
            return None

    def _overwritten(self, solution: Solution) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The orphans whose files new packages overwrite, which are removed first, and the packages that share files
        with them, which are reinstalled. Raises NoPlanError if such a library is required.
        """
        own, question = self.contents.own, solution.question
        replaced = set(solution.changes.installed)
        after = {*own, *replaced} - set(question.gone)
        gone, again = dict[str, None](), dict[str, None]()
        libraries = sorted(filter(shares_paths, replaced))
        for one, other in itertools.combinations(libraries, 2):
            if family_of(one) == family_of(other):
                raise NoPlanError(f"{one} and {other} would overwrite each other")
        for name in libraries:
            others = [one for one in own if family_of(one) == family_of(name) and one != name and shares_paths(one)]
            for other in (one for one in others if one in after and one not in replaced):
                users = self.graph.users(other, leaving={*question.gone, *replaced - {name}})
                if users:
                    raise NoPlanError(
                        f"{name} would overwrite files of {other}",
                        [f"{one.label} requires {other}, whose files {name} would overwrite" for one in users],
                    )
                gone[other] = None
        for name in (*question.gone, *gone):
            stays = [o for o in after - set(gone) - replaced if family_of(o) == family_of(name) and shares_paths(o)]
            again.update(dict.fromkeys(one for one in stays if shares_paths(name)))
        return tuple(gone), tuple(again)

    def _check_owners(self, coming: Sequence[Coming], gone: Sequence[str]) -> None:
        for name in (*(one.name for one in coming), *gone):
            if name in self.contents.own:
                self._replaceable(name)


@dataclass(frozen=True)
class _Draft:
    exact: Mapping[str, str] = field(default_factory=dict)
    urls: Mapping[str, str] = field(default_factory=dict)
    wanted: tuple[str, ...] = ()
    reinstalled: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    remains: tuple[str, ...] = ()
    intact: frozenset[str] = frozenset()
    proofs: tuple[str, ...] = ()
    backend: str = ""
    fresh: bool = False

    def with_build(self, candidate: Candidate) -> _Draft:
        return replace(
            self,
            exact={**self.exact, **candidate.pins},
            reinstalled=tuple(dict.fromkeys((*self.reinstalled, *candidate.changed))),
            backend=candidate.backend or self.backend,
        )

    def question(self) -> Question:
        return Question(self.exact, self.wanted, self.reinstalled, self.gone, self.urls, self.backend)
