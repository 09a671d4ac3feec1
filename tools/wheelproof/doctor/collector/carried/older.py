"""What Python 3.6 lacks of the standard library and of the language, as far as the carried code uses it."""

import ast
import functools
import hashlib
import operator
import os
import re
import shlex
import signal
import sys
import threading
from datetime import timezone
from enum import Enum
from itertools import tee
from pathlib import Path

from _older_dataclasses import own_annotations  # type: ignore[import-not-found]  # as the collector names them
from _older_names import STANDARD_MODULES  # type: ignore[import-not-found]  # made with it

UTC = timezone.utc
stdlib_module_names = frozenset(getattr(sys, "stdlib_module_names", STANDARD_MODULES))
_SAME = object()


class Names:
    """The names of a function that named expressions set."""

    def __call__(self, name, value):
        setattr(self, name, value)
        return value


class StrEnum(str, Enum):
    """enum.StrEnum of Python 3.11."""

    def __str__(self):
        return self.value

    def __format__(self, spec):
        return format(self.value, spec)


class _Form(type):
    """A class that takes any type arguments and forgets them."""

    def __getitem__(cls, _):
        return cls


class _Typing(metaclass=_Form):
    pass


class _Arguments(type):
    """What Annotated[...] gives."""

    def __getitem__(cls, arguments):
        made = cls()
        made.__args__ = arguments if isinstance(arguments, tuple) else (arguments,)
        return made


class Annotated(metaclass=_Arguments):
    """typing.Annotated: ``__args__`` are what it was given."""


Final = Literal = Protocol = Self = TypeAlias = TypeGuard = _Typing


class TypedDict(dict):  # type: ignore[type-arg]  # it takes none in Python 3.6
    """typing.TypedDict; its classes are only written in annotations."""

    def __init_subclass__(cls, **_):
        pass


def overload(function):
    """typing.overload; what it decorates is not called."""
    return function


def get_type_hints(kind, include_extras=False):
    """The annotations of a class, as texts but for those that are ``Annotated``."""
    hints = {}
    for base in reversed(kind.__mro__):
        for name, text in own_annotations(base).items():
            is_plain = not str(text).startswith("Annotated[")
            hints[name] = text if is_plain else eval(text, dict(sys.modules[base.__module__].__dict__))
    return hints


def get_args(hint):
    """The arguments of an ``Annotated``; none of anything else."""
    return getattr(hint, "__args__", ())


def get_origin(_):
    """Nothing: the collector decodes no document by its annotations."""


def either(one, other):
    """``one | other`` of dictionaries, and of types, too."""
    if isinstance(one, dict) and isinstance(other, dict):
        return {**one, **other}
    try:
        return operator.or_(one, other)
    except TypeError:
        return (*_types(one), *_types(other))


def merged(one, other):
    """``one |= other`` of dictionaries, too."""
    if isinstance(one, dict):
        one.update(other)
        return one
    return operator.ior(one, other)


def _types(one):
    return one if isinstance(one, tuple) else (type(None),) if one is None else (one,)


def removeprefix(text, prefix):
    """str.removeprefix and bytes.removeprefix of Python 3.9."""
    return text[len(prefix) :] if text.startswith(prefix) else text


def removesuffix(text, suffix):
    """str.removesuffix and bytes.removesuffix of Python 3.9."""
    return text[: -len(suffix)] if suffix and text.endswith(suffix) else text


def isascii(text):
    """str.isascii and bytes.isascii of Python 3.7."""
    return all(one < 128 for one in (text if isinstance(text, bytes) else map(ord, text)))


def bit_count(number):
    """int.bit_count of Python 3.10."""
    return bin(number).count("1")


def hex(data, separator):
    """bytes.hex of Python 3.8."""
    return separator.join("{:02x}".format(one) for one in data)


def readlink(path):
    """Path.readlink of Python 3.9."""
    return Path(os.readlink(str(path)))


def is_relative_to(path, other):
    """Path.is_relative_to of Python 3.9."""
    return Path(other) == path or Path(other) in path.parents


def unlink(path, missing_ok=False):
    """Path.unlink of Python 3.8."""
    try:
        os.unlink(str(path))
    except FileNotFoundError:
        if not missing_ok:
            raise


def zip(*iterables, strict=False):  # the name that it stands for
    """zip of Python 3.10."""
    iterators = [iter(one) for one in iterables]
    while iterators:
        values = [next(one, _SAME) for one in iterators]
        ended = [value is _SAME for value in values]
        if any(ended):
            if strict and not all(ended):
                raise ValueError("the arguments of zip() have different lengths")
            return
        yield tuple(values)


def pairwise(values):
    """itertools.pairwise of Python 3.10."""
    ones, others = tee(values)
    next(others, None)
    return zip(ones, others)


def prod(values, start=1):
    """math.prod of Python 3.8."""
    return functools.reduce(operator.mul, values, start)


def join(words):
    """shlex.join of Python 3.8."""
    return " ".join(map(shlex.quote, words))


def lru_cache(maxsize=128, typed=False):
    """functools.lru_cache of Python 3.8, which also decorates a function directly."""
    if callable(maxsize):
        return functools.lru_cache(128, typed)(maxsize)
    return functools.lru_cache(maxsize, typed)


def cache(function):
    """functools.cache of Python 3.9."""
    return functools.lru_cache(None)(function)


class cached_property:
    """functools.cached_property of Python 3.8; with the lock of that release."""

    def __init__(self, function):
        self._function, self._lock = function, threading.RLock()
        self.__doc__ = function.__doc__

    def __set_name__(self, owner, name):
        self._name = name

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with self._lock:
            if self._name not in instance.__dict__:
                instance.__dict__[self._name] = self._function(instance)
        return instance.__dict__[self._name]


def bisect_left(values, value, lo=0, hi=None, *, key=lambda one: one):
    """bisect.bisect_left of Python 3.10."""
    hi = len(values) if hi is None else hi
    while lo < hi:
        middle = (lo + hi) // 2
        lo, hi = (middle + 1, hi) if key(values[middle]) < value else (lo, middle)
    return lo


def bisect_right(values, value, lo=0, hi=None, *, key=lambda one: one):
    """bisect.bisect_right of Python 3.10."""
    hi = len(values) if hi is None else hi
    while lo < hi:
        middle = (lo + hi) // 2
        lo, hi = (lo, middle) if value < key(values[middle]) else (middle + 1, hi)
    return lo


def insort(values, value, *, key=lambda one: one):
    """bisect.insort of Python 3.10."""
    values.insert(bisect_right(values, key(value), key=key), value)


def compile(pattern, flags=0):
    """re.compile of Python 3.7."""
    if sys.version_info < (3, 7):
        is_text = isinstance(pattern, str)
        text = pattern if is_text else pattern.decode("latin-1")
        text = text.replace("(?a:", "(?:")  # a part that takes ASCII alone
        pattern = text if is_text else text.encode("latin-1")
    return re.compile(pattern, flags)


def file_digest(stream, algorithm):
    """hashlib.file_digest of Python 3.11."""
    digest = hashlib.new(algorithm)
    for piece in iter(lambda: stream.read(1 << 20), b""):
        digest.update(piece)
    return digest


def raise_signal(number):
    """signal.raise_signal of Python 3.8."""
    getattr(signal, "raise_signal", lambda one: os.kill(os.getpid(), one))(number)


def register_at_fork(**functions):
    """os.register_at_fork of Python 3.7; the collector does not fork without a program to start."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(**functions)


class resources:
    """importlib.resources of Python 3.9, for packages that are folders."""

    @staticmethod
    def files(package):
        """The folder of a package."""
        return Path(sys.modules[package].__file__).parent


NamedExpr = getattr(ast, "NamedExpr", type("NamedExpr", (), {}))
Match = getattr(ast, "Match", type("Match", (), {}))
TryStar = getattr(ast, "TryStar", type("TryStar", (), {}))
unparse = getattr(ast, "unparse", ast.dump)


def parse(source, *arguments, **named):
    """ast.parse with the tree of Python 3.9."""
    tree = ast.parse(source, *arguments, **named)
    return tree if sys.version_info >= (3, 9) else ast.fix_missing_locations(_Tree().visit(tree))


class _Tree(ast.NodeTransformer):
    """One kind of constant, positional parameters in two lists, and indices that are expressions."""

    def _constant(self, node):
        value = next(getattr(node, name) for name in ("n", "s", "value") if hasattr(node, name))
        return ast.copy_location(ast.Constant(value=value, kind=None), node)

    visit_Num = visit_Str = visit_Bytes = visit_NameConstant = _constant

    def visit_Ellipsis(self, node):
        return ast.copy_location(ast.Constant(value=..., kind=None), node)

    def visit_arguments(self, node):
        self.generic_visit(node)
        node.posonlyargs = getattr(node, "posonlyargs", [])
        return node

    def visit_Index(self, node):
        return self.visit(node.value)

    def visit_ExtSlice(self, node):
        return ast.Tuple([self.visit(one) for one in node.dims], ast.Load())
