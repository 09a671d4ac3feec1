"""Does every symbol that the wheel's libraries need come from something that is installed with it?"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import replace

from wheel_checks.facts.links.linking import LinkFacts
from wheel_checks.facts.links.torch_exports import known_releases, missing_exports
from wheel_checks.facts.links.unresolved import UnresolvedFile
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Evidence, Finding, Fix, Location, Unavailable, need
from wheel_checks.phrases import summarised
from wheel_checks.registry import rule
from wheel_checks.rules.shared.symbols import unresolved_symbols

_MOST_SYMBOLS = 30


@rule(
    "WHL526",
    "every symbol is defined by a library that is installed with the wheel",
    why="An extension built for another torch installs without a warning. The loader rejects it at import, on the "
    "user's host: `undefined symbol: _ZN3c105ErrorC2...`. Which symbols a library needs, and which the others define, "
    "can be read before anything is installed.",
    example="flash_attn_2_cuda needs c10::Error::Error (_ZN3c105ErrorC2...), which torch 2.11.0 does not export",
    fix="Install the release built for this torch, or the torch that it was built for.",
)
def unresolved(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """No strong undefined symbol of a file of the wheel is without a definition in the closure.

    One finding for each library that lacks names: an error if the import opens a file that needs them, on the requested
    GPUs, else a warning; nothing for alternatives if another one is chosen. A warning, too, if only torch is lacking,
    which the wheel does not require, and no import names the file: it is for users of both.
    Unread files leave the question open.
    """
    links = need(wheel.links)
    facts = need(links.symbols)
    sms = [gpu.sm for gpu in expectations.gpus if gpu.sm]
    loaded = links.loaded(sms)
    for_gpu = {path for path in loaded.files if path in links.roles and links.roles[path].architectures and sms}
    opened = {item.path for item in facts.unresolved if item.imported or item.path in for_gpu}
    opened -= set() if facts.torch else _for_users_of_torch(wheel, links, facts.unresolved)
    counting = [i for i in facts.unresolved if i.path in opened or not links.is_spare(i.path, loaded)]
    facts = replace(facts, unresolved=tuple(replace(item, imported=item.path in opened) for item in counting))
    own = wheel.file_name.partition("-")[0].replace("_", "-")
    yield from unresolved_symbols(own, facts, _place, Fix("Use --depth full, which reads every byte."))


def _for_users_of_torch(wheel: WheelFacts, links: LinkFacts, lame: Sequence[UnresolvedFile]) -> set[str]:
    """The files that need torch in a wheel that does not require it, and whose other files load without."""
    required = () if isinstance(wheel.metadata, Unavailable) else wheel.metadata.requirements
    if any(one.name.lower() == "torch" and "extra" not in str(one.marker or "") for one in required):
        return set()
    found = {item.path for item in lame if item.names == item.of_torch and item.path in links.roles}
    others = links.roles.keys() - {item.path for item in lame}
    return {path for path in found if others and not links.roles[path].imported}


@rule(
    "WHL543",
    "a wheel for a range of torch releases needs only symbols that all of them export",
    why="A library for the stable ABI of torch (`aoti_torch_...`, `torch_...`) loads with every later torch, but not "
    "with a torch before its newest symbol. Its build with the newest torch does not show it; users of the "
    "oldest see `undefined symbol`. The symbols that each torch exports can be compared before the release.",
    example='a wheel that needs torch_from_blob, of torch 2.11.0, with `torch-abi = ">=2.9"` in the expectation',
    fix="Build with TORCH_TARGET_VERSION of the oldest torch, or narrow the range.",
)
def torch_abi(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """Every name of torch that a file needs and the wheel does not define is exported by each torch of the range.

    One finding, with each torch that lacks names; undecided if a file was not read far enough, or no torch of the range
    is known.
    """
    wanted = expectations.torch_abi
    if wanted is None:
        need(Unavailable("no range of torch releases was expected", "torch-abi in the expectation of a release"))
        return
    symbols = need(need(wheel.links).symbols)
    machine, python = (wheel.target.machine, wheel.target.interpreter) if wheel.target else ("", "")
    known = [version for version in known_releases(machine) if wanted.contains(version)]
    names = dict.fromkeys(name for each in symbols.of_torch.values() for name in each)
    lacking = {version: gone for version in known if (gone := missing_exports(names, version, machine, python))}
    if lacking:
        gone = next(iter(lacking.values()))
        path = next(path for path, each in symbols.of_torch.items() if gone[0] in each)
        message = f"{posixpath.basename(path)} needs {gone[0]}, which torch {next(iter(lacking))} does not export"
        message += f" ({len(gone)} such symbols)" if len(gone) > 1 else ""
        rows = (Evidence(f"not in torch {v}", summarised(each, _MOST_SYMBOLS), path) for v, each in lacking.items())
        oldest = next((f", or require torch>={version}" for version in known if version not in lacking), "")
        fix = Fix(f"Build with TORCH_TARGET_VERSION of the oldest torch{oldest}.")
        yield Finding(message, (*rows, Evidence("torch-abi", str(wanted), "expectation")), fix, Location(path))
    if symbols.far or (names and not known):
        reason = f"no torch {wanted} is known for {machine}"
        reason = f"the symbols of {symbols.far[0]} were not read" if symbols.far else reason
        yield Finding(f"not proven that the wheel loads with torch {wanted}: {reason}", undecided=True)


def _place(path: str) -> tuple[str, Location]:
    return posixpath.basename(path), Location(path)
