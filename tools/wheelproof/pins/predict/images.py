"""The installs of a Dockerfile: its RUN lines in order, of the stages that the last one is built from."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from wheel_checks.errors import UsageError
from wheel_checks.sources.requirement_files import read_requirements_file
from wheelproof.pins.predict.command_line import Step, Verb, is_command, read_command, split_commands
from wheelproof.wheels.declared_model import Typed, TypedKind

_CONTINUED = re.compile(r"\\[ \t]*\r?\n(?:[ \t]*(?:#[^\n]*)?\r?\n)*")
_COMMENT = re.compile(r"^[ \t]*#[^\n]*\n?", re.MULTILINE)
_INSTRUCTION = re.compile(r"^[ \t]*([A-Za-z]+)[ \t]+(.*)$", re.MULTILINE)
_HEREDOC = re.compile(r"<<-?[ \t]*[\"']?(\w+)[\"']?[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
_STAGE = re.compile(r"(?:--\S+[ \t]+)*(\S+)(?:[ \t]+as[ \t]+(\S+))?", re.IGNORECASE)
_FLAGS = re.compile(r"(?:--(?:mount|network|security)=\S+[ \t]+)+")
_REFERENCE = re.compile(r"\$(?:\{(\w+)(?::?-([^}]*))?\}|(\w+))")
FROM = "FROM"
_BARE = re.compile(  # images without any package of Python that matters, by name
    r"(?:docker\.io/|public\.ecr\.aws/docker/)?(?:library/)?"
    r"(?:scratch|python|ubuntu|debian|alpine|fedora|centos|rockylinux|almalinux|amazonlinux|buildpack-deps|gcc"
    r"|nvidia/cuda|rockylinux/rockylinux|nvcr\.io/nvidia/cuda|ghcr\.io/astral-sh/uv|redhat/ubi\d+)(?:[:@].*)?"
)
_OF_INSTALLERS = ("PIP_", "UV_", "VIRTUAL_ENV", "PYTHONPATH", "PYTHONUSERBASE")
_MOUNTED = re.compile(r"/(?:tmp|app|work\w*|src|code|opt/\w+|home/\w+|build|usr/src/\w+)/")


def is_image_file(path: Path) -> bool:
    """Whether a path names a Dockerfile, as Docker and Podman call them."""
    name = path.name.lower()
    is_named = name in ("dockerfile", "containerfile") or name.startswith("dockerfile.") or name.endswith(".dockerfile")
    return is_named and path.is_file()


@dataclass(slots=True)
class _Stage:
    parent: str
    commands: list[tuple[str, dict[str, str]]] = field(default_factory=list)


def steps_of_image(path: Path) -> Iterator[Step]:
    """The installs of the RUN lines, in order. Raises UsageError for a file that is no Dockerfile."""
    try:
        text = read_requirements_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not valid UTF-8: {error.reason}") from error
    for command, variables in _commands(text):
        if command.startswith(f"{FROM} "):
            unread = "what is installed in this image is not known: describe it with --installed torch==VERSION"
            yield Step(command, Verb.NOTHING, unread=unread)
            continue
        yield from _steps(command, variables, path.parent)


def _commands(text: str) -> Iterator[tuple[str, dict[str, str]]]:
    """The shell text of each RUN line of the last stage and those below it, with the variables that hold there."""
    bodies: dict[str, str] = {}

    def kept(match: re.Match[str]) -> str:
        name = f"wheelproof_heredoc_{len(bodies)}"
        bodies[name] = match[2]
        return name + "\n"

    text = _HEREDOC.sub(kept, text)
    text = _CONTINUED.sub(" ", _COMMENT.sub("", text))
    stages: dict[str, _Stage] = {}
    last, variables = "", dict[str, str]()
    for instruction in _INSTRUCTION.finditer(text):
        word, body = instruction[1].upper(), instruction[2].strip()
        if word == "FROM" and (named := _STAGE.match(_expanded(body, variables))):
            last = (named[2] or f"stage {len(stages)}").lower()
            stages[last] = _Stage(named[1].lower())
        elif word in ("ENV", "ARG"):
            variables |= _assigned(word, body, variables)
        elif word == "RUN" and last:
            stages[last].commands.append((_script(_FLAGS.sub("", body), bodies), dict(variables)))
    chain: list[_Stage] = []
    while last in stages and stages[last] not in chain:
        chain.append(stages[last])
        last = stages[last].parent
    base = chain[-1].parent if chain else ""
    if base and not _BARE.fullmatch(base):
        yield f"{FROM} {base}", {}
    for stage in reversed(chain):
        yield from stage.commands


def _script(body: str, bodies: dict[str, str]) -> str:
    """The shell text of a RUN instruction: of its exec form the words, of a here-document its lines."""
    if body.startswith("["):
        try:
            words = json.loads(body)
            return shlex.join(map(str, words)) if isinstance(words, list) else body
        except ValueError:
            return body
    return next((text for name, text in bodies.items() if name in body), body)


def _assigned(word: str, body: str, known: dict[str, str]) -> dict[str, str]:
    """The variables that ENV or ARG sets; those without a value are not known."""
    try:
        words = shlex.split(body)
    except ValueError:
        return {}
    if word == "ENV" and words and "=" not in words[0]:
        return {words[0]: _expanded(" ".join(words[1:]), known)}
    pairs = (part.partition("=") for part in words)
    return {name: _expanded(value, known) for name, equals, value in pairs if equals}


def _expanded(text: str, known: dict[str, str]) -> str:
    """The text with the values of variables; what is not known stays as it is."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[3]
        return known.get(name, match[2] if match[2] is not None else match[0])

    return _REFERENCE.sub(value, text)


def _steps(command: str, variables: dict[str, str], folder: Path) -> Iterator[Step]:
    lines = _expanded(command, variables).replace("\n", " ; ")
    try:
        commands = split_commands(lines)
    except ValueError:
        yield Step(command[:200], unread=f"the line `{command[:200]}` cannot be split into words")
        return
    of_installers = {name: text for name, text in variables.items() if name.startswith(_OF_INSTALLERS)}
    for words in commands:
        if words[:1] in (["bash"], ["sh"]) and "-c" in words[:-1]:
            yield from _steps(words[words.index("-c") + 1], variables, folder)
        elif is_command(words):
            step = read_command(words, folder)
            if any("$" in word or "`" in word for word in words):
                step = replace(step, unread=step.unread or "a variable in it is not known")
            typed = tuple(_in_context(one, folder) for one in step.typed)
            yield replace(step, typed=typed, variables=of_installers, trusted=False)


def _in_context(one: Typed, folder: Path) -> Typed:
    """A file of the image as that of the context which is copied there: the longest end of its path that exists."""
    if one.kind is TypedKind.GROUP or (folder / one.text).exists():
        return one
    parts = PurePosixPath(one.text).parts
    for start in range(1, len(parts)):
        if (folder / Path(*parts[start:])).exists():
            return replace(one, text=str(Path(*parts[start:])))
    if _MOUNTED.fullmatch(f"{one.text.rstrip('/')}/") and (folder / "pyproject.toml").exists():
        return replace(one, text=".")
    return one
