"""One decoded token through a stack of layers with the shapes of Qwen 3.5 9B and random weights.

Every layer has two norms with a residual, a token mixer and a gated MLP. The mixer is the gated delta rule in all of
the layers; in the model it is in three of four, and the fourth attends.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.experiments.model import Experiment, Run

LAYERS, HIDDEN, INTERMEDIATE = 32, 4096, 12288
KEY_HEADS, VALUE_HEADS, HEAD = 16, 32, 128
EPSILON = 1e-6

Norm = Callable[[Any, Any, Any], tuple[Any, Any]]
Step = Callable[[Any, Any, Any, Any, Any, Any], Any]


def experiments() -> list[Experiment]:
    """Eager torch, with the fused norm, with the decode kernel too; each as launched and in a CUDA graph."""
    launched = {
        "eager": _stack(_eager_norm, _eager_step),
        "fused norm": _stack(_fused_norm, _eager_step),
        "fused norm, delta rule kernel": _stack(_fused_norm, _fused_step),
    }
    captured = {f"{name}, CUDA graph": factory for name, factory in launched.items()}
    return [
        Experiment(
            name="One token of a 9B model's layers",
            reported="16 tokens a second in eager torch, 50 with the fused norm, 83 with the delta rule's kernel "
            "(Qwen 3.5 9B on a B200)",
            baseline="eager",
            variants=launched | captured,
            work=f"{LAYERS} layers of the shapes of Qwen 3.5 9B with random bf16 weights, one token; "
            "tokens a second are a million divided by the microseconds",
            without_graph=frozenset(launched),
        )
    ]


@dataclass
class _Layer:
    norm_in: Any
    norm_mlp: Any
    mix: Any
    gates: Any
    mixed: Any
    gate_up: Any
    down: Any
    state: Any


@functools.cache
def _layers() -> list[_Layer]:
    """The weights, 14 GB, made once for all variants."""
    import torch  # experiments() must not need it

    def weight(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=torch.bfloat16) / shape[-1] ** 0.5

    width = (2 * KEY_HEADS + VALUE_HEADS) * HEAD
    return [
        _Layer(
            norm_in=weight(HIDDEN),
            norm_mlp=weight(HIDDEN),
            mix=weight(width, HIDDEN),
            gates=weight(2 * VALUE_HEADS, HIDDEN),
            mixed=weight(HIDDEN, VALUE_HEADS * HEAD),
            gate_up=weight(2 * INTERMEDIATE, HIDDEN),
            down=weight(HIDDEN, INTERMEDIATE),
            state=torch.zeros(1, VALUE_HEADS, HEAD, HEAD, device="cuda"),
        )
        for _ in range(LAYERS)
    ]


def _stack(norm: Norm, step: Step) -> Callable[[], Run]:
    def make() -> Run:
        import torch  # as above

        layers = _layers()
        token = torch.randn(1, HIDDEN, device="cuda", dtype=torch.bfloat16)
        linear, silu = torch.nn.functional.linear, torch.nn.functional.silu

        def run() -> object:
            hidden, residual = token, torch.zeros_like(token)
            for layer in layers:
                hidden, residual = norm(hidden, residual, layer.norm_in)
                q, k, v = linear(hidden, layer.mix).split(
                    [KEY_HEADS * HEAD, KEY_HEADS * HEAD, VALUE_HEADS * HEAD], dim=-1
                )
                decay, beta = linear(hidden, layer.gates).float().chunk(2, dim=-1)
                mixed = step(q, k, v, -torch.nn.functional.softplus(decay), beta.sigmoid(), layer.state)
                hidden = linear(mixed.reshape(1, -1), layer.mixed)
                hidden, residual = norm(hidden, residual, layer.norm_mlp)
                gate, up = linear(hidden, layer.gate_up).chunk(2, dim=-1)
                hidden = linear(silu(gate) * up, layer.down)
            return hidden

        return run

    return make


def _eager_norm(x: Any, residual: Any, weight: Any) -> tuple[Any, Any]:
    """The zero-centred norm as a model's code has it: a dozen small kernels."""
    total = x + residual
    values = total.float()
    variance = values.pow(2).mean(-1, keepdim=True)
    values = values * (variance + EPSILON).rsqrt()
    return (values * (1.0 + weight.float())).to(x.dtype), total


def _fused_norm(x: Any, residual: Any, weight: Any) -> tuple[Any, Any]:
    from kernels_smoke.norm.fused_add_rms_norm import fused_add_rms_norm  # imports triton

    return fused_add_rms_norm(x, residual, weight, epsilon=EPSILON, zero_centred=True)


def _eager_step(q: Any, k: Any, v: Any, log_decay: Any, beta: Any, state: Any) -> Any:
    """The recurrence of one token in eager torch; the state [1, value heads, depth, width] is float32."""
    import torch  # as above

    group = VALUE_HEADS // KEY_HEADS

    def heads(x: Any, count: int) -> Any:
        return x.reshape(1, count, HEAD).float()

    query, key = (
        torch.nn.functional.normalize(heads(x, KEY_HEADS), dim=-1).repeat_interleave(group, dim=1) for x in (q, k)
    )
    value = heads(v, VALUE_HEADS)
    state.mul_(log_decay.exp()[..., None, None])
    delta = beta[..., None] * (value - (state * key[..., None]).sum(-2))
    state.add_(key[..., None] * delta[..., None, :])
    return ((state * query[..., None]).sum(-2) * HEAD**-0.5).to(q.dtype)


def _fused_step(q: Any, k: Any, v: Any, log_decay: Any, beta: Any, state: Any) -> Any:
    import torch  # as above

    from kernels_smoke.delta_net.gated_delta_rule_decode import (  # imports triton
        gated_delta_rule_decode,
    )

    index = _index(q.device, torch)
    return gated_delta_rule_decode(
        q.reshape(1, KEY_HEADS, HEAD),
        k.reshape(1, KEY_HEADS, HEAD),
        v.reshape(1, VALUE_HEADS, HEAD),
        log_decay.reshape(1, VALUE_HEADS),
        beta.reshape(1, VALUE_HEADS),
        state,
        index,
        index.reshape(1, 1),
        normalize=True,
    )


_INDICES: dict[Any, Any] = {}


def _index(device: Any, torch: Any) -> Any:
    """Row 0, made once: a graph must not have a copy from the CPU."""
    if device not in _INDICES:
        _INDICES[device] = torch.zeros(1, dtype=torch.int32, device=device)
    return _INDICES[device]
