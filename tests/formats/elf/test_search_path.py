"""The tokens of the loader in search paths."""

from __future__ import annotations

import pytest

from wheel_checks.formats.elf.search_path import expand_path


@pytest.mark.parametrize(
    ("path", "expanded"),
    [
        ("$ORIGIN", "torch/lib"),
        ("$ORIGIN/../../nvidia/cu13/lib", "nvidia/cu13/lib"),
        ("${ORIGIN}/../../nvidia/nccl/lib/", "nvidia/nccl/lib"),
        ("$ORIGIN/../../../outside", "../outside"),
        ("/build/$LIB//x", "/build/lib64/x"),
        ("/srv/${LIB}", "/srv/lib64"),
        ("/srv/$PLATFORM/lib", "/srv/aarch64/lib"),
        ("$ORIGINAL/lib", "$ORIGINAL/lib"),
        ("$ORIGIN_2", "$ORIGIN_2"),
        ("${ORIGIN/lib", "${ORIGIN/lib"),
        ("${ORIGIN}al", "torch/libal"),
        ("relative/path", "relative/path"),
        ("", "."),
    ],
)
def test_a_path_in_a_folder(path: str, expanded: str) -> None:
    assert expand_path(path, "torch/lib", platform="aarch64") == expanded


def test_what_is_unknown_stays() -> None:
    assert expand_path("/srv/$PLATFORM", "x") == "/srv/$PLATFORM"
    assert expand_path("$LIB", "x", lib="lib/aarch64-linux-gnu") == "lib/aarch64-linux-gnu"


def test_a_folder_that_looks_like_a_token_is_not_expanded_again() -> None:
    assert expand_path("$ORIGIN/x", "odd/$LIB") == "odd/$LIB/x"
