"""The description of a family's kernels. Imports neither torch nor triton.

A family's ``cases.py`` makes one :class:`Kernel` for each public function. Everything else follows from it: correctness
on a GPU and in the interpreter, compilation for GPUs that are not here, mutants, speed.

A file from outside (``--kernels``) describes each function by a :class:`Function`, which says less and needs less.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, Union

if TYPE_CHECKING:
    from types import ModuleType

    import torch

Emit = Callable[[dict[str, Any]], None]  # hands one record of a task to the parent
Inputs = Mapping[str, Any]  # drawn by Kernel.inputs: tensors and plain values, by name
Tensors = Mapping[str, "torch.Tensor"]
Strides = Union[int, "tuple[int, ...]"]  # from row to row of the last dimension, or of all dimensions
Output = Union["tuple[tuple[int, ...], torch.dtype]", "tuple[tuple[int, ...], torch.dtype, Strides]"]

LEVELS = ("quick", "full", "deep")  # each includes the one before
Level = Literal["quick", "full", "deep"]
Where = Literal["cuda", "interpret"]
EVERYWHERE: tuple[Where, ...] = ("cuda", "interpret")


def includes(level: str, of: str) -> bool:
    """True if a run at ``level`` includes the level ``of``."""
    return LEVELS.index(of) <= LEVELS.index(level)


def runs(case: Case, device: Where, level: str) -> bool:
    """True when a run on ``device`` at ``level`` runs ``case``.

    The interpreter runs all but the deep ones: they are small.
    """
    return device in case.where and includes(
        "full" if device == "interpret" and level == "quick" else level, case.level
    )


class Check(Protocol):
    """Judges one output. See ``compare.py`` for those there are."""

    def __call__(self, output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any]:
        """Return ``{"error": measured, "tolerance": allowed, "message": "" or what is wrong, ...}``."""


@dataclass(frozen=True)
class Case:
    """One run that must be right.

    ``shape`` are the keyword arguments of ``Kernel.inputs``. ``where`` lists its devices: a case for the interpreter is
    small, and in float16 or float32, because the interpreter silently miscomputes bfloat16. compute-sanitizer omits
    cases that are not ``checked``: thousands of launches take minutes. A ``far`` case has elements more than 2^31 apart
    and needs gigabytes, mostly never read: it waits for memory, and a small GPU skips it.
    """

    name: str
    shape: Mapping[str, Any]
    level: Level = "full"
    where: tuple[Where, ...] = ("cuda",)
    checked: bool = True
    far: bool = False


def case(name: str, level: Any = "full", where: Any = ("cuda",), **shape: Any) -> Case:
    """A case, without the noise."""
    return Case(name, shape, level, where)


def big(name: str, **shape: Any) -> Case:
    """A case for a GPU that is large or long: beyond 2^15 rows or programs. compute-sanitizer would take minutes."""
    return Case(name, shape, checked=False)


def far(name: str, **shape: Any) -> Case:
    """A case for a GPU whose offsets do not fit 32 bits."""
    return Case(name, shape, far=True)


def here(name: str, level: Any = "full", **shape: Any) -> Case:
    """A case for every device: small, and in float32 or float16."""
    return Case(name, shape, level, EVERYWHERE)


@dataclass(frozen=True)
class Mutant:
    """A deliberately broken variant, which the suite must catch: ``old`` in the source becomes ``new``.

    ``old`` occurs exactly once in the source of the kernel's module (or of ``module``, when the code is there).
    ``where`` omits a device on which the fault cannot show, and ``why`` then says why it cannot.
    """

    name: str
    old: str
    new: str
    module: str = ""
    where: tuple[Where, ...] = EVERYWHERE
    why: str = ""


@dataclass(frozen=True)
class Work:
    """The least that a function must do: bytes through memory (each input once, each output once), and operations.

    ``unit`` is the rate for ``flops``: bfloat16 or fp8 matrix products.
    """

    bytes: int
    flops: int = 0
    unit: Literal["bf16", "fp8"] = "bf16"


@dataclass(frozen=True)
class Speed:
    """One timed run: its time is at most ``bar`` times the floor of ``work``, or ``bar`` times the time of ``peer``.

    ``peer(inputs, outputs)`` makes one call of another implementation (``versus`` names it). ``slack`` microseconds are
    added: a ratio is meaningless for a few microseconds.
    """

    name: str
    shape: Mapping[str, Any]
    bar: float
    work: Callable[[Inputs, Tensors], Work]
    versus: str = ""
    peer: Callable[[Inputs, Tensors], object] | None = None
    slack: float = 0.0
    level: Level = "full"


@dataclass(frozen=True)
class Kernel:
    """Everything that the suite must know about one public function.

    - ``module``: the dotted name of the module with the function and its kernels.
    - ``inputs(draw, **shape)``: draws the arguments; tensors come from ``draw`` alone, which guards them.
    - ``outputs(inputs)``: for each output its (shape, dtype), or (shape, dtype, row stride) if its rows are padded (0:
      they are not; a tuple: strides of all dimensions); the suite allocates and poisons them.
    - ``launch(module, inputs, outputs)``: one call of the public function of ``module``. It must not read a tensor's
      values on the host, because ahead-of-time compilation calls it with tensors without values.
    - ``reference(inputs)``: the same function in plain, high-precision torch: the expected value of each output, and
      each input in ``modifies``.
    - ``checks``: how each of those is compared. ``modifies``: inputs that are written in place.
    - ``given(inputs, reference, written)``: expected values that depend on another result, which is judged by
      itself, computed from that result as written: codes with their scale.
    - ``returns``: ``launch`` returns new tensors by name, and ``outputs`` is empty.
    - ``triton``: it is written in Triton; False only for external kernels.
    - ``scratch``: inputs that may be changed, and are not judged.
    - ``repeatable``: every launch on the same inputs writes the same bits; it has no atomics.
    - ``matrix_instructions``: its speed depends on tensor cores, so they must be in the machine code.
    - ``spills``: bytes of register spills that are accepted, by target (``sm_90``); 0 by default.
    """

    name: str
    module: str
    inputs: Callable[..., Inputs]
    outputs: Callable[[Inputs], Mapping[str, Output]]
    launch: Callable[[ModuleType, Inputs, Tensors], object]
    reference: Callable[[Inputs], Tensors]
    checks: Mapping[str, Check]
    cases: tuple[Case, ...]
    mutants: tuple[Mutant, ...]
    speeds: tuple[Speed, ...] = ()
    modifies: tuple[str, ...] = ()
    given: Callable[[Inputs, Tensors, Tensors], Tensors] | None = None
    returns: bool = False
    triton: bool = True
    scratch: tuple[str, ...] = ()
    repeatable: bool = True
    matrix_instructions: bool = False
    spills: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Function:
    """A function of another package, to be smoke-tested: an item of ``KERNELS`` in a file for ``--kernels``.

    - ``call``: anything that takes tensors: the wrapper of a Triton kernel, an operator of torch.library or of a CUDA
      extension, a kernel of Helion or CuTe DSL. It is called as ``call(**inputs)`` and returns a tensor, a sequence or
      mapping of tensors, or None when it only writes into its arguments.
    - ``inputs(draw, **shape)``: draws the arguments, by name; see :class:`~kernels_smoke.suite.correctness.draw.Draw`.
    - ``reference(**inputs)``: the expected result; eager functions of torch suffice. It gets copies, with
      floating-point tensors in float64 (in their own dtype without ``precise``), and returns the same structure as
      ``call``. For an argument that ``call`` modifies, it changes its copy, too, or returns the argument's new value by
      name.
    - ``cases``: at level quick the first one runs if none has that level.
    - ``tolerance``: a number (the relative error of the whole; a row may have four times as much, an
      element forty times), a check, or a mapping of these by the name of the result. By default the dtype
      decides: see ``TOLERANCES``.
      A single result is called ``out``, several ``out 0``, ``out 1``, ..., those of a mapping by key.
    - ``modifies``: arguments that are written in place, and judged. ``scratch``: arguments with any contents
      afterwards.
    - ``gradients``: arguments whose gradients are judged, too (``gradient of x``): autograd through
      ``call`` against autograd through ``reference``, for the same gradients of all results.
    - ``bar``: the time of the shape ``timed`` (at level full, on a GPU) is at most ``bar`` times ``peer``'s or,
      without one, of the floor: each argument and each result once through memory, and ``flops(**inputs)`` operations.
    - ``triton``: False if it is not written in Triton: then nothing is interpreted, compiled for another GPU or
      mutated.
    - ``mutants``: deliberate faults in the Triton functions that ``call`` launches; others are made automatically.
    - ``repeatable``: the same arguments always give the same bits.

    Each case is launched twice: with its allocations poisoned and guarded, and without, since torch.compile runs no
    compiled code under guards. Lists and tuples of tensors are passed on; the reference gets copies.
    """

    call: Callable[..., Any]
    inputs: Callable[..., Inputs]
    reference: Callable[..., Any]
    cases: Sequence[Case]
    name: str = ""
    tolerance: float | Check | Mapping[str, float | Check] | None = None
    modifies: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    gradients: tuple[str, ...] = ()
    precise: bool = True
    timed: Mapping[str, Any] = field(default_factory=dict)
    bar: float = 0.0
    flops: Callable[..., int] | None = None
    peer: Callable[..., Any] | None = None
    triton: bool = True
    mutants: tuple[Mutant, ...] = ()
    repeatable: bool = False
