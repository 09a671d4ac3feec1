"""Which environments are repaired for their user: a virtual one of this user's own, and no other."""

import os
import pwd
from pathlib import Path

from wheel_checks.commands import in_words, path, run
from wheel_checks.facts.host.commands import is_of_conda
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.model import Unavailable


def refusal(facts: HostFacts) -> str:
    """Why the environment is not changed, and who may; "" when it may be."""
    interpreter = facts.interpreter
    if isinstance(interpreter, Unavailable):
        return "the interpreter is unknown"
    if interpreter.fault:
        return f"{interpreter.path} does not run"
    prefix = Path(interpreter.prefix)
    if is_of_conda(facts) or (prefix / "conda-meta").is_dir():
        return f"{prefix} is managed by conda, and only conda may change it"
    if not interpreter.is_virtual:
        kept = ", which is managed by the operating system (EXTERNALLY-MANAGED)"
        return f"{prefix} is not a virtual environment{kept if interpreter.externally_managed else ''}"
    return _of_another(prefix, Path(interpreter.purelib), interpreter.path)


def _of_another(prefix: Path, site: Path, python: str) -> str:
    """Why this process may not write there as the owner would."""
    try:
        owners = {prefix.stat().st_uid, site.stat().st_uid}
    except OSError as error:
        return f"{prefix} cannot be read: {error.strerror}"
    if others := owners - {os.geteuid()}:
        name = _name_of(min(others))
        again = run("sudo", "-u", name, "wheelproof", "doctor", "--python", path(python), "--fix")
        return f"{prefix} belongs to {name}, and this process runs as {_name_of(os.geteuid())}: {in_words(again)}"
    if not (os.access(prefix, os.W_OK) and os.access(site, os.W_OK)):
        return f"{prefix} cannot be written: it is read-only here"
    return ""


def _name_of(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:
        return f"#{user}"  # as sudo takes a number
