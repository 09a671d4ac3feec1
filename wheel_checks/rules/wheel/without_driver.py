"""Does the wheel import on a host without NVIDIA's driver?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from wheel_checks.facts.links.closure import Need, Status
from wheel_checks.facts.links.decisive import Decisive, Role, is_extension_module
from wheel_checks.facts.links.known_libraries import DRIVER, needs_no_driver, provider_of
from wheel_checks.facts.links.linking import LinkFacts
from wheel_checks.facts.links.opened_first import by_module, what_imports_open
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.formats.wheel.python_source import ActionKind
from wheel_checks.model import Evidence, Finding, Fix, Location, Unavailable, need
from wheel_checks.phrases import joined, plural, summarised
from wheel_checks.registry import rule

_SHOWN = 3
_FIX = Fix("Install NVIDIA's driver, or open its libraries at run time, when a GPU is used.")
_IMPORT_IT = Fix("Import the installed package on a host without a driver.")


@rule(
    "WHL608",
    "the import needs no library of NVIDIA's driver",
    why="Login nodes, build hosts and CI runners have no driver. A library that links to libcuda.so.1 cannot be loaded "
    "there: `ImportError: libcuda.so.1: cannot open shared object file`. A package that opens it at run time imports.",
    example="`--driver none`, and demo/_C.abi3.so needs libcuda.so.1",
    fix="Open libcuda.so.1 with dlopen, link to the runtime instead, or import the module only when a GPU is used.",
)
def imports_without_driver(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """With ``--driver none``: no file that the import loads has the driver's libraries in DT_NEEDED.

    Undecided for files that the package may load, or whose failing import it catches, and for those with unknown needs.
    """
    if not expectations.without_driver:
        need(Unavailable("a host without a driver was not specified", "--driver none"))
    if not isinstance(wheel.elfs, Unavailable) and not wheel.elfs and isinstance(wheel.links, Unavailable):
        return  # a wheel of Python modules for every machine
    links = _without_driver(need(wheel.links))
    sms = [gpu.sm for gpu in expectations.gpus if gpu.sm]
    loaded = links.loaded(sms)
    certain = replace(links, roles=_unguarded(links.roles)).loaded(sms).files
    lost = [item for item in links.closure.needs if _is_lost(item) and item.elf in loaded.files]
    opened = [] if isinstance(wheel.sources, Unavailable) else [*_opened_by_source(wheel)]
    if surely := [item for item in lost if item.elf in certain and item.certain]:
        sonames = joined(sorted({item.soname for item in surely}))
        files = summarised(sorted({item.elf for item in surely}), _SHOWN)
        place = Location(surely[0].elf) if links.owners[surely[0].elf] == links.wheels[0] else None
        yield Finding(
            f"the import fails without a driver: {files} {_need_of(surely)} {sonames}", _rows(surely), _FIX, place
        )
    elif opened:
        yield Finding(f"the import fails without a driver: {opened[0]}", fix=_FIX)
    elif lost or loaded.undecided:
        files = summarised(sorted({item.elf for item in lost} or loaded.undecided), _SHOWN)
        message = f"not proven that the import works without a driver: whether it needs {files} is unknown"
        yield Finding(message, _rows(lost), _IMPORT_IT, undecided=True)
    elif unread := [path for path in links.closure.unread if path in loaded.files and not _is_known(path)]:
        count = plural(len(unread), "loaded file")
        message = f"not proven that the import works without a driver: the needs of {count} are unknown"
        is_own = any(links.owners[path] == links.wheels[0] for path in unread)
        fix = Fix("Read more of the wheel: --depth full." if is_own else "`wheelproof stack` reads every wheel itself.")
        yield Finding(f"{message} ({summarised(unread, _SHOWN)})", fix=fix, undecided=True)


def _without_driver(links: LinkFacts) -> LinkFacts:
    """The closure on a host where the driver's libraries are missing."""
    needs = (
        replace(item, status=Status.MISSING) if item.status is Status.DRIVER and not item.by else item
        for item in links.closure.needs
    )
    return replace(links, closure=replace(links.closure, needs=tuple(needs)))


def _is_lost(item: Need) -> bool:
    return item.status is Status.MISSING and provider_of(item.soname) == DRIVER


def _is_known(path: str) -> bool:
    return needs_no_driver(path.rpartition("/")[2])


def _unguarded(roles: Mapping[str, Decisive]) -> dict[str, Decisive]:
    """The files but for modules whose failing import the package catches."""
    return {
        path: one
        for path, one in roles.items()
        if one.imported or one.role is not Role.LOADED or not is_extension_module(path)
    }


def _opened_by_source(wheel: WheelFacts) -> Iterator[str]:
    """The lines that open a library of the driver by its name whenever the package is imported."""
    sources = need(wheel.sources)
    for one in what_imports_open(sources.roots, by_module(sources.modules)):
        action = one.action
        guarded = action.tried or action.conditional or action.one_of
        if action.kind is ActionKind.LOAD and not guarded and all(provider_of(name) == DRIVER for name in action.names):
            yield f"{one.place} opens {joined(action.names)}"


def _rows(needs: Iterable[Need]) -> tuple[Evidence, ...]:
    found: dict[str, list[str]] = {}
    for item in needs:
        found.setdefault(item.elf, []).append(item.soname)
    return tuple(Evidence(file, joined(sonames), "DT_NEEDED") for file, sonames in [*found.items()][:_SHOWN])


def _need_of(needs: Iterable[Need]) -> str:
    return "needs" if len({item.elf for item in needs}) == 1 else "need"
