"""The parent's side of kernels from outside: each source is imported in its own child. Needs no torch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernels_smoke.suite import registry
from kernels_smoke.suite.probes.answer import Answer, Outcome, record
from kernels_smoke.suite.processes.crew import Crew, End, Job
from kernels_smoke.suite.registry import Entry
from kernels_smoke.suite.run.plan import Document, processors

if TYPE_CHECKING:
    from kernels_smoke.suite.run.jobs import Options

PROBE = "kernels"  # prefix of the probes of sources: "kernels /x/file.py"
PLUGIN = 10.0  # seconds for the import of an entry point, as for every plug-in of wheelproof
IMPORTING = 2.0  # factor of a kernel's timeout; a large package takes half a minute from a cold file system


@dataclass
class Found:
    """The kernels from outside. ``complete`` is False when a source could not be read, so that names may be unknown."""

    entries: tuple[Entry, ...] = ()
    complete: bool = True


@dataclass
class _Source:
    """A source, its name, its result, and whether an entry point names it."""

    source: str
    label: str
    is_plugin: bool = False
    record: dict[str, Any] = field(default_factory=dict)


def find(options: Options, crew: Crew, document: Document) -> Found:
    """Import the sources of ``options`` and make their kernels known to all tasks; a probe reports each source."""
    if not (options.own or options.plugins):
        return Found()
    if crew.wait_until_ready()["faults"]:  # torch or triton is missing, which another probe says
        return Found(complete=False)
    found = [_Source(source, source) for source in options.own]
    if options.plugins:
        found += _plugins(options, crew, document, {each.source for each in found})
    crew.run([_job(each, options, document) for each in found], at_once=processors())
    entries: dict[str, Entry] = {entry.name: entry for entry in (*registry.ENTRIES, *registry.FAULTS)}
    complete = True
    for each in found:
        complete &= _accept(each, entries, document)
    own = tuple(entry for entry in entries.values() if entry.source)
    registry.know(own)
    crew.own = [vars(entry) for entry in own]
    return Found(own, complete)


def _plugins(options: Options, crew: Crew, document: Document, known: set[str]) -> list[_Source]:
    """The sources that entry points name, except those that are ``known``."""
    listed = _Source("", "entry points", is_plugin=True)
    crew.run([_job(listed, options, document, "own.tasks:plugins")], at_once=1)
    found = [_Source(source, f"{label} ({source})", is_plugin=True) for source, label in listed.record.get("found", ())]
    if not found and listed.record:
        message = "no installed package has an entry point of the group wheelproof.kernels"
        document.add(record(f"{PROBE} of plugins", Answer("skip", message)))
    return [each for number, each in enumerate(found) if each.source not in known | {e.source for e in found[:number]}]


def _job(each: _Source, options: Options, document: Document, task: str = "own.tasks:find") -> Job:
    timeout = options.timeout * IMPORTING
    if each.is_plugin:
        timeout = min(PLUGIN, timeout)

    def on_record(reply: dict[str, Any]) -> None:
        each.record = reply

    def on_end(end: End) -> Iterator[Job]:
        if not each.record:
            seconds = f"{timeout * options.slowness:g} s"
            how = f"its import did not end within {seconds}" if end.hang else f"its import: {end.describe()}"
            _say(document, each, "error", f"{each.label}: {how}", end.words)
        return iter(())

    arguments = {"source": each.source} if each.source else {}
    return Job(task, arguments, timeout, on_record, on_end)


def _accept(each: _Source, entries: dict[str, Entry], document: Document) -> bool:
    """Add the kernels of a source to ``entries``; False, with a probe that says why, when it is not to be used."""
    reply = each.record
    if not reply:
        return False  # which its end has said
    if error := reply["error"]:
        _say(
            document, each, "error", error if each.source == each.label else f"{each.label}: {error}", reply["details"]
        )
        return False
    own = [Entry(**kernel) for kernel in reply["kernels"]]
    for entry in own:
        if (other := entries.get(entry.name)) is not None:
            whose = f"of {other.source}" if other.source else "of wheelproof"
            message = f"{each.label} has a kernel {entry.name}, which is the name of one {whose}; none of it is run"
            _say(document, each, "error", message)
            return False
    entries.update((entry.name, entry) for entry in own)
    _say(document, each, "pass", f"{each.label} has {len(own)} {'kernel' if len(own) == 1 else 'kernels'}")
    family = {"source": each.source, "label": each.label, "family": own[0].family}
    kernels = [{"name": entry.name, "triton": entry.triton} for entry in own]
    document.families.append(family | {"kernels": kernels})
    return True


def _say(document: Document, each: _Source, outcome: Outcome, message: str, details: str = "") -> None:
    evidence = {"last words": details} if details else {}
    document.add(record(f"{PROBE} {each.label}", Answer(outcome, message, evidence)))
