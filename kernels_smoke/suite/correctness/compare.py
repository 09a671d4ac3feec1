"""How an output is judged against its reference: by norm and by worst row, bit for bit, or in steps of a code.

A global norm hides one bad row among thousands, so every row (of the last dimension) is judged too, at four times the
tolerance; and the norm of a wide row hides one bad element, so every element is judged as well, at forty times the
tolerance. NaN never passes where the reference has none, and the poison of an unwritten output is NaN.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from kernels_smoke.suite.correctness.draw import POISON

WORST_ROW = 4.0  # a row may be this many times the tolerance off
WORST_ELEMENT = 40.0  # and an element, relative to itself or to the root mean square of its row
FEW = 256  # elements, of which all may happen to be rounded by nearly half a unit in the last place
FP8 = torch.float8_e4m3fn
FP8_MAX = 448.0


@dataclass(frozen=True)
class Near:
    """||output - reference|| / ||reference|| is at most the tolerance of the output's dtype.

    The defaults are what was measured on an H200 for norms and pointwise functions, half as much again.
    ``reference`` is float64. A row that is zero in it must be zero; rows with a norm below ``floor`` count as zero.
    With ``faint``, the error of a row is relative to that part of the rows' root mean square at least: where large
    terms cancel, what is left of a row is mostly their rounding.
    """

    bfloat16: float = 2.5e-3
    float16: float = 5e-4
    float32: float = 1e-6
    floor: float = 0.0
    faint: float = 0.0

    def allowed(self, dtype: torch.dtype) -> float:
        """The tolerance for results of ``dtype``."""
        return float(getattr(self, str(dtype).removeprefix("torch.")))

    def __call__(self, output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any]:
        """Return the relative error of the whole and of the worst row."""
        tolerance = self.allowed(output.dtype)
        if output.numel() < FEW:
            tolerance = max(tolerance, torch.finfo(output.dtype).eps / 2 * 1.01)
        if (fault := _shape_fault(output, reference)) is not None:
            return fault
        if not output.numel():
            return {"error": 0.0, "tolerance": tolerance, "message": ""}
        limit = torch.finfo(output.dtype).max
        wanted = reference.double()
        rows = wanted.reshape(-1, wanted.shape[-1]) if wanted.ndim else wanted.reshape(1, 1)
        got = output.double().reshape(rows.shape)
        beyond = rows.abs() > limit  # of the output's range: its largest number, or infinity, is what must be there
        kept = (got.abs() >= limit) & (got.sign() == rows.sign())
        for bad, what in (
            (rows.isnan(), "of the reference are NaN"),
            (~torch.isfinite(got) & ~beyond, "are not finite"),
            (beyond & ~kept, f"are not beyond {limit:.4g}, as the reference is"),
        ):
            if bool(bad.any()):
                where = int(bad.any(dim=1).nonzero()[0, 0])
                message = f"{int(bad.sum())} of {got.numel()} elements {what}, the first in row {where}"
                return {"error": float("inf"), "tolerance": tolerance, "message": message}
        difference = (got - rows).where(~beyond, torch.zeros_like(got))
        scale = rows.where(~beyond, torch.zeros_like(rows))
        error = _ratio(float(difference.norm()), float(scale.norm()), self.floor)
        norms = scale.norm(dim=1)
        usual = self.faint * float(norms.square().mean().sqrt())
        norms = norms.clamp(min=max(self.floor, usual, torch.finfo(torch.float64).tiny))
        by_row = difference.norm(dim=1) / norms
        worst = int(by_row.argmax())
        typical = (norms / rows.shape[1] ** 0.5)[:, None]
        by_element = difference.abs_().div_(scale.abs_().clamp_(min=typical))
        furthest = int(by_element.argmax())
        worst_element = float(by_element.reshape(-1)[furthest])
        message = ""
        if not error <= tolerance:
            message = f"relative error {error:.3g} instead of at most {tolerance:.3g}"
        elif not float(by_row[worst]) <= WORST_ROW * tolerance:
            allowed = WORST_ROW * tolerance
            message = f"row {worst} has the relative error {float(by_row[worst]):.3g} instead of at most {allowed:.3g}"
        elif not worst_element <= WORST_ELEMENT * tolerance:
            row, column = divmod(furthest, rows.shape[1])
            allowed = WORST_ELEMENT * tolerance
            message = f"element {column} of row {row} is {worst_element:.3g} of its size off instead of {allowed:.3g}"
        measured = {"error": error, "worst_row": float(by_row[worst]), "worst_element": worst_element}
        return {**measured, "tolerance": tolerance, "message": message}


@dataclass(frozen=True)
class NearWhereWritten(Near):
    """Near, but of the rows (of the first dimension) that are NaN in the reference, not a bit may be written."""

    def __call__(self, output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any]:
        """Return what Near says of the others."""
        left = reference.isnan().flatten(1).all(dim=1)
        if bool((output[left].reshape(-1).view(torch.uint8) != POISON).any()):
            message = "rows that must be left as they are were written"
            return {"error": float("inf"), "tolerance": 0.0, "message": message}
        return super().__call__(output[~left], reference[~left])


@dataclass(frozen=True)
class Rounded(Near):
    """Near, and nearly every element of a 16-bit output is exactly the reference, rounded.

    What is computed in float32 from the same rounded values differs from the rounded float64 reference only where that
    is within some 1e-7 of the middle between two neighbours: one element in thousands. A rounding more or less in
    between changes a third of them, which is too little for a norm to see. Two elements may always differ.
    """

    differing: float = 1e-2

    def __call__(self, output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any]:
        """Return what Near does, and the share of elements that differ."""
        result = dict(super().__call__(output, reference))
        if result["message"] or not output.numel() or output.dtype == torch.float32:
            return result
        wanted = reference.to(output.dtype)
        count = int(((output != wanted) & torch.isfinite(wanted)).sum())
        result["differing"] = count / output.numel()
        if count > max(self.differing * output.numel(), 2):
            share = result["differing"]
            result["message"] = f"{share:.3%} of the elements are not the rounded reference; {self.differing:.3%} may"
        return result


@dataclass(frozen=True)
class Relative:
    """Every element is within ``tolerance`` of the reference, relative to it."""

    tolerance: float = 1e-6

    def __call__(self, output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any]:
        """Return the greatest relative error."""
        return _elementwise(output, reference, self.tolerance, relative=True)


@dataclass(frozen=True)
class Absolute:
    """Every element is within ``tolerance`` of the reference."""

    tolerance: float = 1e-6

    def __call__(self, output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any]:
        """Return the greatest absolute error."""
        return _elementwise(output, reference, self.tolerance, relative=False)


@dataclass(frozen=True)
class Exact:
    """Every bit is that of the reference."""

    def __call__(self, output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any]:
        """Return how many elements differ."""
        if (fault := _shape_fault(output, reference)) is not None:
            return fault
        wanted = reference.to(output.dtype)
        differing = 0
        if output.numel():
            same = _bytes(output) == _bytes(wanted)
            differing = int((~same).reshape(output.numel(), -1).any(dim=1).sum())
        message = f"{differing} of {output.numel()} elements differ" if differing else ""
        return {"error": float(differing), "tolerance": 0.0, "message": message}


@dataclass(frozen=True)
class Codes:
    """fp8 codes: each is the reference, moved by at most ``reach`` of itself, and rounded.

    A value that near the middle between two codes may become either of them: float32 does not reach further. How many
    are there is no matter, because one scale decides thousands of codes, and products of 16-bit values may be in the
    middle exactly. Where two codes are apart, the error is the way from the reference to the middle between them,
    relative to that. With a ``reach`` of 0, every code is the reference, rounded.

    ``reference`` holds the clamped quotients before rounding, in float64, and is rounded here. An ``output`` that is
    float32 holds quotients too (the interpreter cannot cast to fp8) and is held to 1e-6 instead.
    """

    reach: float = 0.0

    def __call__(self, output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any]:
        """Return the greatest error, and the share of codes that differ."""
        if output.dtype != FP8:
            return Near()(output, reference)
        if (fault := _shape_fault(output, reference)) is not None:
            return fault
        if not output.numel():
            return {"error": 0.0, "tolerance": self.reach, "message": ""}
        if bool((_bytes(output) & 0x7F == 0x7F).any()):  # first: NaN is what unwritten codes are
            return {"error": float("inf"), "tolerance": self.reach, "message": "there are NaN codes"}
        quotients = reference.clamp(-FP8_MAX, FP8_MAX).reshape(-1)
        wanted = quotients.float().to(FP8).float()
        got = output.reshape(-1).float()
        apart = (got != wanted).nonzero()[:, 0]  # +0 and -0 are one
        share = len(apart) / output.numel()
        if not len(apart):
            return {"error": 0.0, "tolerance": self.reach, "differing": share, "message": ""}
        middle = (got[apart].double() + wanted[apart].double()) / 2
        away = (quotients[apart] - middle).abs() / middle.abs().clamp(min=torch.finfo(torch.float64).tiny)
        away = away.nan_to_num(nan=float("inf"))
        error = float(away.max())
        message = ""
        if not self.reach or error > self.reach:
            count = int((away > self.reach).sum()) if self.reach else len(apart)
            row = int(apart[away.argmax()]) // output.shape[-1]
            message = (
                f"{count} of {output.numel()} codes are not the rounded reference, the furthest in row {row}; "
                f"{error:.3g} of a quotient to the middle between the two codes instead of at most {self.reach:.3g}"
            )
        return {"error": error, "tolerance": self.reach, "differing": share, "message": message}


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    """The elements' bytes, one after another (flat: a view as bytes needs a last stride of 1)."""
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def _elementwise(
    output: torch.Tensor, reference: torch.Tensor, tolerance: float, *, relative: bool
) -> Mapping[str, Any]:
    if (fault := _shape_fault(output, reference)) is not None:
        return fault
    if not output.numel():
        return {"error": 0.0, "tolerance": tolerance, "message": ""}
    wanted, got = reference.double(), output.double()
    errors = (got - wanted).abs()
    if relative:
        errors = errors / wanted.abs().clamp(min=torch.finfo(torch.float64).tiny)
    errors = torch.where(torch.isnan(errors), torch.full_like(errors, float("inf")), errors)
    worst = float(errors.max())
    kind = "relative" if relative else "absolute"
    message = f"{kind} error {worst:.3g} instead of at most {tolerance:.3g}" if not worst <= tolerance else ""
    return {"error": worst, "tolerance": tolerance, "message": message}


def _shape_fault(output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any] | None:
    if output.shape == reference.shape:
        return None
    message = f"the shape is {tuple(output.shape)}, the reference has {tuple(reference.shape)}"
    return {"error": float("inf"), "tolerance": 0.0, "message": message}


def _ratio(difference: float, scale: float, floor: float) -> float:
    if difference == 0:
        return 0.0
    return difference / max(scale, floor) if max(scale, floor) > 0 else float("inf")
