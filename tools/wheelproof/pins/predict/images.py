"""The installs of a Dockerfile: its RUN lines in order, of the stages that the last one is built from."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from wheel_checks.errors import UsageError
from wheel_checks.sources.requirement_files import read_requirements_file
from wheelproof.pins.documents.commands.dockerfile import dockerfile_pieces
from wheelproof.pins.documents.commands.installs import installs
from wheelproof.pins.documents.commands.lexer import UNKNOWN, Dialect
from wheelproof.pins.documents.commands.piece import Piece
from wheelproof.pins.documents.commands.shell import DEEPEST, LONGEST, Command, Values, commands
from wheelproof.pins.predict.command_line import files_of, read_command
from wheelproof.pins.predict.step import Step, Verb
from wheelproof.pins.predict.wrappers import behind_front, is_command, why_another_place, why_opaque
from wheelproof.wheels.declared_model import Typed, TypedKind

FROM = "FROM"
_BARE = re.compile(  # images without any package of Python that matters, by name
    r"(?:docker\.io/|public\.ecr\.aws/docker/)?(?:library/)?"
    r"(?:scratch|python|ubuntu|debian|alpine|fedora|centos|rockylinux|almalinux|amazonlinux|buildpack-deps|gcc"
    r"|nvidia/cuda|rockylinux/rockylinux|nvcr\.io/nvidia/cuda|ghcr\.io/astral-sh/uv|redhat/ubi\d+)(?:[:@].*)?",
    re.IGNORECASE,
)
_PYTHON_IMAGE = re.compile(r"(?:.*/)?python:(3\.\d+)")
_UBUNTU = re.compile(r"ubuntu:?(\d\d\.04)")
_PYTHON_OF_UBUNTU = {"20.04": "3.8", "22.04": "3.10", "24.04": "3.12", "26.04": "3.14"}  # its package python3
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
    """The installs of the RUN lines, in order. Raises UsageError for a file that is not a Dockerfile."""
    try:
        text = read_requirements_file(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not valid UTF-8: {error.reason}") from error
    base, runs = _last_stage(text)
    if UNKNOWN in base or not _BARE.fullmatch(base):
        unread = "what is installed in this image is unknown: describe it with --installed torch==VERSION"
        yield Step(f"{FROM} {base.replace(UNKNOWN, '?')}", Verb.NOTHING, unread=unread)
    for piece in runs:
        yield from steps_of_script(piece.text, path.parent, piece.variables, piece.dialect)


def python_of_image(path: Path) -> str:
    """The Python version that the image of a Dockerfile comes with, "" where its name does not say."""
    base, _ = _last_stage(read_requirements_file(path).decode("utf-8-sig", "replace"))
    if named := _PYTHON_IMAGE.match(base):
        return named[1]
    system = _UBUNTU.search(base)
    return _PYTHON_OF_UBUNTU.get(system[1], "") if system else ""


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
    yield from _Script(folder, variables or {}, trusted, DEEPEST).steps(text, dialect)


@dataclass(slots=True)
class _Script:
    """Where a piece of shell runs: in ``folder``, or below it in ``inside`` when it changes the folder.

    ``lost`` is why the folder is unknown any more, "" while it is. At most ``deepest`` scripts run one another.
    """

    folder: Path
    variables: Values
    trusted: bool
    deepest: int
    inside: str = ""
    lost: str = ""

    def steps(self, text: str, dialect: Dialect = Dialect.SH) -> Iterator[Step]:
        if len(text) > LONGEST:
            yield Step(text[:80], unread=f"it has more than {LONGEST:,} characters")
            return
        is_conditional = bool(_CONDITION.search(text))
        for command in commands(text, self.variables, dialect):
            words = [word.text for word in command.words]
            if words[:1] == ["RUN"]:
                words = words[1:]
            while words and words[0].startswith("--"):  # --mount=type=cache,target=/root/.cache
                words = words[1:]
            if words[:1] in (["cd"], ["pushd"], ["popd"]):
                self._enter(words, text)
            elif (script := _given_script(words)) or (command.body and words[:1] in ([], ["bash"], ["sh"])):
                yield from self._inner(script or command.body)
            elif is_command(words):
                yield self._step(words, command.environment, "it runs under a condition" if is_conditional else "")
            elif name := _script_file(words):
                yield from self._of_file(name)
            elif unread := _why_open(words, command, dialect):
                yield Step(_shown(words), unread=unread)

    def _inner(self, text: str) -> Iterator[Step]:
        if not self.deepest:
            yield Step(text[:80], unread="it is a script nested too deeply")
            return
        yield from replace(self, deepest=self.deepest - 1).steps(text)

    def _enter(self, words: Sequence[str], text: str) -> None:
        """Follow ``cd``. In a subshell, or to a folder that only a run would know, the folder is lost."""
        where = words[1] if len(words) == 2 else ""
        if words[0] != "cd" or not where or where.startswith(("-", "~")) or UNKNOWN in where or "(" in text:
            self.lost = f"it runs in another folder (`{_shown(words)}`), which is not followed"
        else:
            self.inside = str(PurePosixPath(self.inside, where))

    def _of_file(self, name: str) -> Iterator[Step]:
        """The steps of a script of the tree."""
        found = _in_context(Typed(TypedKind.FILE, self._placed(name)), self.folder)
        path = self.folder / found.text
        if not self.lost and UNKNOWN not in name and _is_within(path, self.folder) and path.is_file():
            yield from self._inner(read_requirements_file(path).decode("utf-8", "replace"))
        elif name.endswith(".sh"):
            yield Step(_shown([name]), unread="it is a script that is not available here")

    def _placed(self, name: str) -> str:
        return str(PurePosixPath(self.inside, name)) if self.inside else name

    def _step(self, words: Sequence[str], environment: Mapping[str, str], condition: str) -> Step:
        folder = self.folder if not self.inside else self.folder / self._in_tree(self.inside)
        step = read_command([word.replace(UNKNOWN, "?") for word in words], folder)
        typed = tuple(replace(one, text=self._placed(one.text)) if self.inside else one for one in step.typed)
        if not self.trusted:
            typed = tuple(_in_context(one, self.folder) for one in typed)
        given = {**_single(self.variables), **{n: v for n, v in environment.items() if n.startswith(_OF_INSTALLERS)}}
        files = [*(one.text for one in typed if one.kind is not TypedKind.GROUP), *files_of(step)]
        outside = next((name for name in files if not self.trusted and self._is_outside(name)), "")
        unread = condition or ("it contains an unknown value" if any(UNKNOWN in word for word in words) else "")
        unread = unread or (f"{outside} is outside of the tree, and is not read" if outside else "")
        unread = unread or (why_another_place(environment) if self.trusted else "")
        unread = unread or (self.lost if typed or step.verb in _OF_A_PROJECT else "") or step.unread
        step = replace(step, typed=typed, project=self.folder if typed else step.project, trusted=self.trusted)
        return _constrained(replace(step, unread=unread), given, self.folder)

    def _in_tree(self, inside: str) -> str:
        return inside if self.trusted else _in_context(Typed(TypedKind.FILE, inside), self.folder).text

    def _is_outside(self, name: str) -> bool:
        return "://" not in name and not _is_within(self.folder / name, self.folder)


_OF_A_PROJECT = (Verb.SYNC, Verb.ADD, Verb.RUN, Verb.LOCKED)
_SHELL = re.compile(r"(?:.*/)?(?:ba|da|z|k|a)?sh")


def _single(variables: Values) -> dict[str, str]:
    """The variables of a Dockerfile that are those of installers."""
    return {
        name: values[0] if len(values) == 1 else UNKNOWN
        for name, values in variables.items()
        if name.startswith(_OF_INSTALLERS) and values
    }


def _shown(words: Sequence[str]) -> str:
    return " ".join(words).replace(UNKNOWN, "?")[:80]


def _script_file(words: Sequence[str]) -> str:
    """The file of shell that a command runs; "" for any other command."""
    rest = behind_front(words).words
    if rest and (_SHELL.fullmatch(rest[0]) or rest[0] in (".", "source")):
        return next((word for word in rest[1:] if not word.startswith(("-", "+"))), "")
    return rest[0] if rest and rest[0].endswith((".sh", ".bash")) else ""


def _why_open(words: Sequence[str], command: Command, dialect: Dialect) -> str:
    """Why a command may change an environment though it is not read; "" when it does not seem to."""
    if words and UNKNOWN in words[0]:
        return "the program it runs is unknown"
    if unread := why_opaque(words):
        return unread
    found = next(installs(command, dialect), None)
    return f"{found.tool} has no dry run" if found is not None else ""


def _is_within(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


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
