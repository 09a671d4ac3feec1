"""The marks that a run leaves in Triton's cache: their inputs and their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels_smoke.suite.compiling.warm_cache import Marks, marks

KERNELS, VERSIONS = ("norm", "attention"), ("2.11.0", "3.6.0")


def here(cache: Path, **variables: str) -> Marks:
    return marks("sm_90", VERSIONS, {"TRITON_CACHE_DIR": str(cache), **variables})


@pytest.mark.parametrize(
    ("kernels", "level", "covered"),
    [
        (KERNELS, "full", True),
        (KERNELS, "quick", True),  # which runs less
        (KERNELS, "deep", False),
        (("norm",), "full", True),
        ((*KERNELS, "muon"), "quick", False),
    ],
)
def test_what_a_run_covers(kernels: tuple[str, ...], level: str, covered: bool, tmp_path: Path) -> None:
    assert not here(tmp_path).cover(kernels, level)
    here(tmp_path).leave(KERNELS, "full")
    assert here(tmp_path).cover(kernels, level) is covered


@pytest.mark.parametrize(
    ("target", "versions", "variables"),
    [
        ("sm_100", VERSIONS, {}),
        ("sm_90", ("2.11.0", "3.7.1"), {}),
        ("sm_90", VERSIONS, {"TRITON_PTXAS_PATH": "/opt/ptxas"}),
    ],
)
def test_what_was_compiled_otherwise_leaves_other_marks(
    tmp_path: Path, target: str, versions: tuple[str, ...], variables: dict[str, str]
) -> None:
    here(tmp_path).leave(KERNELS, "full")
    others = marks(target, versions, {"TRITON_CACHE_DIR": str(tmp_path), **variables})
    assert not others.cover(KERNELS, "full")


def test_other_variables_do_not_matter(tmp_path: Path) -> None:
    assert here(tmp_path, EDITOR="vi") == here(tmp_path)


def test_they_lie_where_triton_keeps_its_cache(tmp_path: Path) -> None:
    assert marks("sm_90", VERSIONS, {"TRITON_HOME": str(tmp_path)}).folder == tmp_path / ".triton" / "cache"


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    here(tmp_path / "file").leave(KERNELS, "full")
    assert not here(tmp_path / "file").cover(KERNELS, "full")
