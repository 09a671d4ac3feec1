"""The answers of a real library to a real child, on a machine with invented files: the right cause for each code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from tests.support.hosts import healthy, hgx, in_container, replaced, with_variables
from tests.support.patients import Patient
from tests.support.probing import probe
from tests.support.stub_driver import build, variables
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.devices import DeviceNode, KernelDriver
from wheel_checks.facts.host.probes import CudaProbe
from wheel_checks.facts.host.software import CudaLibrary
from wheelproof.doctor.diagnosis import Diagnosis
from wheelproof.doctor.report import examine


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("driver"))


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Patient:
    return Patient.make(tmp_path_factory.mktemp("patient") / "venv")


def diagnosed(facts: HostFacts, patient: Patient, environment: dict[str, str], seconds: float = 60) -> Diagnosis:
    """The diagnosis of these files together with what NVML, CUDA and torch really answer in this environment."""
    names = ("LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES")
    facts = with_variables(facts, **{name: environment[name] for name in names if name in environment})
    answers = probe(environment, python=patient.python, seconds=seconds)
    return examine(replace(facts, **answers._asdict())).diagnosis


def closed_nodes(facts: HostFacts) -> HostFacts:
    assert isinstance(facts.nodes, tuple)
    return replace(facts, nodes=tuple(replace(n, mode="0660", group="video", error="EACCES") for n in facts.nodes))


def without_uvm(facts: HostFacts) -> HostFacts:
    assert isinstance(facts.nodes, tuple)
    assert isinstance(facts.driver, KernelDriver)
    nodes = tuple(DeviceNode(n.path, "", "", "", "ENOENT") if "uvm" in n.path else n for n in facts.nodes)
    modules = tuple(name for name in facts.driver.modules if name != "nvidia_uvm")
    majors = tuple(name for name in facts.driver.majors if name != "nvidia-uvm")
    return replace(facts, nodes=nodes, driver=replace(facts.driver, modules=modules, majors=majors))


def sandboxed(facts: HostFacts) -> HostFacts:
    return replaced(in_container(facts, seccomp=2), "container", denied={"memfd_create": "EPERM"})


@dataclass(frozen=True)
class Answer:
    """The library's answer, the machine, and the resulting root."""

    name: str
    root: str
    confidence: str
    stub: dict[str, str] = field(default_factory=dict)
    host: Callable[[], HostFacts] = healthy


ANSWERS = [
    Answer(
        "100, and the nodes are for a group",
        "DOC315",
        "certain",
        {"STUB_CUINIT": "100"},
        lambda: closed_nodes(healthy()),
    ),
    Answer("304, and memfd_create is denied", "DOC509", "proven", {"STUB_CUINIT": "304"}, lambda: sandboxed(healthy())),
    Answer(
        "802, and no fabric manager runs",
        "DOC401",
        "proven",
        {"STUB_CUINIT": "802"},
        lambda: replaced(hgx(1), "services", processes=()),
    ),
    Answer(
        "803 and NVML's 18, and another module is loaded",
        "DOC306",
        "certain",
        {"STUB_CUINIT": "803", "STUB_NVML": "18"},
        lambda: replaced(healthy(), "driver", version="575.57.08"),
    ),
    Answer(
        "999, and nvidia_uvm is not loaded", "DOC308", "proven", {"STUB_CUINIT": "999"}, lambda: without_uvm(healthy())
    ),
    Answer("no device, since CUDA_VISIBLE_DEVICES is empty", "DOC601", "proven", {"CUDA_VISIBLE_DEVICES": ""}),
    Answer("no device, since CUDA_VISIBLE_DEVICES names none", "DOC602", "proven", {"CUDA_VISIBLE_DEVICES": "4"}),
    Answer("CUDA 12.8, and torch wants 13", "DOC105", "certain", {"STUB_CUDA_VERSION": "12080"}),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: answer.name)
def test_every_code_has_its_cause(patient: Patient, driver: Path, answer: Answer) -> None:
    found = diagnosed(answer.host(), patient, variables(driver, **answer.stub))

    assert found.root, found
    assert (found.root.rule, found.confidence, found.unexplained) == (answer.root, answer.confidence, ())


def test_a_stub_for_linking_is_proven_by_leaving_its_folder_out(patient: Patient, driver: Path, tmp_path: Path) -> None:
    stubs = build(tmp_path / "lib64" / "stubs", version="", only="cuda", DEFAULT_CUINIT=34)
    found = diagnosed(healthy(), patient, variables(stubs, driver))

    assert found.root
    assert (found.root.rule, found.confidence) == ("DOC311", "proven")
    assert any(e.label.startswith(f"without {stubs} in LD_LIBRARY_PATH") for e in found.proof)


def test_a_compatibility_library_on_other_hardware(patient: Patient, driver: Path, tmp_path: Path) -> None:
    compat = build(tmp_path / "cuda-13.2" / "compat", version="595.71.05", only="cuda", DEFAULT_CUINIT=804)
    facts = healthy()
    library = CudaLibrary(
        "libcuda.so.1", f"{compat}/libcuda.so.1", "595.71.05", "compat", "LD_LIBRARY_PATH", 90_000_000
    )
    facts = replaced(facts, "loader", cuda_libraries=(library,))
    found = diagnosed(facts, patient, variables(compat, driver))

    assert found.root
    assert (found.root.rule, found.confidence) == ("DOC313", "proven")


def test_a_driver_that_hangs(patient: Patient, driver: Path) -> None:
    found = diagnosed(healthy(), patient, variables(driver, STUB_HANG="cuInit"), seconds=6)

    assert found.root
    assert (found.root.rule, found.confidence) == ("DOC318", "certain")


def test_a_driver_that_dies_without_a_known_cause_is_reported_so(patient: Patient, driver: Path) -> None:
    found = diagnosed(healthy(), patient, variables(driver, STUB_CRASH="cuInit"))

    assert (found.root, found.unexplained) == (None, ("cuda:signal",))


def test_a_driver_that_works(patient: Patient, driver: Path) -> None:
    facts = healthy()
    assert isinstance(facts.cuda, CudaProbe)

    assert diagnosed(facts, patient, variables(driver)) == Diagnosis(())
