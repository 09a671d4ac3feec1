"""The installs of a Dockerfile: its RUN lines in order, of the stages that the last one is built from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from wheel_checks.errors import UsageError
from wheel_checks.sources.requirement_files import read_requirements_file
from wheelproof.pins.documents.commands.dockerfile import dockerfile_pieces
from wheelproof.pins.documents.commands.piece import Piece
from wheelproof.pins.documents.commands.shell import LONGEST, UNKNOWN, Dialect, Values, commands
from wheelproof.pins.predict.command_line import is_command, read_command
from wheelproof.pins.predict.step import Step, Verb
from wheelproof.wheels.declared_model import Typed, TypedKind

FROM = "FROM"
_BARE = re.compile(  # images without any package of Python that matters, by name
    r"(?:docker\.io/|public\.ecr\.aws/docker/)?(?:library/)?"
    r"(?:scratch|python|ubuntu|debian|alpine|fedora|centos|rockylinux|almalinux|amazonlinux|buildpack-deps|gcc"
    r"|nvidia/cuda|rockylinux/rockylinux|nvcr\.io/nvidia/cuda|ghcr\.io/astral-sh/uv|redhat/ubi\d+)(?:[:@].*)?",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"(?:^|[;&|\n]|\b(?:do|then|else))\s*(?:if|case|for|while|until)\b")
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
    runs: list[Piece] = field(default_factory=list)


def steps_of_image(path: Path) -> Iterator[Step]:
    """The installs of the RUN lines, in order. Raises UsageError for a file that is no Dockerfile."""
    try:
        text = read_requirements_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not valid UTF-8: {error.reason}") from error
    base, runs = _last_stage(text)
    if UNKNOWN in base or not _BARE.fullmatch(base):
        unread = "what is installed in this image is not known: describe it with --installed torch==VERSION"
        yield Step(f"{FROM} {base.replace(UNKNOWN, '?')}", Verb.NOTHING, unread=unread)
    for piece in runs:
        yield from steps_of_script(piece.text, path.parent, piece.variables, piece.dialect)


def _last_stage(text: str) -> tuple[str, list[Piece]]:
    """The image that the last stage is built from, and the RUN lines of it and of the stages below it."""
    stages: dict[str, _Stage] = {}
    last = ""
    for instruction, piece in dockerfile_pieces(text):
        if instruction == FROM:
            words = [word for word in _words(piece) if not word.startswith("--")]
            name = words[2] if len(words) > 2 and words[1].lower() == "as" else f"stage {len(stages)}"
            last = name.lower()
            stages[last] = _Stage(words[0] if words else "")
        elif instruction == "RUN" and last:
            stages[last].runs.append(piece)
    chain: list[_Stage] = []
    base = last
    while (stage := stages.get(base.lower())) is not None and stage not in chain:
        chain.append(stage)
        base = stage.parent
    return base, [piece for stage in reversed(chain) for piece in stage.runs]


def _words(piece: Piece) -> list[str]:
    found = commands(piece.text, piece.variables, Dialect.WORDS)
    return [word.text for word in found[0].words] if found else []


def steps_of_script(
    text: str, folder: Path, variables: Values | None = None, dialect: Dialect = Dialect.SH, *, trusted: bool = False
) -> Iterator[Step]:
    """The installs of a piece of shell, in order. Where conditions decide which run, each is open."""
    known = variables or {}
    of_installers = {
        name: values[0] if len(values) == 1 else UNKNOWN
        for name, values in known.items()
        if name.startswith(_OF_INSTALLERS) and values
    }
    if len(text) > LONGEST:
        yield Step(text[:80], unread=f"it has more than {LONGEST:,} characters")
        return
    is_conditional = bool(_CONDITION.search(text))
    for command in commands(text, known, dialect):
        words = [word.text for word in command.words]
        if words[:1] == ["RUN"]:
            words = words[1:]
        while words and words[0].startswith("--"):  # --mount=type=cache,target=/root/.cache
            words = words[1:]
        if (script := _given_script(words)) or (command.body and words[:1] in ([], ["bash"], ["sh"])):
            yield from steps_of_script(script or command.body, folder, known, trusted=trusted)
        elif is_command(words):
            step = read_command([word.replace(UNKNOWN, "?") for word in words], folder)
            unread = "a value in it is not known" if any(UNKNOWN in word for word in words) else step.unread
            unread = "it runs under a condition" if is_conditional else unread
            typed = step.typed if trusted else tuple(_in_context(one, folder) for one in step.typed)
            yield _constrained(replace(step, typed=typed, trusted=trusted, unread=unread), of_installers, folder)


def _constrained(step: Step, variables: dict[str, str], folder: Path) -> Step:
    """A step with the constraints that a variable of the image names, where they are a file of the context."""
    installer = step.installers[0].upper() if step.installers else ""
    named = variables.get(f"{installer}_CONSTRAINT", "")
    found = _in_context(Typed(TypedKind.CONSTRAINTS, named), folder) if named else None
    if found is None or not (folder / found.text).is_file():
        return replace(step, variables=variables)
    rest = {name: value for name, value in variables.items() if name != f"{installer}_CONSTRAINT"}
    return replace(step, typed=(*step.typed, found) if step.verb is Verb.INSTALL else step.typed, variables=rest)


def _given_script(words: Sequence[str]) -> str:
    """The script that a shell is given with -c; "" for any other command."""
    shells = words[:1] and words[0].rpartition("/")[2] in ("sh", "bash", "dash", "zsh")
    at = next((n for n, word in enumerate(words) if re.fullmatch(r"-[a-z]*c", word)), 0) if shells else 0
    return words[at + 1] if 0 < at < len(words) - 1 else ""


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
