"""Qualified names in C++ symbols (Itanium C++ ABI, section 5.1: https://itanium-cxx-abi.github.io/cxx-abi/abi.html)."""

import re

from wheel_checks.phrases import abbreviated

LONGEST = 160
"""Characters of a name, and of its symbol, in a message."""

_START = re.compile(r"_Z(?P<special>T[VTIS]|GV)?(?P<nested>N[rVK]*[RO]?)?(?P<std>St)?")
_SPECIAL = {
    "TV": "vtable for ",
    "TT": "VTT for ",
    "TI": "typeinfo for ",
    "TS": "typeinfo name for ",
    "GV": "guard variable for ",
}
_SOURCE_NAME = re.compile(r"(?P<tag>B?)(?P<length>[1-9][0-9]{0,5})(?![0-9])")  # B: an ABI tag, such as cxx11
_CONSTRUCTOR = re.compile(r"C[1-5]|D[0-5]")


def readable(symbol: str) -> str:
    """``c10::Error::Error (_ZN3c105ErrorC1Ev)``, or the symbol alone if no name can be read in it."""
    name, shown = qualified_name(symbol), abbreviated(symbol, LONGEST)
    return f"{abbreviated(name, LONGEST)} ({shown})" if name else shown


def qualified_name(symbol: str) -> str | None:
    """``namespace::name`` without parameters, or None if the symbol has no such name.

    Reading stops at template arguments, operators and substitutions: ``c10::ArrayRef...``.
    """
    start = _START.match(symbol)
    if start is None:
        return None
    names: list[str] = []
    place = start.end()
    while found := _SOURCE_NAME.match(symbol, place):
        place = found.end() + int(found["length"])
        if place > len(symbol):
            return None
        if not found["tag"]:
            names.append(symbol[found.end() : place])
        if not start["nested"]:
            break  # its parameters follow
    if not names:
        return None
    whole = not start["nested"] or symbol.startswith("E", place)
    if start["nested"] and (constructor := _CONSTRUCTOR.match(symbol, place)):
        names.append(names[-1] if constructor[0].startswith("C") else f"~{names[-1]}")
        whole = True
    words = ["std", *names] if start["std"] else names
    return _SPECIAL.get(start["special"], "") + "::".join(words) + ("" if whole else "...")
