"""The Triton functions that a call launches: which they are, their source, and how another source is put in its place.

Reaches into Triton's ``JITFunction`` and ``InterpretedFunction``: the first has a method to replace its source, the
second reads it from the file whenever it rewrites a function for the interpreter.
"""

import ast
import contextlib
import gc
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from triton.runtime.jit import JITFunction

from kernels_smoke.suite.own.mutations import without_decorators

JITTED: tuple[Any, ...] = (JITFunction,)  # what ``triton.jit`` makes
try:
    from triton.runtime.interpreter import InterpretedFunction
except ModuleNotFoundError:  # it needs NumPy, which kernels that are compiled do without
    pass
else:
    JITTED = (JITFunction, InterpretedFunction)


@contextlib.contextmanager
def launches() -> Iterator[list[Any]]:
    """While this is active, each Triton function that is launched is added to the list, once."""
    found: list[Any] = []
    runs = {kind: kind.run for kind in JITTED}

    def noting(run: Callable[..., Any]) -> Callable[..., Any]:
        def noted(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not any(self is each for each in found):
                found.append(self)
            return run(self, *args, **kwargs)

        return noted

    for kind, run in runs.items():
        kind.run = noting(run)
    try:
        yield found
    finally:
        for kind, run in runs.items():
            kind.run = run


def with_callees(functions: list[Any]) -> list[Any]:
    """``functions`` and the Triton functions that they call, and those; but none of Triton's own library."""
    found = list(functions)
    for function in found:  # which grows
        scope = {**function.fn.__globals__, **inspect.getclosurevars(function.fn).nonlocals}
        for node in ast.walk(ast.parse(source_of(function))):
            called = _resolved(node, scope)
            own = isinstance(called, JITTED) and not str(called.fn.__module__).startswith("triton.")
            if own and not any(called is each for each in found):
                found.append(called)
    return found


def _resolved(node: ast.AST, scope: dict[str, Any]) -> Any:
    """What a name, or a name of a module, stands for."""
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return getattr(scope.get(node.value.id), node.attr, None)
    return None


def source_of(function: Any) -> str:
    """The source of a Triton function from its ``def`` on. Raises OSError or ValueError when it cannot be had."""
    if isinstance(function, JITFunction):
        return str(function.src)
    return without_decorators(inspect.getsource(function.fn))


@contextlib.contextmanager
def replaced(function: Any, source: str) -> Iterator[None]:
    """While this is active, ``function`` is what ``source`` says."""
    before = source_of(function)
    _replace(function, source)
    try:
        yield
    finally:
        _replace(function, before)


def _replace(function: Any, source: str) -> None:
    if isinstance(function, JITFunction):
        if hasattr(function, "_unsafe_update_src"):  # since Triton 3.4
            function._unsafe_update_src(source)  # noqa: SLF001  # Triton's way to do it, and the only one
        else:
            function.src = source
        for other in gc.get_objects():  # a caller's compiled code holds its callees
            if type(other) is JITFunction:
                other.hash = None
                other.device_caches.clear()
        return
    function.rewriter._prepare_source = lambda _lines: source  # noqa: SLF001  # where it reads the file's lines
    type(function).rewritten_fn.pop(function.fn, None)
