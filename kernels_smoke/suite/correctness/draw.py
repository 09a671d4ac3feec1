"""Tensors for the cases: drawn from a seed, and surrounded by poison.

Every tensor is between two guard regions, and between rows that are further apart than they are wide is poison, too.
The poison is the byte 0xFF: not-a-number in every floating-point format that torch has, and -1 as an integer. A kernel
that reads outside its tensors computes NaN; one that writes there is seen by :meth:`Draw.trespasses`.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from kernels_smoke.suite.model import Output, Strides

# Bytes before and after; multiples of 256, so that every tensor is as aligned as torch's own. On a CPU they take what
# a block of any kernel writes behind its tensor: in the heap of the process, and whether a kernel that writes
# into it is seen, or ends the process, or makes it fail in another way, is chance.
GUARD, GUARD_ON_CPU = 4096, 1 << 18
POISON = 0xFF
BF16, FP16, FP32 = torch.bfloat16, torch.float16, torch.float32


@dataclass
class Draw:
    """Makes the tensors of one run on ``device`` ("cuda", "cpu", or "meta" for shapes without values).

    ``guard``: bytes of poison before and after each, by default those that suit the device. With 0 a tensor ends where
    its memory does, for tools that see accesses beyond an allocation. ``edge``: the byte of the guards. With another
    than the poison, a NaN that was read from poison is seen where it is written.
    """

    seed: int
    device: str
    guard: int = -1
    edge: int = POISON
    guarded: list[tuple[str, torch.Tensor, torch.Tensor]] = field(default_factory=list)  # name, buffer, view

    def __post_init__(self) -> None:
        if self.guard < 0:
            self.guard = GUARD_ON_CPU if self.device == "cpu" else GUARD
        where = "cpu" if self.device == "meta" else self.device
        self.generator = torch.Generator(where)
        self.generator.manual_seed(self.seed)

    def empty(
        self, *shape: int, dtype: torch.dtype, row_stride: Strides = 0, offset: int = 0, name: str = ""
    ) -> torch.Tensor:
        """A tensor full of poison.

        ``row_stride``: elements from one row of the last dimension to the next (all leading dimensions lie one after
        another at that distance); the row's width when 0. As a tuple, the strides of all dimensions. ``offset``:
        elements by which the tensor begins later, to misalign it.
        """
        strides = row_stride if isinstance(row_stride, tuple) else _strides(shape, row_stride)
        size = sum((extent - 1) * step for extent, step in zip(shape, strides, strict=True)) + 1 + offset
        if self.device == "meta":
            return torch.empty(max(size, 0), dtype=dtype, device="meta").as_strided(shape, strides, offset)
        size = size * dtype.itemsize if math.prod(shape) else 0
        size = -(-size // 256) * 256 if self.guard else size
        buffer = torch.full((2 * self.guard + size,), self.edge, dtype=torch.uint8, device=self.device)
        elements = buffer.view(dtype)
        view = elements.as_strided(shape, strides, self.guard // dtype.itemsize + offset)
        if self.edge != POISON and view.numel():
            _bytes(view).fill_(POISON)
        self.guarded.append((name, buffer, view))
        return view

    def outputs(self, described: Mapping[str, Output]) -> dict[str, torch.Tensor]:
        """The tensors that ``Kernel.outputs`` describes, full of poison."""
        return {
            name: self.empty(*shape, dtype=dtype, row_stride=(*row_stride, 0)[0], name=name)
            for name, (shape, dtype, *row_stride) in described.items()
        }

    def place(self, values: torch.Tensor, *, row_stride: Strides = 0, offset: int = 0, name: str = "") -> torch.Tensor:
        """A guarded copy of ``values``."""
        made = self.empty(*values.shape, dtype=values.dtype, row_stride=row_stride, offset=offset, name=name)
        if self.device != "meta":
            _bytes(made).copy_(_bytes(values.to(self.device))) if made.numel() else None
        return made

    def normal(
        self,
        *shape: int,
        dtype: torch.dtype,
        scale: float = 1.0,
        row_stride: Strides = 0,
        offset: int = 0,
        name: str = "",
    ) -> torch.Tensor:
        """Normal values with mean 0 and standard deviation ``scale``."""
        made = self.empty(*shape, dtype=dtype, row_stride=row_stride, offset=offset, name=name)
        if self.device != "meta":
            values = torch.randn(shape, generator=self.generator, device=self.device) * scale
            made.copy_(_round(values, dtype))
        return made

    def uniform(
        self, *shape: int, low: float, high: float, dtype: torch.dtype, row_stride: Strides = 0, name: str = ""
    ) -> torch.Tensor:
        """Values evenly spread from ``low`` to ``high``."""
        made = self.empty(*shape, dtype=dtype, row_stride=row_stride, name=name)
        if self.device != "meta":
            part = torch.rand(shape, generator=self.generator, device=self.device)
            made.copy_(_round(part * high + (1 - part) * low, dtype))  # high - low may be beyond float32
        return made

    def rows(
        self,
        rows: int,
        width: int,
        *,
        dtype: torch.dtype,
        scale: float = 1.0,
        largest: float = 0.0,
        row_stride: int = 0,
        name: str,
    ) -> torch.Tensor:
        """Values for [rows, width], of which the middle row is zero, where there are three or more.

        They are normal with the standard deviation ``scale``, or uniform up to ``largest`` when that is given.
        """
        if largest:
            made = self.uniform(rows, width, low=-largest, high=largest, dtype=dtype, row_stride=row_stride, name=name)
        else:
            made = self.normal(rows, width, dtype=dtype, scale=scale, row_stride=row_stride, name=name)
        if rows >= 3 and self.device != "meta":
            made[rows // 2] = 0
        return made

    def integers(self, *shape: int, low: int, high: int, dtype: torch.dtype, name: str = "") -> torch.Tensor:
        """Integers from ``low`` to ``high - 1``."""
        made = self.empty(*shape, dtype=dtype, name=name)
        if self.device != "meta":
            made.copy_(torch.randint(low, high, shape, generator=self.generator, device=self.device))
        return made

    def permutation(self, size: int, *, dtype: torch.dtype, name: str = "") -> torch.Tensor:
        """The numbers from 0 to ``size - 1``, shuffled."""
        made = self.empty(size, dtype=dtype, name=name)
        if self.device != "meta":
            made.copy_(torch.randperm(size, generator=self.generator, device=self.device))
        return made

    def trespasses(self) -> list[str]:
        """The names of the tensors around which, or between whose rows, something was written."""
        return [name or str(tuple(view.shape)) for name, buffer, view in self.guarded if not self._intact(buffer, view)]

    def _intact(self, buffer: torch.Tensor, view: torch.Tensor) -> bool:
        copy = buffer.clone()
        inside = copy.view(view.dtype).as_strided(view.shape, view.stride(), view.storage_offset())
        if inside.numel():
            _bytes(inside).fill_(self.edge)
        return bool((copy == self.edge).all())


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory as bytes, so that copying keeps every bit (and works where a dtype knows no arithmetic)."""
    return tensor.view(torch.uint8) if tensor.ndim else tensor.reshape(1).view(torch.uint8)


def _round(values: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if dtype.is_floating_point and dtype.itemsize == 1:  # a cast to fp8 may saturate or give NaN: clamp, then cast
        values = values.clamp(-torch.finfo(dtype).max, torch.finfo(dtype).max)
    return values.to(dtype)


def _strides(shape: tuple[int, ...], row_stride: int) -> tuple[int, ...]:
    if not shape:
        return ()
    strides = [1]
    step = row_stride or shape[-1]
    if step < shape[-1]:
        raise ValueError(f"row_stride {step} is less than the width {shape[-1]}")
    for extent in reversed(shape[1:-1] if len(shape) > 1 else ()):
        strides.append(step)
        step *= extent
    if len(shape) > 1:
        strides.append(step)
    return tuple(reversed(strides))
