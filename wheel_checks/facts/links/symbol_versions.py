"""Symbol versions across libraries: what one needs (DT_VERNEED) and the other does not define (DT_VERDEF)."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from wheel_checks.facts.links.closure import Need
from wheel_checks.formats.elf.file import ElfFacts
from wheel_checks.formats.elf.versions import SymbolVersions


@dataclass(frozen=True, slots=True)
class LackingVersions:
    """The versions that ``need.elf`` needs and ``need.by`` lacks, and those that it has; neither is empty."""

    need: Need
    lacking: tuple[str, ...]
    defined: tuple[str, ...]


def lacking_versions(needs: Iterable[Need], elf_at: Callable[[str], ElfFacts | None]) -> Iterator[LackingVersions]:
    """The needs whose library lacks versions, as the loader's check finds them (glibc, elf/dl-version.c).

    Weak needs do not count, and a library without any versions satisfies every need, both with a warning of the loader.
    ``elf_at`` gives the facts of a file; needs of which either side was not read are omitted.
    """
    for need in needs:
        user, library = elf_at(need.elf), elf_at(need.by)
        if user is None or library is None:
            continue
        if not isinstance(user.versions, SymbolVersions) or not isinstance(library.versions, SymbolVersions):
            continue
        defined = {definition.name for definition in library.versions.definitions}
        wanted = [version for n in user.versions.needs if n.library == need.soname for version in n.versions]
        lacking = tuple(v.name for v in wanted if not v.weak and v.name not in defined)
        if lacking and defined:
            yield LackingVersions(need, lacking, tuple(sorted(defined)))
