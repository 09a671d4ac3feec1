"""JSON and TOML documents, and their values as frozen dataclasses: what may be there is what the annotations say.

A field is a string, a whole number, a number, true or false, a date, an enumeration, Any, a tuple, a Mapping, a
dataclass, or a union of these. ``Annotated`` says more: its ``Key``, a ``Check``, how it is ``Made``.

The annotations bound the depth, a :class:`Policy` bounds sizes and counts. Every fault has its path::

    cells[3].python is 3; expected a string
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sized
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, NamedTuple, TypeVar

from wheel_checks.errors import FormatError, WheelproofError
from wheel_checks.phrases import abbreviated

MOST_FAULTS = 20  # of one document
_LARGEST_NUMBER = 1 << 64  # beyond the counters and sizes of any host
_BARE = re.compile(r"[\w-]{1,80}")
_ABSENT = object()

T = TypeVar("T")
Path = tuple[str | int, ...]
_Look = Callable[[Any], Any]


class Policy(NamedTuple):
    """How documents of one kind are read.

    ``unknown_keys`` says whether keys without a field are ignored, ``null_is_absent`` whether null means the same as no
    key. In TOML keys have dashes where fields have underscores. Strings have at most ``longest`` characters, and are
    cut there when they are ``clipped``; lists and objects have at most ``most`` entries.
    """

    unknown_keys: bool = False
    null_is_absent: bool = False
    toml: bool = False
    longest: int = 1 << 24
    clipped: bool = False
    most: int = 1 << 20

    @property
    def object(self) -> str:
        """What the format calls a value that has keys."""
        return "a table" if self.toml else "an object"


class Key(NamedTuple):
    """The key of a field that has another name. Fields can share a key."""

    name: str


class Check(NamedTuple):
    """What a value must be: ``passes`` decides, ``expected`` says it."""

    passes: Callable[[Any], object]
    expected: str


class Made(NamedTuple):
    """The field is what ``make`` returns for the value, decoded as ``of``; a WheelproofError of it is a fault.

    ``make`` is a function with a name: a lambda within an annotation does not see the names of its module.
    """

    make: Callable[[Any], Any]
    of: Any = str


Filled = Annotated[str, Check(bool, "a string that is not empty")]


class Fault(NamedTuple):
    """One fault: where it is, what is there, what was expected."""

    path: Path
    what: str
    expected: str = ""


def place_of(path: Path) -> str:
    """A path for people: ``cells[3].python``; keys that need it are quoted."""
    parts = (f"[{p}]" if isinstance(p, int) else f".{p if _BARE.fullmatch(p) else _text_shown(p)}" for p in path)
    return "".join(parts).removeprefix(".")


class DecodeError(FormatError):
    """A document has other values than the dataclasses allow; ``faults`` are the first of them."""

    def __init__(self, faults: Iterable[Fault], source: str = "", place: Callable[[Path], str] = place_of) -> None:
        self.faults = tuple(faults)[:MOST_FAULTS]
        prefix = f"{source}: " if source else ""
        said = [f"{place(f.path)} {f.what}" if f.path else f.what for f in self.faults]
        if len(said) == 1:
            root = "" if self.faults[0].path else f"{source or 'the document'} "
            super().__init__(f"{root or prefix}{said[0]}", expected=self.faults[0].expected)
            return
        listed = "; ".join(
            f"{text}; expected {f.expected}" if f.expected else text for f, text in zip(self.faults, said, strict=True)
        )
        count = f"the first {MOST_FAULTS}" if len(said) == MOST_FAULTS else str(len(said))
        super().__init__(f"{prefix}{count} faults: {listed}")

    def under(self, key: str | int) -> Iterable[Fault]:
        """The faults, for the object or list that has the value under ``key``."""
        return (Fault((key, *fault.path), fault.what, fault.expected) for fault in self.faults)


def decode(kind: Callable[..., T], value: Any, policy: Policy, source: str = "", path: Path = ()) -> T:
    """``value`` as ``kind``, a dataclass. ``source`` names the document in messages, ``path`` leads to the value.

    Raises DecodeError with the first faults. A class that is not made of what the decoder knows raises TypeError.
    """
    reader = _reader(kind, policy)
    try:
        decoded: T = reader.read(value)
    except DecodeError as error:
        raise DecodeError((Fault((*path, *f.path), f.what, f.expected) for f in error.faults), source) from None
    return decoded


class _Reader(NamedTuple):
    """Reads values whose type is one of ``types`` (any, when empty); messages call them ``one`` or ``many``.

    ``needs`` are the keys that an object must have.
    """

    read: Callable[[Any], Any]
    types: tuple[type, ...]
    one: str
    many: str
    needs: frozenset[str] = frozenset()


@functools.cache
def _reader(kind: Any, policy: Policy) -> _Reader:  # noqa: PLR0911  # one answer for each kind of type
    """The reader of an annotation. It is made once for each: looking at annotations takes longer than reading."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is Annotated:
        return _annotated_reader(arguments[0], arguments[1:], policy)
    if origin in {types.UnionType, typing.Union}:
        return _union_reader(arguments, policy)
    if origin is tuple:
        return _tuple_reader(arguments, policy)
    if origin is not None and issubclass(origin, Mapping):
        return _mapping_reader(arguments[0], arguments[1], policy)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _object_reader(kind, policy)
    if kind is Any:
        return _Reader(lambda value: value, (), "a value", "values")
    if kind is str:
        return _text_reader(policy)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        members = {member.value: member for member in kind}
        one = f"one of {', '.join(members)}"
        return _value_reader(members.get, (str,), one, f"values, each {one}", policy)
    if kind not in _SCALARS:
        raise TypeError(f"{kind!r} cannot be decoded")
    return _value_reader(*_SCALARS[kind], policy)


def _whole(value: int) -> int | None:
    return value if -_LARGEST_NUMBER < value < _LARGEST_NUMBER else None


def _number(value: float) -> float | None:
    return float(value) if type(value) is float or -_LARGEST_NUMBER < value < _LARGEST_NUMBER else None


_SCALARS: dict[Any, tuple[_Look, tuple[type, ...], str, str]] = {
    bool: (lambda value: value, (bool,), "true or false", "true or false"),
    int: (_whole, (int,), "a whole number", "whole numbers"),
    float: (_number, (float, int), "a number", "numbers"),
    date: (lambda value: value, (date,), "a date such as 2027-06-30, unquoted", "dates"),
}


def _value_reader(look: _Look, kinds: tuple[type, ...], one: str, many: str, policy: Policy) -> _Reader:
    """Of values of these types, exactly (True is no number), that ``look`` turns into something else than None."""

    def read(value: Any) -> Any:
        found = look(value) if type(value) in kinds else None
        if found is None:
            raise _wrong(value, one, policy)
        return found

    return _Reader(read, kinds, one, many)


def _text_reader(policy: Policy) -> _Reader:
    longest, clipped = policy.longest, policy.clipped

    def read(value: Any) -> str:
        if type(value) is not str:
            raise _wrong(value, "a string", policy)
        if len(value) <= longest:
            return value
        if clipped:
            return value[:longest]
        raise _refused(f"has {len(value):,} characters", f"at most {longest:,}")

    return _Reader(read, (str,), "a string", "strings")


def _annotated_reader(kind: Any, extras: tuple[Any, ...], policy: Policy) -> _Reader:
    of = next((extra.of for extra in extras if isinstance(extra, Made)), kind)
    reader = _reader(of, policy)
    for extra in extras:
        if isinstance(extra, Check):
            reader = reader._replace(read=_checked(reader.read, extra, policy), one=extra.expected)
        elif isinstance(extra, Made):
            reader = reader._replace(read=_made(reader.read, extra.make))
    return reader


def _checked(read: _Look, check: Check, policy: Policy) -> _Look:
    def checked(value: Any) -> Any:
        found = read(value)
        if not check.passes(found):
            raise _wrong(value, check.expected, policy)
        return found

    return checked


def _made(read: _Look, make: _Look) -> _Look:
    def made(value: Any) -> Any:
        found = read(value)
        try:
            return make(found)
        except DecodeError:
            raise
        except WheelproofError as error:
            raise _refused(f"is wrong: {error.what}", error.expected) from None

    return made


def _union_reader(kinds: tuple[Any, ...], policy: Policy) -> _Reader:
    optional = type(None) in kinds
    readers = [_reader(kind, policy) for kind in kinds if kind is not type(None)]
    by_type = {kind: reader.read for reader in reversed(readers) for kind in reader.types}
    # The class whose required keys are all there is meant; of several the one that requires most.
    objects = [reader for reader in readers if reader.types == (dict,)]
    objects.sort(key=lambda reader: -len(reader.needs))
    one = " or ".join(reader.one for reader in readers)
    alone = readers[0].read if len(readers) == 1 else None

    def read(value: Any) -> Any:
        if value is None and optional:
            return None
        if alone:
            return alone(value)
        chosen = by_type.get(type(value))
        if len(objects) > 1 and type(value) is dict:
            chosen = next((reader.read for reader in objects if reader.needs <= value.keys()), chosen)
        if chosen is None:
            raise _wrong(value, one, policy)
        return chosen(value)

    return _Reader(read, tuple(by_type), one, " or ".join(reader.many for reader in readers))


def _tuple_reader(kinds: tuple[Any, ...], policy: Policy) -> _Reader:
    readers = [_reader(kind, policy) for kind in kinds if kind is not Ellipsis]
    fixed = kinds[-1] is not Ellipsis
    one = f"a list of {len(kinds)} values" if fixed else f"a list of {readers[0].many}"

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or (fixed and len(value) != len(kinds)):
            raise _wrong(value, one, policy)
        _check_count(value, policy)
        each = readers if fixed else itertools.repeat(readers[0])
        return tuple(_read_each(enumerate(value), each))

    return _Reader(read, (list,), one, "lists")


def _mapping_reader(key: Any, item: Any, policy: Policy) -> _Reader:
    keys, items = _reader(key, policy), _reader(item, policy)

    def read(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _wrong(value, policy.object, policy)
        _check_count(value, policy)
        names = value if key is str else _read_each(((name, name) for name in value), itertools.repeat(keys))
        return dict(zip(names, _read_each(value.items(), itertools.repeat(items)), strict=True))

    return _Reader(read, (dict,), policy.object, f"{policy.object.split()[1]}s")


def _read_each(values: Iterable[tuple[str | int, Any]], readers: Iterable[_Reader]) -> list[Any]:
    """The values of a list or an object, read one after another. Raises DecodeError with the faults of all."""
    made: list[Any] = []
    faults: list[Fault] = []
    for (key, value), reader in zip(values, readers):  # noqa: B905  # the readers may be endless
        try:
            made.append(reader.read(value))
        except DecodeError as error:
            faults += error.under(key)
            if len(faults) >= MOST_FAULTS:
                break
    if faults:
        raise DecodeError(faults)
    return made


def _object_reader(kind: type, policy: Policy) -> _Reader:
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = [(field, _key_of(field.name, hints[field.name], policy)) for field in dataclasses.fields(kind)]
    plan = [(field.name, key, _reader(hints[field.name], policy).read) for field, key in fields]
    known = dict.fromkeys(key for _, key in fields)
    needed = {key: _reader(hints[field.name], policy).one for field, key in fields if _is_required(field)}

    def values_of(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise _wrong(value, policy.object, policy)
        values: dict[str, Any] = {}
        faults: list[Fault] = []
        for name, key, read in plan:
            item = value.get(key, _ABSENT)
            if item is _ABSENT or (item is None and policy.null_is_absent):
                if key in needed:
                    faults.append(Fault((key,), "is missing", needed[key]))
                continue
            try:
                values[name] = read(item)
            except DecodeError as error:
                faults += error.under(key)
        if not policy.unknown_keys and not known.keys() >= value.keys():
            faults += _unknown(value, list(known))
        if faults:
            raise DecodeError(faults)
        return values

    read = _made(values_of, lambda values: kind(**values))
    return _Reader(read, (dict,), policy.object, f"{policy.object.split()[1]}s", frozenset(needed))


def _key_of(name: str, hint: Any, policy: Policy) -> str:
    given = [extra.name for extra in typing.get_args(hint)[1:] if isinstance(extra, Key)]
    return given[0] if given else name.replace("_", "-") if policy.toml else name


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _unknown(value: Mapping[str, Any], known: list[str]) -> Iterable[Fault]:
    from difflib import get_close_matches  # only for faults

    for key in itertools.islice((key for key in value if key not in known), MOST_FAULTS):
        nearest = get_close_matches(key[:80], known, n=1)
        yield Fault(
            (key,), "is no key that is known here", nearest[0] if nearest else f"one of {', '.join(sorted(known))}"
        )


def _check_count(value: Sized, policy: Policy) -> None:
    if len(value) > policy.most:
        raise _refused(f"has {len(value):,} entries", f"at most {policy.most:,}")


def _wrong(value: Any, expected: str, policy: Policy) -> DecodeError:
    return _refused(f"is {_shown(value, policy)}", expected)


def _refused(what: str, expected: str) -> DecodeError:
    return DecodeError([Fault((), what, expected)])


def _shown(value: Any, policy: Policy) -> str:
    """A value as the document has it, at most 80 characters."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, str):
        return _text_shown(value)
    if isinstance(value, dict | list) and value:
        return policy.object if isinstance(value, dict) else "a list"
    return "a number of many digits" if isinstance(value, int) and _whole(value) is None else str(value)


def _text_shown(text: str) -> str:
    return repr(abbreviated(text))
