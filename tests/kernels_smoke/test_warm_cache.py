"""The mark that a run leaves in Triton's cache: what it depends on, and where it lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernels_smoke.suite.warm_cache import is_filled, leave, mark_of

KERNELS, VERSIONS = ("norm", "attention"), ("2.11.0", "3.6.0")


def mark(cache: Path, **variables: str) -> Path:
    return mark_of(KERNELS, "full", "sm_90", VERSIONS, {"TRITON_CACHE_DIR": str(cache), **variables})


def test_a_cache_is_filled_once_the_mark_was_left(tmp_path: Path) -> None:
    assert not is_filled(mark(tmp_path))
    leave(mark(tmp_path))
    assert is_filled(mark(tmp_path))


@pytest.mark.parametrize(
    ("kernels", "level", "target", "versions", "variables"),
    [
        (("norm",), "full", "sm_90", VERSIONS, {}),
        (KERNELS, "quick", "sm_90", VERSIONS, {}),
        (KERNELS, "full", "sm_100", VERSIONS, {}),
        (KERNELS, "full", "sm_90", ("2.11.0", "3.7.1"), {}),
        (KERNELS, "full", "sm_90", VERSIONS, {"TRITON_PTXAS_PATH": "/opt/ptxas"}),
    ],
)
def test_what_was_compiled_otherwise_leaves_another_mark(
    tmp_path: Path,
    kernels: tuple[str, ...],
    level: str,
    target: str,
    versions: tuple[str, ...],
    variables: dict[str, str],
) -> None:
    environment = {"TRITON_CACHE_DIR": str(tmp_path), **variables}
    assert mark_of(kernels, level, target, versions, environment) != mark(tmp_path)


def test_other_variables_do_not_matter(tmp_path: Path) -> None:
    assert mark(tmp_path, EDITOR="vi") == mark(tmp_path)


def test_it_lies_where_triton_keeps_its_cache(tmp_path: Path) -> None:
    home = mark_of(KERNELS, "full", "sm_90", VERSIONS, {"TRITON_HOME": str(tmp_path)})
    assert home.parent == tmp_path / ".triton" / "cache"


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    leave(mark(tmp_path / "file"))
    assert not is_filled(mark(tmp_path / "file"))
