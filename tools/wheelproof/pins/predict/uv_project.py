"""Predict ``uv sync``, ``uv add``, ``uv remove`` and ``uv run`` in the environment of a project.

uv has a dry run of ``uv sync``, which writes nothing. With a lock that is up to date it runs offline, so nothing that
the project names is contacted; if uv would lock again, it may only ask indexes that are trusted. ``uv add`` and
``uv remove`` have no dry run: they edit a copy of pyproject.toml, next to links to the rest of the project.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

from wheel_checks.errors import SourceError, UsageError
from wheel_checks.facts.stack.facts import Conflict
from wheel_checks.formats.secrets import redact_text
from wheel_checks.parsing import requirements_in
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.file_urls import is_file_url
from wheel_checks.sources.requirement_files import read_requirements_file
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.sources.trust import Address, Trust, UntrustedAddressError
from wheel_checks.sources.uv.explanation import explain
from wheel_checks.sources.uv.own_configuration import config_options, private_folder, toml_text
from wheel_checks.sources.uv.resolver import NoSolutionError
from wheel_checks.sources.uv.user_settings import UvSettings, uv_settings
from wheel_checks.sources.uv_binary import Answer, run_uv
from wheelproof.pins.installers import UV, DryRun, read_uv, refused
from wheelproof.pins.predict.model import PredictRequest
from wheelproof.pins.predict.plan import Planned, settled_plan
from wheelproof.pins.predict.step import Step, Verb
from wheelproof.pins.predict.uv_lock import Dynamic, dynamic_of, is_up_to_date, local_projects, read_toml, table
from wheelproof.wheels.indexes import KnownIndexes

_STALE = re.compile(r"needs to be updated|Unable to find lockfile|Failed to parse `?uv\.lock|lockfile.*(?:not|missing)")
_NEEDS_MORE = re.compile(r"offline|Network connectivity is disabled|not found in the cache", re.IGNORECASE)
_REPLACES = re.compile(r"Would (?:replace|remove|create) (?:existing )?(?:project|virtual|script) environment")
_NOT_LINKED = {"pyproject.toml", "uv.lock", "uv.toml", ".venv", ".git"}


def find_project(folder: Path) -> Path:
    """The folder of the project that uv finds from here. Raises UsageError when no project is found."""
    for place in _upwards(folder):
        if (place / "pyproject.toml").is_file():
            return place
    raise UsageError(f"there is no pyproject.toml in {folder.absolute()} or above", expected="a project of uv")


def _upwards(folder: Path) -> tuple[Path, ...]:
    return folder.absolute(), *folder.absolute().parents


def plan_project(step: Step, request: PredictRequest, client: HttpClient, index: SimpleIndex) -> Planned:
    """The changes of a step. Raises SourceError if uv gives no answer."""
    has_project = any((place / "pyproject.toml").is_file() for place in _upwards(step.project))
    if step.verb is Verb.RUN and (step.arguments[:1] == ("--no-sync",) or not has_project):
        return Planned(DryRun({}, {}, {}))
    if request.place.described:
        raise SourceError(
            f"`{redact_text(step.text)}` needs an environment on this host: uv cannot plan for one that is only "
            f"described",
            hint="--python names an environment",
        )
    project = find_project(step.project)
    settings = uv_settings(request.variables, project, index.config.trust, build=request.build)
    with private_folder() as folder:
        is_copy = step.verb is Verb.ADD or dynamic_of(project) is Dynamic.VERSION
        is_current = is_copy and step.verb is not Verb.ADD and _is_current(project)
        if is_copy and not is_current:
            project = _copied(project, folder)
        if step.verb is Verb.ADD:
            _edit(step, project, request)
        is_copy = is_copy and not is_current
        return _Sync(step, project, folder, request, client, index, settings, is_copy=is_copy).plan()


def _is_current(project: Path) -> bool:
    return all(is_up_to_date(folder, entry) for folder, entry in local_projects(project).items())


class _Sync:
    def __init__(
        self,
        step: Step,
        project: Path,
        folder: Path,
        request: PredictRequest,
        client: HttpClient,
        index: SimpleIndex,
        settings: UvSettings,
        *,
        is_copy: bool,
    ) -> None:
        self._step, self._project, self._request, self._client, self._index = step, project, request, client, index
        self._document, self._local, self._is_copy = (
            read_toml(project / "pyproject.toml"),
            local_projects(project),
            is_copy,
        )
        self._refused = settings.refused
        self._options = config_options(folder, toml_text(settings.table))[1:]  # its files of versions are the project's

    def plan(self) -> Planned:
        """The plan of uv: offline by an up-to-date lock, else by locking."""
        words = list(self._step.options if self._step.verb is Verb.ADD else self._step.arguments)
        words += [] if self._step.is_exact else ["--inexact"]
        computed = max(map(dynamic_of, self._local))
        if "--frozen" in words:
            return Planned(self._read(self._run([*words, "--offline"])))
        if computed is Dynamic.NOTHING:
            return self._checked(words)
        if all(is_up_to_date(folder, entry) for folder, entry in self._local.items()):
            kept = [word for word in words if word != "--locked"]
            return Planned(self._read(self._run([*kept, "--frozen", "--offline"])))  # which builds nothing
        return self._locking(words)

    def _checked(self, words: list[str]) -> Planned:
        """Uv itself looks whether the lock is up to date: of projects without dynamic fields it builds none."""
        done = self._run([*words, *([] if "--locked" in words else ["--locked"]), "--offline"])
        if done.status == 0:
            return Planned(self._read(done))
        is_stale = _STALE.search(done.words) or _NEEDS_MORE.search(done.words) or explain(done.words)
        if not is_stale:
            raise SourceError(f"uv could not plan the sync: {' '.join(done.words.split())[-600:]}")
        if "--locked" in words:
            return Planned(DryRun({}, {}, {}, Conflict((" ".join(done.words.split())[-300:],))))
        return self._locking(words)

    def _locking(self, words: list[str]) -> Planned:
        """The plan as uv would lock it, with trusted indexes."""
        untrusted = [*self._refused, *_untrusted(self._document, self._project, self._index.config.trust)]
        if untrusted:
            raise UntrustedAddressError(self._step.text, untrusted)
        options = [*self._request.options, *words]
        if self._request.build:
            try:
                return Planned(self._read(self._run(options)))
            except NoSolutionError as error:
                return Planned(refused(error.explanation))
        self._refuse_builds()

        def ask(places: tuple[str, ...], _: tuple[str, ...]) -> DryRun:
            more = [part for place in places for part in ("--find-links", place)]
            return self._read(self._run([*options, *more, "--no-build"]))

        requested = list(_requirements(self._document, self._step))
        return settled_plan(UV, ask, requested, self._request, KnownIndexes(self._index), self._client)

    def _refuse_builds(self) -> None:
        """Give the project a version if it computes one. Raises SourceError if uv would build in earnest."""
        for folder in self._local:
            computed = dynamic_of(folder)
            is_root = folder == self._project.resolve() or folder == self._project
            if computed is Dynamic.REQUIREMENTS or (computed is Dynamic.VERSION and not (is_root and self._is_copy)):
                what = "what it requires" if computed is Dynamic.REQUIREMENTS else "its version"
                raise SourceError(
                    f"uv.lock is not up to date, and to lock {folder.name} uv would build it: it computes {what}",
                    hint="--build allows uv to build it, which runs its code; running `uv lock` first avoids that",
                )

    def _run(self, words: list[str]) -> Answer:
        environment = self._request.place.interior.prefix
        variables = {k: v for k, v in self._request.variables.items() if k not in ("VIRTUAL_ENV", "UV_PROJECT")}
        variables["UV_PROJECT_ENVIRONMENT"] = environment
        return run_uv(
            ["sync", "--dry-run", "--project", str(self._project), *self._options, *words],
            variables,
            self._request.timeout,
        )

    def _read(self, done: Answer) -> DryRun:
        """Raises NoSolutionError, SourceError."""
        dry = read_uv(done)
        if _REPLACES.search(done.words):
            removed = {name: copy.version for name, copy in self._request.place.own.items()}
            return DryRun(dry.installed, removed, dry.urls)
        return dry


def _copied(project: Path, folder: Path) -> Path:
    """A copy of the project next to links to its folders, with a version if it would compute one."""
    copy = folder / "project"
    copy.mkdir()
    for name in ("pyproject.toml", "uv.lock"):
        if (project / name).is_file():
            (copy / name).write_bytes(read_requirements_file(project / name))
    for entry in project.iterdir():
        if entry.name not in _NOT_LINKED:
            (copy / entry.name).symlink_to(entry)
    if dynamic_of(copy) is Dynamic.VERSION:
        document = read_toml(copy / "pyproject.toml")
        declared = document["project"]
        declared["version"] = "0"
        declared["dynamic"] = [name for name in declared.get("dynamic", []) if name != "version"]
        (copy / "pyproject.toml").write_text(toml_text(document), encoding="utf-8")
    return copy


def _edit(step: Step, copy: Path, request: PredictRequest) -> None:
    """Edit a copy of the project as ``uv add`` or ``uv remove`` does. Raises SourceError when uv refuses."""
    words = [*step.arguments, "--frozen", "--offline", "--no-config", "--project", str(copy)]
    own = ("VIRTUAL_ENV", "UV_INDEX", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_FIND_LINKS")
    variables = {name: value for name, value in request.variables.items() if name not in own}  # uv would write these
    done = run_uv(words, variables, request.timeout)
    if done.status:
        raise SourceError(f"uv could not edit a copy of the project: {' '.join(done.words.split())[-300:]}")


def _requirements(document: Mapping[str, Any], step: Step) -> Iterator[Requirement]:
    """The requirements of a project and of its groups, as far as they parse: to look for source archives."""
    project, groups = table(document, "project"), table(document, "dependency-groups")
    lists = [project.get("dependencies"), *table(document, "project", "optional-dependencies").values()]
    for texts in [*lists, *groups.values(), list(step.requirements)]:
        yield from requirements_in(text for text in texts if isinstance(text, str)) if isinstance(texts, list) else ()


def _untrusted(document: Mapping[str, Any], project: Path, trust: Trust) -> Iterator[Address]:
    """The addresses of a project that uv would contact to lock it, and that only the project names."""
    where = f"{project.name}/pyproject.toml"
    listed = table(document, "tool", "uv").get("index", [])
    urls = [(row.get("url"), "index") for row in listed if isinstance(row, Mapping)] if isinstance(listed, list) else []
    for value in table(document, "tool", "uv", "sources").values():
        rows = value if isinstance(value, list) else [value]
        urls += [(row.get(key), key) for row in rows if isinstance(row, Mapping) for key in ("url", "git")]
    for requirement in _requirements(document, Step("")):
        urls.append((requirement.url, "requirement"))
    for url, kind in urls:
        if isinstance(url, str) and url and "://" in url and not is_file_url(url) and trust.allowed(url) is None:
            yield Address(url, where, kind)
