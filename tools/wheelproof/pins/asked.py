"""What an install is asked for: requirements, and files of them with all that they include."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.requirements import Requirement

from wheel_checks.sources.requirement_files import read_requirements_file
from wheelproof.pins.documents import pyproject, requirements
from wheelproof.pins.documents.source import decode
from wheelproof.pins.model import Role
from wheelproof.pins.rewrite.tree import real
from wheelproof.wheels.asked import Asked, parse_asked


def asked_of(specs: Sequence[str], files: Sequence[str]) -> Asked:
    """What the arguments and the ``-r`` files ask for.

    Raises UsageError for what is no requirement, for a file that cannot be read, and when nothing is asked for.
    """
    return parse_asked(
        specs,
        [Path(name).absolute() for name in files],
        _of_files,
        example="vllm==0.20.0 or -r requirements.txt",
        expected="a requirement, or -r requirements.txt",
    )


def _of_files(paths: Sequence[Path]) -> Iterator[Requirement]:
    """The runtime requirements of files and of those that they include, each file once; constraints ask for nothing."""
    front, seen = list(paths), set()
    while front:
        path = front.pop(0)
        target = real(path)
        if target in seen:
            continue
        seen.add(target)
        source = decode(path, read_requirements_file(path))
        document = pyproject.read(source) if path.suffix == ".toml" else requirements.read(source)
        front += document.includes
        yield from (
            found.requirement
            for found in document.requirements
            if found.requirement is not None and found.role is Role.RUNTIME
        )
