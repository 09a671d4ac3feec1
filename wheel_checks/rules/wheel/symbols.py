"""Does every symbol that the wheel's libraries need come from something that is installed with it?"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from dataclasses import replace

from wheel_checks.facts.links.linking import LinkFacts
from wheel_checks.facts.links.unresolved import UnresolvedFile
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Finding, Fix, Location, Unavailable, need
from wheel_checks.registry import rule
from wheel_checks.rules.shared.symbols import unresolved_symbols


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
    if any(one.name == "torch" and "extra" not in str(one.marker or "") for one in required):
        return set()
    found = {item.path for item in lame if item.names == item.of_torch and item.path in links.roles}
    others = links.roles.keys() - {item.path for item in lame}
    return {path for path in found if others and not links.roles[path].imported}


def _place(path: str) -> tuple[str, Location]:
    return posixpath.basename(path), Location(path)
