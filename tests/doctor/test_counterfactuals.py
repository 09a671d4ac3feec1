"""CUDA asked again without one variable, which proves its guilt: real loaders, real libraries, real crashes."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.hosts import healthy
from tests.support.patience import PATIENCE
from tests.support.probing import known, probe
from tests.support.stub_driver import build, variables
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.presence import shows_gpu
from wheel_checks.facts.host.probes import CRASHED, HUNG, ChildEnd, Counterfactual
from wheelproof.doctor import children
from wheelproof.doctor.probes import dangerous


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("driver"))


@pytest.fixture
def found_last(driver: Path, tmp_path: Path) -> str:
    """An interpreter for which the driver is in the system's place: after everything in LD_LIBRARY_PATH."""
    python = tmp_path / "python"
    search = "${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}"
    script = f'#!/bin/sh\nexport LD_LIBRARY_PATH="{search}{driver}"\nexec {sys.executable} "$@"\n'
    python.write_text(script, encoding="utf-8")
    python.chmod(0o755)
    return str(python)


def trials(environment: dict[str, str], python: str) -> dict[str, Counterfactual]:
    return {trial.label: trial for trial in probe(environment, python=python).counterfactuals}


def preload(folder: Path, constructor: str) -> str:
    """A library for LD_PRELOAD that does this when it is loaded."""
    source = (
        f"#include <stdlib.h>\n#include <unistd.h>\n__attribute__((constructor)) void act(void) {{ {constructor} }}\n"
    )
    (folder / "hook.c").write_text(source, encoding="ascii")
    subprocess.run(["gcc", "-shared", "-fPIC", "-w", "-o", folder / "hook.so", folder / "hook.c"], check=True)
    return str(folder / "hook.so")


@pytest.mark.parametrize("value", ["", "-1", "7", "GPU-deadbeef"])
def test_a_variable_that_hides_the_gpu(found_last: str, value: str) -> None:
    tried = trials(variables(CUDA_VISIBLE_DEVICES=value), found_last)

    assert list(tried) == ["without CUDA_VISIBLE_DEVICES"]
    proof = tried["without CUDA_VISIBLE_DEVICES"]
    assert (proof.value, proof.before, proof.after, proof.proves) == (value, (100, 0), (0, 1), True)
    assert proof.summary == "cuInit 0, 1 device (with it: 100)"


def test_a_list_that_ends_too_early(found_last: str) -> None:
    tried = trials(variables(CUDA_VISIBLE_DEVICES="0,9", STUB_GPUS="4"), found_last)

    proof = tried["without CUDA_VISIBLE_DEVICES"]
    assert proof.proves
    assert proof.summary == "cuInit 0, 4 devices (with it: 0, 1 device)"


def test_a_selection_that_is_meant_is_not_tried(found_last: str) -> None:
    assert trials(variables(CUDA_VISIBLE_DEVICES="2,1", STUB_GPUS="4"), found_last) == {}


def test_a_stub_in_ld_library_path(found_last: str, tmp_path: Path) -> None:
    stubs = build(tmp_path / "stubs", only="cuda", version="", DEFAULT_CUINIT=34)

    tried = trials(variables(stubs), found_last)

    assert {label: trial.proves for label, trial in tried.items()} == {"without LD_LIBRARY_PATH": True}
    assert tried["without LD_LIBRARY_PATH"].summary == "cuInit 0, 1 device (with it: 34)"


def test_the_one_entry_of_ld_library_path_that_is_guilty(found_last: str, tmp_path: Path) -> None:
    compat = build(tmp_path / "cuda-13.0" / "compat", only="cuda", DEFAULT_CUINIT=803)
    innocent = tmp_path / "lib"
    innocent.mkdir()

    tried = trials(variables(innocent, compat), found_last)

    guilty = tried[f"without {compat} in LD_LIBRARY_PATH"]
    assert (guilty.entry, guilty.before, guilty.after) == (str(compat), (803, 0), (0, 1))
    assert list(tried) == [guilty.label, "without LD_LIBRARY_PATH"]


def test_a_folder_with_a_libcuda_of_its_own_is_suspicious_whatever_its_name(found_last: str, tmp_path: Path) -> None:
    own = build(tmp_path / "my-libraries", only="cuda", DEFAULT_CUINIT=999)

    assert trials(variables(own, tmp_path), found_last)[f"without {own} in LD_LIBRARY_PATH"].proves


def test_a_preloaded_stub(found_last: str, tmp_path: Path) -> None:
    stubs = build(tmp_path / "stubs", only="cuda", DEFAULT_CUINIT=34)

    tried = trials(variables(LD_PRELOAD=str(stubs / "libcuda.so.1")), found_last)

    assert tried["without LD_PRELOAD"].summary == "cuInit 0, 1 device (with it: 34)"


def test_a_preloaded_library_that_crashes_every_process(found_last: str, tmp_path: Path) -> None:
    hook = preload(tmp_path, 'if (access("/proc/self/exe", F_OK) == 0 && getenv("CRASH_HERE")) abort();')

    tried = trials(variables(LD_PRELOAD=hook, CRASH_HERE="1"), found_last)

    proof = tried["without LD_PRELOAD"]
    assert (proof.before, proof.after, proof.proves) == ((CRASHED, 0), (0, 1), True)
    assert proof.summary == "cuInit 0, 1 device (with it: a crash)"


def test_a_library_that_makes_cuinit_hang(found_last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dangerous, "CUDA_SECONDS", 1.0)
    hook = preload(tmp_path, 'setenv("STUB_HANG", "cuInit", 1);')

    tried = trials(variables(LD_PRELOAD=hook), found_last)

    assert (tried["without LD_PRELOAD"].before, tried["without LD_PRELOAD"].after) == ((HUNG, 0), (0, 1))


def test_an_innocent_variable_is_not_convicted(found_last: str, tmp_path: Path) -> None:
    tried = trials(variables(tmp_path, STUB_CUINIT="802", CUDA_VISIBLE_DEVICES="0"), found_last)

    assert [trial.proves for trial in tried.values()] == [False, False]
    assert tried["without CUDA_VISIBLE_DEVICES"].summary == "cuInit 802 (with it: 802)"


def test_a_machine_that_works_is_left_alone(driver: Path) -> None:
    assert probe(variables(driver)).counterfactuals == ()


def test_variables_that_cuinit_does_not_read_are_not_tried(driver: Path) -> None:
    environment = variables(
        driver, STUB_CUINIT="999", CUDA_DEVICE_ORDER="PCI_BUS_ID", NVIDIA_VISIBLE_DEVICES="all", CUDA_HOME="/usr"
    )

    assert [trial.variable for trial in probe(environment).counterfactuals] == ["LD_LIBRARY_PATH"]


def side_by_side(monkeypatch: pytest.MonkeyPatch, trials: int) -> None:
    """Let each trial begin when all of them are there, and none when they come one after another."""
    together, run_child = threading.Barrier(trials, timeout=PATIENCE), children.run_child

    def run(command: Sequence[str], *, environment: Mapping[str, str], **options: Any) -> tuple[ChildEnd, bytes]:
        if command[-1].endswith("cuda.py") and dict(environment) != first.setdefault("environment", dict(environment)):
            together.wait()
        return run_child(command, environment=environment, **options)

    first: dict[str, dict[str, str]] = {}
    monkeypatch.setattr(dangerous, "run_child", run)


def test_hanging_trials_take_the_time_of_one(found_last: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dangerous, "CUDA_SECONDS", 1.0)
    monkeypatch.setattr(dangerous, "EXPERIMENT_SECONDS", 1.0)
    side_by_side(monkeypatch, trials=7)
    environment = variables(
        *(build(tmp_path / f"stubs{number}", only="cuda") for number in range(5)),
        STUB_HANG="cuInit",
        CUDA_VISIBLE_DEVICES="0",
        CUDA_MPS_PIPE_DIRECTORY="/tmp/mps",
        CUDA_INJECTION64_PATH="/tmp/none.so",
        LD_PRELOAD=preload(tmp_path, ""),
    )

    tried = trials(environment, found_last)

    assert len(tried) == 7  # five variables, and not more than two entries alone
    assert not any(trial.proves for trial in tried.values())


def test_signs_of_a_gpu() -> None:
    facts = healthy()

    assert shows_gpu(known())
    assert shows_gpu(HostFacts(driver=facts.driver))
    assert shows_gpu(HostFacts(nodes=facts.nodes))
    assert not shows_gpu(HostFacts())
    assert not shows_gpu(known(gpu=False))
