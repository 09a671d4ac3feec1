"""Parse the arguments of ``wheelproof pins predict``: requirements, projects, files, commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wheel_checks.errors import NotFoundError, UsageError
from wheel_checks.formats.lock.model import PDM, POETRY, PYLOCK, UV
from wheel_checks.formats.lock.reading import format_by_name, is_lock_name
from wheel_checks.parsing import requirement_or_none
from wheelproof.pins.installers import UV as UV_INSTALLER
from wheelproof.pins.predict.images import is_image_file, steps_of_image, steps_of_script
from wheelproof.pins.predict.step import Step, Verb
from wheelproof.pins.predict.wrappers import is_command, why_opaque
from wheelproof.wheels.declared_model import Typed, TypedKind

EXAMPLES = "vllm==0.20.0, -r requirements.txt, `.`, uv.lock, Dockerfile or 'uv add vllm'"


@dataclass(frozen=True, slots=True)
class Targets:
    """Either ``steps``, or ``requirements`` and other arguments as ``typed``."""

    requirements: tuple[str, ...] = ()
    typed: tuple[Typed, ...] = ()
    steps: tuple[Step, ...] = ()


def read_targets(words: Sequence[str], folder: Path, typed: Sequence[Typed] = (), with_: Sequence[str] = ()) -> Targets:
    """The targets of the words; ``typed`` and ``with_`` are options of the same command.

    Raises UsageError for a word that means nothing, and for commands next to anything else.
    """
    steps: list[Step] = []
    requirements: list[str] = []
    named = list(typed)
    if with_:
        run = Step(f"uv run {shlex.join([part for text in with_ for part in ('--with', text)])}", Verb.RUN)
        steps.append(replace(run, installers=(UV_INSTALLER,), with_=tuple(with_), project=folder, is_exact=False))
    if is_command(words) or why_opaque(words):
        steps += steps_of_script(shlex.join(words), folder, trusted=True)
        words = ()
    for word in words:
        found = list(_steps(word, folder))
        if found:
            steps += found
        elif _is_place(word, folder):
            named.append(Typed(TypedKind.PROJECT, word))
        else:
            requirements.append(word)
    if steps and (requirements or named):
        raise UsageError(
            f"{steps[0].text!r} is next to {(*requirements, *(one.text for one in named))[0]!r}",
            expected="commands, lock files and Dockerfiles alone, or requirements and projects",
        )
    return Targets(tuple(requirements), tuple(named), tuple(steps))


def _steps(word: str, folder: Path) -> Iterator[Step]:
    """The steps of one word: a shell command, a lock file, a Dockerfile. Empty for any other."""
    path = folder / word
    if any(character.isspace() for character in word.strip()):
        yield from steps_of_script(word, folder, trusted=True)
    elif is_lock_name(path.name) and path.is_file():
        yield _of_lock(word, path)
    elif is_image_file(path):
        found = list(steps_of_image(path))
        if not found:
            raise NotFoundError(f"no install command was found in {word}", hint="predict what it installs")
        yield from found


def _of_lock(word: str, path: Path) -> Step:
    kind = format_by_name(path.name)
    if kind == UV:
        return Step(f"uv sync with {word}", Verb.SYNC, (UV_INSTALLER,), project=path.parent)
    if kind in (POETRY, PDM):
        return Step(f"{kind} install with {word}", Verb.LOCKED, (kind,), project=path, is_exact=False)
    if kind == PYLOCK:
        return Step(f"install -r {word}", Verb.LOCKED, project=path, is_exact=False)
    return Step(word, unread=f"the effect of installing {path.name} is unknown: it is for conda")


def _is_place(word: str, folder: Path) -> bool:
    """Whether a word names a folder with a project, or a wheel, as pip and uv decide it."""
    requirement = requirement_or_none(word)
    if requirement is not None and requirement.url is None:
        return False
    bare = word.partition("[")[0]
    looks = bare in (".", "..") or "/" in bare or bare.endswith(".whl")
    return "://" not in word and looks and (folder / bare).exists()
