"""``name := value`` for a Python that has no such expression: the names of a function become attributes of one object.

``if match := find(text): use(match[1])`` becomes::

    _named_7 = _older.Names()
    if _named_7("match", find(text)): use(_named_7.match[1])

The object is made where the function begins, so that comprehensions and inner functions share it as they share names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

_FUNCTIONS = (ast.FunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class NotRewrittenError(Exception):
    """Code that has no form in Python 3.6 that is known here: ``node`` is its place."""

    def __init__(self, what: str, node: ast.AST) -> None:
        super().__init__(f"{what} (line {getattr(node, 'lineno', '?')})")


def without_named_expressions(tree: ast.Module) -> ast.Module:
    """The same module without named expressions. Raises NotRewrittenError."""
    for node in _own_nodes(tree):
        if isinstance(node, ast.NamedExpr):
            raise NotRewrittenError("a named expression outside of a function", node)
    rewritten: ast.Module = _Functions().visit(tree)
    return rewritten


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes whose names are those of this scope: all below it but the insides of functions."""
    for child in ast.iter_child_nodes(scope):
        yield child
        if not isinstance(child, _FUNCTIONS):
            yield from _own_nodes(child)


class _Functions(ast.NodeTransformer):
    """Rewrites every function that has named expressions, the inner ones first."""

    def __init__(self) -> None:
        self._made = 0

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        if any(isinstance(one, ast.NamedExpr) for one in _own_nodes(node)):
            raise NotRewrittenError("a named expression in a lambda", node)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        own = [one for statement in node.body for one in (statement, *_own_nodes(statement))]
        names = {one.target.id for one in own if isinstance(one, ast.NamedExpr)}
        if not names:
            return node
        for one in own:
            if isinstance(one, (ast.Global, ast.Nonlocal)) and names.intersection(one.names):
                raise NotRewrittenError("a named expression for a name of another scope", one)
        self._made += 1
        holder = f"_named_{self._made}"
        rename = _Rename(holder, names)
        body = [rename.visit(statement) for statement in node.body]
        given = [a.arg for a in (*node.args.args, *node.args.kwonlyargs) if a.arg in names]
        start = [f"{holder} = _older.Names()", *(f"{holder}.{name} = {name}" for name in given)]
        node.body = [*ast.parse("\n".join(start)).body, *body]
        return node


class _Rename(ast.NodeTransformer):
    """The names of a function as attributes of its object, wherever they mean the names of that function."""

    def __init__(self, holder: str, names: set[str]) -> None:
        self._holder, self._names = holder, names

    def visit_NamedExpr(self, node: ast.NamedExpr) -> ast.AST:
        holder = ast.Name(self._holder, ast.Load())
        return ast.Call(holder, [ast.Constant(node.target.id), self.visit(node.value)], [])

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id not in self._names:
            return node
        return ast.Attribute(ast.Name(self._holder, ast.Load()), node.id, node.ctx)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        node.args = self._defaults(node.args)
        bound = {a.arg for a in _parameters(node.args)} | {
            one.id for one in _own_nodes(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }
        inner = _Rename(self._holder, self._names - bound)
        node.body = [inner.visit(statement) for statement in node.body]
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.args = self._defaults(node.args)
        node.body = _Rename(self._holder, self._names - {a.arg for a in _parameters(node.args)}).visit(node.body)
        return node

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        return self._comprehension(node)

    def visit_SetComp(self, node: ast.SetComp) -> ast.AST:
        return self._comprehension(node)

    def visit_DictComp(self, node: ast.DictComp) -> ast.AST:
        return self._comprehension(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._comprehension(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        if node.name in self._names:
            raise NotRewrittenError("an exception with the name of a named expression", node)
        return self.generic_visit(node)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> ast.AST:
        """Its own variables are those of no function; only its first iterable is evaluated outside of it."""
        own = {
            one.id for generator in node.generators for one in ast.walk(generator.target) if isinstance(one, ast.Name)
        }
        first = node.generators[0]
        iterable = self.visit(first.iter)
        first.iter = ast.Constant(None)
        rewritten: ast.ListComp = _Rename(self._holder, self._names - own).generic_visit(node)  # type: ignore[assignment]  # of four kinds, with the same field
        rewritten.generators[0].iter = iterable
        return rewritten

    def _defaults(self, arguments: ast.arguments) -> ast.arguments:
        arguments.defaults = [self.visit(one) for one in arguments.defaults]
        arguments.kw_defaults = [one and self.visit(one) for one in arguments.kw_defaults]
        return arguments


def _parameters(arguments: ast.arguments) -> list[ast.arg]:
    more = [one for one in (arguments.vararg, arguments.kwarg) if one is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *more]
