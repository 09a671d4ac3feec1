"""Do the libraries of a wheel use only such names of Python and of the C library as their tags promise to be there?"""

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Sequence

from wheel_checks.data import load
from wheel_checks.facts.elf.named_imports import brings_nothing, limited_api, moved_symbols, outside_limited_api
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.links.closure import Status
from wheel_checks.facts.links.linking import LinkFacts
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Audience, Evidence, Finding, Fix, Location, Severity, Unavailable, need
from wheel_checks.phrases import plural, summarised
from wheel_checks.registry import rule
from wheel_checks.rules.shared.policies import oldest_policy

_SHOWN = 8
_OLDEST_STABLE = (3, 2)  # the first Python with a limited API (PEP 384)


@rule(
    "WHL530",
    "libraries for the stable ABI use only the limited API",
    why="A wheel tagged cp310-abi3 is installed on Python 3.10 and every later one. A symbol that a later Python added "
    "is missing in earlier ones, `undefined symbol: PyObject_Vectorcall`; one outside the limited API may disappear "
    "with any release.",
    example="a file of a wheel tagged cp310-abi3 uses PyType_GetName, which is in the limited API since Python 3.11",
    fix="Build with Py_LIMITED_API set to the tag's Python, or tag the wheel with the Python that it needs.",
)
def limited(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No file that claims the stable ABI needs a symbol outside the limited API of the claimed Python.

    Whoever installs the wheel sees only symbols that their Python lacks: others are for its publisher.
    """
    claimed = _claimed_python(wheel)
    imports = need(wheel.imports)
    claiming = [item for item in imports.found if item.python]
    if not claiming:
        _require_read([name for name in imports.unread if claimed or name.endswith(".abi3.so")])
    for item in claiming:
        baseline = claimed or _OLDEST_STABLE
        later = {name: added for name in item.python if (added := limited_api().get(name, (0, 0))) > baseline}
        if later and claimed:
            yield _later(wheel, item.member, later, claimed)
        if foreign := outside_limited_api(item.python):
            message = f"{posixpath.basename(item.member)} uses symbols outside Python's limited API: {_first(foreign)}"
            evidence = (Evidence("symbols", _summary(foreign), item.member), _source())
            fix = Fix("Build with Py_LIMITED_API, or tag the wheel for one Python instead of abi3.")
            yield Finding(message, evidence, fix, Location(item.member), audience=Audience.PUBLISHER)


def _require_read(unread: Sequence[str]) -> None:
    """Skip the rule when libraries were not read."""
    if unread:
        need(Unavailable(f"the symbols used by {len(unread)} of its libraries were not read"))


def _claimed_python(wheel: WheelFacts) -> tuple[int, int] | None:
    """The Python of the wheel's abi3 tag; of several the newest, as an installer takes any of them from there on."""
    tagged = [tag.interpreter for tag in need(wheel.name).tags if tag.abi == "abi3"]
    found = [(int(name[2]), int(name[3:])) for name in tagged if name.startswith("cp3") and name[3:].isdigit()]
    return max(found, default=None)


def _later(wheel: WheelFacts, member: str, later: dict[str, tuple[int, int]], claimed: tuple[int, int]) -> Finding:
    name, added = max(later.items(), key=lambda item: (item[1], item[0]))
    target = wheel.target.python if wheel.target else None
    breaks = added if target is None else target
    last = (added[0], added[1] - 1)
    where = _version(claimed) if last == claimed else f"{_version(claimed)} to {_version(last)}"
    message = (
        f"{posixpath.basename(member)} uses {name}, which Python has only since {_version(added)}: tagged for "
        f"{_version(claimed)}, it fails on Python {where}"
    )
    rows = [f"{symbol} ({_version(since)})" for symbol, since in sorted(later.items())]
    evidence = (Evidence("symbols", _summary(rows), member), _source())
    fix = Fix(f"Tag the wheel cp3{added[1]}-abi3, or build it with Py_LIMITED_API of Python {_version(claimed)}.")
    audience = None if target is not None and breaks < added else Audience.PUBLISHER
    return Finding(message, evidence, fix, Location(member), audience=audience)


def _source() -> Evidence:
    return Evidence("limited API", str(load("limited_api")["source"]), "wheel_checks/data/limited_api.toml")


@rule(
    "WHL531",
    "libraries need the parts of the C library that define their symbols",
    why="glibc 2.34 merged librt into libc.so.6. A library that was linked there without librt.so.1 works there, but "
    "fails on every older system that its tag allows: `undefined symbol: shm_open`.",
    example="libcufile.so.0 of a wheel for glibc 2.27 uses shm_open but does not need librt.so.1",
    fix="Link the library with the former part, such as -lrt, and -Wl,--no-as-needed if the linker drops it.",
)
def moved(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """No symbol that moved into libc.so.6 is used without its former library where the tag promises an older glibc.

    What the library's closure brings counts, also what a library of the driver may bring. In a stack it is a note where
    the target's glibc has the symbol, and else a warning: another package may have loaded the former library.
    """
    policy = oldest_policy(wheel)
    if policy is None:
        need(Unavailable("the tags contain no known manylinux policy"))
        return
    promised = (2, int(policy["glibc_minor"]))
    imports = need(wheel.imports)
    if not any(item.moved for item in imports.found) and promised < max(since for _, since in moved_symbols().values()):
        _require_read(imports.unread)
    for item in imports.found:
        by_library: dict[str, list[str]] = defaultdict(list)
        for name in item.moved:
            by_library[moved_symbols()[name][0]].append(name)
        for soname, names in sorted(by_library.items()):
            since = moved_symbols()[names[0]][1]
            if promised < since and _is_absent(soname, item.member, need(wheel.links)):
                yield _moved(wheel, item.member, soname, names, promised, in_stack=expectations.in_stack)


def _is_absent(soname: str, member: str, links: LinkFacts) -> bool:
    """Whether nothing that the file leads to is this library, or may bring it."""
    path = next((path for path in links.files if member.endswith(path) or path.endswith(member)), "")
    if not path or path in links.closure.unread:
        return False
    queue, seen = [path], {path}
    for one in queue:
        for item in links.closure.needs:
            if item.elf != one:
                continue
            if item.soname == soname or item.status is Status.DRIVER:
                return False
            if item.by and item.by in links.files:
                if item.by in links.closure.unread:
                    return False
                if item.by not in seen:
                    seen.add(item.by)
                    queue.append(item.by)
            elif not brings_nothing(item.soname):
                return False
    return True


def _moved(
    wheel: WheelFacts, member: str, soname: str, names: Sequence[str], promised: tuple[int, int], *, in_stack: bool
) -> Finding:
    since = moved_symbols()[names[0]][1]
    file = posixpath.basename(member)
    systems = [
        f"{row['name']} ({row['glibc']})"
        for row in load("distributions")["distribution"]
        if promised <= tuple(map(int, row["glibc"].split("."))) < since
    ]
    message = (
        f"{file} uses {_first(names)} but does not need {soname}: it cannot be loaded before glibc {_version(since)}, "
        f"but the wheel is tagged for glibc {_version(promised)}"
    )
    evidence = (
        Evidence("symbols", _summary(names), member),
        Evidence("fails on", ", ".join(systems) or f"glibc before {_version(since)}", "distributions.toml"),
        Evidence("moved", f"{soname} into libc.so.6 in glibc {_version(since)}", "wheel_checks/data/glibc_moves.toml"),
    )
    fix = Fix(
        f"Link {file} with {soname} (-l{soname[3:].partition('.')[0]}), or tag the wheel for glibc {_version(since)}. "
        f"Until then it requires glibc {_version(since)}."
    )
    severity = None
    if in_stack:
        has_it = wheel.target is not None and wheel.target.glibc >= since
        severity = Severity.NOTE if has_it else Severity.WARNING
    return Finding(message, evidence, fix, Location(member), severity)


def _first(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {plural(len(names) - 1, 'more symbol')}"


def _summary(names: Sequence[str]) -> str:
    return summarised(names, _SHOWN, grouping="")


def _version(pair: tuple[int, int]) -> str:
    return f"{pair[0]}.{pair[1]}"
