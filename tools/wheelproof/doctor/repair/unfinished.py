"""A repair that was killed is said by every diagnosis of its environment."""

from pathlib import Path

from wheel_checks.commands import in_words, path, run
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.model import Unavailable
from wheelproof.doctor.repair.snapshot import Snapshot


def unfinished(facts: HostFacts) -> list[str]:
    """A sentence about a repair of this environment that did not come to its end; none where none exists."""
    interpreter = facts.interpreter
    if isinstance(interpreter, Unavailable) or not Snapshot(Path(interpreter.prefix)).is_unfinished:
        return []
    undo = run("wheelproof", "doctor", "--python", path(interpreter.path), "--undo")
    return [f"A repair of {interpreter.prefix} was interrupted: restore it with {in_words(undo)}"]
