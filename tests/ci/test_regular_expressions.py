"""The lint that refuses what CPython before 3.11.5 matches wrongly."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ci.regular_expressions import refused

LINT = Path(__file__).parents[2] / "ci/regular_expressions.py"


REFUSED = ("(?:ab?c)++", "[^a]++", "a*+", r"\w++", "a?+", "a{2}+", "(?>ab?)", r"\s*+=", "[]a]*+", r"\[++")
ALLOWED = ("a C++ compiler", "libstdc++.so", r"\*+", "[*+?}]+", "+++ b/file", r"(?<=[*+])a+", "(?:a|b)*", "++")


@pytest.mark.parametrize("text", REFUSED)
def test_possessive_quantifiers_and_atomic_groups_are_refused(text: str) -> None:
    assert refused(text)


@pytest.mark.parametrize("text", ALLOWED)
def test_all_else_is_allowed(text: str) -> None:
    assert not refused(text)


def test_the_place_is_shown(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text('"""Matches a++."""\nimport re\nFOUND = re.compile(rb"a*+b")\n')
    done = subprocess.run([sys.executable, LINT, module], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{module}:3: a*+b: possessive")
