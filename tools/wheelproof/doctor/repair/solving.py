"""Asks uv what an install would change, with everything that is installed among the requirements.

uv takes what is installed for what it is: an exact requirement of an installed version is met without any index, and
its Requires-Dist count. So nothing can be installed that breaks one of them.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from packaging.utils import canonicalize_name

from wheel_checks.errors import SourceError
from wheel_checks.parsing import requirement_or_none
from wheel_checks.sources.installer_config import IndexConfig
from wheel_checks.sources.uv.changes import Changes, parse_changes
from wheel_checks.sources.uv.explanation import Explanation, explain
from wheel_checks.sources.uv.own_configuration import (
    config_options,
    configuration,
    private_folder,
    run_uv_alone,
    write_private,
)
from wheelproof.doctor.repair.graph import Graph, Unmet
from wheelproof.doctor.repair.installed import Contents, Distribution

SECONDS = 300.0  # of one run that only plans
_MOST_FREED = 8  # installed distributions that a plan may move besides torch's own
# What belongs to torch and moves with it.
_OF_TORCH = ("torch", "torchvision", "torchaudio", "triton", "pytorch-triton")
_LIBRARIES = ("nvidia-", "cuda-")


@dataclass(frozen=True)
class Question:
    """What is asked of uv besides that what is installed stays as it is.

    ``exact`` are requirements by name, each a version with what excludes other builds of it ("==2.11.0,!=2.11.0+cpu");
    ``wanted`` are more requirements. ``reinstalled`` are taken from the index, whatever is installed. ``gone`` are not
    installed afterwards. ``urls`` are the addresses of what did not come from an index. ``backend`` is uv's name of a
    part of PyTorch's own index.
    """

    exact: Mapping[str, str] = field(default_factory=dict)
    wanted: tuple[str, ...] = ()
    reinstalled: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    urls: Mapping[str, str] = field(default_factory=dict)
    backend: str = ""
    free: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Solution:
    """The changes that answer a question, and the requirements that were not met before and stay so."""

    question: Question
    changes: Changes
    left: tuple[Unmet, ...] = ()


class NoPlanError(SourceError):
    """Nothing that can be installed here satisfies all requirements; ``reasons`` say which ones stop it."""

    def __init__(self, what: str, reasons: Iterable[str] = ()) -> None:
        super().__init__(what)
        self.reasons = tuple(reasons)


@dataclass(frozen=True)
class Solver:
    """Solves questions about one environment with one configuration of indexes."""

    contents: Contents
    graph: Graph
    config: IndexConfig
    environ: Mapping[str, str]

    def solve(self, question: Question) -> Solution:
        """The smallest change: first what belongs to torch moves alone, then also what uv names as in its way.

        Everything that is installed is satisfied, also what was not before; where that is impossible, requirements that
        were broken before and have nothing to do with the question stay as they are. Raises NoPlanError, SourceError.
        """
        question = replace(question, free=question.free | self._movable(question))
        try:
            return self._freeing(question, extras=True)
        except NoPlanError as error:
            left = self._unrelated(question)
            for extras in (False, True) if left else (False,):
                try:
                    return self._freeing(question, extras=extras, left=left)
                except NoPlanError:
                    continue
            raise error from None

    def lines(self, question: Question, *, extras: bool, left: Sequence[Unmet] = ()) -> list[str]:
        """All requirements, one a line."""
        counted = self.graph.extras() if extras else {}
        found = [
            self._line(one, question, counted.get(name, set()))
            for name, one in self.contents.own.items()
            if name not in question.gone and name not in question.urls
        ]
        found += [f"{name} @ {url}" for name, url in question.urls.items()]
        installed = self.contents.own.keys()
        found += [f"{name}{pin}" for name, pin in question.exact.items() if name not in installed]
        ignored = {one.name for one in left}
        return [*found, *(text for text in question.wanted if _name_of(text) not in ignored)]

    def _line(self, one: Distribution, question: Question, extras: Collection[str]) -> str:
        name = f"{one.name}[{','.join(sorted(extras))}]" if extras else one.name
        if one.name in question.exact:
            return f"{name}{question.exact[one.name]}"
        if one.name in question.free and one.name not in question.reinstalled:
            return name
        return f"{name}{'==' if one.parsed else '==='}{one.version}"

    def _movable(self, question: Question) -> frozenset[str]:
        """What may change its version: torch's own where torch does, what is requested, and what is broken already."""
        names = {_name_of(text) for text in question.wanted} | {one.name for one in self.graph.unmet()}
        if "torch" in question.exact:
            names.update(_OF_TORCH)
            names.update(name for name in self.contents.own if name.startswith(_LIBRARIES))
        return frozenset(names - set(question.reinstalled))

    def _unrelated(self, question: Question) -> tuple[Unmet, ...]:
        asked = {*question.exact, *question.reinstalled, *map(_name_of, question.wanted), "torch"}
        near = self.graph.closure("torch")
        return tuple(one for one in self.graph.unmet() if one.name not in asked and one.by.name not in near)

    def _freeing(self, question: Question, *, extras: bool, left: tuple[Unmet, ...] = ()) -> Solution:
        """Free, one after the other, what uv names as demanded in another version, but nothing that requires torch."""
        if left:
            question = replace(question, free=question.free - {one.name for one in left})
        users = {one.name for one in self.graph.users("torch")}
        held = {"torch", *users, *question.exact, *question.reinstalled}
        answer: Changes | Explanation = Explanation(())
        for _ in range(_MOST_FREED):
            answer = self._ask(question, extras=extras, left=left)
            if isinstance(answer, Changes):
                return Solution(question, answer, left)
            named = {_name_of(demand.what) for demand in answer.demands}
            more = (named & self.contents.own.keys()) - held - question.free
            if not more:
                raise NoPlanError("no set of versions satisfies everything that is installed", _reasons(answer))
            question = replace(question, free=question.free | more)
        raise NoPlanError("no small change satisfies everything that is installed", _reasons(answer))

    def _ask(self, question: Question, *, extras: bool, left: Sequence[Unmet]) -> Changes | Explanation:
        with private_folder() as folder:
            arguments = ["pip", "install", "--dry-run", *self.options(question, folder)]
            arguments += ["-r", _file(folder, "requirements.txt", self.lines(question, extras=extras, left=left))]
            if overrides := [*map(_as_it_is, left), *self._addresses(question)]:
                arguments += ["--overrides", _file(folder, "overrides.txt", dict.fromkeys(overrides))]
            answer = run_uv_alone(arguments, self.environ, SECONDS)
        if answer.status == 0:
            return parse_changes(answer.output + answer.words)
        if explanation := explain(answer.words):
            return explanation
        said = " ".join((answer.words or answer.output).split())[-600:]
        raise SourceError(f"uv could not plan the repair: {said or f'status {answer.status}'}")

    def _addresses(self, question: Question) -> Iterator[str]:
        """Overrides for what installed distributions require by an address: uv accepts such a requirement from
        its user alone. What is installed meets it.
        """
        for one in self.contents.own.values():
            for requirement in self.graph.active(one) if one.name not in question.gone else ():
                name = str(canonicalize_name(requirement.name))
                if requirement.url and name not in question.urls:
                    known = self.contents.own.get(name)
                    version = question.exact.get(name, f"=={known.version}" if known else "")
                    yield f"{name}{version}" if version else f'{name} ; python_version < "0"'

    def options(self, question: Question, folder: Path) -> list[str]:
        """The options of uv that every run of this repair has: this Python, the configured indexes, wheels alone."""
        return [
            *config_options(folder, configuration(self.config, self.environ)),
            "--python",
            self.contents.python,
            *("--only-binary", ":all:"),
            *(f"--reinstall-package={name}" for name in question.reinstalled),
            *([f"--torch-backend={question.backend}"] if question.backend else []),
        ]


def environment_of(variables: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The variables by which installers are configured: for pip's file in the environment, that it is active."""
    return {**(variables or os.environ), "VIRTUAL_ENV": prefix}


def _as_it_is(unmet: Unmet) -> str:
    """The override that takes a requirement as what is installed meets it: never, where nothing is."""
    return f"{unmet.name}=={unmet.found}" if unmet.found else f'{unmet.name} ; python_version < "0"'


def _reasons(explanation: Changes | Explanation) -> list[str]:
    if isinstance(explanation, Changes):
        return []
    said = list(dict.fromkeys(explanation.sentences)) or [str(demand) for demand in explanation.demands]
    return [one.replace("you require", "the plan requires") for one in said]


def _file(folder: Path, name: str, lines: Iterable[str]) -> str:
    return str(write_private(folder / name, "".join(f"{line}\n" for line in lines)))


def _name_of(text: str) -> str:
    parsed = requirement_or_none(text)
    return str(canonicalize_name(parsed.name)) if parsed else ""
