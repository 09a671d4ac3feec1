"""The gated delta rule: chunks instead of a Python loop, and states found by their row instead of copied."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.experiments.model import Experiment, Run

REQUESTS, DRAFTS, HEADS = 64, 4, (16, 32)
TOKENS = 8192
SEED = 20261120

Prepare = Callable[[Any], Run]


def experiments() -> list[Experiment]:
    """Prefill, decoding, and the verification of drafts."""
    chunk, decode = "gated_delta_rule_chunk", "gated_delta_rule_decode"
    prompt = {"lengths": (TOKENS,), "heads": HEADS, "batch": False, "initial": False, "packed": True}
    token = {"requests": REQUESTS, "rows": REQUESTS, "heads": HEADS, "packed": True, "in_place": True}
    rows = REQUESTS * (1 + DRAFTS)
    verify = {"requests": REQUESTS, "rows": rows, "steps": DRAFTS, "heads": HEADS, "packed": True}
    return [
        Experiment(
            name=f"Gated delta rule, {TOKENS} tokens",
            reported="the kernels of the delta rule take a 9B model from 50 to 83 tokens a second (B200)",
            baseline="loop over chunks",
            variants={
                "loop over chunks": _on(chunk, prompt, _eager(chunk)),
                "FLA": _on(chunk, prompt, _peer(chunk)),
                "state on chip": _on(chunk, prompt, _ours(chunk)),
            },
            work=f"{HEADS[0]} key and {HEADS[1]} value heads of 128, bf16, one sequence",
        ),
        Experiment(
            name=f"Gated delta rule, one token of {REQUESTS} requests",
            reported="the state is read once and written once (no figure)",
            baseline="eager torch",
            variants={
                "eager torch": _on(decode, token, _eager(decode)),
                "FLA": _on(decode, token, _peer(decode)),
                "one pass over the state": _on(decode, token, _ours(decode)),
            },
            work=f"{REQUESTS} states of {HEADS[1]} x 128 x 128 in float32",
        ),
        Experiment(
            name=f"Verification of {DRAFTS} drafted tokens",
            reported="no copy of a state in a decoding step (TokenSpeed's index indirection)",
            baseline="accepted state copied",
            variants={
                "accepted state copied": _on(decode, verify, _copied),
                "row numbers": _on(decode, verify, _ours(decode)),
            },
            work=f"{REQUESTS} requests; every token's state goes to its own row",
        ),
    ]


def _on(name: str, shape: Mapping[str, Any], prepare: Prepare) -> Callable[[], Run]:
    """A variant of the kernel ``name`` on inputs of ``shape``, which are drawn as for the suite."""

    def make() -> Run:
        from kernels_smoke.suite.correctness.draw import Draw  # imports torch, which experiments() must not need

        return prepare(_kernel(name).inputs(Draw(SEED, "cuda"), **shape))

    return make


def _kernel(name: str) -> Any:
    from kernels_smoke.suite import registry  # as above

    return registry.load(registry.entry(name))


def _ours(name: str) -> Prepare:
    def prepare(inputs: Any) -> Run:
        from kernels_smoke.suite.correctness.draw import Draw  # imports torch

        kernel = _kernel(name)
        module, outputs = importlib.import_module(kernel.module), Draw(SEED, "cuda").outputs(kernel.outputs(inputs))
        return lambda: kernel.launch(module, inputs, outputs)

    return prepare


def _eager(name: str) -> Prepare:
    def prepare(inputs: Any) -> Run:
        from benchmarks.eager import EAGER  # imports torch

        return lambda: EAGER[name](inputs)

    return prepare


def _peer(name: str) -> Prepare:
    def prepare(inputs: Any) -> Run:
        from benchmarks.peers import PEERS  # imports torch

        return PEERS[name]["FLA"](inputs)

    return prepare


def _copied(inputs: Any) -> Run:
    """The same kernel; then the state of the last token, as if all were accepted, is copied to the working row."""
    verify = _ours("gated_delta_rule_decode")(inputs)
    states, working = inputs["states"], inputs["state_indices_in"].long()
    accepted = inputs["state_indices_out"][:, -1].long()

    def run() -> object:
        verify()
        return states.index_copy_(0, working, states.index_select(0, accepted))

    return run
