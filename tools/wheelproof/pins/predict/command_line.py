"""Reads the command lines of installers: what each asks for, and how.

Only words that are known are understood. One that is not makes the step open: it could change everything.
"""

from __future__ import annotations

import itertools
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from wheelproof.pins.installers import PIP, UV
from wheelproof.pins.predict.step import Step, Verb
from wheelproof.pins.predict.wrappers import behind_front, behind_python, is_command, is_pip, why_opaque
from wheelproof.wheels.declared_model import Typed, TypedKind

POETRY, PDM = "poetry", "pdm"


# Options that take a value, by what becomes of them.
_TYPED = {
    **dict.fromkeys(("-r", "--requirement", "--requirements"), TypedKind.FILE),
    **dict.fromkeys(("-c", "--constraint", "--constraints"), TypedKind.CONSTRAINTS),
    **dict.fromkeys(("-e", "--editable"), TypedKind.PROJECT),
    "--group": TypedKind.GROUP,
}
_ADDRESSES = {"-i": "--index-url", "-f": "--find-links"}
ADDRESS_OPTIONS = {"--index-url", "--extra-index-url", "--find-links", "--index", "--default-index"}
_PASSED_WITH_VALUE = {
    *ADDRESS_OPTIONS,
    *("--index-strategy", "--upgrade-strategy", "--prerelease", "--resolution", "--exclude-newer", "--fork-strategy"),
    *("-P", "--upgrade-package", "--reinstall-package", "--torch-backend", "--uploaded-prior-to", "--keyring-provider"),
}
_OF_A_PLACE = {"--python", "-p", "--directory", "--project"}
_FILES_OF_UV = {"--overrides", "--override", "--excludes", "--exclude"}
_PASSED = {"--no-index", "--no-deps", "--force-reinstall", "--reinstall", "-I", "--ignore-installed", "--no-sources"}
_PASSED |= {"--strict", "--exact", "--break-system-packages"}
_WITHOUT_EFFECT_WITH_VALUE = {
    *("--cache-dir", "--log", "--timeout", "--retries", "--trusted-host", "--progress-bar", "--root-user-action"),
    *("--link-mode", "--config-setting", "--config-settings", "-C", "--color", "--src", "--proxy"),
    *("--cert", "--client-cert", "--allow-insecure-host", "--no-build-isolation-package", "--build-constraint", "-b"),
    *("--build-constraints", "--exists-action", "--use-feature", "--global-option", "--default-timeout"),
}
_WITHOUT_EFFECT = {
    *("-q", "--quiet", "-qq", "-v", "--verbose", "-vv", "-vvv", "--no-cache-dir", "--no-cache", "-n"),
    *("--no-build-isolation", "--no-input", "--disable-pip-version-check", "--no-warn-script-location", "--compile"),
    *("--no-compile", "--no-progress", "--compile-bytecode", "--no-python-version-warning", "--no-warn-conflicts"),
    *("--prefer-binary", "--use-pep517", "--no-color", "--refresh", "--dry-run", "--check-build-dependencies"),
    *("--native-tls", "--system-certs", "--yes", "-y", "--no-verify-hashes", "--debug"),
}
_FLAGS = {"-U", "--upgrade", "--pre", "--user", "--system"}
_SHORT_VALUES = ("-r", "-c", "-e", "-i", "-f", "-t", "-P", "-p", "-b", "-C")


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
    """The files that the options of a step name: those of overrides and of packages that are excluded."""
    return [value for option, value in itertools.pairwise(step.options) if option in _FILES_OF_UV]


def _of_program(program: str, words: list[str], text: str, folder: Path) -> Step:
    if program in ("uvx", "pipx"):
        return Step(text, Verb.APART)
    if program not in ("pip", "uv", POETRY, PDM):
        return Step(text, unread=f"{program} has no dry run")
    behind, folder, other = _behind_globals(words, folder)
    reading = _Reading(text, folder)
    if program == "pip":
        step = reading.pip(behind, PIP)
    else:
        step = reading.uv(behind) if program == "uv" else reading.of_lock(program, behind)
    return replace(step, unread=step.unread or _ELSEWHERE.format(other)) if other else step


_ELSEWHERE = "it works on another environment (--python {0}): pass that one to wheelproof as well"


def _behind_globals(words: list[str], folder: Path) -> tuple[list[str], Path, str]:
    """The words after the options of the program itself, the folder it works in, and the environment it works on."""
    other = ""
    while words and words[0].startswith("-"):
        option, equals, value = words[0].partition("=")
        takes = option in _WITHOUT_EFFECT_WITH_VALUE | _OF_A_PLACE | {"--config-file", "-C"}
        if takes and not equals:
            value = words[1] if len(words) > 1 else ""
        if option in ("--directory", "--project", "-C"):
            folder = folder / value
        elif option in _OF_A_PLACE:
            other = value
        words = words[2 if takes and not equals else 1 :]
    return words, folder, other


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
        if verb in ("install", "sync"):
            step = self._install(words[1:], installer)
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
            names = tuple(word for word in words[1:] if not word.startswith("-"))
            files = any(word in _TYPED for word in words[1:])
            unread = "what it uninstalls is in a file" if files else ""
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

    def _install(self, words: list[str], installer: str) -> Step:
        step = Step(self.text, Verb.INSTALL, (installer,), project=self.folder)
        for option, value in _options(words):
            step = self._option(step, option, value)
        return step

    def _option(self, step: Step, option: str, value: str) -> Step:
        if not option:
            return _operand(step, value)
        if option in _TYPED:
            return replace(step, typed=(*step.typed, Typed(_TYPED[option], value)))
        if option in _FLAGS:
            return replace(
                step,
                upgrade=step.upgrade or option in ("-U", "--upgrade"),
                pre=step.pre or option == "--pre",
                to_user=step.to_user or option == "--user",
                to_system=step.to_system or option == "--system",
            )
        if option in ("-t", "--target"):
            return replace(step, folder=str((self.folder / value).absolute()))
        if option in ("--only-binary", "--no-build"):
            unread = "" if value in ("", ":all:", ":none:") else f"its option {option} {value} is unknown"
            return replace(step, wheels_only=value in ("", ":all:"), unread=step.unread or unread)
        passed = _passed(option, value, self.folder)
        unread = "" if passed is not None else f"its option {option} is unknown"
        unread = _ELSEWHERE.format(value) if option in ("--python", "-p") else unread
        return replace(step, options=(*step.options, *(passed or ())), unread=step.unread or unread)

    def _of_project(self, verb: str, words: list[str]) -> Step:
        kinds = {"sync": Verb.SYNC, "run": Verb.RUN, "add": Verb.ADD, "remove": Verb.ADD}
        step = Step(self.text, kinds[verb], (UV,), project=self.folder, is_exact=verb not in ("run", "add"))
        kept: list[str] = []
        if verb == "run":
            return self._run(step, words)
        dropped = {"--no-sync", "--locked", "--frozen", "--dry-run"}
        if verb in ("add", "remove"):
            if "--no-sync" in words:
                return replace(step, verb=Verb.NOTHING)
            return replace(step, arguments=(verb, *(word for word in words if word not in dropped)))
        for word in words:
            if word == "--inexact":
                step = replace(step, is_exact=False)
            else:
                kept.append(word)
        return replace(step, arguments=tuple(kept))

    def _run(self, step: Step, words: list[str]) -> Step:
        kept: list[str] = []
        with_: list[str] = []
        at = 0
        while at < len(words) and words[at].startswith("-") and words[at] != "--":
            option, equals, value = words[at].partition("=")
            takes = option in _RUN_WITH_VALUE
            if takes and not equals:
                value = words[at + 1] if at + 1 < len(words) else ""
            if option in ("--with", "-w"):
                with_ += _separated(value)
            elif option in ("--with-requirements", "--with-editable"):
                step = replace(step, unread=f"what {option} names is not read")
            elif option == "--isolated":
                return replace(step, verb=Verb.APART)
            elif option == "--no-sync":
                step = replace(step, arguments=("--no-sync",))
            elif option == "--exact":
                step = replace(step, is_exact=True)
            elif option not in ("-m", "--module", "-s", "--script", "--gui-script"):
                kept += [option, value] if takes else [option]
            at += 2 if takes and not equals else 1
        step = replace(step, with_=tuple(with_), arguments=(*step.arguments, *kept))
        return replace(step, unread=step.unread or _what_it_runs("uv run", words[at:]))

    def of_lock(self, program: str, words: list[str]) -> Step:
        """A command of poetry or pdm: what installs a lock is known from the lock; what resolves is not."""
        verb = words[0] if words else ""
        name = f"{program}.lock"
        if (program, verb) in ((POETRY, "install"), (POETRY, "sync"), (PDM, "install"), (PDM, "sync")):
            is_exact = (verb == "sync" and program == POETRY) or "--sync" in words or "--clean" in words
            unknown = [
                w
                for w in words[1:]
                if w
                not in (
                    "--sync",
                    "--clean",
                    "--no-root",
                    "--no-interaction",
                    "-n",
                    "-q",
                    "--no-self",
                    "--frozen-lockfile",
                    "--check",
                    "--no-editable",
                    "--no-ansi",
                    "-v",
                )
            ]
            unread = f"its option {unknown[0]} is unknown" if unknown else ""
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


_RUN_WITH_VALUE = {
    *("--with", "-w", "--with-requirements", "--with-editable", "--extra", "--group", "--no-group", "--only-group"),
    *("--package", "--python", "-p", "--env-file", "--no-extra", "--directory", "--project", *_PASSED_WITH_VALUE),
    *_WITHOUT_EFFECT_WITH_VALUE,
}


def _passed(option: str, value: str, folder: Path) -> tuple[str, ...] | None:
    """The words that give an option to the installer; None for one that is unknown."""
    if option in _WITHOUT_EFFECT or option in _WITHOUT_EFFECT_WITH_VALUE:
        return ()
    if option in _PASSED_WITH_VALUE:
        return (option, value)
    if option in _FILES_OF_UV:
        return (option, str((folder / value).absolute()))
    return (option,) if option in _PASSED else None


def _operand(step: Step, value: str) -> Step:
    try:
        Requirement(value)
    except InvalidRequirement:
        return replace(step, typed=(*step.typed, Typed(TypedKind.PROJECT, value)))
    return replace(step, requirements=(*step.requirements, value))


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """Options with their values, and operands as values of ""."""
    taking = {*_TYPED, *_PASSED_WITH_VALUE, *_FILES_OF_UV, *_WITHOUT_EFFECT_WITH_VALUE, *_ADDRESSES}
    taking |= {
        "--python",
        "-p",
        "-t",
        "--target",
        "--only-binary",
        "--no-binary",
        "--prefix",
        "--root",
        "--platform",
        "--python-version",
    }
    taking |= {"--python-platform", "--extra", "--abi", "--implementation"}
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
        option, equals, value = word.partition("=")
        if not word.startswith("--") and word[:2] in _SHORT_VALUES and len(word) > 2:
            option, equals, value = word[:2], "=", word[2:].removeprefix("=")
        option = _ADDRESSES.get(option, option)
        if option in taking and not equals:
            value = words[at] if at < len(words) else ""
            at += 1
        yield option, value


def _separated(value: str) -> list[str]:
    """The requirements of ``--with``, separated by commas; those within brackets and versions separate nothing."""
    parts = re.split(r",(?=\s*[A-Za-z0-9])(?![^\[]*\])", value)
    return [part.strip() for part in parts if part.strip()]
