"""Python source code of today in the syntax of Python 3.6, with the same meaning.

What Python 3.6 has no syntax for becomes a call of :mod:`wheelproof.doctor.collector.carried.older`, which the
rewritten code imports as ``_older``. Code that cannot be rewritten raises :class:`NotRewrittenError`: a test rewrites
everything that is carried.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import TypeGuard

from wheelproof.doctor.collector.named_expressions import NotRewrittenError, without_named_expressions

__all__ = ["OLDEST", "NotRewrittenError", "in_older_syntax", "is_for_type_checkers"]

OLDEST = (3, 6)
BACKPORTS = "_older"

# Names of the standard library that Python 3.6 lacks, or has with less.
_LATER = {
    "bisect": {"bisect_left", "bisect_right", "insort"},
    "ast": {"parse", "unparse", "NamedExpr", "Match", "TryStar"},
    "datetime": {"UTC"},
    "enum": {"StrEnum"},
    "functools": {"cache", "cached_property", "lru_cache"},
    "hashlib": {"file_digest"},
    "importlib": {"resources"},
    "itertools": {"pairwise"},
    "math": {"prod"},
    "os": {"register_at_fork"},
    "re": {"compile"},
    "shlex": {"join"},
    "signal": {"raise_signal"},
    "sys": {"stdlib_module_names"},
    "typing": {"get_args", "get_origin", "get_type_hints"}
    | {"Annotated", "Final", "Literal", "Protocol", "Self", "TypeAlias", "TypedDict", "TypeGuard", "overload"},
}
_LATER_MODULES = {"dataclasses": f"{BACKPORTS}_dataclasses"}
_LATER_METHODS = {"removeprefix", "removesuffix", "readlink", "is_relative_to", "isascii", "bit_count", "hex"}
_LATER_KEYWORDS = {("zip", "strict"), ("unlink", "missing_ok")}
_PLAIN_GENERICS = {"dict", "list", "tuple", "set", "frozenset", "type"}
_GENERIC_MODULES = {"collections.abc", "collections", "contextlib", "concurrent.futures"}


def in_older_syntax(source: str, name: str, *, alone: bool = False) -> str:
    """``source`` for Python 3.6: without comments, docstrings and annotations of functions.

    Annotations in classes stay as texts, since dataclasses and named tuples have their fields from them. ``name`` is
    the module's, for messages. What runs ``alone`` cannot import the backports; its ``|`` is one of numbers. Raises
    SyntaxError, and NotRewrittenError.
    """
    tree = ast.parse(source, name)
    tree = without_named_expressions(_Older(_generics(tree), alone=alone).visit(tree))
    text = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
    if f"{BACKPORTS}." not in text:
        return text
    if alone:
        raise NotRewrittenError(f"{name} needs what Python 3.6 lacks", tree)
    return f"import {BACKPORTS}\n{text}"


def _generics(tree: ast.Module) -> set[str]:
    """The names of this module that stand for classes which take type arguments only from Python 3.9 on."""
    imports = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module in _GENERIC_MODULES)
    return _PLAIN_GENERICS | {alias.asname or alias.name for node in imports for alias in node.names}


class _Older(ast.NodeTransformer):
    """Everything but named expressions, which need to know where a name is bound."""

    def __init__(self, generics: set[str], *, alone: bool) -> None:
        self._generics, self._alone = generics, alone
        self._in_class = False

    def visit_Module(self, node: ast.Module) -> ast.Module:
        node.body = self._body(node.body, docstring=True)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> list[ast.stmt]:
        if node.module == "__future__":
            return []
        if node.module in _LATER_MODULES:
            return [ast.ImportFrom(_LATER_MODULES[node.module], node.names, node.level)]
        later = [alias for alias in node.names if alias.name in _LATER.get(node.module or "", ())]
        kept = [alias for alias in node.names if alias not in later]
        found: list[ast.stmt] = [ast.ImportFrom(node.module, kept, node.level)] if kept else []
        return [*found, ast.ImportFrom(BACKPORTS, later, 0)] if later else found

    def visit_Import(self, node: ast.Import) -> ast.Import:
        for alias in node.names:
            if alias.name in _LATER_MODULES:
                alias.name, alias.asname = _LATER_MODULES[alias.name], alias.asname or alias.name
        return node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        if is_for_type_checkers(node):
            return self._body(node.orelse)
        node.test = self.visit(node.test)
        node.body = self._body(node.body) or [ast.Pass()]
        node.orelse = self._body(node.orelse)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        outside, self._in_class = self._in_class, True
        node.bases = [self.visit(base) for base in node.bases]
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        node.body = self._body(node.body, docstring=True) or [ast.Pass()]
        self._in_class = outside
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        outside, self._in_class = self._in_class, False
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        if not any(ast.unparse(one).endswith(".jit") for one in node.decorator_list):
            node.args, node.returns = self.visit(node.args), None  # to Triton annotations mean something
        node.body = self._body(node.body, docstring=True) or [ast.Pass()]
        self._in_class = outside
        return node

    def visit_arguments(self, node: ast.arguments) -> ast.arguments:
        node.args, node.posonlyargs = [*node.posonlyargs, *node.args], []
        for one in (*node.args, *node.kwonlyargs, node.vararg, node.kwarg):
            if one is not None:
                one.annotation = None
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        value = self.visit(node.value) if node.value else None
        if self._in_class and isinstance(node.target, ast.Name):
            return ast.AnnAssign(node.target, ast.Constant(_annotation(node.annotation)), value, node.simple)
        return ast.Assign([node.target], value, lineno=node.lineno) if value else None

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        is_class = isinstance(node.value, ast.Name) and node.value.id in self._generics
        return node.value if is_class and isinstance(node.ctx, ast.Load) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.attr in _LATER.get(node.value.id, ()):
            return _backport(node.attr)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        is_either = isinstance(node.op, ast.BitOr) and not self._alone
        return _call("either", node.left, node.right) if is_either else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.BitOr) or self._alone:
            return node
        read: ast.expr = ast.parse(ast.unparse(node.target), mode="eval").body
        return ast.Assign([node.target], _call("merged", read, node.value), lineno=node.lineno)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Attribute):
            is_older = (function.attr == "readlink" and node.args) or (function.attr == "hex" and not node.args)
            later = function.attr in _LATER_METHODS and not is_older  # os.readlink has an argument, bytes.hex had none
            if later or _has_later_keyword(function.attr, node.keywords):
                return ast.Call(_backport(function.attr), [function.value, *node.args], node.keywords)
        if isinstance(function, ast.Name) and _has_later_keyword(function.id, node.keywords):
            node.func = _backport(function.id)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        """As ``str.format``: how ``ast.unparse`` quotes what is in braces differs from release to release."""
        self.generic_visit(node)
        values: list[ast.expr] = []
        text = "".join(_formatted(node.values, values))
        return ast.Call(ast.Attribute(ast.Constant(text), "format", ast.Load()), values, [])

    def visit_FormattedValue(self, node: ast.FormattedValue) -> ast.AST:
        node.value = self.visit(node.value)
        if isinstance(node.format_spec, ast.JoinedStr):
            self.generic_visit(node.format_spec)
        return node

    def visit_Match(self, node: ast.Match) -> ast.AST:
        raise NotRewrittenError("a match statement has no form in Python 3.6", node)

    def visit_TryStar(self, node: ast.TryStar) -> ast.AST:
        raise NotRewrittenError("except* has no form in Python 3.6", node)

    def _body(self, statements: list[ast.stmt], *, docstring: bool = False) -> list[ast.stmt]:
        if docstring and statements and _is_text(statements[0]):
            statements = statements[1:]
        found: list[ast.stmt] = []
        for statement in statements:
            new = self.visit(statement)
            found += new if isinstance(new, list) else [new] if new is not None else []
        return found


def _annotation(node: ast.expr) -> str:
    """The annotation as text; of ``Annotated`` what can be evaluated, and is: the key of the field."""
    if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Annotated" and isinstance(node.slice, ast.Tuple):
        keys = [
            ast.unparse(one) for one in node.slice.elts if isinstance(one, ast.Call) and ast.unparse(one.func) == "Key"
        ]
        return f"Annotated[{', '.join(('None', *keys))}]"
    return ast.unparse(node)


def is_for_type_checkers(node: ast.AST) -> TypeGuard[ast.If]:
    """Whether it is ``if TYPE_CHECKING:``."""
    named = ast.unparse(node.test) if isinstance(node, ast.If) else ""
    return named in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def _formatted(parts: Iterable[ast.expr], values: list[ast.expr]) -> Iterator[str]:
    """The pieces of a format string; what is in its braces is added to ``values``, in order."""
    for part in parts:
        if isinstance(part, ast.FormattedValue):
            values.append(part.value)
            conversion = f"!{chr(part.conversion)}" if part.conversion > 0 else ""
            inner = part.format_spec.values if isinstance(part.format_spec, ast.JoinedStr) else []
            spec = "".join(_formatted(inner, values))
            yield "{" + conversion + (f":{spec}" if spec else "") + "}"
        else:
            assert isinstance(part, ast.Constant)  # noqa: S101  # an f-string has nothing else
            yield str(part.value).replace("{", "{{").replace("}", "}}")


def _has_later_keyword(name: str, keywords: Iterable[ast.keyword]) -> bool:
    return any((name, keyword.arg) in _LATER_KEYWORDS for keyword in keywords)


def _is_text(node: ast.stmt) -> TypeGuard[ast.Expr]:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _backport(name: str) -> ast.expr:
    return ast.Attribute(ast.Name(BACKPORTS, ast.Load()), name, ast.Load())


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(_backport(name), list(arguments), [])
