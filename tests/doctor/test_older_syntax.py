"""Code of today, rewritten for Python 3.6, does the same: each example sets ``result``."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.pythons import other_pythons
from wheelproof.doctor.collector import program
from wheelproof.doctor.collector.older_syntax import OLDEST, NotRewrittenError, in_older_syntax

OLD = next((path for version, path in other_pythons().items() if version >= OLDEST), sys.executable)
CARRIED = Path(program.__file__).with_name("carried")

EXAMPLES = {
    "a named expression": """
import re
def first(text):
    if match := re.match(r"(\\d+)", text):
        return match[1]
    return "none"
result = first("12 a"), first("a")
""",
    "a named expression in a comprehension": """
def squares(values):
    found = [square for value in values if (square := value * value) > 4]
    return found, square
result = squares([1, 2, 3])
""",
    "comprehensions with the same name as a named expression": """
def f(values):
    total = sum(x for x in values)
    if (x := total) > 3:
        return [x for x in [x, 1]], x, (lambda x: x + 1)(1)
result = f([1, 3])
""",
    "a named expression of an inner function, and of a parameter": """
def outer(value):
    if value := value + 1:
        def inner():
            return value + (other := 2) + other
        return inner()
result = outer(1)
""",
    "a loop with a named expression": """
def pieces(text):
    found = []
    while (piece := text[:2]):
        found.append(piece)
        text = text[2:]
    return found
result = pieces("abcde")
""",
    "unions of dictionaries, sets, numbers and types": """
a = {"x": 1}
a |= {"y": 2}
b = a
b |= {"z": 3}
flags = 1
flags |= 4
result = a, {"x": 0} | a, sorted({1} | {2}), flags | 2, isinstance(None, int | None), isinstance("", int | str)
""",
    "format strings": """
width, value = 8, 3.14159
result = f"{value:>{width}.2f}|{value!r}|{{}}|{'a' + 'b'}|{width:03d}"
""",
    "annotations and generics": """
from __future__ import annotations
from collections.abc import Mapping
from typing import NamedTuple
class Pair(NamedTuple):
    one: int
    two: str | None = None
def f(x: list[int], /, *, y: Mapping[str, int] | None = None) -> dict[str, int]:
    z: int = 1
    w: int
    return dict[str, int](a=z)
result = f([1]), Pair(1), list[int]([1])
""",
    "dataclasses": """
from dataclasses import asdict, dataclass, field, replace
@dataclass(frozen=True, slots=True)
class Base:
    value: int
    names: tuple[str, ...] = ()
@dataclass(frozen=True, slots=True, kw_only=True)
class More(Base):
    extra: list[int] = field(default_factory=list, compare=False)
    def __post_init__(self):
        object.__setattr__(self, "names", ("a", *self.names))
one = More(1, extra=[2])
try:
    one.value = 2
except AttributeError as error:
    frozen = type(error).__name__
result = repr(one), one == replace(one, names=()), hash(one) == hash(More(1)), asdict(one), frozen, {one: 1}[More(1)]
""",
    "later names of the standard library": """
import enum, functools, itertools, shlex, sys
from bisect import bisect_right
class Kind(enum.StrEnum):
    ONE = "one"
class Lazy:
    @functools.cached_property
    def value(self):
        return [1]
@functools.cache
def once():
    return [1]
one = Lazy()
result = (f"{Kind.ONE}", Kind.ONE == "one", one.value is one.value, once() is once(), list(itertools.pairwise("abc")),
    shlex.join(["a b"]), "tomllib" in sys.stdlib_module_names, bisect_right([(1,), (3,)], 2, key=lambda one: one[0]),
    "abc".removeprefix("a"), "abc".removesuffix(""), b"\\xff".hex(" "), (5).bit_count())
""",
    "possessive quantifiers": """
import re
result = re.compile(r'(?>a++|"[^"]*+")\\++').findall('aa++ "b"+'), re.compile(b"x*+y").findall(b"xxy")
""",
    "zip that is strict": """
try:
    list(zip([1], [1, 2], strict=True))
    result = "no error"
except ValueError:
    result = "an error"
result = result, list(zip([1], [1, 2], strict=False))
""",
    "constants and parameters of parsed code": """
import ast
tree = ast.parse('def f(a, b="x"): return [1, None, ...][0]')
function = tree.body[0]
result = ([n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)].count(1),
    [a.arg for a in (*function.args.posonlyargs, *function.args.args)],
    type(function.body[0].value.slice).__name__)
""",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_result_is_the_same(tmp_path: Path, name: str) -> None:
    rewritten = in_older_syntax(EXAMPLES[name], name)
    ast.parse(rewritten, feature_version=OLDEST)
    for module in ("older", "older_dataclasses"):
        (tmp_path / f"_{module}.py").write_text((CARRIED / f"{module}.py").read_text())
    (tmp_path / "_older_names.py").write_text(f"STANDARD_MODULES = {sorted(sys.stdlib_module_names)!r}\n")
    (tmp_path / "example.py").write_text(f"{rewritten}\nprint(repr(result))\n")
    (tmp_path / "plain.py").write_text(f"{EXAMPLES[name]}\nprint(repr(result))\n")

    there = subprocess.run([OLD, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    here = subprocess.run([sys.executable, "plain.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (there.stderr, there.stdout) == ("", here.stdout)


@pytest.mark.parametrize(
    "source",
    [
        "match x:\n    case 1:\n        pass",
        "try:\n    pass\nexcept* OSError:\n    pass",
        "if (x := 1):\n    pass",
        "f = lambda: (x := 1)",
        "def f():\n    global x\n    (x := 1)",
    ],
)
def test_what_has_no_form_is_refused(source: str) -> None:
    with pytest.raises(NotRewrittenError):
        in_older_syntax(source, "example")


def test_a_program_that_stands_alone_needs_no_backport() -> None:
    assert in_older_syntax("flags = 1 | 2", "example", alone=True) == "flags = 1 | 2\n"
    with pytest.raises(NotRewrittenError, match=r"example needs what Python 3\.6 lacks"):
        in_older_syntax("name = 'a'.removeprefix('a')", "example", alone=True)


def test_annotations_of_a_kernel_stay() -> None:
    source = "import triton\n\n@triton.jit\ndef kernel(x, block: tl.constexpr):\n    pass\n"
    assert "block: tl.constexpr" in in_older_syntax(source, "example", alone=True)
