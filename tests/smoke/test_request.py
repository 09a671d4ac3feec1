"""A request, as options of the suite and as the command that repeats it."""

from __future__ import annotations

import sys

from wheel_checks.fixes.commands import in_words
from wheelproof.smoke.request import SmokeRequest


def test_a_run_is_repeated_by_its_seed() -> None:
    request = SmokeRequest("/opt/my venv/bin/python", level="full", only=("norm", "scaled_mm"))

    assert request.options() == ["--device", "cuda", "--level", "full", "--only", "norm,scaled_mm"]
    assert in_words(request.replay(7)) == (
        "wheelproof smoke --device cuda --level full --only norm,scaled_mm --seed 7 --python '/opt/my venv/bin/python'"
    )
    assert in_words(request.replay(7, "scaled_mm")) == (
        "wheelproof smoke --device cuda --level full --only scaled_mm --seed 7 --python '/opt/my venv/bin/python'"
    )


def test_a_compilation_has_no_device_and_no_seed() -> None:
    request = SmokeRequest(sys.executable, targets=("sm_100", "gfx942"), seed=7)

    assert request.options() == ["--compile-only", "--target", "sm_100,gfx942", "--level", "quick"]
    assert in_words(request.replay(7)) == "wheelproof smoke --compile-only --target sm_100,gfx942 --level quick"


def test_kernels_from_outside_are_named_again() -> None:
    request = SmokeRequest(sys.executable, device="interpret", kernels=("/x/my kernels.py", "a.b"), mutants=True)

    assert request.options() == (
        ["--device", "interpret", "--level", "quick", "--kernels", "/x/my kernels.py", "--kernels", "a.b", "--mutants"]
    )
    assert in_words(request.replay(7, "norm")) == (
        "wheelproof smoke --device interpret --level quick --kernels '/x/my kernels.py' --kernels a.b --mutants "
        "--only norm --seed 7"
    )


def test_only_a_gpu_is_timed_and_not_at_level_quick() -> None:
    assert SmokeRequest("python", level="full").timed
    assert not SmokeRequest("python", level="quick").timed
    assert not SmokeRequest("python", level="full", mutants=True).timed
    assert not SmokeRequest("python", device="interpret", level="full").timed
    assert not SmokeRequest("python", level="full", targets=("sm_90",)).timed


def test_more_work_may_take_longer() -> None:
    quick, full, compiling = (
        SmokeRequest("python", level=level, targets=targets).deadline
        for level, targets in (("quick", ()), ("full", ()), ("quick", ("sm_90", "sm_100")))
    )
    assert quick < full
    assert quick < compiling
