"""The history of torch's replacement: by an installer's traces, and by a real pip that replaced one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.hosts import INSTALLED, grace, healthy, package, replaced, with_packages
from tests.support.real_environment import RealEnvironment, torch
from tests.support.wheel_facts import findings
from tests.support.wheels import WheelBuilder
from wheel_checks.facts.host.commands import install
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import IndexSetting
from wheel_checks.facts.host.torch.timeline import history, installations, moment_text, replacement

HOUR = 3600.0


def test_what_was_installed_within_two_minutes_belongs_together() -> None:
    early = [package("torch", "2.9.1", installed=100.0), package("triton", "3.5.1", installed=160.0)]
    late = [package("whisperx", "3.7.4", installed=1000.0), package("unknown", "1.0", installed=0.0)]

    first, second = installations([late[0], *early, late[1]])

    assert [p.name for p in first.packages] == ["torch", "triton"]
    assert [p.name for p in second.packages] == ["whisperx"]
    assert (first.moment, first.time) == (160.0, "1970-01-01 00:02:40 UTC")


def test_a_long_run_is_one_as_long_as_it_goes_on() -> None:
    packages = [package(f"p{number}", "1", installed=1.0 + 100 * number) for number in range(30)]

    assert len(installations(packages)) == 1


@pytest.mark.parametrize("moment", [1e300, -1e300, float("inf"), float("nan")])
def test_impossible_times_are_said_to_be_so(moment: float) -> None:
    assert moment_text(moment) == "an impossible time"


def test_the_history_names_what_was_asked_for_and_counts_libraries() -> None:
    facts = with_packages(healthy(), package("whisperx", "3.7.4", requested=True, installed=INSTALLED + HOUR))

    rows = history(facts)

    assert [time for time, _ in rows] == ["2026-09-21 14:13:20 UTC", "2026-09-21 15:13:20 UTC"]
    assert rows[0][1].startswith("torch 2.11.0 (cu130), asked for; torchvision 0.26.0 (cu130), asked for; ")
    assert rows[0][1].endswith("17 CUDA libraries (by pip)")
    assert rows[1][1] == "whisperx 3.7.4, asked for (by pip)"


def test_a_healthy_environment_shows_no_other_torch() -> None:
    assert replacement(healthy()) is None
    assert replacement(grace()) is None
    assert replacement(HostFacts()) is None
    assert history(HostFacts()) == ()


def orphaned(*packages: str, name: str = "nvidia-nccl-cu12", **fields: Any) -> list[str]:
    """The orphans of a healthy environment with one more library, and packages that require these."""
    users = [package(f"user{number}", "1.0", requires=(text,)) for number, text in enumerate(packages)]
    library = package(name, "2.27.5", **{"installed": INSTALLED - HOUR, **fields})
    found = replacement(with_packages(healthy(), library, *users))
    return [one.name for one in found.orphans] if found else []


def test_a_library_that_nobody_requires_is_an_orphan() -> None:
    assert orphaned() == ["nvidia-nccl-cu12"]


def test_one_that_is_required_here_is_none() -> None:
    assert orphaned("nvidia-nccl-cu12>=2") == []
    assert orphaned('nvidia-nccl-cu12; platform_machine == "x86_64"') == []
    assert orphaned('nvidia-nccl-cu12; extra == "cuda12"') == []  # whether the extra was requested is unknown


def test_one_that_is_required_elsewhere_is_one_all_the_same() -> None:
    assert orphaned('nvidia-nccl-cu12; platform_machine == "aarch64"') == ["nvidia-nccl-cu12"]
    assert orphaned("not a requirement") == ["nvidia-nccl-cu12"]


def test_one_that_was_asked_for_or_is_of_torchs_own_cuda_is_none() -> None:
    assert orphaned(requested=True) == []
    assert orphaned(requested=True, installer="uv") == ["nvidia-nccl-cu12"]  # uv marks everything as requested
    assert orphaned(name="nvidia-nvjpeg-cu13") == []


@pytest.mark.parametrize(
    ("requirement", "pins"),
    [
        ("torch==2.11.0", True),
        ("torch===2.11.0", True),
        ("torch~=2.11.0", True),
        ("torch<2.12", True),
        ("torch>=2.10,<=2.11.0", True),
        ("Torch == 2.11.*", True),
        ("torch>=2.8", False),
        ("torch<3", False),
        ("torch", False),
        ("torch==2.10.0", False),
        ("torchaudio==2.11.0", False),
        ("torch @ file:///wheels/torch.whl", False),
    ],
)
def test_who_pins_this_torch(requirement: str, pins: bool) -> None:
    library = package("nvidia-nccl-cu12", "2.27.5")
    facts = with_packages(healthy(), library, package("whisperx", "3.7.4", requires=(requirement,)))

    found = replacement(facts)

    assert found is not None
    assert ("whisperx" in [pinning.name for pinning, _ in found.pinned_by]) == pins


def test_torchvision_is_blamed_only_when_nobody_else_pins_torch() -> None:
    found = replacement(with_packages(healthy(), package("nvidia-nccl-cu12", "2.27.5")))

    assert found is not None
    assert {pinning.name for pinning, _ in found.pinned_by} == {"torchvision", "torchaudio"}


def test_who_was_installed_at_another_time_is_not_blamed() -> None:
    later = package("whisperx", "3.7.4", requires=("torch==2.11.0",), installed=INSTALLED + HOUR)
    found = replacement(with_packages(healthy(), package("nvidia-nccl-cu12", "2.27.5"), later))

    assert found is not None
    assert "whisperx" not in {pinning.name for pinning, _ in found.pinned_by}


# A real pip


def test_a_package_that_pins_torch_is_found_and_the_right_build_brought_back(tmp_path: Path) -> None:
    environment = RealEnvironment(tmp_path)
    names = ("nvidia-cublas-cu12", "nvidia-cudnn-cu12", "nvidia-nccl-cu12")
    libraries = [WheelBuilder(name.replace("-", "_"), "12.8.4") for name in names]
    builds = [torch(f"{release}+cu128", "cu128", "12.8", *names) for release in ("2.9.1", "2.10.0")]
    own = environment.index("own", *builds, *libraries)  # in place of PyTorch's own
    user = WheelBuilder("whisperx", "3.7.4").metadata(requires=["torch==2.9.1"])
    package_index = environment.index("packages", torch("2.9.1", "cpu", ""), user)
    environment.run(f"uv pip install -q --python {environment.python} --index-url {own} torch")
    environment.age()
    environment.run(f"{environment.pip} install -q --index-url {package_index} whisperx")

    facts = environment.facts()
    (found,) = findings("DOC103", facts)

    assert found.message.startswith("torch 2.9.1+cpu, which was installed ")
    assert "together with whisperx 3.7.4 (torch==2.9.1), has replaced another build" in found.message
    shown = {item.label: item.value for item in found.evidence}
    assert shown["no longer required by any distribution"] == f"3: {', '.join(names)}"
    assert shown["requested"] == "no: another package required it"
    assert [rule for rule in ("DOC101", "DOC102", "DOC104", "DOC105") if findings(rule, facts)] == []

    environment.follow(*install(facts, "torch==2.9.1", force=True, index=own))

    assert environment.torch() == "2.9.1+cu128"
    assert findings("DOC103", environment.facts()) == []


def test_an_extra_index_that_pip_outbids_is_found_and_uv_takes_the_named_build(tmp_path: Path) -> None:
    environment = RealEnvironment(tmp_path)
    extra = environment.index("whl/cu128", torch("2.11.0+cu128", "cu128", "12.8"))
    package_index = environment.index("packages", torch("2.12.0", "cu130", "13.0"))
    environment.run(f"{environment.pip} install -q --index-url {package_index} --extra-index-url {extra} torch")
    settings = (IndexSetting("pip", "extra-index", extra, "PIP_EXTRA_INDEX_URL"),)
    older = replaced(replace(environment.facts(), indexes=settings), "cuda", driver_cuda=12080)

    (found,) = findings("DOC104", older)

    assert found.message.startswith("torch 2.12.0 of the package index was selected, not the cu128 build")
    assert findings("DOC105", older) == []  # one cause speaks

    environment.follow(*install(older, "torch", force=True, index=extra))

    assert environment.torch() == "2.11.0+cu128"
    mended = replaced(replace(environment.facts(), indexes=settings), "cuda", driver_cuda=12080)
    assert findings("DOC104", mended) == findings("DOC105", mended) == []
