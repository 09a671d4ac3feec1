"""What the user requested: requirements, wheels and requirements files on the command line."""

from collections.abc import Sequence
from pathlib import Path

from wheel_checks.errors import FormatError, UsageError
from wheel_checks.formats.wheel.wheel_name import parse_wheel_name
from wheel_checks.targets.extras_and_groups import NO_EXTRAS, ExtrasAndGroups
from wheelproof.stacks.locks import LockRequest, find_lock, read_lock_request
from wheelproof.wheels.asked import Asked, parse_asked


def read_inputs(
    texts: Sequence[str], requirement_files: Sequence[str], chosen: ExtrasAndGroups = NO_EXTRAS
) -> tuple[Asked, LockRequest | None]:
    """What the arguments and ``-r`` files ask for, and the lock file when they name one.

    Raises what :func:`parse_inputs` and reading a lock raise.
    """
    path = find_lock(texts, requirement_files)
    if path is None:
        return parse_inputs(texts, requirement_files, chosen), None
    lock = read_lock_request(path, chosen)
    return lock.asked, lock


def parse_inputs(texts: Sequence[str], requirement_files: Sequence[str], chosen: ExtrasAndGroups = NO_EXTRAS) -> Asked:
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
    if (chosen.names or chosen.all_extras) and not any(path.suffix == ".toml" for path in files):
        what = "an extra or group was given, but no project is checked"
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
