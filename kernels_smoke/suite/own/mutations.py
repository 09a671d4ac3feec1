"""Faults that are put into the source of a Triton function automatically: what a careless author would do.

Each is one change of the function's syntax tree. Imports neither torch nor triton.
"""

import ast
import copy
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from kernels_smoke.suite.model import EVERYWHERE, Where

MOST = 48  # of one kernel; what is beyond is omitted evenly over its source
GPU_ALONE: tuple[Where, ...] = ("cuda",)
NO_THREADS = "Triton's interpreter runs one program after another, and has no threads to order"
TOO_LARGE = "it takes offsets beyond 2^31, gigabytes for a slow interpreter"
LOADS = {"load": (1, ("mask", "other", "boundary_check")), "store": (2, ("mask", "boundary_check"))}
NOWHERE = "no_case_reaches_this"
BARRIERS = {"debug_barrier", "barrier"}
WIDE = {"int64", "uint64"}
Item = TypeVar("Item")
SMALLER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


@dataclass(frozen=True)
class Mutation:
    """A changed ``source``; ``name`` says what was changed, and in which line of the function.

    ``probe`` is the source with a name that does not exist before the statement that was changed: where that is no
    matter, nothing reaches it. Triton compiles neither branch of a constant condition that does not hold.
    """

    name: str
    source: str
    probe: str
    where: tuple[Where, ...] = EVERYWHERE
    why: str = ""


def without_decorators(source: str) -> str:
    """The source of a function from its ``def`` on, not indented. Raises ValueError if there isn't one."""
    source = textwrap.dedent(source)
    found = re.search(r"^def\s+\w+\s*\(", source, re.MULTILINE)
    if found is None:
        raise ValueError("the source has no def")
    return source[found.start() :]


def mutations(source: str) -> Iterator[Mutation]:
    """Every automatic fault of the function with this ``source`` (from its ``def`` on), each name once.

    Raises ValueError or SyntaxError for what is not a function.
    """
    tree = ast.parse(source)
    if not tree.body or not isinstance(tree.body[0], ast.FunctionDef):
        raise ValueError("the source is not a function")
    original, seen = ast.unparse(tree), dict[str, int]()
    nodes = sorted(enumerate(ast.walk(tree)), key=lambda pair: getattr(pair[1], "lineno", 1))
    for number, node in nodes:
        for what, change, where, why in _changes(node, _strides(tree.body[0])):
            changed = copy.deepcopy(tree)
            change(next(each for place, each in enumerate(ast.walk(changed)) if place == number))
            text = ast.unparse(ast.fix_missing_locations(changed))
            if text == original:
                continue
            name = f"{what}, line {getattr(node, 'lineno', 1)}"
            probe = _probed(tree, number)
            seen[name] = seen.get(name, 0) + 1
            yield Mutation(name if seen[name] == 1 else f"{name} ({seen[name]})", text, probe, where, why)


def _probed(tree: ast.Module, number: int) -> str:
    """The source with a name that does not exist before the statement of the node with this number."""
    copied = copy.deepcopy(tree)
    wanted = next(node for place, node in enumerate(ast.walk(copied)) if place == number)
    for node in reversed(list(ast.walk(copied))):  # from within: the innermost statement that holds it
        bodies = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
        for body in (each for each in bodies if isinstance(each, list)):
            for place, statement in enumerate(body):
                if any(each is wanted for each in ast.walk(statement)):
                    body.insert(place, ast.Expr(ast.Name(NOWHERE, ast.Load())))
                    return ast.unparse(ast.fix_missing_locations(copied))
    return ast.unparse(copied)


def spread(found: list[Item], most: int = MOST) -> list[Item]:
    """At most ``most`` of them, taken evenly."""
    return found if len(found) <= most else [found[index * len(found) // most] for index in range(most)]


Change = tuple[str, Callable[[ast.AST], None], tuple[Where, ...], str]


def _changes(node: ast.AST, strides: list[str]) -> Iterator[Change]:
    """What can be made wrong at one node: a name, and what makes it so of the same node of a copy."""
    if isinstance(node, ast.Call):
        yield from _of_call(node)
    if isinstance(node, ast.Compare) and _is_bound(node):
        yield f"{ast.unparse(node)} lets one more in", _one_more_in, EVERYWHERE, ""
        yield f"{ast.unparse(node)} leaves one out", _one_left_out, EVERYWHERE, ""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id in strides:
        other = strides[(strides.index(node.id) + 1) % len(strides)]
        if other == node.id:
            yield f"{node.id} one too large", _one_more, EVERYWHERE, ""
        else:
            yield f"{other} for {node.id}", lambda copied: setattr(copied, "id", other), EVERYWHERE, ""
    if isinstance(node, ast.stmt) and _is_barrier(node):
        yield f"no {ast.unparse(node)}", _nothing, GPU_ALONE, NO_THREADS


def _of_call(node: ast.Call) -> Iterator[Change]:
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called in LOADS:
        place, names = LOADS[called]
        if len(node.args) > place or any(keyword.arg in names for keyword in node.keywords):
            yield f"no mask of {called}({ast.unparse(node.args[0]) if node.args else ''})", _unmasked, EVERYWHERE, ""
    if called in {"to", "cast"} and any(_word(argument) in WIDE for argument in node.args):
        yield f"{ast.unparse(node)} in 32 bits", _narrow, GPU_ALONE, TOO_LARGE
    if called == "cdiv" and len(node.args) == 2:
        yield f"{ast.unparse(node)} rounded down", _rounded_down, EVERYWHERE, ""
    if called in {"range", "static_range"} and node.args:
        yield f"{ast.unparse(node)} one round less", _one_round_less, EVERYWHERE, ""


def _strides(function: ast.FunctionDef) -> list[str]:
    """The arguments that are strides, by their names."""
    arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return [argument.arg for argument in arguments if "stride" in argument.arg.lower()]


def _is_barrier(node: ast.stmt) -> bool:
    called = node.value.func if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) else None
    return _word(called) in BARRIERS


def _word(node: ast.AST | None) -> str:
    """The last word of ``tl.int64`` or ``int64``."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _unmasked(node: ast.AST) -> None:
    assert isinstance(node, ast.Call)  # noqa: S101  # it was one before it was copied
    place, names = LOADS[_word(node.func)]
    del node.args[place:]
    node.keywords = [keyword for keyword in node.keywords if keyword.arg not in names]


def _narrow(node: ast.AST) -> None:
    assert isinstance(node, ast.Call)  # noqa: S101  # likewise
    wide = next(argument for argument in node.args if _word(argument) in WIDE)
    if isinstance(wide, ast.Attribute):
        wide.attr = wide.attr.replace("64", "32")
    elif isinstance(wide, ast.Name):
        wide.id = wide.id.replace("64", "32")


def _is_bound(node: ast.Compare) -> bool:
    """Whether it compares places: one comparison, and not with 0 or a fraction, as of values."""
    sides = (node.left, *node.comparators)
    values = any(isinstance(side, ast.Constant) and (not side.value or isinstance(side.value, float)) for side in sides)
    return len(node.ops) == 1 and isinstance(node.ops[0], SMALLER) and not values


def _one_more_in(node: ast.AST) -> None:
    assert isinstance(node, ast.Compare)  # noqa: S101  # likewise
    node.left = ast.BinOp(node.left, _towards(node, more=True), ast.Constant(1))


def _one_left_out(node: ast.AST) -> None:
    assert isinstance(node, ast.Compare)  # noqa: S101  # likewise
    node.left = ast.BinOp(node.left, _towards(node, more=False), ast.Constant(1))


def _towards(node: ast.Compare, *, more: bool) -> ast.operator:
    """How the left side is moved by one so that the comparison holds once more, or once less."""
    upper = isinstance(node.ops[0], ast.Lt | ast.LtE)
    return ast.Sub() if upper == more else ast.Add()


def _rounded_down(node: ast.AST) -> None:
    """``cdiv(a, b)`` of ``a - b + 1``, which is a // b."""
    assert isinstance(node, ast.Call)  # noqa: S101  # likewise
    first, second = node.args
    node.args[0] = ast.BinOp(ast.BinOp(first, ast.Sub(), second), ast.Add(), ast.Constant(1))


def _one_round_less(node: ast.AST) -> None:
    assert isinstance(node, ast.Call)  # noqa: S101  # likewise
    stop = 0 if len(node.args) == 1 else 1
    step = node.args[2] if len(node.args) > 2 else ast.Constant(1)
    node.args[stop] = ast.BinOp(node.args[stop], ast.Sub(), step)


def _one_more(node: ast.AST) -> None:
    assert isinstance(node, ast.Name)  # noqa: S101  # likewise
    node.id = f"({node.id} + 1)"


def _nothing(node: ast.AST) -> None:
    assert isinstance(node, ast.Expr)  # noqa: S101  # likewise
    node.value = ast.Constant(None)
