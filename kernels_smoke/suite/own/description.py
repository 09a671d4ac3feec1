"""A Function of a file from outside as a Kernel, which the suite judges as it does its own."""

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, TypeVar

import torch

from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.error_texts import AuthorError
from kernels_smoke.suite.model import LEVELS, Case, Function, Inputs, Kernel, Speed, Tensors, Work
from kernels_smoke.suite.own.tolerances import Checks

SEED = " seed"  # in the inputs, for the gradients of the results; no argument has such a name
MOST_SAID = 2000  # characters of what an author's function raised; the text of an error may hold a tensor
PEER = "its peer"  # one without a name
Returned = TypeVar("Returned")


def described(function: Function, module: str) -> Kernel:
    """The kernel that ``function`` describes, in the file that was imported as ``module``. Raises ValueError."""
    name = function.name or str(getattr(function.call, "__name__", ""))
    _check(function, name)
    wrapped = _Wrapped(function)
    return Kernel(
        name=name,
        module=module,
        inputs=wrapped.inputs,
        outputs=lambda _inputs: {},
        launch=wrapped.launch,
        reference=wrapped.reference,
        checks=Checks(function.tolerance),
        cases=tuple(_cases(function)),
        mutants=function.mutants,
        speeds=tuple(wrapped.speeds()),
        modifies=function.modifies,
        returns=True,
        triton=function.triton,
        scratch=function.scratch,
        repeatable=function.repeatable,
    )


def _check(function: Function, name: str) -> None:
    """Raise ValueError for a description that cannot be run, with what is wrong about it."""
    if not name or not name.isprintable() or set(name) & set("/,: ") or name.startswith("-"):
        raise ValueError(
            f"{name!r} is not a valid kernel name; give it one without spaces, commas and slashes: name=..."
        )
    for part in ("call", "inputs", "reference"):
        if not callable(getattr(function, part)):
            raise ValueError(f"{name}: {part} is a {type(getattr(function, part)).__name__}; expected a function")  # noqa: TRY004  # one error for whatever is wrong
    _check_cases(function, name)
    if bool(function.timed) != (function.bar > 0):
        raise ValueError(f"{name}: bar and timed belong together: a number above 0, and the shape that is timed")
    for part in ("modifies", "scratch", "gradients"):
        if isinstance(getattr(function, part), str):
            raise ValueError(f"{name}: {part} is a string; expected a tuple of names")  # noqa: TRY004  # as above
    if unknown := _unknown(function):
        raise ValueError(f"{name}: {unknown}")


def _check_cases(function: Function, name: str) -> None:
    cases = list(function.cases)
    if not cases or not all(isinstance(case, Case) for case in cases):
        raise ValueError(f"{name} has no cases; expected a list of case(NAME, ...), here(NAME, ...) or big(NAME, ...)")
    names = [case.name for case in cases]
    if twice := next((each for each in names if names.count(each) > 1), ""):
        raise ValueError(f"{name} has two cases called {twice!r}")
    if strange := next((each.name for each in cases if each.level not in LEVELS), ""):
        raise ValueError(f"{name}: the level of {strange!r} is not one of {', '.join(LEVELS)}")
    if not function.triton and not any("cuda" in case.where for case in cases):
        raise ValueError(f"{name} is not written in Triton, and has no case for a GPU")


def _unknown(function: Function) -> str:
    """The first argument that a case passes to ``inputs`` and that this does not take, as a sentence."""
    known = inspect.signature(function.inputs).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in known):
        return ""
    names = {parameter.name for parameter in known}
    shapes = {**{case.name: case.shape for case in function.cases}, "timed": function.timed}
    found = next(((where, min(shape.keys() - names)) for where, shape in shapes.items() if shape.keys() - names), None)
    return f"{found[0]}: inputs() has no argument {found[1]}" if found else ""


def _cases(function: Function) -> Iterable[Case]:
    """The cases, of which the first is one of level quick when no other is; none is left to the interpreter alone."""
    quick = any(case.level == "quick" for case in function.cases)
    for number, case in enumerate(function.cases):
        where = case.where if function.triton else tuple(each for each in case.where if each != "interpret")
        yield replace(case, where=where, level=case.level if quick or number else "quick")


@dataclass(frozen=True)
class _Wrapped:
    """What the suite calls, in terms of what the author wrote."""

    function: Function

    def inputs(self, draw: Draw, **shape: Any) -> Inputs:
        torch.manual_seed(draw.seed)  # for what an author draws without ``draw``
        drawn = _of_author("inputs()", functools.partial(self.function.inputs, draw, **shape))
        if not isinstance(drawn, Mapping):
            raise AuthorError(f"inputs() returned a {type(drawn).__name__}; expected the arguments by name")
        for part in ("modifies", "scratch", "gradients"):
            for name in getattr(self.function, part):
                if not isinstance(drawn.get(name), torch.Tensor):
                    raise AuthorError(f"{part} names {name!r}, and inputs() drew no tensor of that name")
        return {**drawn, SEED: draw.seed}

    def launch(self, _module: ModuleType, inputs: Inputs, _outputs: Tensors) -> dict[str, torch.Tensor]:
        """One call; with gradients a call and the way back."""
        return self._results(self.function.call, dict(inputs), "the function")

    def reference(self, inputs: Inputs) -> dict[str, torch.Tensor]:
        """What is right, in float64 where it is precise. The inputs stay as they are."""
        copies = {name: self._copy(value) for name, value in inputs.items()}
        results = _of_author(
            "reference()", functools.partial(self._results, self.function.reference, copies, "reference()")
        )
        return {name: copies[name].detach() for name in self.function.modifies} | results

    def _copy(self, value: Any) -> Any:
        if isinstance(value, list | tuple) and type(value) in {list, tuple}:
            return type(value)(map(self._copy, value))
        if not isinstance(value, torch.Tensor):
            return value
        if self.function.precise and value.dtype.is_floating_point:
            return value.to(torch.float64, copy=True)
        return value.to(torch.complex128, copy=True) if self.function.precise and value.is_complex() else value.clone()

    def _results(self, call: Callable[..., Any], inputs: dict[str, Any], what: str) -> dict[str, torch.Tensor]:
        seed = inputs.pop(SEED)
        if not self.function.gradients:
            with torch.no_grad():
                return _named(call(**inputs), what)
        leaves = {name: inputs[name].detach().requires_grad_() for name in self.function.gradients}
        with torch.enable_grad():
            results = _named(call(**inputs | leaves), what)
            way = {name: result for name, result in results.items() if result.requires_grad}
            if not way:
                raise AuthorError(f"no result of {what} depends on {', '.join(leaves)} by autograd")
            above = [_gradient(seed, number, result) for number, result in enumerate(way.values())]
            found = torch.autograd.grad(list(way.values()), list(leaves.values()), above, allow_unused=True)
        missing = [name for name, gradient in zip(leaves, found, strict=True) if gradient is None]
        if missing:
            raise AuthorError(f"{what} gives no gradient of {', '.join(missing)}")
        return {name: result.detach() for name, result in results.items()} | {
            f"gradient of {name}": gradient for name, gradient in zip(leaves, found, strict=True)
        }

    def speeds(self) -> Iterable[Speed]:
        if not self.function.bar:
            return
        peer = None if self.function.peer is None else self._peer
        name = " x ".join(str(value) for value in self.function.timed.values() if isinstance(value, int))
        called = str(getattr(self.function.peer, "__name__", ""))
        versus = (called if called.isidentifier() else PEER) if peer else ""
        yield Speed(name or "timed", self.function.timed, self.function.bar, self._work, versus, peer)

    def _peer(self, inputs: Inputs, _outputs: Tensors) -> object:
        assert self.function.peer is not None  # noqa: S101  # speeds() has looked
        return self._results(self.function.peer, dict(inputs), "the peer")

    def _work(self, inputs: Inputs, _outputs: Tensors) -> Work:
        """Each argument and each result once; what is modified is written, too, and no other result where returned."""
        copies = {n: value.clone() if isinstance(value, torch.Tensor) else value for n, value in inputs.items()}
        results = self._results(self.function.call, dict(copies), "the function")
        tensors = [value for value in inputs.values() if isinstance(value, torch.Tensor)]
        modified = [copies[name] for name in self.function.modifies]
        places = {tensor.untyped_storage().data_ptr() for tensor in modified}
        new = (result for result in results.values() if result.untyped_storage().data_ptr() not in places)
        written = [*new, *modified]
        flops = 0
        if self.function.flops is not None:
            arguments = {name: value for name, value in inputs.items() if name != SEED}
            flops = int(_of_author("flops()", functools.partial(self.function.flops, **arguments)))
        return Work(sum(tensor.nbytes for tensor in (*tensors, *written)), flops)


def _of_author(what: str, call: Callable[[], Returned]) -> Returned:
    """What ``call`` returns; AuthorError for what it raises, but for too little memory."""
    try:
        return call()
    except (AuthorError, torch.cuda.OutOfMemoryError):
        raise
    except Exception as error:  # an author's function raises anything
        raise AuthorError(f"{what} raised {type(error).__name__}: {error}"[:MOST_SAID]) from error


def _named(returned: object, what: str) -> dict[str, torch.Tensor]:
    """The tensors that a function returned, by name; None, also among others, is no result."""
    if returned is None:
        return {}
    if isinstance(returned, torch.Tensor):
        return {"out": returned}
    if isinstance(returned, Mapping):
        named = {str(name): value for name, value in returned.items() if value is not None}
    elif isinstance(returned, Sequence) and not isinstance(returned, str | bytes):
        some = [value for value in returned if value is not None]
        named = {"out" if len(some) == 1 else f"out {number}": value for number, value in enumerate(some)}
    else:
        raise AuthorError(f"{what} returned a {type(returned).__name__}; expected tensors")
    for name, value in named.items():
        if not isinstance(value, torch.Tensor):
            raise AuthorError(f"{what} returned a {type(value).__name__} as {name}; expected a tensor")
    return named


@functools.lru_cache(maxsize=64)  # made before a graph is captured, which cannot hold a draw
def _drawn(seed: int, number: int, shape: tuple[int, ...], device: torch.device) -> torch.Tensor:
    generator = torch.Generator("cpu")
    generator.manual_seed(seed + number)
    values = (torch.randn(shape, generator=generator) * 32).round().clamp(-128, 128) / 32
    return values.to(device)


def _gradient(seed: int, number: int, result: torch.Tensor) -> torch.Tensor:
    """The gradient of a result: 1 of a single number, such as a loss; else multiples of 1/32, exact in every dtype."""
    if not result.ndim or result.device.type == "meta":
        return torch.ones_like(result)
    return _drawn(seed, number, tuple(result.shape), result.device).to(result.dtype)
