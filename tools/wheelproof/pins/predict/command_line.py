"""Parse command lines of installers into steps.

Only words that are known are understood. One that is not makes the step open: it could change everything.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wheel_checks.parsing import requirement_or_none
from wheel_checks.sources.installers.options import UNKNOWN_OPTION, Option, options_of, with_effect
from wheelproof.pins.installers import PIP, UV
from wheelproof.pins.predict.step import Step, Verb
from wheelproof.pins.predict.wrappers import behind_front, behind_python, is_command, is_pip, why_opaque
from wheelproof.wheels.declared_model import Typed, TypedKind

POETRY, PDM = "poetry", "pdm"
_TYPED = {
    "files": TypedKind.FILE,
    "constraints": TypedKind.CONSTRAINTS,
    "projects": TypedKind.PROJECT,
    "groups": TypedKind.GROUP,
}
_LONG = {"-i": "--index-url", "-f": "--find-links"}
_NOT_OF_A_SYNC = ("folder", "python", "apart", "network")  # it works elsewhere, or with other settings
_OF_EDIT_AND_SYNC = ("index", "search", "chosen", "upgrade", "reinstall", "pre", "wheels")
_GROUPS = {"--optional": "--extra", "--group": "--group", "--dev": "--group"}  # of `uv add`, and of its sync
_FILES_OF_UV = with_effect("uv pip", "overrides", "excludes")
ADDRESS_OPTIONS = with_effect("uv", "index")


def read_command(words: Sequence[str], folder: Path) -> Step:
    """The step that a command of an installer is; ``folder`` is where it runs."""
    text = shlex.join(words)
    front = behind_front(words)
    rest, unread = front.words, front.unread
    place = rest[0].rpartition("/")[0] if rest[0].startswith("/") else ""
    module = behind_python(rest)
    if module is not None:
        rest, unread = module[0], unread or module[1]
    program = "pip" if is_pip(rest[0]) else rest[0].rpartition("/")[2]
    step = replace(_of_program(program, rest[1:], text, folder), variables=front.variables, by_sudo=front.by_sudo)
    step = replace(step, program=place if program == "pip" else "")
    return replace(step, unread=step.unread or unread)


def files_of(step: Step) -> list[str]:
    """The files of overrides and excluded packages in the options of a step."""
    return [value for option, value in itertools.pairwise(step.options) if option in _FILES_OF_UV]


def _of_program(program: str, words: list[str], text: str, folder: Path) -> Step:
    if program in ("uvx", "pipx"):
        return Step(text, Verb.APART)
    if program not in ("pip", "uv", POETRY, PDM):
        return Step(text, unread=f"{program} has no dry run")
    behind, folder, unread = _behind_globals(options_of(program), words, folder)
    reading = _Reading(text, folder)
    if program == "pip":
        step = reading.pip(behind, PIP)
    else:
        step = reading.uv(behind) if program == "uv" else reading.of_lock(program, behind)
    return step if step.verb in (Verb.NOTHING, Verb.APART) else replace(step, unread=step.unread or unread)


_ELSEWHERE = "it works on another environment (--python {0}): pass that one to wheelproof as well"
_UNREAD = "its option {0} is unknown"


def _behind_globals(options: Mapping[str, Option], words: list[str], folder: Path) -> tuple[list[str], Path, str]:
    """The words after the options of the program itself, the folder it works in, and why these are not understood."""
    unread = ""
    while words and words[0].startswith("-"):
        name, equals, value = words[0].partition("=")
        option = options.get(name, UNKNOWN_OPTION)
        takes_next = option.takes_value and not equals
        if takes_next:
            value = words[1] if len(words) > 1 else ""
        if option.effect == "folder":
            folder = folder / value
        elif option.effect == "python":
            unread = unread or _ELSEWHERE.format(value)
        elif option.effect not in ("none", "builds"):
            unread = unread or _UNREAD.format(name)
        words = words[2 if takes_next else 1 :]
    return words, folder, unread


@dataclass(frozen=True, slots=True)
class _Reading:
    text: str
    folder: Path

    def uv(self, words: list[str]) -> Step:
        verb = words[0] if words else ""
        if verb == "pip":
            return self.pip(words[1:], UV)
        if verb in ("sync", "add", "remove", "run"):
            return self._of_project(verb, words[1:])
        if verb == "tool":
            return Step(self.text, Verb.APART)
        if verb == "venv" and {"--clear", "-c"} & set(words):
            return Step(self.text, unread="it empties the environment")
        if verb in ("lock", "export", "venv", "cache", "python", "build", "publish", "init", "version", "tree", "self"):
            return Step(self.text, Verb.NOTHING)
        return Step(self.text, unread=f"`uv {verb}` is unknown")

    def pip(self, words: list[str], installer: str) -> Step:
        verb = words[0] if words else ""
        options = options_of(f"uv pip {verb}" if installer == UV else f"pip {verb}")
        if verb in ("install", "sync"):
            step = self._install(words[1:], installer, options)
            return (
                replace(
                    step,
                    verb=Verb.SYNC,
                    unread=step.unread or "`uv pip sync` uninstalls packages that its files do not list",
                )
                if verb == "sync"
                else step
            )
        if verb == "uninstall":
            read = list(_options(words[1:], options))
            names = tuple(value for name, value in read if not name)
            unknown = [name for name, _ in read if name and _effect(options, name) not in ("none", "managed")]
            unread = _UNREAD.format(unknown[0]) if unknown else ""
            return Step(self.text, Verb.UNINSTALL, (installer,), names, unread=unread)
        if verb in (
            "download",
            "wheel",
            "list",
            "show",
            "freeze",
            "check",
            "config",
            "cache",
            "compile",
            "index",
            "tree",
        ):
            return Step(self.text, Verb.NOTHING)
        return Step(self.text, unread=f"`{installer} {verb}` is unknown")

    def _install(self, words: list[str], installer: str, options: Mapping[str, Option]) -> Step:
        step = Step(self.text, Verb.INSTALL, (installer,), project=self.folder)
        for name, value in _options(words, options):
            step = self._option(step, name, options.get(name, UNKNOWN_OPTION), value) if name else _operand(step, value)
        return step

    def _option(self, step: Step, name: str, option: Option, value: str) -> Step:
        effect = option.effect
        if effect in _TYPED:
            return replace(step, typed=(*step.typed, Typed(_TYPED[effect], value)))
        if effect in ("upgrade", "pre", "user", "system"):
            return replace(
                step,
                upgrade=step.upgrade or effect == "upgrade",
                pre=step.pre or effect == "pre",
                to_user=step.to_user or effect == "user",
                to_system=step.to_system or effect == "system",
            )
        if effect == "target":
            return replace(step, folder=str((self.folder / value).absolute()))
        if effect == "wheels":
            unread = "" if value in ("", ":all:", ":none:") else _UNREAD.format(f"{name} {value}")
            return replace(step, wheels_only=value in ("", ":all:"), unread=step.unread or unread)
        passed = _passed(name, option, value, self.folder)
        unread = "" if passed is not None else _UNREAD.format(name)
        unread = _ELSEWHERE.format(value) if effect == "python" else unread
        return replace(step, options=(*step.options, *(passed or ())), unread=step.unread or unread)

    def _of_project(self, verb: str, words: list[str]) -> Step:
        kinds = {"sync": Verb.SYNC, "run": Verb.RUN, "add": Verb.ADD, "remove": Verb.ADD}
        step = Step(self.text, kinds[verb], (UV,), project=self.folder, is_exact=verb not in ("run", "add"))
        if verb == "run":
            return self._run(step, words)
        if verb in ("add", "remove") and "--no-sync" in words:
            return replace(step, verb=Verb.NOTHING)
        step = replace(step, arguments=() if verb == "sync" else (verb,))
        options = options_of(f"uv {verb}")
        for name, value in _options(words, options):
            step = self._of_sync(step, verb, name, options.get(name), value)
        return step

    def _of_sync(self, step: Step, verb: str, name: str, option: Option | None, value: str) -> Step:
        """The step with one more word or option of `uv sync`, `uv add` or `uv remove`."""
        if not name:
            return replace(step, arguments=(*step.arguments, value))
        is_edit = verb != "sync"
        effect = option.effect if option else ""
        if is_edit and name in ("--locked", "--frozen", "--dry-run"):
            return step
        if effect == "inexact":
            return replace(step, is_exact=False)
        if option is None or effect in _NOT_OF_A_SYNC or (is_edit and effect == "other"):
            return replace(step, unread=step.unread or _UNREAD.format(name))
        words = (name, value) if option.takes_value else (name,)
        more = words if is_edit and effect in _OF_EDIT_AND_SYNC else ()
        if is_edit and name in _GROUPS:
            more = (_GROUPS[name], value or "dev")
        return replace(step, arguments=(*step.arguments, *words), options=(*step.options, *more))

    def _run(self, step: Step, words: list[str]) -> Step:
        options = options_of("uv run")
        kept: list[str] = []
        with_: list[str] = []
        at = 0
        while at < len(words) and words[at].startswith("-") and words[at] != "--":
            name, equals, value = words[at].partition("=")
            option = options.get(name, UNKNOWN_OPTION)
            takes_next = option.takes_value and not equals
            if takes_next:
                value = words[at + 1] if at + 1 < len(words) else ""
            match option.effect:
                case "requirements":
                    with_ += _separated(value)
                case "files" | "projects":
                    step = replace(step, unread=f"what {name} names is not read")
                case "apart":
                    return replace(step, verb=Verb.APART)
                case "unsynced":
                    step = replace(step, arguments=("--no-sync",))
                case "exact":
                    step = replace(step, is_exact=True)
                case "program":
                    pass
                case effect if effect in _NOT_OF_A_SYNC or name not in options:
                    step = replace(step, unread=step.unread or _UNREAD.format(name))
                case _:
                    kept += [name, value] if option.takes_value else [name]
            at += 2 if takes_next else 1
        step = replace(step, with_=tuple(with_), arguments=(*step.arguments, *kept))
        return replace(step, unread=step.unread or _what_it_runs("uv run", words[at:]))

    def of_lock(self, program: str, words: list[str]) -> Step:
        """A command of poetry or pdm: installs of a lock are known from the lock; others are unread."""
        verb = words[0] if words else ""
        name = f"{program}.lock"
        if (program, verb) in ((POETRY, "install"), (POETRY, "sync"), (PDM, "install"), (PDM, "sync")):
            options = options_of(f"{program} {verb}")
            given = [(word, options.get(word, UNKNOWN_OPTION).effect) for word in words[1:]]
            is_exact = (verb == "sync" and program == POETRY) or any(effect == "exact" for _, effect in given)
            unknown = [word for word, effect in given if effect not in ("exact", "none")]
            unread = _UNREAD.format(unknown[0]) if unknown else ""
            return Step(
                self.text, Verb.LOCKED, (program,), project=self.folder / name, is_exact=is_exact, unread=unread
            )
        if verb in ("add", "update", "remove", "lock") or not verb:
            hint = f"`{program} {verb} --dry-run` resolves with {program} itself, and may build"
            return Step(
                self.text,
                Verb.NOTHING if verb == "lock" else Verb.ADD,
                (program,),
                unread="" if verb == "lock" else hint,
            )
        if verb == "run" and (unread := _what_it_runs(f"{program} run", words[1:])):
            return Step(self.text, Verb.NOTHING, (program,), unread=unread)
        if verb in ("run", "config", "self", "env", "show", "check", "export", "build", "publish", "shell"):
            return Step(self.text, Verb.NOTHING)
        return Step(self.text, unread=f"`{program} {verb}` is unknown")


def _what_it_runs(by: str, words: list[str]) -> str:
    """Why a program that is run may change the environment; "" when it does not seem to."""
    rest = words[1:] if words[:1] == ["--"] else words
    if is_command(rest) or why_opaque(["-", *rest]):
        return f"what `{by}` runs is an installer itself: predict that command"
    return ""


def _passed(name: str, option: Option, value: str, folder: Path) -> tuple[str, ...] | None:
    """The words that pass an option to the installer; None if it is unknown."""
    if option.effect == "none":
        return ()
    is_file = option.effect in ("overrides", "excludes") or name.startswith(("-b", "--build-constraint"))
    if is_file and option.takes_value:
        return (name, str((folder / value).absolute()))
    if option.effect in ("builds", "chosen", "index", "managed", "reinstall", "search"):
        return (name, value) if option.takes_value else (name,)
    return None


def _effect(options: Mapping[str, Option], name: str) -> str:
    return options.get(name, UNKNOWN_OPTION).effect


def _operand(step: Step, value: str) -> Step:
    if requirement_or_none(value):
        return replace(step, requirements=(*step.requirements, value))
    return replace(step, typed=(*step.typed, Typed(TypedKind.PROJECT, value)))


def _options(words: list[str], options: Mapping[str, Option]) -> Iterator[tuple[str, str]]:
    """Options with their values, and operands as values of ""."""
    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "--":
            yield from (("", rest) for rest in words[at:])
            return
        if not word.startswith("-") or word == "-":
            yield "", word
            continue
        name, equals, value = word.partition("=")
        if not word.startswith("--") and len(word) > 2 and options.get(word[:2], UNKNOWN_OPTION).takes_value:
            name, equals, value = word[:2], "=", word[2:].removeprefix("=")
        if options.get(name, UNKNOWN_OPTION).takes_value and not equals:
            value = words[at] if at < len(words) else ""
            at += 1
        yield (_LONG.get(name, name) if name in options else name), value


def _separated(value: str) -> list[str]:
    """The requirements of ``--with``, separated by commas; those within brackets and versions separate nothing."""
    parts = re.split(r",(?=\s*[A-Za-z0-9])(?![^\[]*\])", value)
    return [part.strip() for part in parts if part.strip()]
