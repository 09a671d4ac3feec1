"""Which format a file has, by its name, and how it is read."""

from __future__ import annotations

import codecs
import importlib
import re
from pathlib import Path

from wheel_checks.errors import FormatError, NotFoundError, SourceError, UsageError
from wheel_checks.sources.regular_file import read_start
from wheelproof.pins.documents.source import LARGEST, decode
from wheelproof.pins.model import Document, Source

# kind: (module of wheelproof.pins.documents, whether a PEP 263 line declares the encoding)
READERS = {
    "requirements": ("requirements", True),
    "pyproject": ("toml.pyproject", False),
    "pixi": ("toml.pixi", False),
    "hatch": ("toml.hatch", False),
    "uv.toml": ("toml.uv_toml", False),
    "pipfile": ("toml.pipfile", False),
    "tox": ("tox", False),
    "recipe": ("recipe", False),
    "setup.cfg": ("setup_cfg", False),
    "setup.py": ("setup_py", True),
    "script": ("script", True),
    "conda": ("conda", False),
    "lock": ("lock", False),
    "commands": ("commands.texts", False),
    "pipeline": ("commands.workflow", False),
    "notebook": ("commands.notebook", False),
    "markdown": ("commands.markdown", False),
    "unread": ("commands.unread", False),
}
# The first that matches a file's name. A prefix is allowed: cpu.pyproject.toml, dev-requirements.txt.
_NAMES = tuple(
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("lock", r"(uv|poetry|pdm|pixi)\.lock|pylock(\.[^.]+)?\.toml"),
        ("pixi", r"(.*[._-])?pixi\.toml"),
        ("hatch", r"(.*[._-])?hatch\.toml"),
        ("uv.toml", r"(.*[._-])?uv\.toml"),
        ("pipfile", r"pipfile"),
        ("tox", r"(.*[._-])?tox\.(ini|toml)"),
        ("recipe", r"(meta|recipe)\.ya?ml"),
        ("pyproject", r"(.*[._-])?pyproject([._-].*)?\.toml"),
        ("setup.cfg", r"(.*[._-])?setup\.cfg"),
        ("setup.py", r"(.*[._-])?setup\.py(\.txt|\.in)?"),
        ("conda", r"(.*[._-])?(conda[._-])?(environment|conda)([._-].*)?\.ya?ml"),
        (
            "commands",
            r"(.*\.)?(docker|container)file([._-](?!.*\.(md|rst|svg|png|txt|json|ya?ml|py)$).*)?|.*\.(sh|bash)",
        ),
        ("commands", r".*\.(bat|cmd|ps1|zsh|ksh)"),
        (
            "unread",
            r"(gnu)?makefile([._-](?!.*\.(am|in|cmake|txt|md)$).*)?|.*\.(mk|just)|\.?justfile|noxfile\.py",
        ),
        ("notebook", r".*\.ipynb"),
        (
            "markdown",
            r"(.*[._-])?(readme|install|installation|installing|contributing|building|development|quickstart)([._-].*)?\.(md|rst|markdown|mdx)",
        ),
        (
            "pipeline",
            r"\.gitlab-ci([._-].*)?\.ya?ml|action\.ya?ml|azure-pipelines([._-].*)?\.ya?ml|\.travis\.ya?ml|\.?appveyor\.ya?ml|bitbucket-pipelines\.ya?ml|cloudbuild\.ya?ml|\.readthedocs\.ya?ml|\.cirrus\.ya?ml|\.drone\.ya?ml",
        ),
        ("script", r".*\.py"),
        ("requirements", r".*(requirements?|constraints?|overrides?|excludes?)([._-].*)?\.(txt|in|pip)|.*\.(in|pip)"),
    )
)
# A file of an unusual name, when someone names it.
_BY_ENDING = {".txt": "requirements", ".yml": "conda", ".yaml": "conda", ".toml": "pyproject", ".cfg": "setup.cfg"}
# Folders of pipelines: each of their YAML files has commands.
_PIPELINES = {
    "workflows",
    ".circleci",
    ".buildkite",
    ".gitlab",
    ".azure-pipelines",
    ".azuredevops",
    ".woodpecker",
    ".ci",
}
INSTALLS = re.compile(
    rb"\b(?:pip[0-9.]*|uv|conda|mamba|poetry|pdm|pixi)['\"]?\s+(?:\S+\s+){0,9}?(?:install|add|sync|run)\b"
)
_FOLDERS = {"requirements", "requirement", "reqs", "constraints"}  # in which any .txt or .in is meant


def kind_of(path: Path, *, named: bool = True) -> str:
    """The kind of a file by its name; "" when it shows none.

    A file that is not ``named``, but found in a tree, is a requirements file only by its own name or its folder's:
    CMakeLists.txt and MANIFEST.in are not. YAML of any other name is "yaml": its content decides.
    """
    name = path.name
    kind = next((kind for kind, pattern in _NAMES if pattern.fullmatch(name)), "")
    if kind == "requirements" and not named and name.lower().endswith(".in"):
        words = re.split(r"[._-]", name.lower())
        if not {"requirements", "requirement", "constraints", "constraint", "reqs"} & set(words):
            kind = ""
    if kind:
        return kind
    yaml = path.suffix.lower() in (".yml", ".yaml")
    if yaml and (_PIPELINES & set(path.parts[:-1]) or (".github" in path.parts and "ISSUE_TEMPLATE" not in path.parts)):
        return "pipeline"
    if not named and yaml:
        return "yaml"
    if named:
        return _BY_ENDING.get(path.suffix.lower(), "")
    in_folder = any(part.lower() in _FOLDERS for part in path.parts[-3:-1])
    return "requirements" if in_folder and name.lower().endswith((".txt", ".in")) else ""


def read_document(path: Path, kind: str = "", *, data: bytes | None = None, constraint: bool = False) -> Document:
    """The requirements of a file. ``kind`` is one of ``READERS``, by default chosen by name.

    Raises SourceError when it cannot be read, FormatError when it is malformed.
    """
    kind = kind or kind_of(path)
    if not kind:
        raise UsageError(f"{path} is not a requirements file", expected=f"one of {', '.join(READERS)}")
    content = read_bytes(path) if data is None else data
    if kind == "conda" and b"dependencies:" not in content and INSTALLS.search(content):
        kind = "pipeline"  # some other YAML that someone names
    if READERS[kind][0].startswith("commands."):  # only reported: torch is spelt in ASCII
        return read_source(_script(path, content), kind)
    source = decode(path, content, declared=READERS[kind][1])
    return read_source(source, kind, constraint=constraint)


def _script(path: Path, content: bytes) -> Source:
    """The text of a script in any encoding, since torch is spelt in ASCII. Raises FormatError."""
    try:
        content.decode()
        source = decode(path, content)
    except UnicodeDecodeError:
        marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # how PowerShell saves
        source = decode(path, content) if marked else Source(path, content, content.decode("latin-1"), "latin-1")
    if "\0" in source.text:
        raise FormatError(f"{path} is not text", expected="UTF-8, or UTF-16 with a byte order mark")
    return source


def read_source(source: Source, kind: str, *, constraint: bool = False) -> Document:
    """The requirements of a decoded file. Raises FormatError when it is malformed."""
    module = importlib.import_module(f"wheelproof.pins.documents.{READERS[kind][0]}")
    document: Document = module.read(source, constraint=True) if constraint else module.read(source)
    return document


def read_bytes(path: Path) -> bytes:
    """The content of a file, one byte more than ``LARGEST`` at most. Raises SourceError."""
    try:
        return read_start(path, LARGEST + 1)
    except FileNotFoundError:
        raise NotFoundError(f"there is no file {path}") from None
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror or error}") from error
