"""What the user asked for: requirements, wheels and files of requirements on the command line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement

from wheel_checks.errors import FormatError, UsageError
from wheel_checks.formats.wheel.wheel_name import parse_wheel_name
from wheel_checks.sources.requirement_files import read_requirements_file
from wheelproof.wheels.asked import Asked, parse_asked

_COMMENT = re.compile(r"(?:^|\s)#.*")  # as pip: a # within a URL is none
_OPTION = re.compile(r"\s--?\w.*")  # --hash=... behind a requirement


def parse_inputs(texts: Sequence[str], requirement_files: Sequence[str]) -> Asked:
    """What the arguments (requirements, wheels, ``pyproject.toml``) and ``-r`` files ask for.

    Raises UsageError for what is none of these, and for a file that cannot be read.
    """
    requirements: list[str] = []
    files = [Path(name) for name in requirement_files]
    for text in texts:
        path = Path(text)
        if text.endswith(".whl") and path.is_file():
            requirements.append(_of_wheel(path))
        elif path.suffix in (".toml", ".txt", ".in") or path.name == "setup.cfg":
            files.append(path)
        else:
            requirements.append(text)
    return parse_asked(
        requirements,
        files,
        lambda paths: [requirement for path in paths for requirement in _of_file(path)],
        example="vllm==0.20.0, -r requirements.txt or pyproject.toml",
        expected="a requirement, -r requirements.txt or pyproject.toml",
    )


def _of_wheel(path: Path) -> str:
    try:
        name = parse_wheel_name(path.name).distribution
    except FormatError as error:
        raise UsageError(error.what, expected=error.expected) from error
    return f"{name} @ {path.absolute().as_uri()}"


def _of_file(path: Path) -> Iterator[Requirement]:
    """The requirements that stand in the file itself; options and what the resolver will refuse are passed over."""
    text = read_requirements_file(path).decode("utf-8-sig", "replace")
    lines = _of_project(text) if path.suffix == ".toml" else text.replace("\\\n", " ").splitlines()
    for line in lines:
        bare = _OPTION.sub("", _COMMENT.sub("", line)).strip()
        try:
            if bare and not bare.startswith("-"):
                yield Requirement(bare)
        except InvalidRequirement:
            continue  # uv, which reads the file too, says what is wrong with it


def _of_project(text: str) -> list[str]:
    try:
        project: Any = tomllib.loads(text).get("project", {})
    except (tomllib.TOMLDecodeError, RecursionError):
        return []  # uv says so
    dependencies = project.get("dependencies", []) if isinstance(project, dict) else []
    return [line for line in dependencies if isinstance(line, str)] if isinstance(dependencies, list) else []
