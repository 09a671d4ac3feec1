"""What an install is asked for: requirements, and files of them with all that they include."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from wheel_checks.errors import UsageError
from wheelproof.pins.documents import pyproject, requirements
from wheelproof.pins.documents.source import decode
from wheelproof.pins.model import Role
from wheelproof.wheels.asked import Asked

_LARGEST = 1 << 20  # bytes of a file of requirements


def parse_asked(specs: Sequence[str], files: Sequence[str]) -> Asked:
    """What the arguments and the ``-r`` files ask for.

    Raises UsageError for what is no requirement, for a file that cannot be read, and when nothing is asked for.
    """
    try:
        parsed = [Requirement(text) for text in specs]
    except InvalidRequirement as error:
        raise UsageError(
            f"a requirement does not parse: {' '.join(str(error).split())}",
            expected="for example vllm==0.20.0 or -r requirements.txt",
        ) from None
    paths = [Path(name).absolute() for name in files]
    if not parsed and not paths:
        raise UsageError("nothing was asked for", expected="a requirement, or -r requirements.txt")
    known = [*parsed, *_of_files(paths)]
    return Asked(tuple(specs), tuple(paths), tuple(known))


def _of_files(paths: Sequence[Path]) -> Iterator[Requirement]:
    """The runtime requirements of files and of those that they include, each file once; constraints ask for nothing."""
    front, seen = list(paths), set()
    while front:
        path = front.pop(0)
        real = path.resolve()
        if real in seen:
            continue
        seen.add(real)
        try:
            with path.open("rb") as file:
                data = file.read(_LARGEST)
        except OSError as error:
            raise UsageError(f"the file {path} cannot be read: {error.strerror}") from error
        source = decode(path, data)
        document = pyproject.read(source) if path.suffix == ".toml" else requirements.read(source)
        front += document.includes
        yield from (
            found.requirement
            for found in document.requirements
            if found.requirement is not None and found.role is Role.RUNTIME
        )
