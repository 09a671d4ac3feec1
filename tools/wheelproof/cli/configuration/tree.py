"""The settings that apply from the configuration file of a tree, and those that are ignored."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wheel_checks.errors import UsageError
from wheel_checks.phrases import joined
from wheelproof.cli.configuration.files import TreeFile, own_place
from wheelproof.cli.configuration.values import Setting, convert
from wheelproof.cli.options.output import CommandParser
from wheelproof.cli.options.rights import Effect, Right, right_of
from wheelproof.reporting import TreeRules

ONLY_EXPECTS = "a checkout can only configure what is checked and what is expected"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An ignored key, or "" for a whole file: its place, the reason, and how to make it apply."""

    key: str
    place: str
    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.place} is ignored: {self.why}; {self.remedy}"


def warnings(refused: Iterable[Refusal], environment: Mapping[str, str]) -> Iterator[str]:
    """A line for each reason why keys are ignored, with all keys that it concerns."""
    by_reason: dict[str, list[Refusal]] = {}
    for refusal in refused:
        by_reason.setdefault(refusal.why, []).append(refusal)
    for why, found in by_reason.items():
        if len(found) == 1:
            yield str(found[0])
        else:
            file = found[0].place.partition(" in ")[2]
            names = joined([refusal.place.partition(" in ")[0] for refusal in found])
            yield f"{names} in {file} are ignored: {why}; {_remedy(environment, *(one.key for one in found))}"


@dataclass(slots=True)
class TreeSettings:
    """Settings of a tree: ``origins`` of the keys that apply, by key, and the keys that are ignored."""

    path: Path | None = None
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    dests: set[str] = field(default_factory=set)
    origins: dict[str, str] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)

    @property
    def rules(self) -> TreeRules:
        """The settings of rules, for the report."""
        file = str(self.path or "")
        return TreeRules(file, self.select, self.ignore, {refusal.key: refusal.why for refusal in self.refused})


@dataclass(frozen=True, slots=True)
class Run:
    """The parser of a run, and the values without the tree.

    ``explicit`` are the keys that the command line and the environment have, ``defaults`` the values by destination.
    """

    parser: CommandParser
    namespace: argparse.Namespace
    defaults: Mapping[str, Any]
    explicit: Collection[str]
    environment: Mapping[str, str]


def merge_tree(run: Run, file: TreeFile, settings: Mapping[str, Setting]) -> TreeSettings:
    """Fill the namespace with the settings that a tree may make. Raises UsageError for an invalid value."""
    made = TreeSettings(file.path)
    for key, setting in settings.items():
        action = run.parser.options[key]
        right = right_of(action)
        if right.effect is Effect.REFUSED:
            made.refused.append(_refusal(run, key, setting, ONLY_EXPECTS))
        elif key not in run.explicit:
            value = convert(run.parser, action, setting, run.defaults[action.dest])
            try:
                holds = _merge(run, file, made, action, right, value)
            except _RefusedError as error:
                made.refused.append(_refusal(run, key, setting, str(error)))
                continue
            if holds:
                made.dests.add(action.dest)
                made.origins[key] = setting.origin
    return made


class _RefusedError(Exception):
    """A value that a tree may not choose."""


def _merge(run: Run, file: TreeFile, made: TreeSettings, action: argparse.Action, right: Right, value: Any) -> bool:
    """Apply the tree's value of an option, and return whether it applies. Raises _RefusedError if it may not."""
    name, namespace = action.dest, run.namespace
    if right.effect is Effect.ADDS:
        setattr(made, name, tuple(value))
        return True
    if right.effect is Effect.RAISES:
        held = getattr(namespace, name, run.defaults[name])
        if right.order.index(value) < right.order.index(held):
            raise _RefusedError(f"{value!r} is weaker than {held!r}, and a checkout can only make settings stricter")
        if value == held:
            return False
    elif hasattr(namespace, name):
        return False  # the user's own configuration has it
    setattr(namespace, name, _confined(value, file) if right.effect is Effect.NAMES_FILES else value)
    return True


def not_ours(run: Run, file: TreeFile, settings: Mapping[str, Setting] | None, *, stop: bool) -> TreeSettings:
    """The settings of a tree of another user: none apply. ``settings`` is None if they cannot be read.

    Raises UsageError if ``stop`` and one of them would apply, since the verdict would cover less than requested; not in
    a folder that all users share.
    """
    assert file.path is not None  # noqa: S101  # for mypy: it has a fault
    needed = settings is None or any(
        right_of(run.parser.options[key]).effect is not Effect.REFUSED and key not in run.explicit for key in settings
    )
    remedy = (
        f"to use it anyway, set WHEELPROOF_SAFE_DIRECTORY={shlex.quote(str(file.path.parent))} or the key "
        f"safe-directory in your own configuration; --config /dev/null ignores it"
    )
    if stop and needed and not file.shared:
        raise UsageError(file.fault, expected="your own file, or of root", hint=remedy)
    refused = [] if settings == {} else [Refusal("", str(file.path), file.fault, remedy)]
    return TreeSettings(file.path, refused=refused)


def folders_of(file: TreeFile) -> tuple[Path, ...]:
    """The folders by which an exception names a file: its own, and its tree."""
    return () if file.path is None else (file.path.parent.resolve(), file.root.resolve())


def _refusal(run: Run, key: str, setting: Setting, why: str) -> Refusal:
    return Refusal(key, setting.origin, why, _remedy(run.environment, key))


def _remedy(environment: Mapping[str, str], *keys: str) -> str:
    """How to make these keys apply."""
    own = own_place(environment)
    return f"use {', '.join(f'--{key}' for key in keys)}{f', or your own {own}' if own else ''}"


def _confined(value: Any, file: TreeFile) -> Any:
    """Paths relative to the folder of the file, all links followed. Raises _RefusedError for one outside the tree."""
    assert file.path is not None  # noqa: S101  # for mypy: it has keys

    def inside(name: str, folder: Path = file.path.parent) -> str:
        try:
            real = (folder / name).resolve()
        except (OSError, RuntimeError, ValueError) as error:  # links in a loop, a null byte
            raise _RefusedError(f"{name!r} cannot be followed") from error
        if any(path.is_symlink() for path in (real, *real.parents)):  # links in a loop, since Python 3.13
            raise _RefusedError(f"{name!r} cannot be followed")
        if not real.is_relative_to(file.root.resolve()):
            raise _RefusedError(f"{name!r} leads out of {file.root}")
        return str(real)

    return [inside(name) for name in value] if isinstance(value, list) else inside(value)
