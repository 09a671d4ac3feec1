"""dataclasses as Python 3.11 has them, as far as the carried code uses them; ``slots`` is accepted and does nothing."""

import copy
import inspect
import operator
from types import MappingProxyType

MISSING = type("MISSING", (), {})()
_FIELDS = "__dataclass_fields__"


class FrozenInstanceError(AttributeError):
    """A field of a frozen class was set."""


class Field:
    """One field of a class."""

    def __init__(self, default, default_factory, init, repr, hash, compare, metadata, kw_only):
        self.name = self.type = None
        self.default, self.default_factory, self.init, self.repr = default, default_factory, init, repr
        self.hash, self.compare, self.kw_only = hash, compare, kw_only
        self.metadata = MappingProxyType(metadata or {})


def field(
    *,
    default=MISSING,
    default_factory=MISSING,
    init=True,
    repr=True,
    hash=None,
    compare=True,
    metadata=None,
    kw_only=False,
):
    """dataclasses.field."""
    return Field(default, default_factory, init, repr, hash, compare, metadata, kw_only)


def dataclass(cls=None, *, init=True, repr=True, eq=True, order=False, frozen=False, kw_only=False, slots=False, **_):
    """dataclasses.dataclass."""
    if cls is None:
        return lambda one: dataclass(
            one, init=init, repr=repr, eq=eq, order=order, frozen=frozen, kw_only=kw_only, slots=slots
        )
    known = _fields_of(cls, kw_only)
    setattr(cls, _FIELDS, {one.name: one for one in known})
    if init:
        cls.__init__ = _init(cls, known)
    if repr and "__repr__" not in cls.__dict__:
        shown = [one.name for one in known if one.repr]
        cls.__repr__ = lambda self: "{}({})".format(
            type(self).__qualname__, ", ".join("{}={!r}".format(name, getattr(self, name)) for name in shown)
        )
    compared = tuple(one.name for one in known if one.compare)
    if eq and "__eq__" not in cls.__dict__:
        cls.__eq__ = _comparison(compared, operator.eq)
    for name in ("lt", "le", "gt", "ge") if order else ():
        setattr(cls, "__{}__".format(name), _comparison(compared, getattr(operator, name)))
    if eq and frozen and cls.__dict__.get("__hash__") is None:
        hashed = tuple(one.name for one in known if (one.compare if one.hash is None else one.hash))
        cls.__hash__ = lambda self: hash(tuple(getattr(self, name) for name in hashed))
    if frozen:
        cls.__setattr__ = cls.__delattr__ = _refuse
    return cls


def own_annotations(cls):
    """The annotations of a class without those of its bases; Python 3.14 makes them when they are asked for."""
    if hasattr(inspect, "get_annotations"):
        return inspect.get_annotations(cls)
    return cls.__dict__.get("__annotations__", {})  # noqa: RUF063  # for Python before 3.10


def _fields_of(cls, kw_only):
    found = {}
    for base in reversed(cls.__mro__[1:]):
        found.update(getattr(base, _FIELDS, {}))
    for name, kind in own_annotations(cls).items():
        if str(kind).startswith(("ClassVar", "typing.ClassVar")):
            continue
        given = cls.__dict__.get(name, MISSING)
        one = given if isinstance(given, Field) else field(default=given)
        one.name, one.type = name, kind
        one.kw_only = one.kw_only or kw_only
        found[name] = one
        if one.default is not MISSING:
            setattr(cls, name, one.default)
        elif name in cls.__dict__:
            delattr(cls, name)
    return list(found.values())


def _init(cls, known):
    places = [one.name for one in known if one.init and not one.kw_only]
    accepted = {one.name for one in known if one.init}

    def __init__(self, *values, **named):
        given = dict(zip(places, values), **named)
        if len(given) < len(values) + len(named) or not accepted.issuperset(given):
            raise TypeError("{}() cannot have these arguments".format(cls.__name__))
        for one in known:
            if one.name in given or one.default is not MISSING or one.default_factory is not MISSING:
                object.__setattr__(self, one.name, given[one.name] if one.name in given else _default(one))
            elif one.init:
                raise TypeError("{}() lacks the argument {}".format(cls.__name__, one.name))
        if hasattr(self, "__post_init__"):
            self.__post_init__()

    return __init__


def _default(one):
    return one.default if one.default is not MISSING else one.default_factory()


def _comparison(names, compare):
    def compared(self, other):
        if type(other) is not type(self):
            return NotImplemented
        one, two = (tuple(getattr(each, name) for name in names) for each in (self, other))
        return compare(one, two)

    return compared


def _refuse(self, name, *_):
    raise FrozenInstanceError("cannot set {}".format(name))


def is_dataclass(value):
    """dataclasses.is_dataclass."""
    return hasattr(value if isinstance(value, type) else type(value), _FIELDS)


def fields(value):
    """dataclasses.fields."""
    try:
        return tuple(getattr(value, _FIELDS).values())
    except AttributeError:
        raise TypeError("this is no dataclass, and no instance of one") from None


def replace(*values, **changes):
    """dataclasses.replace; its first argument may have the name of no field."""
    (value,) = values
    known = {one.name: getattr(value, one.name) for one in fields(value) if one.init}
    return type(value)(**dict(known, **changes))


def asdict(value):
    """dataclasses.asdict."""
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: asdict(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(asdict, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(asdict, value))
    if isinstance(value, dict):
        return type(value)((asdict(name), asdict(one)) for name, one in value.items())
    return copy.deepcopy(value)
