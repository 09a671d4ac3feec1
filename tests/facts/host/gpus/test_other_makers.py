"""AMD's and Intel's GPUs in the headline, in expectations, and in the answer."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.hosts import healthy, in_container, with_packages, without_gpu
from tests.support.other_hosts import arc, cuda_build, instinct, unbound, unseen
from wheel_checks.facts.gpu.expected import mismatch, parse_host_expectation
from wheel_checks.facts.host.advice import reinstall_torch
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.other_makers import has_code, overridden_target
from wheel_checks.facts.host.gpus.seen import gpus_of
from wheel_checks.facts.host.software import IndexSetting, Installed, Package
from wheel_checks.fixes.commands import in_words
from wheel_checks.formats.gpu.fatbin import find_declared
from wheel_checks.model import Unavailable, Verdict
from wheelproof.doctor.report import examine
from wheelproof.doctor.summary import identity_phrase
from wheelproof.doctor.verdict import answer_host


@pytest.mark.parametrize(
    ("facts", "gpus"),
    [
        (instinct(), "2 x AMD Instinct MI300X"),
        (unseen(instinct()), "2 x AMD GPU 1002:74a1 (gfx942)"),
        (unbound(instinct()), "2 x AMD GPU 1002:74a1"),
        (cuda_build(instinct()), "2 x AMD GPU 1002:74a1 (gfx942)"),
        (arc(), "Intel(R) Arc(TM) B580 Graphics"),
        (unbound(arc()), "Intel GPU 8086:e20b"),
        (without_gpu(healthy()), "Intel GPU 8086:46a6"),
        (replace(without_gpu(healthy()), pci=()), "no GPU"),
        (healthy(), "NVIDIA H200 (9.0)"),
    ],
)
def test_the_headline_names_the_gpus_that_are_there(facts: HostFacts, gpus: str) -> None:
    assert identity_phrase(facts).partition(", ")[0] == gpus


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        (instinct(), "torch 2.11.0+rocm7.2 computes on 2 x AMD Instinct MI300X"),
        (arc(), "torch 2.11.0+xpu computes on Intel(R) Arc(TM) B580 Graphics"),
    ],
)
def test_what_computes_passes(facts: HostFacts, sentence: str) -> None:
    found = examine(facts)
    answer = answer_host(facts, found.diagnosis, found.results, None)
    assert (answer.verdict, answer.sentence) == (Verdict.PASS, sentence)
    assert not found.diagnosis.others


@pytest.mark.parametrize("facts", [unseen(instinct()), unseen(arc()), in_container(unseen(instinct()))])
def test_a_gpu_that_torch_does_not_see_never_passes(facts: HostFacts) -> None:
    found = examine(facts)
    answer = answer_host(facts, found.diagnosis, found.results, None)
    assert answer.verdict is Verdict.UNDECIDED
    assert answer.sentence == "torch does not see the GPU, and the cause was not found"


@pytest.mark.parametrize(
    ("expected", "facts", "fits"),
    [
        ("rocm", instinct(), True),
        ("2 x MI300X", instinct(), True),
        ("gfx942", unseen(instinct()), True),
        ("MI250X", unseen(instinct()), False),
        ("rocm", arc(), False),
        ("xpu", arc(), True),
        ("gpu", without_gpu(healthy()), False),
    ],
)
def test_what_is_expected(expected: str, facts: HostFacts, fits: bool) -> None:  # a table
    gpus = gpus_of(facts)
    assert not isinstance(gpus, Unavailable)
    assert (mismatch(parse_host_expectation(expected), gpus) == "") is fits


@pytest.mark.parametrize(
    ("value", "target"), [("10.3.0", "gfx1030"), ("9.0.10", "gfx90a"), ("gfx1030", ""), ("", ""), ("1.2.3.4", "")]
)
def test_the_target_that_a_variable_names(value: str, target: str) -> None:
    assert overridden_target(replace(healthy(), variables={"HSA_OVERRIDE_GFX_VERSION": value})) == target


def test_code_of_a_group_runs_on_its_members() -> None:
    assert has_code(("gfx11-generic",), "gfx1103")
    assert not has_code(("gfx1100",), "gfx1103")


def test_a_build_for_rocm_declares_its_targets() -> None:
    library = b"\x7fELF\0gfx90a gfx942:sramecc+:xnack- gfx1100\0sm_80 sm_90\0"
    code = find_declared([library], amd=True)
    assert code is not None
    assert list(code.counts) == ["gfx90a", "gfx942:sramecc+:xnack-", "gfx1100"]


def without_torch(facts: HostFacts) -> HostFacts:
    assert isinstance(facts.installed, Installed)
    return replace(facts, installed=Installed((), None), torch=Unavailable("torch is missing"))


@pytest.mark.parametrize(("facts", "backend"), [(without_torch(instinct()), "rocm7.2"), (without_torch(arc()), "xpu")])
def test_the_advice_is_the_build_for_the_gpu_that_is_there(facts: HostFacts, backend: str) -> None:
    first, *_ = reinstall_torch(facts).commands
    assert f"--torch-backend={backend} torch==2.11.0" in in_words(first)


def test_the_advice_goes_past_no_configured_index_and_no_requirement() -> None:
    mirror = IndexSetting("pip", "index", "https://wheels.corp.example/simple", "/etc/pip.conf:2")
    assert reinstall_torch(replace(cuda_build(instinct()), indexes=(mirror,))).commands == ()
    user = Package("vllm", "0.9", "/opt/env", requires=("torch==2.9.0",))
    pinned = with_packages(cuda_build(instinct()), user)
    assert "vllm 0.9 requires torch==2.9.0" in reinstall_torch(pinned).summary
    assert reinstall_torch(pinned).commands == ()
