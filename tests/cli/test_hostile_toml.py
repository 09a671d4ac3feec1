"""A key of 10,000 parts, for which tomllib alone takes hundreds of megabytes: every command refuses it."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from tests.conftest import Wheelproof

KEY = ".".join(["a"] * 10_000) + " = 1\n"
PROJECT = f"[project]\nname = 'x'\nversion = '1'\n{KEY}"
MOST = 50_000_000  # bytes


@pytest.mark.parametrize(
    ("name", "content", "command", "status"),
    [
        ("pyproject.toml", PROJECT, ("pins", "check", ".", "--installed", "torch==2.7", "--offline"), 3),
        ("pyproject.toml", PROJECT, ("pins", "rewrite", "."), 3),
        ("pyproject.toml", PROJECT, ("pins", "predict", ".", "--offline"), 2),
        ("pyproject.toml", PROJECT, ("stack", "pyproject.toml", "--platform", "x86_64", "--offline"), 2),
        ("uv.toml", KEY, ("verify", "torch==2.7.0", "--offline"), 2),
        ("wheelproof.toml", KEY, ("explain", "log"), 2),
        ("pyproject.toml", f"[tool.wheelproof]\n{KEY}", ("explain", "log"), 2),
    ],
)
def test_a_key_of_many_parts(
    name: str, content: str, command: tuple[str, ...], status: int, wheelproof: Wheelproof
) -> None:
    Path("log").touch()
    Path(name).write_text(content)
    tracemalloc.start()
    try:
        run = wheelproof(*command)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    line = content.count("\n")
    assert run.status == status
    assert f"{name} is not valid TOML: a key has more than 32 parts (line {line})" in run.out + run.err
    assert peak < MOST
