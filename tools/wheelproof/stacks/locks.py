"""The lock file that the user names: found among the arguments, read, and the targets that it is judged for."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.errors import UsageError
from wheel_checks.formats.lock.model import Lock
from wheel_checks.formats.lock.reading import format_by_content, format_by_name, read_lock
from wheel_checks.formats.lock.tables import MAX_SIZE
from wheel_checks.sources.regular_file import read_start
from wheel_checks.targets.extras_and_groups import ExtrasAndGroups
from wheel_checks.targets.lock_markers import python_fits
from wheel_checks.targets.locked import covered_targets, python_of, validated
from wheel_checks.targets.target import Target, parse_targets, this_machine
from wheelproof.wheels.asked import Asked
from wheelproof.wheels.declared_model import Declared

_SUFFIXES = (".toml", ".lock")
_OTHERS = ("pyproject.toml", "uv.toml")
_MACHINES = ("x86_64", "aarch64")
_PYTHONS = tuple(f"3.{minor}" for minor in range(8, 16))


@dataclass(frozen=True, slots=True)
class LockRequest:
    """A lock, where it is, what was chosen of it, and the hash of its bytes. ``named`` are the extras and groups that
    the user named: ``--all-extras`` names none.
    """

    path: Path
    lock: Lock
    choice: ExtrasAndGroups
    digest: str
    named: tuple[str, ...] = ()

    @property
    def asked(self) -> Asked:
        """What is requested, for the report: the file, and no requirement."""
        return Asked((), (self.path,), (), Declared(), self.named)


def find_lock(texts: Sequence[str], files: Sequence[str]) -> Path | None:
    """The lock file among the arguments, by name or by content; None if none exists.

    Raises UsageError when a lock is next to anything else: it is installed alone.
    """
    every = [*texts, *files]
    locks = [text for text in every if _is_lock(Path(text))]
    if locks and len(every) > 1:
        raise UsageError(
            f"{Path(locks[0]).name} is a lock file, and must be checked alone",
            expected="one lock file and no other input",
        )
    return Path(locks[0]) if locks else None


def _is_lock(path: Path) -> bool:
    if format_by_name(path.name):
        return True
    if path.suffix not in _SUFFIXES or path.name in _OTHERS:
        return False
    try:
        return bool(format_by_content(read_start(path, MAX_SIZE + 1, given=True)))
    except (OSError, ValueError):
        return False


def read_lock_request(path: Path, choice: ExtrasAndGroups) -> LockRequest:
    """The lock and what was chosen of it. Raises UsageError and FormatError, each with one sentence."""
    try:
        data = read_start(path, MAX_SIZE + 1, given=True)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name has a null character"
        raise UsageError(f"the lock {path} cannot be read: {reason}") from error
    lock = read_lock(data, path)
    digest = hashlib.blake2b(data, digest_size=20).hexdigest()
    return LockRequest(path, lock, validated(lock, choice, path.name), digest, choice.names)


def targets_of(request: LockRequest, platforms: Sequence[str], pythons: Sequence[str]) -> tuple[Target, ...]:
    """The targets that the user names; without a platform x86_64 and aarch64, as far as the lock covers them."""
    python = pythons or [_python(request)]
    targets = parse_targets(platforms or _MACHINES, python)
    return targets if platforms else covered_targets(request.lock, targets, request.choice)


def _python(request: LockRequest) -> str:
    """The Python of a conda environment, else this Python where the lock is for it, else the first that it is for."""
    if own := python_of(request.lock, request.choice):
        return own
    here = this_machine().target
    spoken = f"{here.python[0]}.{here.python[1]}"
    bound = request.lock.requires_python
    if not bound or python_fits(bound, here):
        return spoken
    fitting = [p for p in _PYTHONS if python_fits(bound, parse_targets(_MACHINES[:1], [p])[0])]
    return fitting[0] if fitting else spoken
