"""Muon: the savings of symmetric products, and the Gram form; a step next to one of AdamW, and its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.experiments.model import Experiment, Noted, Run

SHAPES = ((4096, 4096), (4096, 12288), (1024, 4096), (1024, 16384))
STEP = (4096, 12288)
SEED = 20261120


def experiments() -> list[Experiment]:
    """The orthogonalisation alone, and whole optimizer steps."""
    return [
        *(
            Experiment(
                name=f"Newton-Schulz, {rows} x {columns}",
                reported='a "Gram-Schmidt based" iteration is in review (no figure)',
                baseline="eager torch",
                variants={
                    "eager torch": _eager(rows, columns),
                    "symmetric products": _ours(rows, columns),
                    "the Gram matrix": _gram(rows, columns),
                },
                work="5 steps, bf16",
            )
            for rows, columns in SHAPES
        ),
        Experiment(
            name=f"Optimizer step, {STEP[0]} x {STEP[1]}",
            reported="4 bytes of state for each parameter where Adam has 8; 31.4 GiB at most instead of 34.5 for the "
            "fine-tuning of a model of 3B parameters on a GPU of eight (9 % less)",
            baseline="Muon in torch",
            variants={"AdamW (fused)": _adamw, "Muon in torch": _torch_muon, "Muon": _muon},
            work="float32 weight and momentum, iteration in bf16",
            without_graph=frozenset({"AdamW (fused)", "Muon in torch"}),
        ),
    ]


def _normal(*shape: int, dtype: str = "float32") -> Any:
    import torch  # experiments() must not need torch

    generator = torch.Generator("cuda").manual_seed(SEED)
    return torch.randn(*shape, generator=generator, device="cuda").to(getattr(torch, dtype))


def _eager(rows: int, columns: int) -> Callable[[], Run]:
    def make() -> Run:
        from benchmarks.eager_muon import newton_schulz  # imports torch

        x = _normal(rows, columns, dtype="bfloat16")
        return lambda: newton_schulz({"x": x, "out_dtype": x.dtype, "steps": 5})

    return make


def _ours(rows: int, columns: int) -> Callable[[], Run]:
    def make() -> Run:
        from kernels_smoke.muon.newton_schulz import newton_schulz  # imports torch and triton

        x = _normal(rows, columns, dtype="bfloat16")
        out = x.clone()
        return lambda: newton_schulz(x, out=out)

    return make


def _gram(rows: int, columns: int) -> Callable[[], Run]:
    def make() -> Run:
        from kernels_smoke.muon.gram_newton_schulz import gram_newton_schulz  # imports torch and triton

        x = _normal(rows, columns, dtype="bfloat16")
        out = x.clone()
        return lambda: gram_newton_schulz(x, out=out)

    return make


def _stated(run: Run, state: Callable[[], int]) -> Noted:
    """``run`` after a first call, with the bytes of ``state`` that it keeps for each parameter."""
    run()
    return Noted(run, f"{state() / (STEP[0] * STEP[1]):.1f} bytes of state for each parameter")


def _kept(optimizer: Any, weight: Any) -> Callable[[], int]:
    """The bytes that ``optimizer`` keeps of ``weight``."""
    return lambda: sum(value.nbytes for value in optimizer.state[weight].values() if hasattr(value, "nbytes"))


def _adamw() -> Run:
    import torch  # as above

    weight = _normal(*STEP).requires_grad_()
    weight.grad = _normal(*STEP)
    optimizer = torch.optim.AdamW([weight], lr=1e-3, fused=True)
    return _stated(optimizer.step, _kept(optimizer, weight))


def _torch_muon() -> Run:
    import torch  # as above

    if not hasattr(torch.optim, "Muon"):
        raise RuntimeError("torch 2.9 and newer have Muon")
    weight = _normal(*STEP).requires_grad_()
    weight.grad = _normal(*STEP)
    optimizer = torch.optim.Muon([weight], lr=1e-3, adjust_lr_fn="original")
    return _stated(optimizer.step, _kept(optimizer, weight))


def _muon() -> Run:
    from kernels_smoke.muon.muon_step import muon_step  # imports torch and triton

    weight, gradient = _normal(*STEP), _normal(*STEP)
    momentum = gradient.clone()
    return _stated(lambda: muon_step(weight, gradient, momentum, learning_rate=1e-3), lambda: momentum.nbytes)
