"""Builds of torch in the shape of the real wheels, laid out below their own root: which cause each has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.rules.host.wheels_cases import behind, left_behind, of_package_index, replaced_by, with_cpu_variable
from tests.support.environments import Installed as Folder
from tests.support.hosts import grace, healthy, in_container, package, replaced, with_packages, with_torch
from tests.support.wheel_facts import findings
from tests.support.wheels import WheelBuilder, torch_like
from wheel_checks.catalogue import select_rules
from wheel_checks.facts.host.commands import check_torch
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.probes import CudaGpu
from wheel_checks.facts.host.software import IndexSetting, Installed, Interpreter
from wheel_checks.model import Fix
from wheelproof.doctor.probes.installation.installed import read_installed_facts

SITE_PACKAGES = "opt/env/lib/python3.12/site-packages"
RULES = [rule.id for rule in select_rules("host") if rule.id.startswith(("DOC1", "DOC7"))]


def host_with(facts: HostFacts, root: Path, wheel: WheelBuilder) -> HostFacts:
    """The same host with this torch on disk, as the probe reads it."""
    Folder(root, SITE_PACKAGES, installer="pip").install(wheel)
    assert isinstance(facts.interpreter, Interpreter)
    interpreter = replace(facts.interpreter, search_path=(f"/{SITE_PACKAGES}",), working_directory="/")
    installed = read_installed_facts(interpreter, root=str(root))
    assert isinstance(installed, Installed)
    return replace(facts, installed=installed)


@pytest.mark.parametrize(
    ("facts", "wheel", "causes"),
    [
        (grace(), torch_like("cpu", "2.10.0"), ["DOC101"]),
        (grace(), torch_like("cpu", "2.10.0+cpu"), ["DOC102"]),
        (grace(), torch_like("cpu", "2.11.0"), ["DOC102"]),
        (grace(), torch_like("cuda", "2.11.0"), []),
        (grace(), torch_like("rocm", "2.11.0"), ["DOC115"]),
        (healthy(), torch_like("cpu", "2.11.0+cpu", "x86_64"), ["DOC102"]),
        (healthy(), torch_like("cuda", "2.10.0", "x86_64"), []),
        (replaced(healthy(), "cuda", driver_cuda=12080), torch_like("cuda", "2.10.0", "x86_64"), []),
        (replaced(healthy(), "cuda", driver_cuda=12080), torch_like("cuda", "2.11.0", "x86_64"), ["DOC105"]),
        (replaced(healthy(), "cuda", driver_cuda=12020), torch_like("cuda", "2.10.0", "x86_64"), ["DOC106"]),
    ],
    ids=[
        "the CPU wheel of the package index on a Grace host",
        "the CPU wheel of PyTorch's index on a Grace host",
        "a CPU wheel that no index has on a Grace host",
        "a CUDA wheel on a Grace host",
        "a ROCm wheel on a Grace host",
        "the CPU wheel of PyTorch's index on x86_64",
        "a CUDA 12.8 wheel, and a driver for 13.0",
        "a CUDA 12.8 wheel, and a driver for 12.8",
        "a CUDA 13.0 wheel, and a driver for 12.8",
        "a CUDA 12.8 wheel, and a driver for 12.2",
    ],
)
def test_one_cause(tmp_path: Path, facts: HostFacts, wheel: WheelBuilder, causes: list[str]) -> None:
    host = host_with(facts, tmp_path, wheel)

    assert [rule for rule in RULES if findings(rule, host)] == causes


def fix_of(rule: str, facts: HostFacts) -> Fix:
    (found,) = findings(rule, facts)
    assert found.fix is not None
    return found.fix


def test_libraries_of_another_cuda_go_before_the_right_build_comes() -> None:
    """Those whose libraries have their own paths; the others do no harm, and of the same CUDA all are used again."""
    other_cuda = left_behind(of_package_index("2.10.0", requested=False))
    same_cuda = left_behind(of_package_index("2.8.0", requested=False))

    fix = fix_of("DOC103", other_cuda)
    first, second, _ = fix.lines
    assert first == "/opt/env/bin/python -m pip uninstall -y nvidia-cudnn-cu12"
    assert "--torch-backend=cu130" in second
    assert fix.commands[-1] == check_torch(other_cuda)
    assert "--torch-backend=cu128" in fix_of("DOC103", same_cuda).lines[0]


def test_next_time_is_reported_too() -> None:
    summary = fix_of("DOC103", left_behind(replaced_by("torch==2.8.0"))).summary

    assert "--no-deps for whisperx" in summary
    assert "UV_TORCH_BACKEND=cu128" in summary


def test_a_variable_that_asks_for_the_cpu_is_unset_first() -> None:
    fix = fix_of("DOC102", with_cpu_variable())

    assert fix.summary.startswith("Correct the setting in PIP_INDEX_URL.")
    assert fix.lines[0] == "unset PIP_INDEX_URL"
    assert "--torch-backend=cu130" in fix.lines[1]


def test_an_old_driver_leaves_two_ways() -> None:
    host = behind(healthy())
    fix, inside = fix_of("DOC105", host), fix_of("DOC105", in_container(host))

    assert "--torch-backend=cu128" in fix.lines[0]
    assert "Or install driver 580 or later: `sudo apt-get install nvidia-driver-580-server-open`" in fix.summary
    assert inside.summary.endswith("Or install driver 580 or later on the container's host.")


WORDS = st.one_of(
    st.text(max_size=12),
    st.sampled_from(("13.0", "cu130", "cpu", "2.11.0+cu130", "sm_90", "compute_9999999", "torch==2.11.0", "", "Orin")),
)


@settings(max_examples=30)
@given(
    version=WORDS,
    cuda=WORDS,
    hip=WORDS,
    labels=st.lists(WORDS, max_size=3),
    requirement=WORDS,
    tegra=WORDS,
    libc=st.tuples(WORDS, WORDS),
    python=WORDS,
    setting=st.tuples(WORDS, WORDS, WORDS, WORDS),
    capability=st.tuples(st.integers(-9, 999), st.integers(-9, 99)),
    driver=st.integers(-99, 10**9),
    moment=st.floats(),
)
def test_any_facts_are_judged(
    version: str,
    cuda: str,
    hip: str,
    labels: list[str],
    requirement: str,
    tegra: str,
    libc: tuple[str, str],
    python: str,
    setting: tuple[str, str, str, str],
    capability: tuple[int, int],
    driver: int,
    moment: float,
) -> None:
    """A file of facts may say anything: no rule ends with an exception."""
    facts = with_torch(healthy(), version, cuda=cuda, hip=hip, architectures=tuple(labels))
    other = package("nvidia-nccl-cu12", version, requires=(requirement,), installed=moment)
    facts = replaced(with_packages(facts, other), "system", tegra=tegra)
    facts = replaced(facts, "interpreter", libc=libc, version=python)
    facts = replaced(facts, "cuda", driver_cuda=driver, gpus=(CudaGpu(0, "GPU", capability),))
    facts = replace(facts, indexes=(IndexSetting(*setting),))

    for rule in RULES:
        findings(rule, facts)
