"""Findings about unresolved symbols in wheels and installed distributions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from wheel_checks.facts.links.unresolved import SymbolFacts, UnresolvedFile, is_of_python
from wheel_checks.formats.cxx_names import readable
from wheel_checks.model import Evidence, Finding, Fix, Location, Severity
from wheel_checks.phrases import plural, summarised

_SHOWN = 12
_MOST_SYMBOLS = 30  # the loader names the first that it comes to, which may be any of them

Place = Callable[[str], tuple[str, Location]]
"""The name and the location of a file in a message, by its path."""


def unresolved_symbols(own: str, facts: SymbolFacts, place: Place, unread: Fix) -> Iterable[Finding]:
    """One finding about each library that lacks names which files of the package ``own`` need.

    An error where the import opens a file that needs them, else a warning. Unread files leave the question open;
    ``unread`` is the fix for that.
    """
    for imported in (True, False):
        for of_torch in (True, False):
            files = [(item, item.of_torch if of_torch else _others(item)) for item in facts.unresolved]
            lame = [(item, names) for item, names in files if names and item.imported is imported]
            if lame:
                yield _finding(own, facts, lame, place, of_torch=of_torch, imported=imported)
    if facts.unread and not any(item.imported for item in facts.unresolved):
        rows = [Evidence(path, reason) for path, reason in facts.unread[:_SHOWN]]
        path, reason = facts.unread[0]
        more = f" (and {len(facts.unread) - 1} more)" if len(facts.unread) > 1 else ""
        message = f"not proven that {own} loads: {place(path)[0]}: {reason}{more}"
        yield Finding(message, tuple(rows), unread, undecided=True)


def _others(item: UnresolvedFile) -> tuple[str, ...]:
    known = set(item.of_torch)
    return tuple(name for name in item.names if name not in known)


def _finding(
    own: str,
    facts: SymbolFacts,
    lame: Sequence[tuple[UnresolvedFile, Sequence[str]]],
    place: Place,
    *,
    of_torch: bool,
    imported: bool,
) -> Finding:
    """The finding about names that nothing in the closure defines: one for all files."""
    item, names = lame[0]
    names = sorted(names, key=lambda name: (len(name), name))
    every = dict.fromkeys([*names, *sorted({name for _, more in lame for name in more})])
    file, location = place(item.path)
    of_python = all(map(is_of_python, every))
    lacking = "the interpreter does not export" if of_python else "no library next to it defines"
    lacking = f"torch {facts.torch} does not export" if of_torch and facts.torch else lacking
    message = f"{file} needs {readable(names[0])}, which {lacking}"
    if len(every) > 1 or len(lame) > 1:
        message += f" ({plural(len(every), 'such symbol')} in {plural(len(lame), 'file')})"
    fitting = facts.fitting if of_torch and imported else ()
    if fitting:
        message += f"; torch {_span(fitting)} {'do' if len(fitting) > 1 else 'does'}"
    evidence = [
        Evidence("symbols", summarised(every, _MOST_SYMBOLS), item.path),
        Evidence("files", summarised([one.path for one, _ in lame], _SHOWN)),
    ]
    if of_torch and facts.torch_wheel:
        evidence.append(Evidence("torch", facts.torch_wheel))
    if fitting:
        evidence.append(Evidence("exported by torch", ", ".join(fitting)))
        fix = Fix(f"Install {own} with torch {fitting[-1]}, or a release of {own} built for torch {facts.torch}.")
    elif of_torch and not facts.torch:
        fix = Fix(f"Install torch to use this part of {own}.")
    elif of_torch:
        fix = Fix(f"Install a release of {own} built for torch {facts.torch}, or build it for this torch.")
    elif of_python:
        fix = Fix(f"Install the file of {own} for this version of Python, or a release of {own} that has one.")
    else:
        fix = Fix(f"Install the release of the library that {own} was built with.")
    severity = None if imported else Severity.WARNING
    return Finding(message, tuple(evidence), fix, location, severity)


def _span(versions: Sequence[str]) -> str:
    """The releases in few words: one, two, or from the first to the last."""
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
