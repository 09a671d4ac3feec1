"""Values in a Python module as far as its text shows them: texts with ``*`` for unknown parts, and collections."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product

MOST_TEXTS = 24
"""The most texts that one value may be; more are treated as unknown."""
_LONGEST = 600  # characters of a text
_ABOVE = "\x03"  # the folder of site-packages
_GLOB_CLASS = re.compile(r"\[[^\]/]{1,40}\]|\?")


@dataclass(frozen=True, slots=True)
class Text:
    """A text or path that is one of ``texts``."""

    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Many:
    """A list, tuple or set."""

    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A dict of literal keys."""

    pairs: tuple[tuple[Value, Value], ...]


@dataclass(frozen=True, slots=True)
class Named:
    """An imported object, by its dotted name: ``os.path.join``."""

    name: str


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a value, that is not called yet."""

    of: Value
    name: str


Value = Text | Many | Table | Named | Method

UNKNOWN = Text(("*",))
KNOWN = {
    "sys.platform": "linux",
    "os.name": "posix",
    "os.sep": "/",
    "os.path.sep": "/",
    "__debug__": "True",
    "typing.TYPE_CHECKING": "",
    "typing_extensions.TYPE_CHECKING": "",
}
"""Constants that are the same in every CPython on Linux."""
_PATH_TYPES = {"pathlib.Path", "pathlib.PurePath", "pathlib.PosixPath", "str", "os.fspath", "builtins.str"}
_SAME = {"os.path.abspath", "os.path.realpath", "os.path.normpath", "os.path.expanduser", "os.fsdecode", "os.fsencode"}
_SAME |= {"ctypes.c_char_p", "list", "tuple", "set", "sorted", "reversed", "iter", "next", "dict", "frozenset"}
_SAME_METHODS = {"resolve", "absolute", "as_posix", "expanduser", "encode", "decode", "copy", "__str__", "__fspath__"}


def one_text(text: str) -> Text:
    """A value of one text."""
    return Text((text[:_LONGEST],))


def texts_of(value: Value) -> tuple[str, ...]:
    """The texts that the value may be."""
    if isinstance(value, Text):
        return value.texts
    if isinstance(value, Many):
        return tuple(dict.fromkeys(text for item in value.items for text in texts_of(item)))[:MOST_TEXTS] or ("*",)
    if isinstance(value, Named):
        if value.name in KNOWN:
            return (KNOWN[value.name],)
        module, _, attribute = value.name.rpartition(".")
        if attribute == "__file__":
            return (f"{module.replace('.', '/')}/__init__.py",)
        if attribute == "__path__":
            return (module.replace(".", "/"),)
    return ("*",)


def either(one: Value, other: Value) -> Value:
    """The value of a name that two ways of execution give."""
    if one == other:
        return one
    if isinstance(one, Many) and isinstance(other, Many):
        return Many((*one.items, *(item for item in other.items if item not in one.items)))
    texts = tuple(dict.fromkeys((*texts_of(one), *texts_of(other))))
    return Text(texts) if len(texts) <= MOST_TEXTS else UNKNOWN


def combine(join: Callable[..., str], *values: Value) -> Text:
    """Every text that ``join`` makes of the texts of ``values``."""
    every = [texts_of(value) for value in values]
    total = 1
    for texts in every:
        total *= len(texts)
    if total > MOST_TEXTS:
        return UNKNOWN
    return Text(tuple(dict.fromkeys(_shortened(join(*texts)) for texts in product(*every))))


def _shortened(text: str) -> str:
    while "**" in text:
        text = text.replace("**", "*")
    return text if len(text) <= _LONGEST else "*"


def join_paths(*parts: str) -> str:
    """As os.path.join, in site-packages, which is "" here."""
    joined = posixpath.join(*parts) if parts else ""
    return posixpath.normpath(joined) if ".." in joined and not joined.startswith("*") else joined.removeprefix("./")


def parent(path: str) -> str:
    """The folder of a path; the parent of site-packages is unknown."""
    if not path:
        return _ABOVE
    folder = posixpath.dirname(path)
    return "*" if folder == "" and path.startswith("*") else folder


def attribute(value: Value, name: str) -> Value:
    """An attribute of a value."""
    if isinstance(value, Named):
        return Named(f"{value.name}.{name}")
    if isinstance(value, Text):
        if name == "parent":
            return combine(parent, value)
        if name == "parents":
            return _parents(value)
        if name in ("name", "stem"):
            return combine(lambda path: _last_part(path, stem=name == "stem"), value)
        if name in ("origin", "value", "submodule_search_locations"):
            return value
    return Method(value, name)


def _parents(value: Value) -> Many:
    folders = []
    for _ in range(8):
        value = combine(parent, value)
        folders.append(value)
    return Many(tuple(folders))


def _last_part(path: str, *, stem: bool = False) -> str:
    name = posixpath.basename(path)
    return (posixpath.splitext(name)[0] if stem else name) or "*"


def _module_file(module: str) -> str:
    """The file that finding the spec of a module leads to."""
    return f"*/{module.rpartition('.')[2]}.*"


_FUNCTIONS: dict[str, Callable[[list[Value]], Value]] = {
    "os.path.join": lambda given: combine(join_paths, *given),
    "posixpath.join": lambda given: combine(join_paths, *given),
    "os.path.dirname": lambda given: combine(parent, given[0]),
    "posixpath.dirname": lambda given: combine(parent, given[0]),
    "os.path.basename": lambda given: combine(_last_part, given[0]),
    "glob.glob": lambda given: combine(_as_pattern, given[0]),
    "glob.iglob": lambda given: combine(_as_pattern, given[0]),
    "importlib.resources.files": lambda given: combine(lambda package: package.replace(".", "/"), given[0]),
    "importlib_resources.files": lambda given: combine(lambda package: package.replace(".", "/"), given[0]),
    "enumerate": lambda given: _numbered(given[0]),
    "importlib.util.find_spec": lambda given: combine(_module_file, given[0]),
}


def call_known(name: str, given: list[Value]) -> Value | None:
    """The result of a function of the standard library, None if it is unknown here."""
    if name == "platform.system":
        return one_text("Linux")
    if name in _PATH_TYPES and len(given) > 1:
        return combine(join_paths, *given)
    if name in _PATH_TYPES or name in _SAME:
        return given[0] if given else one_text("")
    return _FUNCTIONS[name](given) if name in _FUNCTIONS and given else None


def _numbered(value: Value) -> Value:
    return Many(tuple(Many((UNKNOWN, item)) for item in value.items)) if isinstance(value, Many) else UNKNOWN


def _replaced(text: str, old: str, new: str) -> str:
    return text.replace(old, new) if old and "*" not in old else "*"


def _changed(text: str, method: str) -> str:
    return str(getattr(text, method)()) if "*" not in text and "\x01" not in text else "*"


_METHODS: dict[tuple[str, int], Callable[[Text, list[Value]], Value]] = {
    ("glob", 1): lambda text, given: combine(lambda *parts: _as_pattern(join_paths(*parts)), text, given[0]),
    ("rglob", 1): lambda text, given: combine(lambda a, b: _as_pattern(join_paths(a, "*", b)), text, given[0]),
    ("iterdir", 0): lambda text, _: combine(lambda path: join_paths(path, "*"), text),
    ("with_name", 1): lambda text, given: combine(lambda old, new: join_paths(parent(old), new), text, given[0]),
    ("replace", 2): lambda text, given: combine(_replaced, text, *given),
    ("find_spec", 1): lambda _, given: combine(_module_file, given[0]),
    ("lower", 0): lambda text, _: combine(lambda one: _changed(one, "lower"), text),
    ("upper", 0): lambda text, _: combine(lambda one: _changed(one, "upper"), text),
    ("strip", 0): lambda text, _: combine(lambda one: _changed(one, "strip"), text),
}


def call_method(value: Value, name: str, given: list[Value]) -> Value:
    """The result of a method of a value."""
    if isinstance(value, Table):
        return _call_table(value, name, given)
    if name in _SAME_METHODS or not isinstance(value, Text):
        return value if name in _SAME_METHODS else UNKNOWN
    if name == "joinpath":
        return combine(join_paths, value, *given)
    if name == "format":
        return combine(lambda text, *parts: _formatted(text, parts), value, *given)
    if name == "join" and given and isinstance(given[0], Many):
        return combine(lambda by, *parts: by.join(parts), value, *given[0].items)
    known = _METHODS.get((name, len(given)))
    return UNKNOWN if known is None else known(value, given)


def _call_table(table: Table, name: str, given: list[Value]) -> Value:
    if name == "items":
        return Many(tuple(Many(pair) for pair in table.pairs))
    if name in ("keys", "values"):
        return Many(tuple(pair[name == "values"] for pair in table.pairs))
    return subscript(table, given[0]) if name == "get" and given else UNKNOWN


def subscript(value: Value, key: Value) -> Value:
    """An element of a collection; all of them if the key is unknown."""
    if isinstance(value, Table):
        wanted = texts_of(key)
        hits = [found for name, found in value.pairs if set(texts_of(name)) & set(wanted)]
        return _any_of(hits or [found for _, found in value.pairs])
    if isinstance(value, Many):
        texts = texts_of(key)
        if len(texts) == 1 and texts[0].lstrip("-").isdecimal() and len(texts[0]) < 4:
            number = int(texts[0])
            if -len(value.items) <= number < len(value.items):
                return value.items[number]
        return _any_of(list(value.items))
    is_number = all(text.isdecimal() for text in texts_of(key))
    if isinstance(value, Text) and is_number and all("/" in text for text in value.texts):
        return value  # of the results of glob
    return value if isinstance(value, Named) and value.name.endswith("__path__") else UNKNOWN


def _any_of(values: list[Value]) -> Value:
    found: Value | None = None
    for value in values[:MOST_TEXTS]:
        found = value if found is None else either(found, value)
    return UNKNOWN if found is None else found


def _as_pattern(path: str) -> str:
    return _GLOB_CLASS.sub("*", path)


def _formatted(text: str, parts: Iterable[str]) -> str:
    given = list(parts)
    for part in given:
        text = re.sub(r"\{\w*(?:[:!][^{}]{0,20})?\}", lambda _, part=part: part, text, count=1)  # type: ignore[misc]
    return re.sub(r"\{\w*(?:[:!][^{}]{0,20})?\}", "*", text)
