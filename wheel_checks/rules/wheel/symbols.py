"""Does every symbol that the wheel's libraries need come from something that is installed with it?"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.links.unresolved import SymbolFacts, UnresolvedFile
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.cxx.names import demangle
from wheel_checks.model import Evidence, Finding, Fix, Location, Severity, need
from wheel_checks.phrases import plural, summarised
from wheel_checks.registry import rule

_SHOWN, _LONGEST = 12, 160
_MOST_SYMBOLS = 30  # the loader names the first that it comes to, which may be any of them


@rule(
    "WHL526",
    "every symbol is defined by a library that is installed with the wheel",
    why="An extension that was built for another torch installs without a word. The loader refuses it at import time, "
    "on the user's machine: `undefined symbol: _ZN3c105ErrorC2...`. Which names a library needs, and which ones the "
    "others define, is known before anybody installs.",
    example="flash_attn_2_cuda needs c10::Error::Error(...), which torch 2.11.0 does not export",
    fix="Install the release that was built for this torch, or the torch that it was built for.",
)
def unresolved(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """No strong undefined symbol of a file of the wheel is without a definition in the closure.

    One finding for each library that lacks names: an error where the import opens a file that needs them, on the GPUs
    that are asked for, else a warning; nothing for alternatives of which another one is taken. What could not be read
    leaves the question open.
    """
    links = need(wheel.links)
    facts = need(links.symbols)
    sms = [gpu.sm for gpu in expectations.gpus if gpu.sm]
    loaded = links.loaded(sms)
    for_gpu = {path for path in loaded.files if path in links.roles and links.roles[path].architectures and sms}
    opened = {item.path for item in facts.unresolved if item.imported or item.path in for_gpu}
    counting = [i for i in facts.unresolved if i.path in opened or not links.is_spare(i.path, loaded)]
    own = wheel.file_name.partition("-")[0].replace("_", "-")
    for imported in (True, False):
        for of_torch in (True, False):
            files = [(item, item.of_torch if of_torch else _others(item)) for item in counting]
            lame = [(item, names) for item, names in files if names and (item.path in opened) is imported]
            if lame:
                yield _finding(own, facts, lame, of_torch=of_torch, imported=imported)
    if facts.unread and not opened:
        rows = [Evidence(path, reason) for path, reason in facts.unread[:_SHOWN]]
        path, reason = facts.unread[0]
        more = f" (and {len(facts.unread) - 1} more)" if len(facts.unread) > 1 else ""
        message = f"not proven that {own} loads: of {posixpath.basename(path)} {reason}{more}"
        yield Finding(message, tuple(rows), Fix("Ask with --depth full, which reads every byte."), undecided=True)


def _others(item: UnresolvedFile) -> tuple[str, ...]:
    known = set(item.of_torch)
    return tuple(name for name in item.names if name not in known)


def _finding(
    own: str,
    facts: SymbolFacts,
    lame: Sequence[tuple[UnresolvedFile, Sequence[str]]],
    *,
    of_torch: bool,
    imported: bool,
) -> Finding:
    """The finding about names that nothing in the closure defines: one for all files."""
    item, names = lame[0]
    names = sorted(names, key=lambda name: (len(name), name))
    every = dict.fromkeys([*names, *sorted({name for _, more in lame for name in more})])
    file = posixpath.basename(item.path)
    lacking = f"torch {facts.torch} does not export" if of_torch and facts.torch else "no library beside it defines"
    message = f"{file} needs {_short(demangle(names[0]))}, which {lacking}"
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
        fix = Fix(f"Install {own} with torch {fitting[-1]}, or a release of {own} that was built for {facts.torch}.")
    elif of_torch:
        fix = Fix(f"Install a release of {own} that was built for torch {facts.torch}, or build it for this torch.")
    else:
        fix = Fix(f"Install the release of the library that {own} was built with.")
    severity = None if imported else Severity.WARNING
    return Finding(message, tuple(evidence), fix, Location(item.path), severity)


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."


def _span(versions: Sequence[str]) -> str:
    """The releases in few words: one, two, or from the first to the last."""
    return versions[0] if len(versions) == 1 else f"{versions[0]} to {versions[-1]}"
