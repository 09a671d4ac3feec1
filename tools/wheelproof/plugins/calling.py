"""Runs a plug-in in its own child, with a deadline: an endless loop cannot be stopped in this process."""

import json
import os
import pickle
import sys
import threading
import time
from copyreg import dispatch_table
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any

from wheel_checks.errors import WheelproofError
from wheel_checks.process import Child, StartError
from wheelproof.plugins.child import Task
from wheelproof.plugins.installed import Plugin

DEADLINE = 10.0  # seconds that a call of a plug-in may take, the start of Python included
UNFINISHED = "did not finish"  # how the fault of a call begins that met its deadline
LARGEST = 64 << 20  # bytes of an answer
_LAST_WORDS = 2000  # bytes of standard error
_AT_ONCE = threading.BoundedSemaphore(max(1, os.cpu_count() or 1))  # a release has wheels judged by eight threads

# Our packages come from where they were imported here, before those of site-packages and after the standard library.
_PROGRAM = """
import sys
at = next((number for number, path in enumerate(sys.path) if path.endswith("-packages")), len(sys.path))
sys.path[at:at] = [path for path in sys.argv[1:] if path not in sys.path]
from wheelproof.plugins.child import main
sys.exit(main())
"""


class PluginFaultError(WheelproofError):
    """A plug-in that cannot be used, or that did not do its work: the sentence names it."""


def call(plugin: Plugin, task: Task, *, deadline: float = DEADLINE) -> tuple[list[dict[str, Any]], str]:
    """The answers of the plug-in in order, and what went wrong after the last of them; "" for nothing.

    The sentence of a fault is without the name of the plug-in. Raises PluginFaultError when no child can be started,
    and for what cannot be given to another process.
    """
    output, errors = bytearray(), bytearray()

    def keep_end(chunk: bytes) -> None:
        errors.extend(chunk)
        del errors[:-_LAST_WORDS]

    with _AT_ONCE:
        try:
            child = Child(_command(), stdin=pickled(plugin, task), environment=_environment())
        except StartError as error:
            raise fault_of(plugin, f"cannot be run: {error.reason}") from error
        try:
            in_time = child.follow({1: _bounded(output), 2: keep_end}, time.monotonic() + deadline)
        finally:
            child.end()
    if len(output) > LARGEST:
        return [], f"returned more than {LARGEST >> 20} MiB"
    try:
        answers = [dict(json.loads(line)) for line in output.split(b"\n")[:-1]]
    except (ValueError, TypeError):
        return [], "returned an invalid answer"
    if answers and "fault" in answers[-1]:
        return answers[:-1], str(answers[-1]["fault"])
    if not in_time:
        return answers, f"{UNFINISHED} within {deadline:g} s"
    if child.status:
        words = errors.decode(errors="replace").strip().splitlines()
        how = f"signal {-child.status}" if child.status < 0 else f"exit code {child.status}"
        return answers, f"ended its process with {how}" + (f": {words[-1]}" if words else "")
    return answers, ""


def fault_of(plugin: Plugin, what: str, *, hint: str = "") -> PluginFaultError:
    """The error for a plug-in that ``what`` is wrong with."""
    hint = hint or f"remove or repair {plugin.distribution}, or use --no-plugins"
    return PluginFaultError(f"the plug-in {plugin.label} {what}", hint=hint)


def _bounded(output: bytearray) -> Any:
    def keep(chunk: bytes) -> None:
        if len(output) <= LARGEST:
            output.extend(chunk)

    return keep


def _command() -> list[str]:
    """The command of the child: our own Python, without the folders of PYTHONPATH and the current one."""
    import wheel_checks  # noqa: PLC0415  # only for its place

    places = [str(Path(__file__).parents[2]), str(Path(next(iter(wheel_checks.__path__))).parent)]
    isolated = ["-E", "-P", *(["-s"] if sys.flags.no_user_site else [])]
    return [sys.executable, *isolated, "-c", _PROGRAM, *dict.fromkeys(places)]


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("WHEELPROOF_")}


def pickled(plugin: Plugin, task: Task) -> bytes:
    """The task for the child. Raises PluginFaultError for what another process cannot have."""
    file = BytesIO()
    pickler = pickle.Pickler(file)
    pickler.dispatch_table = {**dispatch_table, MappingProxyType: lambda proxy: (dict, (dict(proxy),))}
    try:
        pickler.dump(task)
    except Exception as error:  # what a fact holds that only this process has
        raise fault_of(plugin, f"was not asked: {type(error).__name__}: {error}") from error
    return file.getvalue()
