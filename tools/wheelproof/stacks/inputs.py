"""What the user asked for: requirements, wheels and files of requirements on the command line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wheel_checks.errors import FormatError, UsageError
from wheel_checks.formats.wheel.wheel_name import parse_wheel_name
from wheelproof.wheels.asked import Asked, parse_asked
from wheelproof.wheels.declared_model import NOTHING_CHOSEN, Chosen


def parse_inputs(texts: Sequence[str], requirement_files: Sequence[str], chosen: Chosen = NOTHING_CHOSEN) -> Asked:
    """What the arguments (requirements, wheels, ``pyproject.toml``) and ``-r`` files ask for.

    Raises UsageError for what is not one of these, for a file that cannot be read, and for extras and groups where no
    project is judged.
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
    if (chosen.names or chosen.every) and not any(path.suffix == ".toml" for path in files):
        what = "an extra or a group was named, and no project is judged"
        raise UsageError(what, expected="pyproject.toml or a lock file", hint="of a package: 'name[extra]'")
    return parse_asked(
        requirements,
        files,
        chosen=chosen,
        example="vllm==0.20.0, -r requirements.txt or pyproject.toml",
        expected="a requirement, -r requirements.txt or pyproject.toml",
    )


def _of_wheel(path: Path) -> str:
    try:
        name = parse_wheel_name(path.name).distribution
    except FormatError as error:
        raise UsageError(error.what, expected=error.expected) from error
    return f"{name} @ {path.absolute().as_uri()}"
