"""JSON and TOML documents, and their values as frozen dataclasses: what may be there is what the annotations say.

A field is a string, a whole number, a number, true or false, a date, an enumeration, a Literal, Any, a tuple, a
frozenset, a Mapping, a dataclass, or a union of these. ``Annotated`` says more: its ``Key``, a ``Check``, how it is
``Made``. A NamedTuple is a list of its values, ``bytes`` are a string of as many characters, and a Mapping whose keys
are no strings is a list of pairs: so :func:`wheel_checks.decode.encode.encode` writes them.

The annotations bound the depth, a :class:`Policy` bounds sizes and counts. Every fault has its path::

    cells[3].python is 3; expected a string
"""

import dataclasses
import functools
import itertools
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sized
from datetime import date
from enum import StrEnum
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from wheel_checks.decode.faults import LARGEST_NUMBER, MOST_FAULTS, DecodeError, Fault, Path, place_of, refused, wrong
from wheel_checks.errors import WheelproofError

__all__ = [
    "MOST_FAULTS",
    "Check",
    "DecodeError",
    "Fault",
    "Filled",
    "Key",
    "Made",
    "Path",
    "Policy",
    "decode",
    "key_of",
    "place_of",
]

_ABSENT = object()

T = TypeVar("T")
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

    ``needs`` are the keys that an object must have, ``knows`` all that it may have.
    """

    read: Callable[[Any], Any]
    types: tuple[type, ...]
    one: str
    many: str
    needs: frozenset[str] = frozenset()
    knows: frozenset[str] = frozenset()


@functools.cache
def _reader(kind: Any, policy: Policy) -> _Reader:  # noqa: PLR0911  # one answer for each kind of type
    """The reader of an annotation. It is made once for each: looking at annotations takes longer than reading."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is not None:
        return _generic_reader(origin, arguments, policy)
    if kind is Any:
        return _Reader(lambda value: value, (), "a value", "values")
    if kind is str:
        return _text_reader(policy)
    if kind in _SCALARS:
        return _value_reader(*_SCALARS[kind], policy)
    if isinstance(kind, type):
        if dataclasses.is_dataclass(kind):
            return _object_reader(kind, policy)
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            kinds = tuple(typing.get_type_hints(kind, include_extras=True).values())
            return _converted(_tuple_reader(kinds, policy), lambda values: kind(*values))
        if issubclass(kind, StrEnum):
            return _choice_reader({member.value: member for member in kind}, policy)
    raise TypeError(f"{kind!r} cannot be decoded")


def _generic_reader(origin: Any, arguments: tuple[Any, ...], policy: Policy) -> _Reader:
    if origin is Annotated:
        return _annotated_reader(arguments[0], arguments[1:], policy)
    if origin in {types.UnionType, typing.Union}:
        return _union_reader(arguments, policy)
    if origin is tuple:
        return _tuple_reader(arguments, policy)
    if origin is frozenset:
        return _converted(_tuple_reader((*arguments, ...), policy), frozenset)
    if origin is Literal:
        return _choice_reader({each: each for each in arguments}, policy)
    if issubclass(origin, Mapping):
        return _mapping_reader(arguments[0], arguments[1], policy)
    raise TypeError(f"{origin!r} cannot be decoded")


def _choice_reader(choices: Mapping[Any, Any], policy: Policy) -> _Reader:
    """Of these values, each of which stands for another."""
    one = f"one of {', '.join(map(str, choices))}"
    return _value_reader(choices.get, tuple({type(value) for value in choices}), one, f"values, each {one}", policy)


def _whole(value: int) -> int | None:
    return value if -LARGEST_NUMBER < value < LARGEST_NUMBER else None


def _number(value: float) -> float | None:
    return float(value) if type(value) is float or -LARGEST_NUMBER < value < LARGEST_NUMBER else None


def _bytes(value: str) -> bytes | None:
    try:
        return value.encode("latin-1")
    except UnicodeEncodeError:
        return None


_SCALARS: dict[Any, tuple[_Look, tuple[type, ...], str, str]] = {
    bool: (lambda value: value, (bool,), "true or false", "true or false"),
    int: (_whole, (int,), "a whole number", "whole numbers"),
    float: (_number, (float, int), "a number", "numbers"),
    date: (lambda value: value, (date,), "a date such as 2027-06-30, unquoted", "dates"),
    bytes: (_bytes, (str,), "a string of characters up to U+00FF", "strings of characters up to U+00FF"),
}


def _value_reader(look: _Look, kinds: tuple[type, ...], one: str, many: str, policy: Policy) -> _Reader:
    """Of values of these types, exactly (True is not a number), that ``look`` turns into something else than None."""

    def read(value: Any) -> Any:
        found = look(value) if type(value) in kinds else None
        if found is None:
            raise wrong(value, one, policy.object)
        return found

    return _Reader(read, kinds, one, many)


def _text_reader(policy: Policy) -> _Reader:
    longest, clipped = policy.longest, policy.clipped

    def read(value: Any) -> str:
        if type(value) is not str:
            raise wrong(value, "a string", policy.object)
        if len(value) <= longest:
            return value
        if clipped:
            return value[:longest]
        raise refused(f"has {len(value):,} characters", f"at most {longest:,}")

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
            raise wrong(value, check.expected, policy.object)
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
            raise refused(f"is wrong: {error.what}", error.expected) from None

    return made


def _converted(reader: _Reader, make: _Look) -> _Reader:
    return reader._replace(read=_made(reader.read, make))


def _union_reader(kinds: tuple[Any, ...], policy: Policy) -> _Reader:
    optional = type(None) in kinds
    readers = [_reader(kind, policy) for kind in kinds if kind is not type(None)]
    by_type = {kind: reader.read for reader in reversed(readers) for kind in reader.types}
    # The class whose required keys are all there is meant; of several one that knows all keys, then the one that
    # requires most.
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
            fitting = [reader for reader in objects if reader.needs <= value.keys()]
            best = next((reader for reader in fitting if value.keys() <= reader.knows), next(iter(fitting), None))
            chosen = best.read if best else chosen
        if chosen is None:
            raise wrong(value, one, policy.object)
        return chosen(value)

    return _Reader(read, tuple(by_type), one, " or ".join(reader.many for reader in readers))


def _tuple_reader(kinds: tuple[Any, ...], policy: Policy) -> _Reader:
    readers = [_reader(kind, policy) for kind in kinds if kind is not Ellipsis]
    fixed = kinds[-1] is not Ellipsis
    one = f"a list of {len(kinds)} values" if fixed else f"a list of {readers[0].many}"

    def read(value: Any) -> tuple[Any, ...]:
        if type(value) is not list or (fixed and len(value) != len(kinds)):
            raise wrong(value, one, policy.object)
        _check_count(value, policy)
        each = readers if fixed else itertools.repeat(readers[0])
        return tuple(_read_each(enumerate(value), each))

    return _Reader(read, (list,), one, "lists")


def _mapping_reader(key: Any, item: Any, policy: Policy) -> _Reader:
    keys, items = _reader(key, policy), _reader(item, policy)
    if keys.types != (str,):
        pairs = _tuple_reader((tuple[key, item], ...), policy)
        return pairs._replace(read=lambda value: dict(pairs.read([] if value == {} else value)))

    def read(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise wrong(value, policy.object, policy.object)
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
    names = {f.name: f.name.replace("_", "-") if policy.toml else f.name for f in dataclasses.fields(kind)}
    fields = [(field, key_of(names[field.name], hints[field.name])) for field in dataclasses.fields(kind)]
    plan = [(field.name, key, _reader(hints[field.name], policy).read) for field, key in fields]
    known = dict.fromkeys(key for _, key in fields)
    needed = {key: _reader(hints[field.name], policy).one for field, key in fields if _is_required(field)}

    def values_of(value: Any) -> dict[str, Any]:
        if type(value) is not dict:
            raise wrong(value, policy.object, policy.object)
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
    return _Reader(read, (dict,), policy.object, f"{policy.object.split()[1]}s", frozenset(needed), frozenset(known))


def key_of(name: str, hint: Any) -> str:
    """The key of a field: what a ``Key`` in its annotation says, else its name."""
    return next((extra.name for extra in typing.get_args(hint)[1:] if isinstance(extra, Key)), name)


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _unknown(value: Mapping[str, Any], known: list[str]) -> Iterable[Fault]:
    from difflib import get_close_matches  # only for faults

    for key in itertools.islice((key for key in value if key not in known), MOST_FAULTS):
        nearest = get_close_matches(key[:80], known, n=1)
        yield Fault((key,), "is not a known key", nearest[0] if nearest else f"one of {', '.join(sorted(known))}")


def _check_count(value: Sized, policy: Policy) -> None:
    if len(value) > policy.most:
        raise refused(f"has {len(value):,} entries", f"at most {policy.most:,}")
