"""Paged attention measured again: each stage of the kernel and dense attention, and the cost of a launch.

Ringlein et al., "The Anatomy of a Triton Attention Kernel": the stages of one Triton kernel in vLLM, next to
FlashAttention 3. It is not in torch: it is timed if the package fa3-fwd is installed, whose build has no pages;
otherwise cuDNN's dense attention is used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.experiments.model import Experiment, Run
from kernels_smoke.attention.batch import STAGES

REPORTED = (
    "end to end in vLLM (Llama 3.1 8B, batch 1, 500 tokens in, 12,800 out) on an H100, of FlashAttention 3: naive "
    "19.7 %, query blocks 49 %, static grid in a full CUDA graph 98.6 to 105.9 %"
)
SEED = 20261122
MODEL: dict[str, Any] = {"longest": True, "spare": 0}  # by default Llama 3 8B's heads and pages of 16 are drawn


SHARES = (0, 50, 100)  # per cent of the sequences of a batch that decode; the others are prompts
BATCHES = ((4, 2048), (32, 512), (32, 4096))  # sequences, and how long each is


def experiments() -> list[Experiment]:
    """A prompt, decoding of one and of many sequences, a batch of both, and shares of decoding in batches."""
    prompt = {"batch": ((4096, 4096),), **MODEL}
    mixed = {"batch": ((2048, 2048), *((1, 4096),) * 31), **MODEL}
    return [
        Experiment(
            name="paged attention, a prompt of 4096",
            reported=REPORTED,
            baseline="cuDNN, dense",
            variants={**_stages(prompt), **_dense(prompt), "FlexAttention, dense": functools.partial(_flex, prompt)},
            work="137 GF",
        ),
        *(
            Experiment(
                name=f"paged attention, decoding {count} x {length}",
                reported=REPORTED,
                baseline="cuDNN, dense",
                variants={
                    **_stages(decoding),
                    **_dense(decoding),
                    "auto, launched without a graph": functools.partial(_ours, decoding, "auto"),
                },
                work=f"{4096 * count * length / 1e6:.0f} MB of keys and values",
                without_graph=frozenset({"auto, launched without a graph"}),
            )
            for count, length in ((1, 1024), (1, 32768), (64, 2048))
            for decoding in ({"batch": ((1, length),) * count, **MODEL},)
        ),
        Experiment(
            name="paged attention, a prompt of 2048 and 31 sequences decoding at 4096",
            reported="mixed batches are the rule in vLLM; parallel tiled softmax wins where decoding prevails",
            baseline="query_blocks",
            variants=_stages(mixed),
            work="34 GF and 528 MB of keys and values",
        ),
        *(_share(share, count, length) for count, length in BATCHES for share in SHARES),
    ]


def _share(share: int, count: int, length: int) -> Experiment:
    """A batch of which ``share`` per cent of the sequences decode, as in figure 6 of the paper."""
    decoding = count * share // 100
    batch = ((length, length),) * (count - decoding) + ((1, length),) * decoding
    flops = 4 * 128 * 32 * ((count - decoding) * length * (length + 1) // 2 + decoding * length)
    return Experiment(
        name=f"paged attention, {count} sequences of {length}, {share} % decoding",
        reported="figure 6, on an H100: query blocks win with prompts, parallel tiled softmax where all decode, and "
        "flexible tiles (figure 7) in both; FlashAttention 3 is the baseline there",
        baseline="query_blocks",
        variants={stage: run for stage, run in _stages({"batch": batch, **MODEL}).items() if stage != "naive"},
        work=f"{flops / 1e9:.0f} GF and {4096 * count * length / 1e6:.0f} MB of keys and values",
    )


def _stages(shape: Mapping[str, Any]) -> dict[str, Callable[[], Run]]:
    return {stage: functools.partial(_ours, shape, stage) for stage in (*STAGES, "auto")}


def _dense(shape: Mapping[str, Any]) -> dict[str, Callable[[], Run]]:
    names = {"cuDNN, dense": "CUDNN_ATTENTION", "FlashAttention 2, dense": "FLASH_ATTENTION"}
    found: dict[str, Callable[[], Run]] = {
        name: functools.partial(_torch, shape, backend) for name, backend in names.items()
    }
    return {**found, "FlashAttention 3, dense": functools.partial(_flash3, shape)}


def _flash3(shape: Mapping[str, Any]) -> Run:
    from benchmarks.peers import flash_attention_3  # imports torch

    return flash_attention_3(_drawn({**shape, "dense": True}))


def _drawn(shape: Mapping[str, Any]) -> dict[str, Any]:
    import torch  # this module is imported where torch is not

    from kernels_smoke.attention.cases_inputs import draw_inputs  # likewise
    from kernels_smoke.suite.correctness.draw import Draw  # likewise

    return dict(draw_inputs(Draw(SEED, "cuda" if torch.cuda.is_available() else "cpu"), **shape))


def _ours(shape: Mapping[str, Any], variant: str) -> Run:
    from kernels_smoke.attention.cases_inputs import ARGUMENTS  # imports torch
    from kernels_smoke.attention.paged_attention import paged_attention  # likewise

    inputs = {**_drawn(shape), "variant": variant}
    arguments = {name: inputs[name] for name in ARGUMENTS}
    out = inputs["query"].clone()
    return lambda: paged_attention(**arguments, out=out)


def _torch(shape: Mapping[str, Any], backend: str) -> Run:
    from torch.nn.attention import SDPBackend  # as above

    from kernels_smoke.attention.cases_speed import dense  # as above

    return functools.partial(dense, _drawn({**shape, "dense": True}), getattr(SDPBackend, backend))


def _flex(shape: Mapping[str, Any]) -> Run:
    import torch  # as above
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention  # as above

    inputs = _drawn({**shape, "dense": True})
    query = inputs["query"][None].transpose(1, 2)
    keys, values = (inputs[name].transpose(1, 2) for name in ("dense_keys", "dense_values"))
    length = query.shape[2]
    mask = create_block_mask(lambda _b, _h, i, j: i >= j, None, None, length, length, device=query.device.type)
    compiled: Callable[..., object] = torch.compile(flex_attention)
    return lambda: compiled(query, keys, values, block_mask=mask, enable_gqa=True)
